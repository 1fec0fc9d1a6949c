package history

import "time"

// Queue is what a look has shown of a queue.
type Queue struct {
	Items, InHand, Dead int
	Oldest              time.Time // when the oldest item was put, of those that nobody has in hand; zero: there is none
	Put, Taken          uint32    // how many so far, counted from an arbitrary number
}

// Point is a state that lasted from one look to the next point, or to the end
// of the run of looks.
type Point struct {
	At               time.Time
	Holders, Waiting int
	Queue
}

// Chunk has consecutive points of a path. Only the last chunk of a path grows.
type Chunk struct {
	ID     int64
	Path   string
	Points []Point
}

const mostPoints = 64 // of a chunk

// point adds a point if something has changed.
func (h *History) point(t *track, path string, at time.Time, p Path, again bool) {
	now := Point{Holders: len(p.Holders), Waiting: p.Waiting}
	if p.Queue != nil {
		now.Queue = *p.Queue
	}
	if t.chunk != nil && !again {
		was := t.chunk.Points[len(t.chunk.Points)-1]
		was.At = now.At
		if was == now {
			return
		}
	}
	now.At = at
	if t.chunk == nil || len(t.chunk.Points) == mostPoints {
		h.last++
		t.chunk = &Chunk{ID: h.last, Path: path}
		h.chunks = append(h.chunks, t.chunk)
	}
	t.chunk.Points = append(t.chunk.Points, now)
	h.points++
}

// forgetPoints drops the chunks that are too old or too many. The last chunk of
// a path stays as long as the path.
func (h *History) forgetPoints(old time.Time) {
	kept := h.chunks[:0]
	for _, c := range h.chunks {
		t := h.paths[c.Path]
		last := t != nil && t.chunk == c
		if !last && (t == nil || c.Points[len(c.Points)-1].At.Before(old) || h.points > h.limits.Points) {
			h.points -= len(c.Points)
			continue
		}
		kept = append(kept, c)
	}
	clear(h.chunks[len(kept):])
	h.chunks = kept
}

// Chunks are all points, those of each path in order.
func (h *History) Chunks() []*Chunk { return h.chunks }
