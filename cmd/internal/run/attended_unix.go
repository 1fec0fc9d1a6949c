//go:build linux || darwin || freebsd || openbsd

package run

import (
	"os"
	"slices"
	"sync"

	"github.com/zkcoord/zkcoord/cmd/internal/guard"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/attend"
)

// attended is the connection to the host's attendant, if there is one. The
// guards keep it: the session is not closed while a command may act.
type attended struct {
	mu         sync.Mutex
	connection *os.File
	by         []*guard.Process
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
	for _, p := range a.by {
		p.Keep(connection)
	}
}

// guard starts a command under a guard that keeps the connection.
func (a *attended) guard(o guard.Options) (*guard.Process, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	o.Keep = a.connection
	p, err := guard.Start(o)
	if err == nil {
		a.by = append(a.by, p)
	}
	return p, err
}

// ended forgets a guard.
func (a *attended) ended(p *guard.Process) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.by = slices.DeleteFunc(a.by, func(other *guard.Process) bool { return other == p })
}

// farewell has the guard close the client's session if this process is killed.
func farewell(client *coord.Client) *guard.Farewell {
	session, err := attend.SessionOf(client)
	if err != nil {
		session = nil // others wait for its end
	}
	return &guard.Farewell{Input: session, Within: client.Info().SessionTimeout}
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
