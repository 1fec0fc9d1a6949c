package cli

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/zkcoord/zkcoord/cmd/coorddemo/internal/self"
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

func (v *queueDemo) check() error {
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
	if err := v.check(); err != nil {
		return err
	}
	conn, where, stop, err := c.forDemo()
	if err != nil {
		return err
	}
	defer stop()
	path := "/coorddemo/queue-" + strings.ToLower(rand.Text()[:8])
	ctx, cancel := context.WithTimeoutCause(context.Background(), demoLimit, errors.New("out of time"))
	defer cancel()
	ctx, stopSignals := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stopSignals()
	p := newProgress(s)
	p.tell("%s put %d items into the queue %s\non %s; %s process them one by one,\nand %s killed with SIGKILL with an item in hand.\n",
		plural(v.Producers, "process", "processes"), v.Items, path, where,
		plural(v.Consumers, "other", "others"), plural(v.Kill, "of those is", "of those are"))
	m := &market{verb: v, streams: s, conn: &conn, path: path, progress: p, reports: make(chan marketReport, 64), state: map[string]itemState{}}
	begun := time.Now()
	err = m.run(ctx)
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
	conn     *connection
	path     string
	progress *progress
	reports  chan marketReport
	workers  sync.WaitGroup

	state       map[string]itemState
	acked       int
	kills       int
	redelivered int
	victim      string // the item that a killed process had, until it is delivered again
	killed      time.Time
}

type itemState struct{ put, acked int }

// marketReport is a line of a process: "put ITEM", "got ITEM DELIVERY", "acked ITEM"; or its end.
type marketReport struct {
	from *exec.Cmd
	line string
	end  error
}

func (m *market) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer m.workers.Wait()
	defer cancel() // ends all processes
	for n := range m.verb.Producers {
		share := m.verb.Items / m.verb.Producers
		if n < m.verb.Items%m.verb.Producers {
			share++
		}
		if err := m.start(ctx, "__producer", fmt.Sprintf("--name=p%d", n+1), fmt.Sprintf("--items=%d", share)); err != nil {
			return err
		}
	}
	for range m.verb.Consumers {
		if err := m.start(ctx, "__consumer"); err != nil {
			return err
		}
	}
	for m.acked < m.verb.Items || m.victim != "" {
		select {
		case r := <-m.reports:
			if err := m.hear(ctx, r); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// start runs a process of the demo and reports its lines until ctx ends it.
func (m *market) start(ctx context.Context, verb string, args ...string) error {
	args = append([]string{
		verb, "--zk", m.conn.ZK, "--session-timeout", m.conn.SessionTimeout.String(),
		"--connect-timeout", m.conn.ConnectTimeout.String(), "--dialect", m.conn.Dialect,
	}, append(args, m.path)...)
	cmd, err := self.Command(args...)
	if err != nil {
		return exitWith(exitFailed, "%w", err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		cmd.Stderr = m.streams.err
		err = cmd.Start()
	}
	if err != nil {
		return exitWith(exitFailed, "%w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	m.workers.Go(func() {
		defer stop()
		for lines := bufio.NewScanner(out); lines.Scan(); {
			m.report(ctx, marketReport{from: cmd, line: lines.Text()})
		}
		m.report(ctx, marketReport{from: cmd, end: errors.Join(cmd.Wait(), errEnded)})
	})
	return nil
}

var errEnded = errors.New("ended")

func (m *market) report(ctx context.Context, r marketReport) {
	select {
	case m.reports <- r:
	case <-ctx.Done():
	}
}

// hear takes a report in. A consumer that has just received is killed when it is time for that.
func (m *market) hear(ctx context.Context, r marketReport) error {
	var item string
	var delivery int
	verb, _, _ := strings.Cut(r.line, " ")
	_, _ = fmt.Sscanf(r.line, verb+" %s %d", &item, &delivery)
	state := m.state[item]
	switch verb {
	case "put":
		state.put++
	case "acked":
		state.acked++
		m.acked++
		m.progress.show("  %s %d of %d", bar(m.acked, m.verb.Items), m.acked, m.verb.Items)
	case "got":
		m.deliver(item, delivery)
		if m.due() {
			return m.kill(ctx, r.from, item)
		}
		return nil
	default:
		if r.from.ProcessState.ExitCode() > 0 {
			return fmt.Errorf("a process ended by itself: %w", r.end)
		}
		return nil
	}
	m.state[item] = state
	return nil
}

func (m *market) deliver(item string, delivery int) {
	if delivery < 2 {
		return
	}
	m.redelivered++
	if item == m.victim {
		m.progress.tell("  ✓ %4d done  item %s came back %v later, to another", m.acked, item, time.Since(m.killed).Round(time.Millisecond))
		m.victim = ""
	}
}

// due tells whether the next victim's time has come: spread over the run, one after the other.
func (m *market) due() bool {
	return m.kills < m.verb.Kill && m.victim == "" && m.acked >= (m.kills+1)*m.verb.Items/(m.verb.Kill+2)
}

func (m *market) kill(ctx context.Context, cmd *exec.Cmd, item string) error {
	if err := cmd.Process.Kill(); err != nil {
		return nil // it was faster
	}
	m.kills++
	m.victim, m.killed = item, time.Now()
	m.progress.tell("  ✗ %4d done  killed process %d, which had received item %s and not acknowledged it", m.acked, cmd.Process.Pid, item)
	return m.start(ctx, "__consumer")
}

// left counts what is still in the queue, and removes the demo's nodes.
func (m *market) left(failed error) (int, error) {
	client, err := m.conn.open(context.Background())
	if err != nil {
		return 0, errors.Join(failed, err)
	}
	defer hangUp(client)
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	stat, _, err := client.Exists(ctx, m.path+"/entries")
	for _, node := range []string{"/entries", "/taken", "/producers", ""} {
		forget(client, m.path+node)
	}
	return int(stat.Children), errors.Join(failed, err)
}
