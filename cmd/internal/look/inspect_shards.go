package look

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/shards"
	"github.com/zkcoord/zkcoord/internal/layout"
)

const shardsKind = "shards"

// ShardsReport is what inspect shows of shards.
type ShardsReport struct {
	Members int `json:"members"` // members that are there
	Keys    int `json:"keys"`    // that the plan names
	Unowned int `json:"unowned"` // keys that nobody has
	Moving  int `json:"moving"`  // keys that the plan gives to another member than has them
	Failing int `json:"failing"` // keys whose function fails, or does not return in time

	Plan   *shards.Plan    `json:"-"`
	Status []shards.Status `json:"-"` // of each key

	unowned, failing []string
}

// inShards finds out whether there are shards at path. When all members are
// gone, only the plan is left of them.
func (r *Report) inShards(
	ctx context.Context, client *coord.Client, path conn.NodePath, names []string,
) ([]inspect.Contender, error) {
	isPart := func(part string) bool { return slices.Contains(names, part) }
	if !isPart(layout.Shards[0]) {
		return nil, nil
	}
	s, err := shards.New(client, string(path))
	if err != nil {
		return nil, err
	}
	plan, keys, err := s.Status(ctx)
	certain := !slices.ContainsFunc(layout.Shards, func(part string) bool { return !isPart(part) })
	switch {
	case errors.Is(err, coord.ErrNoAuth) && certain:
		r.is(shardsKind)
		return nil, nil
	case errors.Is(err, coord.ErrInvalid), errors.Is(err, coord.ErrNoAuth), errors.Is(err, coord.ErrNoNode):
		return nil, nil // the node is another's, or is being made
	case err != nil || plan == nil || len(plan.Keys) == 0 && !certain:
		return nil, err
	}
	members, err := Children(ctx, client, string(path)+"/"+layout.Shards[1])
	r.is(shardsKind)
	r.Shards = &ShardsReport{Members: len(LineOf(members)), Keys: len(keys), Plan: plan, Status: keys}
	for _, key := range keys {
		if key.Life == shards.LifeFailing || key.Life == shards.LifeGivenUp {
			r.Shards.Failing++
			r.Shards.failing = append(r.Shards.failing, fmt.Sprintf("%q (%s)", key.Key, term.Plain(key.Trouble.Error)))
		}
		switch {
		case key.Owner.Token == 0:
			r.Shards.Unowned++
			r.Shards.unowned = append(r.Shards.unowned, strconv.Quote(key.Key))
		case key.Moving:
			r.Shards.Moving++
		}
	}
	return nil, err
}

func (s *ShardsReport) String() string {
	text := fmt.Sprintf("%s, %d of %s owned", term.Plural(s.Members, "member", "members"), s.Keys-s.Unowned,
		term.Plural(s.Keys, "key", "keys"))
	if s.Moving > 0 {
		text += fmt.Sprintf(", %d moving", s.Moving)
	}
	if s.Failing > 0 {
		text += fmt.Sprintf(", %d failing", s.Failing)
	}
	return text
}
