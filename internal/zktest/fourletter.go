package zktest

import (
	"fmt"
	"io"
	"net"
	"regexp"
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

// line returns the rest of the line with that beginning in the server's answer.
func (s *Server) line(word, begin string) (string, error) {
	answer, err := s.FourLetter(word)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(answer) {
		if rest, ok := strings.CutPrefix(line, begin); ok {
			return strings.TrimSpace(rest), nil
		}
	}
	return "", fmt.Errorf("zktest: %s from %s: no line begins with %q", word, s.Addr(), begin)
}

// Mode returns the role the server reports: standalone, leader or follower; ""
// while it serves no clients.
func (s *Server) Mode() string {
	mode, _ := s.line("srvr", "Mode: ")
	return mode
}

// Version returns the version the server reports, such as 3.8.0; "" while it
// serves no clients.
func (s *Server) Version() string {
	text, _ := s.line("srvr", "Zookeeper version: ")
	number, _, _ := strings.Cut(text, "-")
	return number
}

// Mntr returns one number from the server's monitoring output, such as
// zk_watch_count or zk_ephemerals_count.
func (s *Server) Mntr(key string) (int64, error) {
	value, err := s.line("mntr", key+"\t")
	if err != nil {
		return 0, err
	}
	f, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return 0, fmt.Errorf("zktest: mntr %s of %s is %q, not a number", key, s.Addr(), value)
	}
	return int64(f), nil
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

// session is what cons says of the session of a connection.
var session = regexp.MustCompile(`sid=0x([0-9a-f]+),.*,to=(\d+)`)

// sessionTimeouts returns the negotiated timeout of every session that is
// connected to this server.
func (s *Server) sessionTimeouts() (map[int64]time.Duration, error) {
	answer, err := s.FourLetter("cons")
	if err != nil {
		return nil, err
	}
	timeouts := map[int64]time.Duration{}
	for _, match := range session.FindAllStringSubmatch(answer, -1) {
		id, _ := strconv.ParseUint(match[1], 16, 64)
		ms, _ := strconv.Atoi(match[2])
		timeouts[int64(id)] = time.Duration(ms) * time.Millisecond
	}
	return timeouts, nil
}
