package cli

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"regexp"
	"strings"
	"time"
)

// lookWithin is how long the doctor tries to reach one server.
const lookWithin = 3 * time.Second

// longestAnswer is how much of an answer is read.
const longestAnswer = 64 << 20

// defaultPort is ZooKeeper's.
const defaultPort = "2181"

// addressesOf splits a list of servers into addresses with ports, and the
// chroot.
func addressesOf(servers string) (addresses []string, chroot string) {
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

// ask sends a server one of the commands of four letters. A server that does
// not allow it, or is not there, answers nothing that has to do with it.
func (c *connection) ask(ctx context.Context, address, word string) string {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
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

// mode is a server's part in the ensemble, as the command srvr tells it.
func (c *connection) mode(ctx context.Context, address string) string {
	if found := modeLine.FindStringSubmatch(c.ask(ctx, address, "srvr")); found != nil {
		return found[1]
	}
	return "in a part that it does not tell (srvr is not in 4lw.commands.whitelist)"
}

var sessionID = regexp.MustCompile(`sid=(0x[0-9a-f]+)`)

// connections are the sessions that are connected to a server, as the command
// cons tells them, and whether it did.
func (c *connection) connections(ctx context.Context, address string) (sessions []string, told bool) {
	answer := c.ask(ctx, address, "cons")
	for _, found := range sessionID.FindAllStringSubmatch(answer, -1) {
		sessions = append(sessions, found[1])
	}
	return sessions, strings.Contains(answer, "(queued=") // at least this connection's own
}
