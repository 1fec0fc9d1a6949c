package queue_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func init() {
	zktest.RegisterChild("producer", producerMain)
	zktest.RegisterChild("consumer", consumerMain)
}

func childQueue(args []string) (context.Context, *coord.Client, *queue.Queue) {
	ctx := context.Background()
	c, err := coord.Open(ctx, args[0], coord.WithSessionTimeout(zktest.SessionTimeout))
	exitOn(err)
	q, err := queue.New(c, args[1])
	exitOn(err)
	return ctx, c, q
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// producerMain puts 50 items that bear its name.
func producerMain(args []string) {
	ctx, c, q := childQueue(args)
	for i := range 50 {
		exitOn(q.Put(ctx, fmt.Appendf(nil, "%s-%d", args[2], i)))
	}
	exitOn(c.Close(ctx))
	fmt.Println("done")
}

// consumerMain says "got ITEM DELIVERY" and, when it is acknowledged, "acked
// ITEM". A victim keeps its first item until it is killed.
func consumerMain(args []string) {
	ctx, _, q := childQueue(args)
	for {
		item, err := q.Receive(ctx)
		exitOn(err)
		fmt.Println("got", string(item.Data), item.Deliveries)
		if len(args) > 2 {
			<-item.Done()
			os.Exit(1)
		}
		exitOn(item.Ack(ctx))
		fmt.Println("acked", string(item.Data))
	}
}

func TestWhenConsumersAreKilledBetweenReceiveAndAckNothingIsLost(t *testing.T) {
	w := zktest.New(t, zktest.Real)
	watcher := newQueue(t, coordtest.Open(t, w.ConnectString()), w.Path("q"))
	for n := range 4 {
		zktest.Child(t, "producer", w.ConnectString(), w.Path("q"), fmt.Sprint(n))
	}
	lines := make(chan string, 10_000)
	consumer := func(sacrifice bool) <-chan struct{} {
		args := []string{w.ConnectString(), w.Path("q")}
		if sacrifice {
			args = append(args, "victim")
		}
		p, killed := zktest.Child(t, "consumer", args...), make(chan struct{})
		go func() {
			defer close(killed)
			for line := range p.Lines() {
				lines <- line
				if sacrifice && strings.HasPrefix(line, "got") {
					p.Kill()
					sacrifice = false // what it said before it died is still to come
				}
			}
		}()
		return killed
	}
	const kills = 6
	for range kills {
		zktest.Receive(t, time.Minute, consumer(true), "the victim receives nothing")
	}
	for range 4 {
		consumer(false)
	}
	seen, again := map[string]int{}, 0
	for len(seen) < 200 || length(t, watcher) > 0 {
		line := zktest.Receive(t, time.Minute, lines, "nobody receives; %d of 200 seen, %d in the queue", len(seen), length(t, watcher))
		var item string
		var delivery int
		if n, _ := fmt.Sscanf(line, "got %s %d", &item, &delivery); n == 2 {
			seen[item]++
			if delivery > 1 {
				again++
			}
			require.GreaterOrEqual(t, delivery, seen[item])
		}
	}
	require.Len(t, seen, 200)
	require.Positive(t, again, "no victim died with an item in hand")
	for item, times := range seen {
		require.LessOrEqual(t, times, 1+kills, item)
	}
}
