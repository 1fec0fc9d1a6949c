package virtual

import (
	"net"
	"time"
)

const (
	piece  = 1 << 10 // of what a link carries at a time
	pieces = 256     // that it takes before it has carried them, as the buffer of a socket
)

// Link returns a connection to which a link leads that carries so many bytes in
// a second each way, each of which takes so long.
func Link(to net.Conn, rate func() int, takes time.Duration) net.Conn {
	near, far := net.Pipe()
	go carry(to, far, rate, takes)
	go carry(far, to, rate, takes)
	return near
}

// carry carries what comes from one end to the other, until either has ended.
func carry(to, from net.Conn, rate func() int, takes time.Duration) {
	type taken struct {
		at    time.Time
		bytes []byte
	}
	under := make(chan taken, pieces)
	go func() {
		defer close(under)
		for {
			b := make([]byte, piece)
			n, err := from.Read(b)
			if err != nil {
				return
			}
			under <- taken{time.Now(), b[:n]}
		}
	}()
	var free time.Time // when the link has carried all before
	for t := range under {
		if free.Before(t.at) {
			free = t.at
		}
		free = free.Add(time.Duration(len(t.bytes)) * time.Second / time.Duration(rate()))
		time.Sleep(time.Until(free.Add(takes)))
		if _, err := to.Write(t.bytes); err != nil {
			break
		}
	}
	_ = to.Close()
	_ = from.Close()
	for range under {
	}
}
