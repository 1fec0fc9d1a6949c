package cli

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/demo/crew"
)

type queueDemo struct {
	Items     int `default:"200" help:"How many items there are."`
	Producers int `default:"4" help:"How many processes put them."`
	Consumers int `default:"4" help:"How many processes receive them."`
	Kill      int `default:"2" help:"How many consumers to kill with SIGKILL between receive and ack."`
}

// queueResult is the last line of the demo.
type queueResult struct {
	Demo        string  `json:"demo"`
	Items       int     `json:"items"`
	Put         int     `json:"put"`
	Acked       int     `json:"acked"` // items removed by an ack
	Redelivered int     `json:"redelivered"`
	Lost        int     `json:"lost"` // put, and neither acknowledged nor in the queue
	Left        int     `json:"left"`
	Kills       int     `json:"kills"`
	Seconds     float64 `json:"seconds"`
	Error       string  `json:"error,omitempty"`
	OK          bool    `json:"ok"`
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
	p.tell("%s put %d items into the queue %s\non %s; %s process them one by one,\nand %s killed with SIGKILL with an item in hand.\n",
		plural(v.Producers, "process", "processes"), v.Items, st.path, st.where,
		plural(v.Consumers, "other", "others"), plural(v.Kill, "of those is", "of those are"))
	m := &market{
		verb: v, streams: s, stage: st, progress: p, crew: crew.New[queueNews](),
		state: map[string]itemState{}, victims: map[string]time.Time{},
	}
	begun := time.Now()
	err = m.run(st.ctx)
	m.crew.Close(m.note)
	p.clear()
	return v.conclude(s, p, m, time.Since(begun), err)
}

func (v *queueDemo) conclude(s *streams, p *progress, m *market, took time.Duration, err error) error {
	out := queueResult{Demo: "queue", Items: v.Items, Kills: m.kills, Redelivered: m.redelivered, Seconds: seconds(took)}
	for _, state := range m.state {
		out.Put += min(1, state.put)
		out.Acked += min(1, state.acked)
	}
	if out.Left, err = m.left(err); err != nil {
		out.Error = briefly(err).Error()
	}
	out.Lost = max(0, out.Put-out.Acked-out.Left)
	out.OK = err == nil && out.Put == v.Items && out.Acked == v.Items && out.Left == 0 && out.Kills == v.Kill && out.Redelivered >= v.Kill
	p.tell("\n  %d put, %d acknowledged, %d delivered again, %d lost. %s killed, %.1f s.",
		out.Put, out.Acked, out.Redelivered, out.Lost, plural(out.Kills, "process", "processes"), took.Seconds())
	switch {
	case err != nil:
		p.tell("  Not finished: %s.", out.Error)
	case out.OK:
		p.tell("  Nothing was lost: what the killed had in hand came back, and was done by others.")
	}
	return s.outcome(out, out.OK)
}

// market is the queue with everybody around it.
type market struct {
	verb     *queueDemo
	streams  *streams
	stage    *stage
	progress *progress
	crew     *crew.Crew[queueNews]

	state       map[string]itemState
	acked       int
	kills       int
	redelivered int
	victims     map[string]time.Time // when who had this item was killed, until it is delivered again
}

type itemState struct{ put, acked int }

func (m *market) run(ctx context.Context) error {
	for n := range m.verb.Producers {
		share := m.verb.Items / m.verb.Producers
		if n < m.verb.Items%m.verb.Producers {
			share++
		}
		if err := m.start("__producer", fmt.Sprintf("--name=p%d", n+1), fmt.Sprintf("--items=%d", share)); err != nil {
			return err
		}
	}
	for range m.verb.Consumers {
		if err := m.start("__consumer"); err != nil {
			return err
		}
	}
	for m.acked < m.verb.Items || len(m.victims) > 0 {
		select {
		case e := <-m.crew.Events():
			if err := m.hear(e); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (m *market) start(verb string, args ...string) error {
	_, err := m.crew.Start(func(int) (*exec.Cmd, error) {
		return m.stage.process(m.streams, verb, append(args, m.stage.path)...)
	})
	return err
}

// hear takes in what a process tells, or its end. A consumer that has just received goes on at our word, or is killed
// when it is time for that.
func (m *market) hear(e crew.Event[queueNews]) error {
	if e.Message == nil {
		if err := m.crew.Ended(e); err != nil || e.From.Killed() {
			return err
		}
		return e.Failure()
	}
	m.note(e.From, e.Message)
	if e.Message.What != itemGot {
		return nil
	}
	if m.due(e.Message.Item) {
		return m.kill(e.From, e.Message.Item)
	}
	e.From.Say("go on")
	return nil
}

// note takes down what a process tells.
func (m *market) note(_ *crew.Member, news *queueNews) {
	state := m.state[news.Item]
	switch news.What {
	case itemPut:
		state.put++
	case itemAcked:
		state.acked++
		m.acked++
		m.progress.show(m.acked, m.verb.Items)
	case itemGot:
		m.deliver(news.Item, news.Delivery)
	}
	m.state[news.Item] = state
}

func (m *market) deliver(item string, delivery int) {
	if delivery < 2 {
		return
	}
	m.redelivered++
	if killed, ok := m.victims[item]; ok {
		m.progress.tell("  ✓ %4d done  item %s came back %v later, to another", m.acked, item, time.Since(killed).Round(time.Millisecond))
		delete(m.victims, item)
	}
}

// due tells whether the next victim's time has come: they are spread over the run.
func (m *market) due(item string) bool {
	return m.kills < m.verb.Kill && m.state[item].acked == 0 && m.acked >= (m.kills+1)*m.verb.Items/(m.verb.Kill+2)
}

func (m *market) kill(victim *crew.Member, item string) error {
	victim.Kill()
	m.kills++
	m.victims[item] = time.Now()
	m.progress.tell("  ✗ %4d done  killed process %d, which had received item %s and not acknowledged it", m.acked, victim.PID(), item)
	return m.start("__consumer")
}

// left counts what is still in the queue.
func (m *market) left(failed error) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), forgetWithin)
	defer cancel()
	stat, _, err := m.stage.client.Exists(ctx, m.stage.path+"/entries")
	return int(stat.Children), errors.Join(failed, err)
}
