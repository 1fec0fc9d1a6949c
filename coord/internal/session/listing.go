package session

import (
	"cmp"
	"context"
	"slices"
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

	sharers []Sharer // waiters that share the newest listing, in their order
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
	if err := await(ctx, s, l.ready); err != nil {
		return nil, err
	}
	if l.err != nil {
		return nil, l.err
	}
	return l, nil
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
	if len(of.sharers) < 2 {
		of.newest = nil
	}
	if of.flying == 0 && of.next == nil && len(of.sharers) == 0 {
		delete(s.listers, path)
	}
}

// Sharer is a node in a directory, and its place there.
type Sharer struct {
	Place int32
	Name  string
}

func (s Sharer) compare(place int32) int { return cmp.Compare(s.Place, place) }

// ShareListings has the newest listing of a directory kept, for
// [Session.NewestListing], while several callers share it, which each ends by
// done.
func (s *Session) ShareListings(path string, sharer Sharer) (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.listers[path]
	if of == nil {
		of = &lister{}
		s.listers[path] = of
	}
	at, _ := slices.BinarySearchFunc(of.sharers, sharer.Place, Sharer.compare)
	of.sharers = slices.Insert(of.sharers, at, sharer)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		at, _ := slices.BinarySearchFunc(of.sharers, sharer.Place, Sharer.compare)
		of.sharers = slices.Delete(of.sharers, at, at+1)
		s.tidyLister(path, of)
	}
}

// SharersBefore returns the names of the n sharers that are nearest before a
// place, or nil if there are not so many, or if more than a third of those in
// the newest listing are others.
func (s *Session) SharersBefore(path string, place int32, n int) (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.listers[path]
	if of == nil || of.newest == nil || len(of.newest.Names) > len(of.sharers)*3/2 {
		return nil
	}
	at, _ := slices.BinarySearchFunc(of.sharers, place, Sharer.compare)
	if at < n {
		return nil
	}
	for _, sharer := range of.sharers[at-n : at] {
		names = append(names, sharer.Name)
	}
	return names
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
