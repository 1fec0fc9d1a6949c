package session

import (
	"context"
	"sync"
)

// Listing is a directory as it was listed once, for all that asked for it
// before. It must not be changed.
type Listing struct {
	Names []string

	ready chan struct{} // closed when Names or err is set
	err   error

	mu    sync.Mutex
	views map[string]any
}

// View returns what make makes of the listing, which is made once for each key.
func (l *Listing) View(key string, make func(names []string) any) any {
	l.mu.Lock()
	defer l.mu.Unlock()
	view, known := l.views[key]
	if !known {
		if l.views == nil {
			l.views = map[string]any{}
		}
		view = make(l.Names)
		l.views[key] = view
	}
	return view
}

// lister lists one directory.
type lister struct {
	next    *Listing // not asked for yet: callers that ask now share it
	flying  int
	waiting bool // next is begun when one of those under way is over

	sharers int      // waiters that share the newest listing
	newest  *Listing // kept while there are several sharers
}

// listingsAhead is how many listings of a directory are under way at a time.
// Callers that ask meanwhile share the next one: thousands need a few, and a
// single caller does not wait for others.
const listingsAhead = 2

// List lists a node's children. The listing is begun after the call: all that
// the server has answered or was asked before is in it.
func (s *Session) List(ctx context.Context, path string) (*Listing, error) {
	s.mu.Lock()
	l, err := s.nextListing(path)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case <-l.ready:
		if l.err != nil {
			return nil, l.err
		}
		return l, nil
	case <-ctx.Done():
		return nil, Ended(ctx)
	case <-s.ending.Done():
		return nil, s.Err()
	}
}

// nextListing returns the listing that is not begun yet; s.mu is held.
func (s *Session) nextListing(path string) (*Listing, error) {
	of := s.listers[path]
	if of == nil {
		of = &lister{}
	}
	if of.next != nil {
		return of.next, nil
	}
	of.next = &Listing{ready: make(chan struct{})}
	of.waiting = of.flying == listingsAhead
	if !of.waiting {
		if err := s.begin(func() { s.list(path, of) }); err != nil {
			return nil, err
		}
		of.flying++
	}
	s.listers[path] = of
	return of.next, nil
}

// list lists until no caller waits for another listing. It is not bound to the
// context of the first caller.
func (s *Session) list(path string, of *lister) {
	for again := true; again; {
		err := s.awaitUp(context.Background())
		s.mu.Lock()
		l := of.next
		of.next, of.waiting = nil, false
		s.mu.Unlock()
		if err == nil {
			l.Names, err = s.Children(context.Background(), path)
		}
		l.err = err
		close(l.ready)
		s.mu.Lock()
		if err == nil {
			of.newest = l
		}
		again = of.waiting
		of.waiting = false
		if !again {
			of.flying--
		}
		s.tidyLister(path, of)
		s.mu.Unlock()
	}
}

// tidyLister forgets what is of no use; s.mu is held.
func (s *Session) tidyLister(path string, of *lister) {
	if of.sharers < 2 {
		of.newest = nil
	}
	if of.flying == 0 && of.next == nil && of.sharers == 0 {
		delete(s.listers, path)
	}
}

// ShareListings has the newest listing of a directory kept, for
// [Session.NewestListing], while several callers share it, which each ends by
// done.
func (s *Session) ShareListings(path string) (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.listers[path]
	if of == nil {
		of = &lister{}
		s.listers[path] = of
	}
	of.sharers++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		of.sharers--
		s.tidyLister(path, of)
	}
}

// NewestListing returns the listing that is kept, or nil.
func (s *Session) NewestListing(path string) *Listing {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of := s.listers[path]; of != nil {
		return of.newest
	}
	return nil
}
