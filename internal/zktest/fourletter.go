package zktest

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// answerWithin is how long a server may take for a four-letter word. A stopped
// one takes as long.
const answerWithin = 2 * time.Second

// FourLetter sends a four-letter word and returns the answer.
func (s *Server) FourLetter(word string) (string, error) {
	conn, err := net.DialTimeout("tcp", s.Addr(), time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(answerWithin)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	if err != nil && len(answer) == 0 {
		return "", fmt.Errorf("zktest: %s from %s: %w", word, s.Addr(), err)
	}
	return string(answer), nil
}

// Mode returns the role the server reports: standalone, leader or follower; ""
// while it serves no clients.
func (s *Server) Mode() string { return s.srvr("Mode: ") }

// Version returns the version the server reports, such as 3.8.0; "" while it
// serves no clients.
func (s *Server) Version() string {
	number, _, _ := strings.Cut(s.srvr("Zookeeper version: "), "-")
	return number
}

// srvr returns the rest of the line with that beginning in the server's answer
// to srvr, "" while it serves no clients.
func (s *Server) srvr(begin string) string {
	answer, err := s.FourLetter("srvr")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(answer) {
		if rest, ok := strings.CutPrefix(line, begin); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// Mntr returns one number from the server's monitoring output, such as
// zk_watch_count or zk_ephemerals_count.
func (s *Server) Mntr(key string) (int64, error) {
	answer, err := s.FourLetter("mntr")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(answer) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if !ok || name != key {
			continue
		}
		f, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("zktest: mntr %s of %s is %q, not a number", key, s.Addr(), value)
		}
		return int64(f), nil
	}
	return 0, fmt.Errorf("zktest: mntr of %s has no key %q", s.Addr(), key)
}

// watchPaths returns the paths at and below prefix that are watched through
// this server, once for each session.
func (s *Server) watchPaths(prefix string) ([]string, error) {
	answer, err := s.FourLetter("wchp")
	if err != nil {
		return nil, err
	}
	var watches []string
	path := ""
	for line := range strings.Lines(answer) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "/"):
			path = line
		case strings.HasPrefix(line, "\t0x") && inNamespace(path, prefix):
			watches = append(watches, path)
		}
	}
	return watches, nil
}

// inNamespace reports whether path is prefix or below it.
func inNamespace(path, prefix string) bool {
	rest, ok := strings.CutPrefix(path, prefix)
	return ok && (rest == "" || rest[0] == '/')
}

// sessionTimeouts returns the negotiated time-out of every session that is
// connected to this server.
func (s *Server) sessionTimeouts() (map[int64]time.Duration, error) {
	answer, err := s.FourLetter("cons")
	if err != nil {
		return nil, err
	}
	timeouts := map[int64]time.Duration{}
	for line := range strings.Lines(answer) {
		var id int64
		var timeout time.Duration
		for field := range strings.FieldsFuncSeq(line, func(r rune) bool { return strings.ContainsRune("(),", r) }) {
			if hex, ok := strings.CutPrefix(field, "sid=0x"); ok {
				u, _ := strconv.ParseUint(hex, 16, 64)
				id = int64(u)
			}
			if ms, ok := strings.CutPrefix(field, "to="); ok {
				n, _ := strconv.Atoi(ms)
				timeout = time.Duration(n) * time.Millisecond
			}
		}
		if id != 0 {
			timeouts[id] = timeout
		}
	}
	return timeouts, nil
}
