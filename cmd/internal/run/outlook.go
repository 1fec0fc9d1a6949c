package run

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/coord/semaphore"
)

// look says who holds the lock, of several the one that is waited for, and the
// place in its line.
func (t *turn) look(ctx context.Context, client *coord.Client, own look.Names) (look.Situation, error) {
	at := *t.at.Load()
	dir, holders, line, err := t.parties(ctx, client, at)
	if err != nil {
		return look.Situation{}, err
	}
	over := t.seen.Look()
	defer over()
	for _, c := range line {
		t.seen.See(path.Join(dir, c.Name), false, nil)
	}
	all := len(holders)
	holders = slices.DeleteFunc(holders, func(c coord.Contender) bool { return own[c.Name] })
	first, err := (&look.Report{}).Read(ctx, client, dir, holders)
	for i, c := range first {
		first[i].HeldFor = t.seen.See(c.Node, true, c.Age)
	}
	s := look.Situation{
		Text: look.HeldBy(first, len(holders)), Key: look.KeyOf(first), Over: len(holders) < all,
		Fields: map[string]any{"holders": first, "holding": len(holders)},
	}
	if len(t.paths) > 1 {
		s.Text, s.Key, s.Fields["at"] = fmt.Sprintf("%s is %s", at, s.Text), string(at)+s.Key, at
	}
	s.StandIn(line, all, own)
	return s, err
}

// parties lists who holds, in which directory, and who waits.
func (t *turn) parties(ctx context.Context, client *coord.Client, path conn.NodePath) (dir string, holders, line []coord.Contender, err error) {
	if t.slots != nil {
		return t.slotParties(ctx, client, path)
	}
	found, err := look.Children(ctx, client, string(path))
	line = slices.DeleteFunc(look.LineOf(found), func(c coord.Contender) bool { return c.Dialect != client.Dialect() })
	n := slices.Index(append(inspect.Granted(line), false), false)
	return string(path), line[:n], line[n:], err
}

func (t *turn) slotParties(ctx context.Context, client *coord.Client, path conn.NodePath) (dir string, holders, line []coord.Contender, err error) {
	at := semaphore.LayoutOf(client.Dialect(), string(path))
	found, err := look.Children(ctx, client, at.Leases.Dir)
	if err != nil {
		return at.Leases.Dir, nil, nil, err
	}
	holders = at.Order(found)
	found, err = look.Children(ctx, client, at.Queue.Dir)
	return at.Leases.Dir, holders[:min(*t.slots, len(holders))], look.LineOf(found), err
}

// look says how many have come, or are in the round that is under way.
func (p *place) look(ctx context.Context, client *coord.Client, own look.Names) (look.Situation, error) {
	b, err := doublebarrier.New(client, string(p.verb.Path), p.verb.N)
	if err != nil {
		return look.Situation{}, err
	}
	status, err := b.Status(ctx)
	if err != nil {
		return look.Situation{}, err
	}
	there, came := status.Waiting, len(status.Waiting)
	if len(own) > 0 && !slices.ContainsFunc(there, func(node string) bool { return own[path.Base(node)] }) {
		came++ // this one did, and has left
	}
	text := fmt.Sprintf("%d of %d have come", came, status.Size)
	if status.Open && len(status.Inside) > 0 {
		there, came = status.Inside, len(status.Inside)
		text = fmt.Sprintf("round %d is under way: %d of its %d members are there", status.Round, came, status.Size)
	}
	var those []coord.Contender
	for _, node := range there {
		those = append(those, look.LineOf([]string{path.Base(node)})...)
	}
	first, err := look.RoundOf(status).Read(ctx, client, string(p.verb.Path), those)
	if len(first) > 0 {
		text += ", first " + first[0].Who()
	}
	return look.Situation{Text: text, Key: text, Fields: map[string]any{
		"there": first, "came": came, "members": status.Size, "round": status.Round,
	}}, err
}

// look says what is in the queue, who has items of it in hand, and the place in
// the line of the idle.
func (d *delivery) look(ctx context.Context, client *coord.Client, own look.Names) (look.Situation, error) {
	q, err := queue.New(client, string(d.verb.Path))
	if err != nil {
		return look.Situation{}, err
	}
	items, taken, err := q.Items(ctx)
	if err != nil && !errors.Is(err, coord.ErrNoNode) {
		return look.Situation{}, err
	}
	idle, err := look.Children(ctx, client, queue.LayoutOf(client.Dialect(), string(d.verb.Path)).Waiting.Dir)
	if err != nil {
		return look.Situation{}, err
	}
	first, err := look.Workers(ctx, q, taken[:min(look.MostNamed, len(taken))])
	s := look.Situation{
		Text:   fmt.Sprintf("%s, %d in hand", term.Plural(len(items), "item", "items"), len(taken)),
		Fields: map[string]any{"items": len(items), "in_hand": len(taken), "holders": first},
	}
	if len(first) > 0 {
		s.Text += ", " + look.HeldBy(first, len(taken))
	}
	s.Key = fmt.Sprint(len(items), len(taken), look.KeyOf(first))
	s.StandIn(look.LineOf(idle), 0, own)
	return s, err
}
