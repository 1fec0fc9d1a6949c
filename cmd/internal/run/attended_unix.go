//go:build linux || darwin || freebsd || openbsd

package run

import (
	"os"
	"sync"

	"github.com/zkcoord/zkcoord/cmd/internal/guard"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/attend"
)

// attended is the connection to the host's attendant, if there is one. The
// guard keeps it: the session is not closed while the command may act.
type attended struct {
	mu         sync.Mutex
	connection *os.File
	by         *guard.Process
}

// share gets each new connection, before the attendant is told of a session on
// it.
func (a *attended) share(connection *os.File) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.connection != nil {
		_ = a.connection.Close() // an attendant's that is gone
	}
	a.connection = connection
	if a.by != nil {
		a.by.Keep(connection)
	}
}

// guard starts a command under a guard that keeps the connection, and closes
// the client's session if this process is killed.
func (a *attended) guard(client *coord.Client, o guard.Options) (p *guard.Process, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	o.Keep = a.connection
	session, err := attend.SessionOf(client)
	if err != nil {
		session = nil // others wait for its end
	}
	o.Farewell = &guard.Farewell{Input: session, Within: client.SessionTimeout()}
	a.by, err = guard.Start(o)
	return a.by, err
}

// leave has the attendant forget the session, which is left to run out: a
// process of the command may act, and no guard keeps the connection any more.
func (a *attended) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.connection != nil {
		_ = attend.Leave(a.connection) // if it is gone, so is what it was told
	}
}
