package session

import (
	"cmp"
	"context"
	"slices"
	"sync"
)

// Listing is a directory as it was listed once, for all callers that had asked
// for it by then. It must not be changed.
type Listing struct {
	Names []string

	ready chan struct{} // closed when Names or err is set
	err   error

	mu    sync.Mutex
	views []view
}

type view struct {
	key string
	of  any
}

// View returns the result of make for the listing; make is called once for each
// key.
func (l *Listing) View(key string, make func(names []string) any) any {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.IndexFunc(l.views, func(v view) bool { return v.key == key })
	if at < 0 {
		at, l.views = len(l.views), append(l.views, view{key, make(l.Names)})
	}
	return l.views[at].of
}

// lister lists one directory.
type lister struct {
	next    *Listing // not sent yet: callers that come now share it
	flying  int
	waiting bool // next begins when a listing under way is over

	sharers []Sharer // waiters that share the newest listing, in their order
	newest  *Listing // kept while there are several sharers
}

// Listings are the directories that a session lists, or has listed.
type Listings struct {
	s *Session

	mu sync.Mutex
	of map[string]*lister
}

// listingsAhead is how many listings of a directory are under way at a time.
// Callers that ask meanwhile share the next one: thousands need a few, and a
// single caller does not wait for others.
const listingsAhead = 2

// Get lists a node's children. The listing is begun after the call, so it shows
// what all requests that were sent before have done.
func (ls *Listings) Get(ctx context.Context, path string) (*Listing, error) {
	ls.mu.Lock()
	l, err := ls.next(path)
	ls.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if err := await(ctx, ls.s, l.ready); err != nil {
		return nil, err
	}
	if l.err != nil {
		return nil, l.err
	}
	return l, nil
}

// next returns the listing that is not begun yet; ls.mu is held.
func (ls *Listings) next(path string) (*Listing, error) {
	of := ls.of[path]
	if of == nil {
		of = &lister{}
	}
	if of.next != nil {
		return of.next, nil
	}
	of.next = &Listing{ready: make(chan struct{})}
	of.waiting = of.flying == listingsAhead
	if !of.waiting {
		if err := ls.s.Go(func() { ls.list(path, of) }); err != nil {
			return nil, err
		}
		of.flying++
	}
	ls.of[path] = of
	return of.next, nil
}

// list lists until no caller waits for another listing. It is not bound to the
// context of the first caller.
func (ls *Listings) list(path string, of *lister) {
	for again := true; again; {
		err := ls.s.awaitUp(context.Background())
		ls.mu.Lock()
		l := of.next
		of.next, of.waiting = nil, false
		ls.mu.Unlock()
		if err == nil {
			l.Names, err = ls.s.Children(context.Background(), path)
		}
		l.err = err
		close(l.ready)
		ls.mu.Lock()
		if err == nil {
			of.newest = l
		}
		again = of.waiting
		of.waiting = false
		if !again {
			of.flying--
		}
		ls.tidy(path, of)
		ls.mu.Unlock()
	}
}

// tidy forgets useless listings; ls.mu is held.
func (ls *Listings) tidy(path string, of *lister) {
	if len(of.sharers) < 2 {
		of.newest = nil
	}
	if of.flying == 0 && of.next == nil && len(of.sharers) == 0 {
		delete(ls.of, path)
	}
}

// Sharer is a node in a directory, and its place there.
type Sharer struct {
	Place int32
	Path  string
}

func (s Sharer) compare(place int32) int { return cmp.Compare(s.Place, place) }

// Share has the newest listing of a directory kept for [Listings.Newest] while
// several callers share it, each until it calls [Listings.Unshare].
func (ls *Listings) Share(path string, sharer Sharer) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	of := ls.of[path]
	if of == nil {
		of = &lister{}
		ls.of[path] = of
	}
	at, _ := slices.BinarySearchFunc(of.sharers, sharer.Place, Sharer.compare)
	of.sharers = slices.Insert(of.sharers, at, sharer)
}

// Unshare undoes one Share.
func (ls *Listings) Unshare(path string, place int32) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	of := ls.of[path]
	at, _ := slices.BinarySearchFunc(of.sharers, place, Sharer.compare)
	of.sharers = slices.Delete(of.sharers, at, at+1)
	ls.tidy(path, of)
}

// SharersBefore returns the paths of the n sharers that are nearest before a
// place, or nil if there are fewer, or if more than a third of the newest
// listing are other nodes.
func (ls *Listings) SharersBefore(path string, place int32, n int) (paths []string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	of := ls.of[path]
	if of == nil || of.newest == nil || len(of.newest.Names) > len(of.sharers)*3/2 {
		return nil
	}
	at, _ := slices.BinarySearchFunc(of.sharers, place, Sharer.compare)
	if at < n {
		return nil
	}
	for _, sharer := range of.sharers[at-n : at] {
		paths = append(paths, sharer.Path)
	}
	return paths
}

// Newest returns the listing that is kept, or nil.
func (ls *Listings) Newest(path string) *Listing {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if of := ls.of[path]; of != nil {
		return of.newest
	}
	return nil
}
