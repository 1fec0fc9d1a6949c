package run

import (
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
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
	n := slices.Index(append(look.Grants(line), false), false)
	return string(path), line[:n], line[n:], err
}

func (t *turn) slotParties(ctx context.Context, client *coord.Client, path conn.NodePath) (dir string, holders, line []coord.Contender, err error) {
	dir = look.SlotsDir(client, path)
	found, err := look.Children(ctx, client, dir)
	if err != nil {
		return dir, nil, nil, err
	}
	queue := string(path) + "/locks"
	holders = look.LineOf(found)
	if client.Dialect() == coord.Kazoo {
		queue, holders = string(path)+"-__lock__", nil
		for _, name := range found {
			if look.IsKazooLease(name) {
				holders = append(holders, coord.Contender{Name: name, Kind: "lease", Dialect: coord.Kazoo})
			}
		}
	}
	found, err = look.Children(ctx, client, queue)
	return dir, holders[:min(*t.slots, len(holders))], look.LineOf(found), err
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
	at, idle := string(d.verb.Path), "/waiting"
	if client.Dialect() == coord.Kazoo {
		idle = "/waiting-kazoo"
	}
	var lists [3][]string
	for i, dir := range []string{"/entries", "/taken", idle} {
		var err error
		if lists[i], err = look.Children(ctx, client, at+dir); err != nil {
			return look.Situation{}, err
		}
	}
	items, taken := len(lists[0]), lists[1]
	slices.Sort(taken)
	first := look.Workers(ctx, client, at, taken[:min(look.MostNamed, len(taken))])
	s := look.Situation{
		Text:   fmt.Sprintf("%s, %d in hand", term.Plural(items, "item", "items"), len(taken)),
		Fields: map[string]any{"items": items, "in_hand": len(taken), "holders": first},
	}
	if len(first) > 0 {
		s.Text += ", " + look.HeldBy(first, len(taken))
	}
	s.Key = fmt.Sprint(items, len(taken), look.KeyOf(first))
	s.StandIn(look.LineOf(lists[2]), 0, own)
	return s, nil
}
