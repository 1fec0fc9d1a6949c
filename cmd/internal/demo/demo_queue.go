package demo

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/demo/market"
	"github.com/zkcoord/zkcoord/cmd/internal/demo/succession"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/election"
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
			return term.UsageError("%s %d: between 1 and %d", name, n, map[bool]int{true: 10_000, false: 50}[name == "--items"])
		}
	}
	if v.Kill < 0 || v.Kill > 8 || v.Kill > v.Items {
		return term.UsageError("--kill %d: between 0 and 8, and no more than there are items", v.Kill)
	}
	return nil
}

// Run plays it.
func (v *queueDemo) Run(s *term.Streams, c *conn.Connection) error {
	return play(s, c, "queue", v.check, func(st *stage) error {
		killed := ""
		if v.Kill > 0 {
			killed = fmt.Sprintf(",\nand %s killed with SIGKILL with an item in hand", term.Plural(v.Kill, "consumer is", "consumers are"))
		}
		st.Tell("%s %s into the queue %s\non %s; %s them one by one%s.\n",
			term.Plural(v.Producers, "process puts", "processes put"), term.Plural(v.Items, "item", "items"), st.path, st.where,
			term.Plural(v.Consumers, "other processes", "others process"), killed)
		m := &market.Market{
			Items: v.Items, Producers: v.Producers, Consumers: v.Consumers, Kills: v.Kill, Path: st.path, Client: st.client,
			Producer: func(name string, items int) (*exec.Cmd, error) {
				return st.process("__producer", "--name="+name, fmt.Sprintf("--items=%d", items), st.path)
			},
			Consumer: func() (*exec.Cmd, error) { return st.process("__consumer", st.path) },
			Audience: st,
		}
		result, err := m.Run(st.ctx)
		st.Clear()
		return v.conclude(st, result, err)
	})
}

func (v *queueDemo) conclude(st *stage, r market.Result, err error) error {
	done := r.Put == v.Items && r.Acked == v.Items && r.Left == 0 && r.Kills == v.Kill && r.Redelivered >= v.Kill
	out := queueResult{ending: st.ended(err, done), Result: r, Items: v.Items, Lost: r.Lost()}
	st.Tell("\n  %d put, %d acknowledged, %d delivered again, %d lost. %s killed, %.1f s.",
		r.Put, r.Acked, r.Redelivered, out.Lost, term.Plural(r.Kills, "process", "processes"), out.Seconds)
	switch {
	case err != nil:
		st.Tell("  Not finished: %s.", out.Error)
	case out.OK && r.Kills == 0:
		st.Tell("  Nothing was lost.")
	case out.OK:
		st.Tell("  Nothing was lost: what the killed had in hand came back, and was done by others.")
	}
	return outcome(st.streams, out, out.OK)
}

// ProducerVerb is one producing process of the queue demo.
type ProducerVerb struct {
	Name  string
	Items int
	Path  conn.NodePath `arg:""`
}

// Run produces until standard input ends.
func (v *ProducerVerb) Run(s *term.Streams, c *conn.Connection) error {
	return atQueue(s, c, v.Path, func(w *market.Worker) error { return w.Produce(context.Background(), v.Name, v.Items) })
}

// ConsumerVerb is one consuming process of the queue demo.
type ConsumerVerb struct {
	Path conn.NodePath `arg:""`
}

// Run consumes until standard input ends.
func (v *ConsumerVerb) Run(s *term.Streams, c *conn.Connection) error {
	return atQueue(s, c, v.Path, func(w *market.Worker) error { return w.Consume(context.Background()) })
}

func atQueue(s *term.Streams, c *conn.Connection, path conn.NodePath, work func(*market.Worker) error) error {
	return c.Connected(func(client *coord.Client) error {
		q, err := queue.New(client, string(path))
		if err != nil {
			return err
		}
		return work(&market.Worker{Queue: q, In: s.In, Out: s.Out, Note: s.Note})
	})
}

type electionDemo struct {
	Replicas int `default:"3" help:"How many processes stand for election."`
	Kill     int `default:"5" help:"How many leaders to kill with SIGKILL, one after the other."`
}

// electionResult is the last line of the demo.
type electionResult struct {
	ending
	succession.Result
	Replicas int    `json:"replicas"`
	MaxGap   *int64 `json:"max_gap_ms"` // from a kill to the next leader; null if that did not happen
}

func (v *electionDemo) check(session time.Duration) error {
	switch {
	case v.Replicas < 1 || v.Replicas > 50:
		return term.UsageError("--replicas %d: it must be between 1 and 50", v.Replicas)
	case v.Kill < 0:
		return term.UsageError("--kill %d: it must not be negative", v.Kill)
	}
	if limit := int(demoLimit * 3 / 4 / (session + time.Second)); v.Kill > limit {
		return term.UsageError("--kill %d: after each kill the next leads when a session time-out (%v) has passed, "+
			"and the demo ends within a minute; kill at most %d", v.Kill, session, limit)
	}
	return nil
}

// Run plays it.
func (v *electionDemo) Run(s *term.Streams, c *conn.Connection) error {
	return play(s, c, "election", v.check, func(st *stage) error {
		dir, err := os.MkdirTemp("", "coorddemo-election-")
		if err != nil {
			return term.ExitWith(term.ExitFailed, "%w", err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		killed := ""
		if v.Kill > 0 {
			killed = fmt.Sprintf(",\nand %s killed with SIGKILL", term.Plural(v.Kill, "leader is", "leaders are"))
		}
		st.Tell("%s at %s\non %s. The leader writes to a log, every few milliseconds%s.\n",
			term.Plural(v.Replicas, "process stands for election", "processes stand for election"), st.path, st.where, killed)
		log := filepath.Join(dir, "log")
		republic := &succession.Republic{
			Replicas: v.Replicas, Kills: v.Kill, Log: log,
			Command:  func(int) (*exec.Cmd, error) { return st.process("__replica", st.path, log) },
			Audience: st,
		}
		result, err := republic.Run(st.ctx)
		return v.conclude(st, result, err)
	})
}

func (v *electionDemo) conclude(st *stage, r succession.Result, err error) error {
	out := electionResult{
		ending: st.ended(err, r.Overlaps == 0 && r.Kills == v.Kill && r.Terms > v.Kill),
		Result: r, Replicas: v.Replicas, MaxGap: term.Measured(r.MaxGap),
	}
	gap := ""
	if r.MaxGap > 0 {
		gap = fmt.Sprintf(", never longer than %v without a leader", r.MaxGap.Round(time.Millisecond))
	}
	st.Tell("\n  %s, %s%s; %.1f s.\n  The log has %s, %d of them by a former leader.",
		term.Plural(r.Terms, "term", "terms"), term.Plural(r.Kills, "leader killed", "leaders killed"), gap, out.Seconds, term.Plural(r.Entries, "entry", "entries"), r.Overlaps)
	if err != nil {
		st.Tell("  Not finished: %s.", out.Error)
	}
	return outcome(st.streams, out, out.OK)
}

// ReplicaVerb is one candidate process of the election demo.
type ReplicaVerb struct {
	Path string `arg:""`
	Log  string `arg:""`
}

// Run stands for election until standard input ends.
func (v *ReplicaVerb) Run(s *term.Streams, c *conn.Connection) error {
	return c.Connected(func(client *coord.Client) error {
		e, err := election.New(client, v.Path)
		if err != nil {
			return err
		}
		r := succession.Replica{Log: v.Log, Election: e, In: s.In, Out: s.Out}
		return r.Serve(context.Background())
	})
}
