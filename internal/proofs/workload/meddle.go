package workload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/shards"
)

// Meddler does to a set of shards what operators, other programs and accidents
// do.
type Meddler struct {
	Checks
	Client   *coord.Client
	Path     string
	Rand     *rand.Rand
	Lasts    time.Duration   // of what is not done at once
	Calm     <-chan struct{} // ends it early
	Resident []string        // IDs of members that stay
	Deleting func(node string, stat coord.Stat)
}

// Meddling is one kind of it. Do returns when it is over, and reports whether
// it happened.
type Meddling struct {
	Name   string
	Weight int
	Lasts  bool // or it is done at once
	Do     func(m *Meddler, ctx context.Context) bool
}

// Meddlings are all kinds.
var Meddlings = []Meddling{
	{"plan written over", 2, false, (*Meddler).writeOverPlan},
	{"plan deleted", 2, false, (*Meddler).deletePlan},
	{"keys set", 3, false, (*Meddler).setKeys},
	{"shards deleted", 2, false, (*Meddler).deleteAll},
	{"stranger in a key's line", 3, true, (*Meddler).standInLine},
	{"key locked", 3, true, (*Meddler).lockKey},
	{"rival of one ID", 3, true, (*Meddler).rival},
}

var rubbish = []string{
	"x", "", "{}", "null", `{"format":1}`, `{"format":1,"keys":["k0"],"owners":[0],"members":[{"id":"a","weight":-1}]}`,
}

func (m *Meddler) writeOverPlan(ctx context.Context) bool {
	_, err := m.Client.Set(ctx, m.Path+"/plan", []byte(rubbish[m.Rand.IntN(len(rubbish))]), -1)
	return err == nil
}

func (m *Meddler) deletePlan(ctx context.Context) bool {
	return m.Client.Delete(ctx, m.Path+"/plan", -1) == nil
}

func (m *Meddler) setKeys(ctx context.Context) bool {
	keys := KeyNames(MostKeys)[m.Rand.IntN(3):][:1+m.Rand.IntN(3)]
	return must(shards.New(m.Client, m.Path)).SetKeys(ctx, keys...) == nil
}

// deleteAll deletes everything, as zkCli's deleteall does.
func (m *Meddler) deleteAll(ctx context.Context) bool {
	names, err := m.Client.Children(ctx, m.Path)
	for _, name := range names {
		err = errors.Join(err, m.deleteTree(ctx, m.Path+"/"+name))
	}
	return err == nil
}

func (m *Meddler) deleteTree(ctx context.Context, node string) error {
	names, err := m.Client.Children(ctx, node)
	for _, name := range names {
		err = errors.Join(err, m.deleteTree(ctx, node+"/"+name))
	}
	if err != nil {
		return ignoring(err, coord.ErrNoNode)
	}
	if stat, there, err := m.Client.Exists(ctx, node); err == nil && there && stat.Owner != 0 {
		m.Deleting(node, stat)
	}
	return ignoring(m.Client.Delete(ctx, node, -1), coord.ErrNoNode, coord.ErrNotEmpty)
}

func ignoring(err error, these ...error) error {
	if slices.ContainsFunc(these, func(e error) bool { return errors.Is(err, e) }) {
		return nil
	}
	return err
}

// keyLine is the directory of some key's line.
func (m *Meddler) keyLine() string {
	return must(shards.New(m.Client, m.Path)).Line(KeyNames(3)[m.Rand.IntN(3)]).Dir
}

// Foreigners are contenders of another dialect than the one named: claims
// behind one are refused.
var Foreigners = map[coord.Dialect]string{
	coord.Curator: "0123456789abcdef0123456789abcdef__lock__0000000000",
	coord.Kazoo:   "_c_01234567-89ab-cdef-0123-456789abcdef-lock-0000000000",
}

// standInLine has a key's line begin with a node that no member can ask.
func (m *Meddler) standInLine(ctx context.Context) bool {
	dialects := []coord.Dialect{m.Client.Info().Dialect, coord.Curator, coord.Kazoo}
	node := path.Join(m.keyLine(), Foreigners[dialects[m.Rand.IntN(len(dialects))]])
	err := Litter(ctx, m.Client, node)
	Pause(context.Background(), m.Lasts, m.Calm)
	if gone := RemoveLitter(context.Background(), m.Client, node); gone != nil {
		m.Violated("the stranger %s cannot be deleted: %v", node, gone)
	}
	return err == nil
}

// lockKey has another program hold a key's lock.
func (m *Meddler) lockKey(ctx context.Context) bool {
	waiting, cancel := context.WithTimeout(ctx, m.Lasts)
	defer cancel()
	h, err := must(lock.New(m.Client, m.keyLine())).Acquire(waiting)
	if err != nil {
		return false
	}
	Pause(context.Background(), m.Lasts, m.Calm)
	return h.Release(context.Background()) == nil
}

// rival is another member with the ID of one that stays.
func (m *Meddler) rival(ctx context.Context) bool {
	id := m.Resident[m.Rand.IntN(len(m.Resident))]
	s := must(shards.New(m.Client, m.Path, shards.ID(id), shards.DrainTimeout(time.Second)))
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Run(ctx, func(ctx context.Context, _ string, _ coord.Held) error {
			select {
			case <-ctx.Done():
			case <-shards.Draining(ctx):
			}
			return nil
		})
	}()
	Pause(ctx, m.Lasts, m.Calm)
	cancel()
	<-ended
	return true
}

// NotShared says which key has no owner, or which of the members is not in; ""
// if none.
func NotShared(ctx context.Context, c *coord.Client, path string, members []string) string {
	plan, all, err := must(shards.New(c, path)).Status(ctx)
	if err != nil {
		return err.Error()
	}
	for _, is := range all {
		if is.Life != shards.LifeOwned && is.Life != shards.LifeFailing {
			return fmt.Sprintf("%s is %s: %+v", is.Key, is.Life, is)
		}
	}
	for _, id := range members {
		if !slices.ContainsFunc(plan.Members, func(m shards.Member) bool { return m.ID == id }) {
			return id + " is no member"
		}
	}
	return ""
}
