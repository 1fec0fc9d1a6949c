package zkembed_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkcoord/zkcoord/zkembed"
)

func TestAfterAnyMixOfTroubleEveryClientWorksAgain(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var wg sync.WaitGroup
		clients := make([]*zk.Conn, 4)
		for i := range clients {
			c := client(t, s)
			clients[i] = c
			wg.Go(func() { work(ctx, c) })
		}
		r := rand.New(rand.NewPCG(seed, 0))
		for range 150 {
			trouble(r, s)
			time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
		}
		s.Heal()
		s.Resume()
		time.Sleep(5 * T)
		cancel()
		wg.Wait()
		for _, c := range clients {
			awaitQuiet(c)
			create(t, c, "/done-", zk.FlagSequence)
		}
	})
}

// work does a bit of everything; some of its requests fail.
func work(ctx context.Context, c *zk.Conn) {
	for ctx.Err() == nil {
		p, err := c.Create("/n-", []byte("x"), zk.FlagEphemeral|zk.FlagSequence, open)
		if err == nil {
			_, _ = c.Set(p, nil, -1)
			_, _, _ = c.Children("/")
			_, _ = c.Sync("/")
			_ = c.Delete(p, -1)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// trouble causes one random fault, which ends by itself after a while.
func trouble(r *rand.Rand, s *zkembed.Server) {
	var id int64
	if sessions := s.Sessions(); len(sessions) > 0 {
		id = sessions[r.IntN(len(sessions))].ID
	}
	until := time.Duration(r.IntN(15)) * time.Second
	m := zkembed.Match{Skip: r.IntN(5), Times: 1 + r.IntN(3)}
	switch r.IntN(8) {
	case 0:
		_ = s.ExpireSession(id)
	case 1:
		_ = s.DropConn(id)
	case 2:
		_ = s.MoveSession(id)
	case 3:
		p := s.Partition(zkembed.Cut{
			Direction: zkembed.Direction(r.IntN(4)), NewConns: zkembed.NewConns(r.IntN(3)),
		})
		time.AfterFunc(until, p.Heal)
	case 4:
		p := s.Partition(zkembed.Cut{Sessions: []int64{id}})
		time.AfterFunc(until, p.Heal)
	case 5:
		f := s.AddFollower(time.Duration(r.IntN(2000))*time.Millisecond, id)
		if r.IntN(2) == 0 {
			time.AfterFunc(until/2, f.Isolate)
		}
		time.AfterFunc(until, f.Stop)
	case 6:
		acts := []zkembed.Action{
			zkembed.Drop(), zkembed.Hang(), zkembed.LoseReply(), zkembed.Delay(until),
			zkembed.DelayReply(until), zkembed.ReplyError(zkembed.CodeThrottledOp), zkembed.DelayEvents(until),
		}
		f := s.Inject(m, acts[r.IntN(len(acts))])
		time.AfterFunc(until, f.Remove)
	case 7:
		s.Restart(until / 5)
	}
}
