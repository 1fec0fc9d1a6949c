package recipe

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/coord"
)

// turn is a place in a line of clients that change a record: below the record,
// where whoever reads it sees that there is one. A client takes a place when
// others were faster several times, or when there is a line. It changes the
// record when it is the first. So each in line gets one change after the other,
// however far it is from the servers. The line is a courtesy: the record's
// version decides, as ever, and who stands still holds up nobody for long.
type turn struct {
	record Record
	lost   int // how often another client was faster
	place  *coord.Hold
	denied bool // there are no places: the record is ephemeral, or this client may not make nodes
}

// tooOften is how often another is faster before a client takes a place.
const tooOften = 5

// turnPrefix begins the name of a place. It goes on with the number of places
// that there were before, which nearly is the order of their arrival.
const turnPrefix = "turn-"

// Turns are the places of clients that wait to change a record, for [Remove].
var Turns = Part{Nodes: turnPrefix + "*", Who: "waiter"}

// take waits for the turn, if the record as it was read and the changes that
// were lost ask for that. It reports whether the record is to be read again.
func (t *turn) take(ctx context.Context, read coord.Stat) (waited bool, err error) {
	if t.place != nil || t.denied || read.Czxid == 0 {
		return false, nil
	}
	if t.lost < tooOften {
		if read.Children == 0 {
			return false, nil
		}
		if line, err := t.line(ctx); err != nil || len(line) == 0 {
			return false, err
		}
	}
	path, c := t.record.path, t.record.client
	t.place, err = AcquireName(ctx, c, coord.NameSpec{
		Path: fmt.Sprintf("%s/%s%010d-%s", path, turnPrefix, read.Cversion, rand.Text()),
		With: []coord.Op{coord.CheckOp(path, -1)}, Recipe: path,
	})
	switch {
	case err == nil:
		return true, t.await(ctx)
	case ctx.Err() != nil:
		return false, err
	}
	t.denied = true
	return false, nil
}

// await returns when the place is the first, or when another one was the first
// for half the session timeout.
func (t *turn) await(ctx context.Context) error {
	var first string
	var until time.Time
	own := t.place.Node()[len(t.record.path)+1:]
	return t.record.client.Wait(ctx, func(v *coord.View) (bool, error) {
		for {
			line, err := t.line(ctx)
			i := slices.Index(line, own)
			if i < 1 || err != nil {
				return true, err
			}
			if line[0] != first {
				first, until = line[0], time.Now().Add(t.record.client.Info().SessionTimeout/2)
			}
			if !time.Now().Before(until) {
				return true, nil
			}
			v.RecheckAt(until)
			if _, there, err := v.Exists(t.record.path + "/" + line[i-1]); there || err != nil {
				return false, err
			}
		}
	})
}

// line lists the places, in order.
func (t *turn) line(ctx context.Context) ([]string, error) {
	names, err := t.record.client.Children(ctx, t.record.path)
	if errors.Is(err, coord.ErrNoNode) || errors.Is(err, coord.ErrNoAuth) {
		err = nil
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, turnPrefix) })
	slices.Sort(names)
	return names, err
}

// leave gives the place to the next.
func (t *turn) leave() {
	if t.place != nil {
		t.place.Abandon()
	}
}

// told adds to an error of the context that others were faster.
func (t *turn) told(ctx context.Context, err error) error {
	if t.lost == 0 || ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
		return err
	}
	return fmt.Errorf("%w (other clients changed it first, %d times)", err, t.lost)
}
