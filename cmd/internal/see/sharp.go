package see

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/history"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/coord"
)

// What a page watches between its looks, at most.
const (
	mostWatched = 200                    // paths
	mostInLine  = 20                     // contenders at each
	mostAtOnce  = 16                     // paths that are looked at together
	beat        = 100 * time.Millisecond // between two reads that prove that no event is on its way
	breath      = 25 * time.Millisecond  // between two times that something has changed
	retry       = time.Second
)

// watcher knows when the holders at some paths change, between two looks: it
// watches the directories, and looks at one that has changed immediately.
type watcher struct {
	recorder *recorder
	dialect  coord.Dialect
	last     time.Time       // that something was looked at
	gone     map[string]bool // directories that were not there then
}

// worthWatching are paths whose contenders are in their directories, those with
// somebody who waits first.
func worthWatching(reports []look.Report) (paths []string) {
	some := slices.DeleteFunc(slices.Clone(reports), func(r look.Report) bool {
		return len(r.Contenders) == 0 || len(r.Contenders) > mostInLine || pathOf(r).Lanes != nil ||
			slices.ContainsFunc(r.Contenders, func(c look.Contender) bool { return path.Dir(c.Node) != r.Path })
	})
	slices.SortStableFunc(some, func(a, b look.Report) int { return cmp.Compare(b.Waiting(), a.Waiting()) })
	for _, r := range some[:min(len(some), mostWatched)] {
		paths = append(paths, r.Path)
	}
	return paths
}

// keep watches, as long as there are looks, until ctx ends.
func (w *watcher) keep(ctx context.Context) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for ctx.Err() == nil {
		err := w.recorder.client.Wait(ctx, w.look)
		if err == nil {
			select {
			case <-w.recorder.again:
			case <-ctx.Done():
			}
			continue
		}
		pause.Reset(retry)
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
	}
}

// look is done when nobody looks at the page any more. What a watch would have
// told comes before the answer to a later read: a path that is as it was then
// has not changed before the read was sent.
func (w *watcher) look(v *coord.View) (done bool, err error) {
	paths := w.recorder.watched()
	if len(paths) == 0 {
		return true, nil
	}
	asked := time.Now()
	if _, _, err := w.recorder.client.Exists(v.Context(), "/"); err != nil {
		return false, err
	}
	changed := []string{}
	for at, stamp := range w.stamps(v, paths) {
		if stamp != "" {
			delete(w.gone, at)
		}
		if !w.gone[at] && !w.recorder.still(at, stamp, asked) {
			changed = append(changed, at)
		}
	}
	if len(changed) == 0 {
		v.RecheckAt(asked.Add(beat))
		return false, nil
	}
	if early := breath - time.Since(w.last); early > 0 {
		v.RecheckAt(time.Now().Add(early))
		return false, nil
	}
	w.last = time.Now()
	slices.Sort(changed)
	for _, at := range changed[:min(len(changed), mostAtOnce)] {
		if err := w.see(v.Context(), at); err != nil {
			return false, err
		}
	}
	v.RecheckAt(time.Now().Add(breath))
	return false, nil
}

// stamps are what stampOf tells, of directories that are there.
func (w *watcher) stamps(v *coord.View, paths []string) map[string]string {
	told := map[string]string{}
	read := make([]string, len(paths))
	var group errgroup.Group
	group.SetLimit(look.Surveyors)
	for i, at := range paths {
		group.Go(func() error {
			_, stat, err := v.Children(at)
			if err == nil {
				read[i] = stampAt(at, stat)
			} else if errors.Is(err, coord.ErrNoNode) {
				_, _, _ = v.Exists(at) // it may come again
			}
			return nil
		})
	}
	_ = group.Wait()
	for i, at := range paths {
		told[at] = read[i]
	}
	return told
}

// see looks at one path.
func (w *watcher) see(ctx context.Context, at string) error {
	began := time.Now()
	stamp := w.recorder.stampOf(ctx, at)
	r, err := look.Examine(ctx, w.recorder.client, w.dialect, conn.NodePath(at))
	if err != nil && !errors.Is(err, coord.ErrNoNode) {
		return err
	}
	p := history.Path{}
	if err == nil && r.Kind != "" {
		p = pathOf(r)
	}
	p.Stamp = stamp
	if w.recorder.sharpen(at, p, began) {
		w.gone[at] = !r.Exists
	}
	return nil
}
