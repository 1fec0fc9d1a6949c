package conn

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// LookWithin is how long a server may take to answer a four-letter command.
const LookWithin = 3 * time.Second

// longestAnswer is how much of an answer is read, in bytes.
const longestAnswer = 64 << 20

// defaultPort is ZooKeeper's.
const defaultPort = "2181"

// AddressesOf splits a list of servers into addresses with ports, and the
// chroot.
func AddressesOf(servers string) (addresses []string, chroot string) {
	list := servers
	if at := strings.IndexByte(servers, '/'); at >= 0 {
		list, chroot = servers[:at], servers[at:]
	}
	for _, address := range strings.Split(list, ",") {
		address = strings.TrimSpace(address)
		if _, _, err := net.SplitHostPort(address); err != nil {
			address = net.JoinHostPort(strings.Trim(address, "[]"), defaultPort)
		}
		addresses = append(addresses, address)
	}
	return addresses, chroot
}

// ask sends a server a four-letter command. From a server that does not allow
// it, the answer is something else; from one that is not there, it is empty.
func (c *Connection) ask(ctx context.Context, address, word string) string {
	ctx, cancel := context.WithTimeout(ctx, LookWithin)
	defer cancel()
	dial := (&net.Dialer{}).DialContext
	if config, err := c.config(); err == nil && config != nil {
		dial = (&tls.Dialer{Config: config}).DialContext
	}
	conn, err := dial(ctx, "tcp", address)
	if err != nil {
		return ""
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	if _, err := conn.Write([]byte(word)); err != nil {
		return ""
	}
	answer, _ := io.ReadAll(io.LimitReader(conn, longestAnswer)) // what came counts
	return string(answer)
}

var modeLine = regexp.MustCompile(`(?m)^Mode: (\w+)$`)

// Mode is a server's role in the ensemble, as the command srvr reports it.
func (c *Connection) Mode(ctx context.Context, address string) string {
	if found := modeLine.FindStringSubmatch(c.ask(ctx, address, "srvr")); found != nil {
		return found[1]
	}
	return "role unknown (srvr is not in 4lw.commands.whitelist)"
}

// connectionLines find a client's address and session in the answers to cons
// and to dump. The answer to cons also has the session's timeout and the time
// of the server's last answer to the client, both in milliseconds.
var connectionLines = map[string]*regexp.Regexp{
	"cons": regexp.MustCompile(
		`(?m)/(\S+)\[[0-9a-f]+\]\((?:.*?sid=(0x[0-9a-f]+)(?:.*?,to=(\d+)(?:.*?,lresp=(\d+))?)?)?`), // this connection has no session
	"dump": regexp.MustCompile(`(?m)ip: \S*/(\S+) sessionId: (0x[0-9a-f]+)()()`),
}

// Remote is what a server says about the client that has a session.
type Remote struct {
	Address string
	Timeout time.Duration // of the session; 0: not known
	Silent  time.Duration // no request has come for so long, at least
}

// Connections are the clients that are connected to a server, by session, as
// cons or else dump lists them. told is false if neither listed anything, not
// even this connection. Silence is measured from the newest answer that the
// server gave to any client, since its clock is not ours.
func (c *Connection) Connections(ctx context.Context, address string) (sessions map[string]Remote, told bool) {
	for _, word := range []string{"cons", "dump"} {
		found := connectionLines[word].FindAllStringSubmatch(c.ask(ctx, address, word), -1)
		if len(found) == 0 {
			continue
		}
		sessions = map[string]Remote{}
		var newest time.Duration
		for _, line := range found {
			newest = max(newest, milliseconds(line[4]))
		}
		for _, line := range found {
			one := Remote{Address: line[1]}
			if line[4] != "" {
				one.Timeout, one.Silent = milliseconds(line[3]), newest-milliseconds(line[4])
			}
			sessions[line[2]] = one
		}
		delete(sessions, "")
		return sessions, true
	}
	return nil, false
}

// milliseconds reads a number of them, 0 if it is none.
func milliseconds(text string) time.Duration {
	n, _ := strconv.ParseInt(text, 10, 64)
	return time.Duration(n) * time.Millisecond
}
