package cli

import (
	"context"
	"fmt"
	"os/exec"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/demo/market"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue"
)

type queueDemo struct {
	Items     int `default:"200" help:"How many items there are."`
	Producers int `default:"4" help:"How many processes put them."`
	Consumers int `default:"4" help:"How many processes receive them."`
	Kill      int `default:"2" help:"How many consumers to kill with SIGKILL between receive and ack."`
}

// queueResult is the last line of the demo.
type queueResult struct {
	ending
	market.Result
	Items int `json:"items"`
	Lost  int `json:"lost"` // put, and neither acknowledged nor in the queue
}

func (v *queueDemo) check(time.Duration) error {
	for name, n := range map[string]int{"--items": v.Items, "--producers": v.Producers, "--consumers": v.Consumers} {
		if n < 1 || n > 10_000 || name != "--items" && n > 50 {
			return usageError("%s %d: between 1 and %d", name, n, map[bool]int{true: 10_000, false: 50}[name == "--items"])
		}
	}
	if v.Kill < 0 || v.Kill > 8 || v.Kill > v.Items {
		return usageError("--kill %d: between 0 and 8, and no more than there are items", v.Kill)
	}
	return nil
}

// Run plays it.
func (v *queueDemo) Run(s *streams, c *connection) error {
	st, err := c.stage("queue", v.check)
	if err != nil {
		return err
	}
	defer st.close()
	p := newProgress(s)
	killed := ""
	if v.Kill > 0 {
		killed = fmt.Sprintf(",\nand %s killed with SIGKILL with an item in hand", plural(v.Kill, "consumer is", "consumers are"))
	}
	p.tell("%s %s into the queue %s\non %s; %s them one by one%s.\n",
		plural(v.Producers, "process puts", "processes put"), plural(v.Items, "item", "items"), st.path, st.where,
		plural(v.Consumers, "other processes", "others process"), killed)
	m := &market.Market{
		Items: v.Items, Producers: v.Producers, Consumers: v.Consumers, Kills: v.Kill, Path: st.path, Client: st.client,
		Producer: func(name string, items int) (*exec.Cmd, error) {
			return st.process(s, "__producer", "--name="+name, fmt.Sprintf("--items=%d", items), st.path)
		},
		Consumer: func() (*exec.Cmd, error) { return st.process(s, "__consumer", st.path) },
		Watch:    func(e market.Progress) { v.tell(p, e) },
	}
	result, err := m.Run(st.ctx)
	p.clear()
	return v.conclude(s, p, result, err)
}

func (v *queueDemo) tell(p *progress, e market.Progress) {
	switch e.Kind {
	case "acked":
		p.show(e.Acked, v.Items)
	case "killed":
		p.tell("  ✗ %4d done  killed process %d, which had received item %s and not acknowledged it", e.Acked, e.PID, e.Item)
	case "back":
		p.tell("  ✓ %4d done  item %s came back %v later, to another", e.Acked, e.Item, e.Gap.Round(time.Millisecond))
	}
}

func (v *queueDemo) conclude(s *streams, p *progress, r market.Result, err error) error {
	done := r.Put == v.Items && r.Acked == v.Items && r.Left == 0 && r.Kills == v.Kill && r.Redelivered >= v.Kill
	out := queueResult{ending: endingOf("queue", r.Took, err, done), Result: r, Items: v.Items, Lost: r.Lost()}
	p.tell("\n  %d put, %d acknowledged, %d delivered again, %d lost. %s killed, %.1f s.",
		r.Put, r.Acked, r.Redelivered, out.Lost, plural(r.Kills, "process", "processes"), r.Took.Seconds())
	switch {
	case err != nil:
		p.tell("  Not finished: %s.", out.Error)
	case out.OK && r.Kills == 0:
		p.tell("  Nothing was lost.")
	case out.OK:
		p.tell("  Nothing was lost: what the killed had in hand came back, and was done by others.")
	}
	return s.outcome(out, out.OK)
}

// producerVerb is one producing process of the queue demo.
type producerVerb struct {
	Name  string
	Items int
	Path  nodePath `arg:""`
}

// Run produces until standard input ends.
func (v *producerVerb) Run(s *streams, c *connection) error {
	return atQueue(s, c, v.Path, func(w *market.Worker) error { return w.Produce(context.Background(), v.Name, v.Items) })
}

// consumerVerb is one consuming process of the queue demo.
type consumerVerb struct {
	Path nodePath `arg:""`
}

// Run consumes until standard input ends.
func (v *consumerVerb) Run(s *streams, c *connection) error {
	return atQueue(s, c, v.Path, func(w *market.Worker) error { return w.Consume(context.Background()) })
}

func atQueue(s *streams, c *connection, path nodePath, work func(*market.Worker) error) error {
	return c.connected(func(client *coord.Client) error {
		q, err := queue.New(client, string(path))
		if err != nil {
			return err
		}
		return work(&market.Worker{Queue: q, In: s.in, Out: s.out, Note: s.note})
	})
}
