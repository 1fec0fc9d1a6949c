package election

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"strconv"
	"sync"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// Priority has the candidates stand with a priority: when a leader's term
// is over, the candidate with the highest one leads next, and of equal ones the
// one that has not stepped aside for another, and then the first in line.
// Nobody takes the lead from one who leads.
//
// A candidate whose turn has come looks who else stands in the line. If one has
// a higher priority, it steps aside, once: it leaves the line, and joins it
// again at the end. The choice is among candidates by this package that stand
// with a priority; those without one, and Curator's and Kazoo's, lead when
// their turn comes. One that joins at that moment may be overlooked.
//
// The look costs a list, and a read of each candidate in line, in two round
// trips; stepping aside costs as much as a campaign. The priority is a line
// behind the data of the candidate's node, which Curator's getParticipants
// shows; in its dialect, getLeader does not.
func Priority(priority int) Option {
	return func(e *Election) error {
		e.rank = &priority
		return nil
	}
}

// The keys of notes ([inspect.Note]): on a candidate's node, its priority; on
// the directory, the node of the candidate that a leader has named.
const (
	priorityKey = "PRIORITY"
	nextKey     = "NEXT"
)

// ranked are the data of a candidate's node.
func (e *Election) ranked(data []byte) []byte {
	if e.rank == nil {
		return data
	}
	return inspect.Note(data, priorityKey, strconv.Itoa(*e.rank))
}

// errAside: another candidate is to lead.
var errAside = errors.New("another candidate goes first")

// mayLead returns errAside if the candidate that is first in line is to step
// behind another: the one that a former leader has named, or one of higher
// priority.
func (e *Election) mayLead(ctx context.Context, h *coord.Hold) error {
	data, _, err := e.client.Get(ctx, e.line.Dir)
	if err != nil && !errors.Is(err, coord.ErrNoAuth) {
		return cmp.Or(h.Err(), err)
	}
	next, named := inspect.Noted(data, nextKey)
	if named && next == path.Base(h.Node()) || !named && e.rank == nil {
		return nil
	}
	names, err := e.client.Children(ctx, e.line.Dir)
	if err != nil {
		return cmp.Or(h.Err(), err)
	}
	others := slices.DeleteFunc(e.line.Order(names, e.client.Info().Dialect),
		func(c coord.Contender) bool { return c.Name == path.Base(h.Node()) })
	if slices.ContainsFunc(others, func(c coord.Contender) bool { return c.Name == next }) {
		return errAside
	}
	if e.rank == nil {
		return nil
	}
	outranked, err := e.outranked(ctx, others)
	if err == nil && outranked {
		return errAside
	}
	return cmp.Or(h.Err(), err)
}

// outranked reports whether one of the candidates states a higher priority.
func (e *Election) outranked(ctx context.Context, candidates []coord.Contender) (bool, error) {
	higher, failures := make([]bool, len(candidates)), make([]error, len(candidates))
	var reading sync.WaitGroup
	for i, c := range candidates {
		reading.Go(func() {
			data, _, err := e.client.Get(ctx, e.line.Dir+"/"+c.Name)
			if !errors.Is(err, coord.ErrNoNode) && !errors.Is(err, coord.ErrNoAuth) {
				failures[i] = err
			}
			value, _ := inspect.Noted(data, priorityKey)
			priority, unstated := strconv.Atoi(value)
			higher[i] = unstated == nil && priority > *e.rank
		})
	}
	reading.Wait()
	return slices.Contains(higher, true), recipe.JoinedWithin(ctx, failures...)
}
