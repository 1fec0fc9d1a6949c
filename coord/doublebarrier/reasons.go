package doublebarrier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// The reason why a member gave up is in a node of its own, made by the
// transaction that deletes the member's node. Whoever closes the round reads it
// and writes it into the outcome.
const reasonOf = "reason-"

// The outcome stays small, however many give up.
const (
	mostReasons   = 16
	longestReason = 200  // bytes
	allReasons    = 1024 // bytes, as the record has them
)

func (b *Barrier) reason(r round, index int) string {
	return b.vector(r, reasonOf) + "-" + strconv.Itoa(index)
}

// giveUp deletes our node, and says why if cause is not nil.
func (m *Member) giveUp(ctx context.Context, cause error) error {
	if cause != nil {
		why := strings.ToValidUTF8(cause.Error(), "\uFFFD")
		why = strings.ToValidUTF8(why[:min(len(why), longestReason)], "")
		said := content{owner: m.barrier.client.Info().Identity, data: []byte(why)}
		_ = recipe.OnRelease(m.hold,
			coord.CreateOp(m.barrier.reason(m.open.round, m.index), said.encode())) // if the hold has ended, no reason is left
	}
	return m.hold.Release(ctx)
}

// withdraw is giveUp that takes at most 50 ms when ctx has ended.
func (m *Member) withdraw(ctx context.Context, cause error) {
	ctx, cancel := recipe.Grace(ctx)
	defer cancel()
	_ = m.giveUp(ctx, cause) // a node that is not deleted yet is deleted in the background
}

// reasons reads why members of a round are missing. Reasons are for people: a
// member that gave none, or whose reason cannot be read, has none.
func (b *Barrier) reasons(ctx context.Context, r round, missing []int) map[int]string {
	if len(missing) == 0 {
		return nil
	}
	var names []string
	err := recipe.Retry(ctx, b.client, func(ctx context.Context) (err error) {
		names, err = b.client.Children(ctx, b.path)
		return err
	})
	if err != nil {
		return nil
	}
	var those []int
	var nodes []string
	for _, index := range missing {
		name := strings.TrimPrefix(b.reason(r, index), b.path+"/")
		if slices.Contains(names, name) && len(nodes) < mostReasons {
			those, nodes = append(those, index), append(nodes, name)
		}
	}
	said := make([]string, len(nodes))
	b.each(ctx, nodes, func(i int, c content, err error) {
		if err == nil {
			said[i] = string(c.data)
		}
	})
	reasons, room := map[int]string{}, allReasons
	for i, why := range said {
		encoded, _ := json.Marshal(why) // cannot fail: a string
		room -= len(encoded)
		if why != "" && room >= 0 {
			reasons[those[i]] = why
		}
	}
	if len(reasons) == 0 {
		return nil // as members that read the record see it
	}
	return reasons
}

// tidy deletes the reasons of all rounds but those kept. What it leaves behind
// is deleted when the next round begins.
func (b *Barrier) tidy(ctx context.Context, there *listing, kept []round) {
	for _, name := range there.vectors {
		if strings.HasPrefix(name, reasonOf) && !isOfRound(name, kept) {
			if err := b.client.Delete(ctx, b.node(name), -1); err != nil && !errors.Is(err, coord.ErrNoNode) {
				return
			}
		}
	}
}

// inWords formats reasons for the text of an error.
func inWords(missing []int, reasons map[int]string) string {
	var said strings.Builder
	for _, index := range missing {
		if why, some := reasons[index]; some {
			fmt.Fprintf(&said, "; %d: %q", index, why)
		}
	}
	return said.String()
}
