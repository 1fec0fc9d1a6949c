// Package stage plays an example: its program runs as three replicas, each a
// process of its own, and one of them is killed or paused. A copy of an example
// imports it from this module.
package stage

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/zkembed"
)

// T is the session timeout: so long after a death the next replica goes on.
const T = 4 * time.Second

// Scene is what happens. All texts are parts of lines that replicas say.
type Scene struct {
	Setup  func(ctx context.Context, c *coord.Client) error // before the replicas start, or nil
	Kill   string                                           // the first replica to say this is killed
	Pause  string                                           // or paused,
	Resume string                                           // until another one says this
	End    string                                           // the example ends when others have said this
	Times  int                                              // so often; otherwise when all replicas have ended
}

// Replica is one of the three.
type Replica struct {
	Name   string
	Client *coord.Client
	Dir    string // a folder that the replicas share
}

// Say writes a line.
func (r *Replica) Say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

const (
	envName    = "EXAMPLE_REPLICA"
	envDir     = "EXAMPLE_DIR"
	envServers = "ZK_SERVERS"
)

// Play plays the scene with three processes of this program, each of which runs
// replica, on the servers in the variable ZK_SERVERS, or an embedded one.
func Play(s Scene, replica func(ctx context.Context, r *Replica) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if name := os.Getenv(envName); name != "" {
		err = act(ctx, name, replica)
	} else {
		err = direct(ctx, s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// act is a replica's process. It ends when its standard input does.
func act(ctx context.Context, name string, replica func(ctx context.Context, r *Replica) error) error {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	client, err := open(ctx, os.Getenv(envServers), name)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close(context.Background()) }()
	err = replica(ctx, &Replica{name, client, os.Getenv(envDir)})
	if ctx.Err() != nil {
		return nil // the example is over
	}
	return err
}

func open(ctx context.Context, servers, name string) (*coord.Client, error) {
	connecting, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	return coord.Open(connecting, servers, coord.WithIdentity(name), coord.WithSessionTimeout(T))
}

// direct starts the replicas, shows what they say, and does what the scene
// says.
func direct(ctx context.Context, s Scene) error {
	servers := os.Getenv(envServers)
	if servers == "" {
		server, err := zkembed.Start(zkembed.WithTick(T / 20))
		if err != nil {
			return err
		}
		defer func() { _ = server.Close() }()
		servers = server.ConnectString()
	}
	if s.Setup != nil {
		client, err := open(ctx, servers, "setup")
		if err != nil {
			return err
		}
		defer func() { _ = client.Close(context.Background()) }()
		if err := s.Setup(ctx, client); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	p := play{Scene: s, begun: time.Now(), heard: make(chan line)}
	for i := range 3 {
		if err := p.enter(ctx, fmt.Sprint("replica ", i+1), dir, servers); err != nil {
			return err
		}
	}
	return p.run()
}

// play is a scene that is played.
type play struct {
	Scene
	begun  time.Time
	cast   []*actor
	heard  chan line
	victim *actor // killed or paused
	said   int    // how often End was
}

// actor is a replica's process.
type actor struct {
	name    string
	process *exec.Cmd
	input   io.Closer
	paused  bool
}

// line is what a replica says, or that it has ended.
type line struct {
	by    *actor
	text  string
	ended bool
	err   error
}

// enter starts a replica.
func (p *play) enter(ctx context.Context, name, dir, servers string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	a := &actor{name: name, process: exec.CommandContext(ctx, program)}
	a.process.Env = append(os.Environ(), envName+"="+name, envDir+"="+dir, envServers+"="+servers)
	a.process.Stderr = os.Stderr
	output, err := a.process.StdoutPipe()
	if err != nil {
		return err
	}
	if a.input, err = a.process.StdinPipe(); err != nil {
		return err
	}
	if err := a.process.Start(); err != nil {
		return err
	}
	p.cast = append(p.cast, a)
	go func() {
		for lines := bufio.NewScanner(output); lines.Scan(); {
			p.heard <- line{by: a, text: lines.Text()}
		}
		p.heard <- line{by: a, ended: true, err: a.process.Wait()}
	}()
	return nil
}

// run shows what the replicas say until all have ended.
func (p *play) run() (err error) {
	for playing := len(p.cast); playing > 0; {
		l := <-p.heard
		if !l.ended {
			if l.by == p.victim && p.Kill != "" {
				continue // it said this before it was killed
			}
			p.show(l.by.name, l.text)
			err = errors.Join(err, p.follow(l))
			continue
		}
		playing--
		if l.err != nil && (l.by != p.victim || p.Kill == "") {
			err = errors.Join(err, fmt.Errorf("%s: %w", l.by.name, l.err))
		}
	}
	return err
}

func (p *play) show(name, text string) {
	fmt.Printf("%5.1f s  %-9s  %s\n", time.Since(p.begun).Seconds(), name, text)
}

// follow does what the scene says when a line was said.
func (p *play) follow(l line) error {
	is := func(cue string) bool { return cue != "" && strings.Contains(l.text, cue) }
	switch {
	case p.victim == nil && is(p.Kill):
		p.victim = l.by
		p.show("", "*** "+l.by.name+" is killed ***")
		p.show("", fmt.Sprintf("(the servers keep what it held until its session times out, up to %v)", T))
		return l.by.process.Process.Kill()
	case p.victim == nil && is(p.Pause):
		p.victim, l.by.paused = l.by, true
		p.show("", "*** "+l.by.name+" is paused ***")
		return pause(l.by.process.Process)
	case p.victim != nil && p.victim.paused && p.victim != l.by && is(p.Resume):
		p.victim.paused = false
		p.show("", "*** "+p.victim.name+" goes on ***")
		return resume(p.victim.process.Process)
	}
	if is(p.End) {
		p.said++
		if p.said == p.Times {
			for _, a := range p.cast {
				_ = a.input.Close()
			}
		}
	}
	return nil
}
