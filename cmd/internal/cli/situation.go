package cli

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
)

const (
	// mostNamed is how many holders are read, and named.
	mostNamed = 3
	// learnWithin bounds a look at why a wait was in vain.
	learnWithin = 300 * time.Millisecond
)

// situation is what a task waits for, as one look shows it. Each look costs a
// few requests, however many wait.
type situation struct {
	text   string         // who holds, or how many have come
	others int            // that wait in the same line
	place  int            // in the line, from 1; 0: none
	key    string         // changes when there is something new to tell
	over   bool           // the own turn has come
	fields map[string]any // for JSON
}

// String is what a waiter, or one that has given up, is told.
func (s situation) String() string {
	switch {
	case s.place > 0:
		return fmt.Sprintf("%s; place %d in the line", s.text, s.place)
	case s.others > 0:
		return fmt.Sprintf("%s; %s", s.text, plural(s.others, "other waits", "others wait"))
	}
	return s.text
}

// withoutPlace is for one that has given up its own.
func (s situation) withoutPlace() situation {
	s.place = 0
	delete(s.fields, "place")
	return s
}

// standIn finds the own place in a line, in which so many more stand in front.
func (s *situation) standIn(line []coord.Contender, before int, own names) {
	s.others = len(line)
	for i, c := range line {
		if own[c.Name] {
			s.place = before + i + 1
			s.fields["place"] = s.place
			s.key += fmt.Sprint(s.place)
			s.others--
		}
	}
	s.fields["waiting"] = s.others
}

// names are of nodes, without their directory.
type names map[string]bool

// heldBy tells the first of so many holders.
func heldBy(first []contender, count int) string {
	if count == 0 {
		return "held by nobody"
	}
	var all []string
	for _, c := range first {
		all = append(all, fmt.Sprintf("%s for %s", c.owner(), c.age()))
	}
	if more := count - len(first); more > 0 {
		all = append(all, fmt.Sprintf("%d more", more))
	}
	return "held by " + strings.Join(all, ", ")
}

// read reads the first of those who are somewhere.
func (r *report) read(ctx context.Context, client *coord.Client, dir string, those []coord.Contender) ([]contender, error) {
	infos, err := client.Describe(ctx, dir, those[:min(mostNamed, len(those))])
	first := []contender{}
	for i, info := range infos {
		info.Holds = true
		first = append(first, r.contender(i+1, info))
	}
	return first, err
}

// look tells who holds the lock, of several the one that is waited for, and the
// place in its line.
func (t *turn) look(ctx context.Context, client *coord.Client, own names) (situation, error) {
	at := *t.at.Load()
	dir, holders, line, err := t.parties(ctx, client, at)
	if err != nil {
		return situation{}, err
	}
	all := len(holders)
	holders = slices.DeleteFunc(holders, func(c coord.Contender) bool { return own[c.Name] })
	first, err := (&report{}).read(ctx, client, dir, holders)
	s := situation{
		text: heldBy(first, len(holders)), key: keyOf(first), over: len(holders) < all,
		fields: map[string]any{"holders": first, "holding": len(holders)},
	}
	if len(t.paths) > 1 {
		s.text, s.key, s.fields["at"] = fmt.Sprintf("%s is %s", at, s.text), string(at)+s.key, at
	}
	s.standIn(line, all, own)
	return s, err
}

// keyOf tells those nodes from others.
func keyOf(those []contender) (key string) {
	for _, c := range those {
		key += c.Node + " "
	}
	return key
}

// parties lists who holds, in which directory, and who waits.
func (t *turn) parties(ctx context.Context, client *coord.Client, path nodePath) (dir string, holders, line []coord.Contender, err error) {
	if t.slots != nil {
		return t.slotParties(ctx, client, path)
	}
	found, err := children(ctx, client, string(path))
	line = lineOf(found)
	n := min(1, len(line))
	for n > 0 && n < len(line) && line[n-1].Kind == "read" && line[n].Kind == "read" {
		n++
	}
	return string(path), line[:n], line[n:], err
}

func (t *turn) slotParties(ctx context.Context, client *coord.Client, path nodePath) (dir string, holders, line []coord.Contender, err error) {
	dir = slotsDir(client, path)
	found, err := children(ctx, client, dir)
	if err != nil {
		return dir, nil, nil, err
	}
	queue := string(path) + "/locks"
	holders = lineOf(found)
	if client.Dialect() == coord.Kazoo {
		queue, holders = string(path)+"-__lock__", nil
		for _, name := range found {
			if isKazooLease(name) {
				holders = append(holders, coord.Contender{Name: name, Kind: "lease", Dialect: coord.Kazoo})
			}
		}
	}
	found, err = children(ctx, client, queue)
	return dir, holders[:min(*t.slots, len(holders))], lineOf(found), err
}

// look tells how many have come, or are in the round that is under way.
func (p *place) look(ctx context.Context, client *coord.Client, own names) (situation, error) {
	b, err := doublebarrier.New(client, string(p.verb.Path), p.verb.N)
	if err != nil {
		return situation{}, err
	}
	status, err := b.Status(ctx)
	if err != nil {
		return situation{}, err
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
		those = append(those, lineOf([]string{path.Base(node)})...)
	}
	r := &report{Round: &roundReport{Open: status.Open, inside: status.Inside}}
	first, err := r.read(ctx, client, string(p.verb.Path), those)
	if len(first) > 0 {
		text += ", first " + first[0].owner()
	}
	return situation{text: text, key: text, fields: map[string]any{
		"there": first, "came": came, "members": status.Size, "round": status.Round,
	}}, err
}

// look tells what is in the queue, who has items of it in hand, and the place
// in the line of the idle.
func (d *delivery) look(ctx context.Context, client *coord.Client, own names) (situation, error) {
	at, idle := string(d.verb.Path), "/waiting"
	if client.Dialect() == coord.Kazoo {
		idle = "/waiting-kazoo"
	}
	var lists [3][]string
	for i, dir := range []string{"/entries", "/taken", idle} {
		var err error
		if lists[i], err = children(ctx, client, at+dir); err != nil {
			return situation{}, err
		}
	}
	items, taken := len(lists[0]), lists[1]
	slices.Sort(taken)
	q := &queueReport{taken: taken[:min(mostNamed, len(taken))], claims: map[string]claim{}}
	q.look(ctx, client, at, q.taken)
	first := append([]contender{}, q.claimants(ctx, client, report{Path: at}, "")...)
	for i := range first {
		first[i].Position, first[i].State, first[i].Kind = i+1, "works", consumerKind
	}
	s := situation{
		text:   fmt.Sprintf("%s, %d in hand", plural(items, "item", "items"), len(taken)),
		fields: map[string]any{"items": items, "in_hand": len(taken), "holders": first},
	}
	if len(first) > 0 {
		s.text += ", " + heldBy(first, len(taken))
	}
	s.key = fmt.Sprint(items, len(taken), keyOf(first))
	s.standIn(lineOf(lists[2]), 0, own)
	return s, nil
}
