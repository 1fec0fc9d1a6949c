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

// How much a page watches between its looks, and how often, at most.
const (
	mostWatched = 200                    // paths
	mostInLine  = 20                     // contenders at each
	mostAtOnce  = 16                     // changed paths that one round looks at
	beat        = 100 * time.Millisecond // between two reads that prove that no watch event is on its way
	breath      = 25 * time.Millisecond  // between two rounds of looks
	retry       = time.Second
)

// watcher finds changes of holders between two looks: it watches some paths'
// directories, and looks at each that has changed.
type watcher struct {
	recorder *recorder
	dialect  coord.Dialect
	last     time.Time       // when a path was last looked at
	gone     map[string]bool // directories that were not there at the last look
}

// worthWatching are the paths whose contenders' nodes are their children, the
// ones with the most waiters first.
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

// keep watches until ctx ends. It pauses while there are no looks.
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

// look watches, and is done when there are no looks at all paths any more. A
// watch event comes before the answer to a later read, so a path without an
// event had not changed when the read was sent.
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

// stamps are the stamps of stampOf, or "" for directories that are not there,
// and watches both.
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
				_, _, _ = v.Exists(at) // watch for its return
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
