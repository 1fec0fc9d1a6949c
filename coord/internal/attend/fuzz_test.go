package attend

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

var secretive = Session{
	Servers: []string{"zk1:2181"}, ID: 0x1f, Password: []byte("pa55word"), Timeout: time.Minute,
	Auth: []Credential{{"digest", []byte("user:pa55word")}}, TLS: &TLS{Own: []Own{{Key: []byte("pa55word")}}},
}

// For any bytes, Read returns a message or an error, and the error quotes none
// of them. This file imports the standard library alone; see package wire's
// fuzz test.
func FuzzFrames(f *testing.F) {
	whole, err := encode(Message{Attend: &secretive})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte("\x01\xff\xff\xff"))
	f.Add([]byte("\x01\x00\x00\x02{}\x01\x00\x00\x0e{\"leave\":true}"))
	f.Add([]byte("\x01\x00\x00\x34" + `{"attend":{"servers":[""],"tls":{"own":[{"key":""}]}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		for in := bytes.NewReader(b); ; {
			var m Message
			err := Read(in, &m, nil)
			switch {
			case err == nil && m.Attend != nil:
				_ = m.Attend.Validate()
			case err == nil:
			case err == io.EOF, err == io.ErrUnexpectedEOF, errors.Is(err, ErrProtocol):
				if strings.Contains(err.Error(), "pa55word") {
					t.Fatalf("it shows a secret: %v", err)
				}
				return
			default:
				t.Fatalf("another error: %v", err)
			}
		}
	})
}
