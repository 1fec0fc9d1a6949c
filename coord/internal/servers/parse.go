package servers

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/zkcoord/zkcoord/coord/internal/wire"
)

// Parse reads "host:port,host:port/chroot". The port defaults to 2181, the
// chroot to none (""). A chroot with a comma is refused: users of other clients
// write a chroot behind each server, and would work on other nodes without a
// warning.
func Parse(s string) (servers []string, chroot string, err error) {
	list := strings.TrimSpace(s)
	if strings.Contains(list, "://") {
		return nil, "", wire.Invalid("server list %q: no scheme: host:port,host:port/chroot", s)
	}
	if at := strings.IndexByte(list, '/'); at >= 0 {
		if strings.Contains(list[at:], ",") {
			return nil, "", wire.Invalid("server list %q: the chroot stands once, behind the last server: %s", s,
				oneChroot(list))
		}
		list, chroot = list[:at], list[at:]
		if chroot == "/" {
			chroot = ""
		} else if err := wire.CheckPlace(chroot); err != nil {
			return nil, "", fmt.Errorf("chroot of %q: %w", s, err)
		}
	}
	for _, server := range strings.Split(list, ",") {
		server, err := parseServer(strings.TrimSpace(server))
		if err != nil {
			return nil, "", fmt.Errorf("server list %q: %w", s, err)
		}
		servers = append(servers, server)
	}
	return servers, chroot, nil
}

// oneChroot returns how a list with a chroot behind several servers should be
// written, if these chroots are the same.
func oneChroot(list string) string {
	var servers []string
	chroots := map[string]bool{}
	for server := range strings.SplitSeq(list, ",") {
		host, chroot, has := strings.Cut(server, "/")
		if servers = append(servers, host); has {
			chroots["/"+chroot] = true
		}
	}
	if len(chroots) != 1 {
		return "host:port,host:port/chroot"
	}
	for chroot := range chroots {
		servers[len(servers)-1] += chroot
	}
	return strings.Join(servers, ",")
}

const defaultPort = "2181"

func parseServer(s string) (string, error) {
	if s == "" {
		return "", wire.Invalid("a server is empty; write host:port,host:port/chroot")
	}
	if strings.ContainsAny(s, " \t;") {
		return "", wire.Invalid("%q is not one server: servers are separated by commas, as in host:port,host:port", s)
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		if strings.Count(s, ":") > 1 && !strings.HasPrefix(s, "[") {
			return "", wire.Invalid("%q: put an IPv6 address in brackets, as in [::1]:2181", s)
		}
		host, port = strings.Trim(s, "[]"), defaultPort
		if strings.Contains(s, ":") && !strings.HasPrefix(s, "[") {
			return "", wire.Invalid("%q is not host:port", s)
		}
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return "", wire.Invalid("%q: the port must be a number from 1 to 65535", s)
	}
	if host == "" || strings.ContainsAny(host, "\"'@") {
		return "", wire.Invalid("%q has no usable host name; write host:port", s)
	}
	return net.JoinHostPort(host, port), nil
}
