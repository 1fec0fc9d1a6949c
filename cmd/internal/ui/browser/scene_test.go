package browser

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/cron"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/coord/group"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/coord/semaphore"
	"github.com/zkcoord/zkcoord/coord/shards"
	"github.com/zkcoord/zkcoord/coord/slots"
)

// scene is a shop at work, for pictures: every recipe, and some things that are
// wrong.
type scene struct {
	t       *testing.T
	ctx     context.Context
	servers string
	players sync.WaitGroup
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// play lets the scene go on until the context ends.
func play(t *testing.T, ctx context.Context, servers string) {
	ctx, cancel := context.WithCancel(ctx)
	s := &scene{t: t, ctx: ctx, servers: servers}
	t.Cleanup(func() {
		cancel()
		s.players.Wait()
	})
	s.locks()
	s.circle()
	s.election()
	s.queues()
	s.shards()
	s.ledgers()
	s.crowds()
}

func (s *scene) client(name string) *coord.Client {
	return newWorker(s.t, s.ctx, s.servers, name).Client
}

// loop does something again and again until the scene ends.
func (s *scene) loop(f func(n int) error) {
	s.players.Go(func() {
		for n := 0; s.ctx.Err() == nil; n++ {
			if err := f(n); err != nil && s.ctx.Err() == nil {
				s.t.Log(err)
				return
			}
		}
	})
}

func (s *scene) pause(seconds float64) {
	timer := time.NewTimer(time.Duration(seconds * float64(time.Second)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.ctx.Done():
	}
}

func (s *scene) locks() {
	for i, name := range []string{"billing", "report", "audit"} {
		mutex := must(lock.New(s.client(name), "/shop/backup"))
		s.loop(func(n int) error {
			s.pause(2 + 4*float64((n+i)%3))
			return mutex.Do(s.ctx, func(context.Context, *coord.Hold) error {
				s.pause(2 + 2*float64((n+2*i)%4))
				return nil
			})
		})
	}
}

func (s *scene) circle() {
	jobs, stock := s.client("jobs"), s.client("stock")
	a := must(must(lock.New(jobs, "/shop/locks/orders")).Acquire(s.ctx))
	b := must(must(lock.New(stock, "/shop/locks/prices")).Acquire(s.ctx))
	s.players.Go(func() { _, _ = must(lock.New(jobs, "/shop/locks/prices")).Acquire(a.Context(s.ctx)) })
	s.players.Go(func() { _, _ = must(lock.New(stock, "/shop/locks/orders")).Acquire(b.Context(s.ctx)) })
}

func (s *scene) election() {
	for i, name := range []string{"api-1", "api-2"} {
		e := must(election.New(s.client(name), "/shop/leader"))
		s.loop(func(int) error {
			s.pause(float64(i))
			return e.Run(s.ctx, nil, func(ctx context.Context, term *election.Term) error {
				s.pause(17)
				return nil
			})
		})
	}
}

func (s *scene) queues() {
	mail, orders := must(queue.New(s.client("web"), "/shop/mail")), must(queue.New(s.client("web"), "/shop/orders"))
	s.loop(func(n int) error {
		s.pause(0.4)
		return errors.Join(mail.Put(s.ctx, fmt.Appendf(nil, `{"to": "customer %d"}`, n)),
			orders.Put(s.ctx, fmt.Appendf(nil, "order %d", n)))
	})
	for path, pace := range map[string]float64{"/shop/mail": 1.1, "/shop/orders": 0.2} {
		q := must(queue.New(s.client("worker-1"), path))
		s.loop(func(n int) error {
			item, err := q.Receive(s.ctx)
			if err != nil {
				return err
			}
			s.pause(pace * (0.5 + float64(n%10)/10))
			return item.Ack(s.ctx)
		})
	}
}

func (s *scene) shards() {
	var keys []string
	for i := range 24 {
		keys = append(keys, fmt.Sprintf("region-%02d", i))
	}
	work := func(ctx context.Context, _ string, _ coord.Held) error {
		<-ctx.Done()
		return nil
	}
	for i, name := range []string{"node-a", "node-b", "node-c", "node-d"} {
		member := must(shards.New(s.client(name), "/shop/regions", shards.ID(name), shards.Keys(keys...)))
		s.players.Go(func() {
			s.pause(8 * float64(i))
			_ = member.Run(s.ctx, work)
		})
	}
}

// often is a schedule with a slot every few seconds.
type often struct{}

func (often) Next(t time.Time) time.Time { return t.Truncate(4 * time.Second).Add(4 * time.Second) }

func (s *scene) ledgers() {
	c := must(cron.New(s.client("scheduler"), "/shop/reports", often{}))
	s.players.Go(func() {
		n := 0
		_ = c.Run(s.ctx, func(context.Context, *cron.Slot) ([]byte, error) {
			if n++; n%5 == 4 {
				return nil, errors.New("the printer is on fire")
			}
			return nil, nil
		})
	})
	ledger := must(once.New(s.client("deploy"), "/shop/migrations"))
	s.players.Go(func() {
		for i, key := range []string{"001-orders", "002-index", "003-prices", "004-archive"} {
			_, _ = ledger.Do(s.ctx, key, func(context.Context, *once.Run) ([]byte, error) {
				s.pause(3)
				if i == 2 {
					return nil, errors.New("column exists")
				}
				return nil, nil
			})
		}
	})
}

func (s *scene) crowds() {
	for i := range 4 {
		leases := must(semaphore.New(s.client(fmt.Sprint("import-", i)), "/shop/licence", 3))
		s.loop(func(n int) error {
			s.pause(float64((n + i) % 4))
			return leases.Do(s.ctx, func(context.Context, *coord.Hold) error {
				s.pause(3 + float64((n*i)%5))
				return nil
			})
		})
	}
	for i := range 3 {
		b := must(doublebarrier.New(s.client(fmt.Sprint("step-", i)), "/shop/batch", 3))
		s.loop(func(n int) error {
			s.pause(float64(2 * i))
			return b.Do(s.ctx, func(context.Context, *doublebarrier.Member) error {
				s.pause(4 + float64(3*i))
				return nil
			})
		})
	}
	for i := range 2 {
		must(must(slots.New(s.client(fmt.Sprint("worker-", i)), "/shop/worker-id", 3)).Acquire(s.ctx))
		must(must(group.New(s.client(fmt.Sprint("web-", i)), "/shop/web")).Join(s.ctx, fmt.Sprint("web-", i), nil))
	}
}

// The pictures in the documents.
const (
	desktop     = root + "/docs/ui.png"
	phone       = root + "/docs/ui-phone.png"
	mostPicture = 200 << 10 // bytes
)

var update = flag.Bool("update", false, "take the pictures in the documents anew")

func TestThePicturesInTheDocumentsAreSmall(t *testing.T) {
	if *update {
		takePictures(t)
	}
	for _, name := range []string{desktop, phone} {
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Less(t, info.Size(), int64(mostPicture))
	}
}

// takePictures takes pictures of the shop after it has been at work for a
// while.
func takePictures(t *testing.T) {
	ctx, server := startServer(t)
	p := serve(t, ctx, server.ConnectString(), "--allow-break", "--always", "--every", "300ms")
	play(t, ctx, server.ConnectString())
	timer := time.NewTimer(50 * time.Second)
	<-timer.C
	b := browse(t, ctx)
	for name, step := range map[string]struct {
		w, h int64
		hash string
	}{
		desktop: {1100, 1000, "#r=1"}, phone: {width, 900, "#r=1&f=waited"},
		filepath.Join(os.TempDir(), "ui-open.png"): {
			1100, 2600, "#r=1&s=path&open=/shop/backup&open=/shop/mail&open=/shop/regions&open=/shop/reports&q=shop",
		},
		filepath.Join(os.TempDir(), "ui-more.png"): {
			1100, 2600,
			"#r=1&s=path&open=/shop/licence&open=/shop/batch&open=/shop/migrations&open=/shop/worker-id&open=/shop/leader",
		},
	} {
		b.do(chromedp.EmulateViewport(step.w, step.h), chromedp.Navigate("about:blank"), chromedp.Navigate(p.url+step.hash))
		b.await(`document.querySelectorAll("#rows .picture rect").length > 5`)
		data, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(name, data, 0o644))
	}
}
