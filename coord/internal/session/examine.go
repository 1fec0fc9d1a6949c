package session

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// readFrame reads a packet, whole, with the length before it. The next call may
// use its memory again.
func (w *wire) readFrame() ([]byte, error) {
	head, err := w.in.Peek(lengthSize)
	if err != nil {
		return nil, err
	}
	n := int(int32At(head, 0))
	if n < 0 || n > maxFrame {
		return nil, fmt.Errorf("a frame of %d bytes is not ZooKeeper's protocol", n)
	}
	if n += lengthSize; n > cap(w.frame) || cap(w.frame) > keptBuffer {
		w.frame = make([]byte, n)
	}
	frame := w.frame[:n]
	for read := 0; read < len(frame); {
		m, err := w.in.Read(frame[read:])
		read += m
		if err != nil {
			return nil, err
		}
		if m == 0 {
			return nil, io.ErrNoProgress
		}
		if read < len(frame) {
			w.mu.Lock()
			w.progress = time.Now()
			w.applyDeadline()
			w.mu.Unlock()
		}
	}
	return frame, nil
}

// examine notes what a frame says and returns the part of it that the library
// gets.
func (w *wire) examine(frame []byte) ([]byte, error) {
	body := frame[lengthSize:]
	w.mu.Lock()
	open, began := w.open, w.began
	w.mu.Unlock()
	if !open {
		return frame, w.examineHandshake(body, began)
	}
	if len(body) < replyHeader {
		return nil, fmt.Errorf("a reply of %d bytes is not ZooKeeper's protocol", len(body))
	}
	switch xid := int32At(body, 0); xid {
	case xidClose:
		return nil, io.EOF // which a server sends next
	case xidNotification:
		w.fired(body)
	case xidAuth:
		w.tap.authenticated(int32At(body, 12))
		w.match(xid)
		return nil, nil
	default:
		if r, ok := w.match(xid); ok {
			zxid, code := int64At(body, 4), int32At(body, 12)
			w.watched(r, code)
			w.tap.answered(r, zxid, code)
			if r.tell != nil {
				r.tell(answer{zxid, body[replyHeader:], errorOf(code)})
				return nil, nil
			}
		}
		if xid <= xidProbe {
			return nil, nil
		}
	}
	return frame, nil
}

var errHandshake = errors.New("the server's handshake is not ZooKeeper's")

// examineHandshake reads a connect reply (protocol, time-out, session id,
// password) and, when the session accepts it, sends the credentials ahead of
// everything else.
func (w *wire) examineHandshake(body []byte, began time.Time) error {
	if len(body) < 16 {
		return errHandshake
	}
	timeout := time.Duration(int32At(body, 4)) * time.Millisecond
	id := int64At(body, 8)
	if id != 0 && timeout <= 0 {
		return errHandshake
	}
	probe, err := w.tap.established(id, timeout, began)
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.open, w.stall = true, timeout/stallShare
	passwd, _ := stringAt(body, 16)
	w.passwd = []byte(passwd)
	w.applyDeadline()
	w.mu.Unlock()
	for _, a := range w.creds {
		_, _ = w.Write(authFrame(a))
	}
	if probe != 0 {
		w.probe(probe)
	}
	return nil
}

// match finds the request that a reply belongs to, and takes it off the list.
// Replies come in the order of the requests, so it is nearly always the first.
func (w *wire) match(xid int32) (request, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, r := range w.pending {
		if r.xid == xid {
			if i == 0 { // otherwise the oldest request was passed over
				w.progress = time.Now()
			}
			w.patient = false
			w.pending = slices.Delete(w.pending, i, i+1)
			w.applyDeadline()
			return r, true
		}
	}
	return request{}, false
}

// watched keeps the library's table of watches in step: it registers a watch
// when the request succeeded, or for exists when the node is not there.
func (w *wire) watched(r request, code int32) {
	if !r.watch || (code != 0 && (r.op != opExists || code != codeNoNode)) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	kind := Data // an absent node's watch is lost with these
	if r.op == opGetChildren || r.op == opGetChildren2 {
		kind = Children
	}
	w.watches[armed{r.path, kind}] = struct{}{}
}

// fired forgets the watches that a notification uses up.
func (w *wire) fired(body []byte) {
	event := int32At(body, replyHeader)
	path, _ := stringAt(body, replyHeader+8)
	w.mu.Lock()
	defer w.mu.Unlock()
	if event != eventChildrenChanged {
		delete(w.watches, armed{path, Data})
	}
	if event == eventChildrenChanged || event == eventDeleted {
		delete(w.watches, armed{path, Children})
	}
}
