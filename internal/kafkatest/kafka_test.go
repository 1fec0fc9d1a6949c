package kafkatest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/internal/coordtest"
)

// producerOf returns a producer for a hold of the lock that name stands for.
// The producer of the next hold fences it off.
func producerOf(ctx context.Context, hold *coord.Hold, name string, brokers ...string) (*kgo.Client, error) {
	p, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.TransactionalID(name)) // the lock's, not the process'
	if err != nil {
		return nil, err
	}
	if _, _, err = p.ProducerID(ctx); err == nil { // fences off all producers before it
		_, err = hold.Txn(ctx, coord.CheckOp("/", -1)) // fails if the hold is over by now
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// send sends records in one transaction.
func send(ctx context.Context, p *kgo.Client, records ...*kgo.Record) error {
	if err := p.BeginTransaction(); err != nil {
		return err
	}
	if err := p.ProduceSync(ctx, records...).FirstErr(); err != nil {
		_ = p.EndTransaction(ctx, kgo.TryAbort)
		return err
	}
	return p.EndTransaction(ctx, kgo.TryCommit)
}

func record(text string) *kgo.Record { return &kgo.Record{Topic: "report", Value: []byte(text)} }

func TestAPausedHoldersRecordsAreRefused(t *testing.T) {
	server := coordtest.Embedded(t)
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "report"))
	require.NoError(t, err)
	defer broker.Close()
	ctx := coordtest.Limited(t)
	acquire := func() *coord.Hold {
		m, err := lock.New(coordtest.Open(t, server.ConnectString()), "/locks/report")
		require.NoError(t, err)
		return coordtest.Acquire(t, m)
	}
	producer := func(h *coord.Hold) *kgo.Client {
		p, err := producerOf(ctx, h, "/locks/report", broker.ListenAddrs()...)
		require.NoError(t, err)
		t.Cleanup(p.Close)
		return p
	}

	// The first holder is paused in the middle of a transaction.
	first := acquire()
	p1 := producer(first)
	require.NoError(t, send(ctx, p1, record("1")))
	require.NoError(t, p1.BeginTransaction())
	require.NoError(t, p1.ProduceSync(ctx, record("late")).FirstErr())
	require.NoError(t, server.ExpireSession(first.Session()))
	second := acquire()
	p2 := producer(second)
	require.NoError(t, send(ctx, p2, record("2")))
	require.Error(t, p1.EndTransaction(ctx, kgo.TryCommit))
	require.Error(t, send(ctx, p1, record("later")))

	// The second holder is paused before it has a producer. Then it fences off
	// the third one's, but gets none.
	require.NoError(t, server.ExpireSession(second.Session()))
	third := acquire()
	p3 := producer(third)
	_, err = producerOf(ctx, second, "/locks/report", broker.ListenAddrs()...)
	require.ErrorIs(t, err, coord.ErrLost)
	require.Error(t, send(ctx, p3, record("fenced off")))
	require.NoError(t, third.Err())
	require.NoError(t, send(ctx, producer(third), record("3")))

	require.Equal(t, []string{"1", "2", "3"}, committed(ctx, t, broker, 3))
}

// committed reads n records.
func committed(ctx context.Context, t *testing.T, broker *kfake.Cluster, n int) (texts []string) {
	t.Helper()
	consumer, err := kgo.NewClient(kgo.SeedBrokers(broker.ListenAddrs()...), kgo.ConsumeTopics("report"),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	require.NoError(t, err)
	defer consumer.Close()
	for len(texts) < n {
		fetched := consumer.PollFetches(ctx)
		require.NoError(t, fetched.Err())
		fetched.EachRecord(func(r *kgo.Record) { texts = append(texts, string(r.Value)) })
	}
	return texts
}
