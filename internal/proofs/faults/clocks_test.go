package faults

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/cron"
	"github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/coord/shards"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// A real server, on which the clients' clocks are two hours ahead.
func TestF66WhatClientsDecideHoldsThoughTheServersClockIsBehind(t *testing.T) {
	const behind = 2 * time.Hour
	onReal(t, func(s scene) {
		now, err := recipe.EnsembleTime(s.Context(), s.client(), s.w.Path("clock"), 0)
		require.NoError(s, err)
		require.InDelta(s, behind, time.Since(now), float64(time.Minute), "the fault")
		for name, promise := range map[string]func(s scene){
			"every slot of a schedule goes on": everySlotGoesOn, "a job runs once": aJobRunsOnce,
			"a back-off is waited for": aBackoffIsWaitedFor, "keys move after their cooldown": keysMoveAfterTheirCooldown,
		} {
			s.Run(name, func(t *testing.T) {
				s := s
				s.T = t
				promise(s)
			})
		}
	}, zktest.WithClock(-behind))
}

// secondly is a schedule.
type secondly struct{}

func (secondly) Next(t time.Time) time.Time { return t.Truncate(time.Second).Add(time.Second) }

func everySlotGoesOn(s scene) {
	c := must(cron.New(s.client(), s.w.Path("cron"), secondly{}, cron.CatchUp(1000, 0)))
	var before time.Time
	for range 5 {
		slot, err := c.Begin(coordtest.Within(s, patience))
		require.NoError(s, err)
		if !before.IsZero() {
			require.Equal(s, time.Second, slot.At.Sub(before))
		}
		before = slot.At
		require.NoError(s, coordtest.Err(slot.End(s.Context(), nil, nil)))
	}
	now, err := recipe.EnsembleTime(s.Context(), s.client(), s.w.Path("cron/log"), 0)
	require.NoError(s, err)
	require.LessOrEqual(s, before.Sub(now), time.Minute)
}

func aJobRunsOnce(s scene) {
	ran := 0
	for i := range 3 {
		ledger := must(once.New(s.client(), s.w.Path("jobs"), once.Attempts(1, 0), once.Keep(time.Hour)))
		do := func(key string) error {
			return coordtest.Err(
				ledger.Do(s.Context(), key, func(context.Context, *once.Run) ([]byte, error) { ran++; return nil, nil }))
		}
		require.NoError(s, do("report"))
		require.NoError(s, do(fmt.Sprint("another ", i)), "its run prunes")
	}
	require.Equal(s, 1+3, ran)
}

func aBackoffIsWaitedFor(s scene) {
	const backoff = 3 * time.Second
	q := must(queue.New(s.client(), s.w.Path("queue"), queue.Backoff(backoff)))
	require.NoError(s, q.Put(s.Context(), []byte("item")))
	item, err := q.Receive(coordtest.Within(s, patience))
	require.NoError(s, err)
	before := time.Now()
	require.NoError(s, item.Nack(s.Context(), 0))
	other := must(queue.New(s.client(), s.w.Path("queue"), queue.Backoff(backoff)))
	item, err = other.Receive(coordtest.Within(s, patience))
	require.NoError(s, err)
	require.GreaterOrEqual(s, time.Since(before), backoff)
	require.NoError(s, item.Ack(s.Context()))
}

func keysMoveAfterTheirCooldown(s scene) {
	keys, opts := []string{"a", "b", "c", "d"}, []shards.Option{shards.Cooldown(time.Second)}
	ctx, stop := context.WithCancel(s.Context())
	defer stop()
	var ended []<-chan error
	for _, id := range []string{"one", "two", "three", "four"} {
		member := must(shards.New(s.client(), s.w.Path("shards"), append(opts, shards.ID(id), shards.Keys(keys...))...))
		ended = append(ended, coordtest.Go(func() error {
			return member.Run(ctx, func(ctx context.Context, _ string, _ coord.Held) error {
				select {
				case <-ctx.Done():
				case <-shards.Draining(ctx):
				}
				return nil
			})
		}))
		zktest.Eventually(s, patience, func() bool {
			_, all, err := member.Status(s.Context())
			by := map[string]bool{}
			for _, k := range all {
				by[k.Owner.Member.ID] = by[k.Owner.Member.ID] || k.Life == shards.LifeOwned
			}
			return err == nil && by[id]
		}, "%s has a key", id)
	}
	stop()
	for _, e := range ended {
		require.ErrorIs(s, zktest.Receive(s, patience, e, "the end"), context.Canceled)
	}
}
