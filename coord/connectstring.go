package coord

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"unicode/utf8"
)

const defaultPort = "2181"

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}

// parseServers reads "host:port,host:port/chroot". The port defaults to 2181,
// the chroot to none ("").
func parseServers(s string) (servers []string, chroot string, err error) {
	list := strings.TrimSpace(s)
	if at := strings.IndexByte(list, '/'); at >= 0 {
		list, chroot = list[:at], list[at:]
		if chroot == "/" {
			chroot = ""
		} else if err := checkPath(chroot); err != nil {
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

func parseServer(s string) (string, error) {
	if s == "" {
		return "", invalid("a server is empty; write host:port,host:port/chroot")
	}
	if strings.ContainsAny(s, " \t;") {
		return "", invalid("%q is not one server: servers are separated by commas, as in host:port,host:port", s)
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		if strings.Count(s, ":") > 1 && !strings.HasPrefix(s, "[") {
			return "", invalid("%q: put an IPv6 address in brackets, as in [::1]:2181", s)
		}
		host, port = strings.Trim(s, "[]"), defaultPort
		if strings.Contains(s, ":") && !strings.HasPrefix(s, "[") {
			return "", invalid("%q is not host:port", s)
		}
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return "", invalid("%q: the port must be a number from 1 to 65535", s)
	}
	if host == "" || strings.ContainsAny(host, "\"'@") {
		return "", invalid("%q has no usable host name; write host:port", s)
	}
	return net.JoinHostPort(host, port), nil
}

// checkPath applies the server's rules, so that a mistake is reported before
// anything is sent.
func checkPath(path string) error {
	switch {
	case path == "":
		return invalid("the path is empty")
	case path[0] != '/':
		return invalid("path %q must start with /", path)
	case path == "/":
		return nil
	case strings.HasSuffix(path, "/"):
		return invalid("path %q must not end with /", path)
	case !utf8.ValidString(path):
		return invalid("path %q is not UTF-8", path)
	}
	for _, name := range strings.Split(path[1:], "/") {
		if err := checkName(name); err != nil {
			return fmt.Errorf("path %q: %w", path, err)
		}
	}
	return nil
}

// checkName checks one segment of a path.
func checkName(name string) error {
	switch {
	case name == "":
		return invalid("a name is empty")
	case name == "." || name == "..":
		return invalid("the name %q is not allowed", name)
	case strings.Contains(name, "/"):
		return invalid("the name %q contains /", name)
	}
	for _, r := range name {
		// The servers see each half of a character beyond U+FFFF, a surrogate.
		if r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0 {
			return invalid("the name %q contains the character %U, which ZooKeeper does not allow", name, r)
		}
	}
	return nil
}
