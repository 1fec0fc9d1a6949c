// Barrier: three replicas count the words of a text, a share each, and each
// adds up what all have counted. One is killed while it counts: the others
// learn that its share is missing, and the two of them count again.
//
//	go run ./examples/barrier
package main

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/examples/stage"
)

const text = `Processes that share a job start together.
Each of them does its part,
and none adds up before all are done.
If one dies on the way,
the others are told, and nobody adds up what is not complete.`

func main() {
	stage.Play(stage.Scene{Kill: "counts its share"}, replica)
}

func replica(ctx context.Context, r *stage.Replica) error {
	b, err := doublebarrier.New(r.Client, "/example/barrier", 3, doublebarrier.AtLeast(2, 2*time.Second))
	if err != nil {
		return err
	}
	for {
		words, err := count(ctx, r, b)
		if !errors.Is(err, doublebarrier.ErrIncomplete) {
			r.Say("the text has %d words", words)
			return err
		}
		r.Say("begins again: %v", err)
	}
}

// count takes part in one round.
func count(ctx context.Context, r *stage.Replica, b *doublebarrier.Barrier) (words int, err error) {
	m, err := b.Enter(ctx)
	if err != nil {
		return 0, err
	}
	r.Say("counts its share of round %d, %d of %d", m.Round(), m.Index()+1, m.Count())
	time.Sleep(500 * time.Millisecond) // the work
	own := 0
	for i, line := range strings.Split(text, "\n") {
		if i%m.Count() == m.Index() {
			own += len(strings.Fields(line))
		}
	}
	shares, err := m.Gather(ctx, []byte(strconv.Itoa(own)))
	if err != nil {
		return 0, err
	}
	for _, share := range shares {
		n, err := strconv.Atoi(string(share))
		if err != nil {
			return 0, err
		}
		words += n
	}
	return words, nil
}
