package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/zkcoord/zkcoord/coord"
)

type doctorVerb struct {
	surveyed
}

// finding is what the doctor found somewhere, and what to do about it.
type finding struct {
	Wrong bool   `json:"wrong"`
	Where string `json:"where"` // a server's address, or a path
	Found string `json:"found"`
	Do    string `json:"do,omitempty"`
}

// diagnosis is all findings.
type diagnosis struct {
	Findings []finding `json:"findings"`
	Wrong    int       `json:"wrong"`
	extent
}

// Run looks at the servers and at the nodes below a path.
func (v *doctorVerb) Run(s *streams, c *connection) error {
	d := &diagnosis{Findings: []finding{}}
	ctx, cancel := within(context.Background(), c.ConnectTimeout)
	defer cancel()
	if _, err := c.options(); err != nil {
		return err
	}
	connected, all := d.servers(ctx, c)
	err := c.with(func(ctx context.Context, client *coord.Client) error {
		d.session(c, client)
		if err := d.clock(ctx, client); err != nil {
			return err
		}
		found, err := v.look(ctx, client)
		if err != nil {
			return err
		}
		d.extent = found.extent
		if !all {
			connected = nil
		}
		d.nodes(found, connected, sessionName(client.SessionID()))
		return nil
	})
	if err != nil {
		d.wrong(c.ZK, fmt.Sprintf("no session: %v", briefly(err)), "see to the servers above first")
	}
	if err := d.tell(s); err != nil {
		return err
	}
	if d.Wrong > 0 {
		return silently(exitFailed)
	}
	return nil
}

func (d *diagnosis) fine(where, found string) {
	d.Findings = append(d.Findings, finding{Where: where, Found: found})
}

func (d *diagnosis) wrong(where, found, do string) {
	d.Findings = append(d.Findings, finding{true, where, found, do})
	d.Wrong++
}

// tell writes the findings, what is wrong last, where people look first.
func (d *diagnosis) tell(s *streams) error {
	if s.json {
		s.told = true
		return writeJSON(s.out, d)
	}
	slices.SortStableFunc(d.Findings, func(a, b finding) int {
		if a.Wrong == b.Wrong {
			return 0
		} else if b.Wrong {
			return -1
		}
		return 1
	})
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	for _, f := range d.Findings {
		mark := "ok"
		if f.Wrong {
			mark = "WRONG"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", mark, plain(f.Where), f.Found)
		if f.Do != "" {
			fmt.Fprintf(w, "\t\t→ %s\n", f.Do)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(s.out, "%s wrong; %s\n", plural(d.Wrong, "thing is", "things are"), d.extent)
	return err
}

// servers looks at each server by itself. It returns the sessions that are
// connected, and whether all servers told.
func (d *diagnosis) servers(ctx context.Context, c *connection) (connected []string, all bool) {
	addresses, chroot := addressesOf(c.ZK)
	leaders, followers := 0, 0
	all = true
	for _, address := range addresses {
		one := *c
		one.ZK, one.note = address+chroot, func(string, ...any) {}
		one.ConnectTimeout = min(c.ConnectTimeout, lookWithin)
		client, err := one.open(ctx)
		if err != nil {
			all = false
			d.wrong(address, fmt.Sprintf("no session: %v", briefly(err)), "is a server there, part of a quorum, and reachable from here?")
			continue
		}
		begun := time.Now()
		err = client.Flush(ctx)
		took := time.Since(begun).Round(100 * time.Microsecond)
		hangUp(client)
		if err != nil {
			d.wrong(address, fmt.Sprintf("a write fails: %v", briefly(err)), "is there a quorum?")
		}
		mode := one.mode(ctx, address)
		switch mode {
		case "leader", "standalone":
			leaders++
		case "follower":
			followers++
		}
		d.fine(address, fmt.Sprintf("%s, a write takes %v", mode, took))
		sessions, told := one.connections(ctx, address)
		connected, all = append(connected, sessions...), all && told
	}
	if leaders > 1 {
		d.wrong(c.ZK, fmt.Sprintf("%d servers lead, or stand alone: they are several ensembles, each with locks of its own", leaders),
			"name the servers of one ensemble")
	}
	if leaders+followers == 2 && leaders == 1 {
		d.wrong(c.ZK, "an ensemble of two stops when either does", "three servers go on without one")
	}
	return connected, all
}

// session compares what was asked for with what was granted.
func (d *diagnosis) session(c *connection, client *coord.Client) {
	granted := client.SessionTimeout()
	if asked := c.SessionTimeout; asked != 0 && granted != asked {
		d.wrong(c.ZK, fmt.Sprintf("asked for a session time-out of %v, the servers grant %v", asked, granted),
			"they allow 2 to 20 ticks (minSessionTimeout, maxSessionTimeout)")
		return
	}
	d.fine(c.ZK, fmt.Sprintf("session time-out %v: after a crash, others wait so long", granted))
}

// mostSkew is how far clocks may be apart before ages that are shown mislead.
const mostSkew = 2 * time.Second

// clock compares this machine's clock with that of the server that leads, by a
// node that it makes for a moment. That also shows whether a node may be made.
func (d *diagnosis) clock(ctx context.Context, client *coord.Client) error {
	node := "/zkcoord-doctor-" + strings.ToLower(rand.Text()[:12])
	before := time.Now()
	results, err := client.Txn(ctx, coord.CreateOp(node, nil, coord.Ephemeral), coord.SetOp(node, nil, -1), coord.DeleteOp(node, -1))
	after := time.Now()
	switch {
	case errors.Is(err, coord.ErrNoAuth):
		d.wrong("/", "no node may be made here", "present credentials (--auth, ZK_AUTH), or have the ACL of the node, or a chroot of your own")
		return nil
	case errors.Is(err, coord.ErrNoNode):
		d.wrong("/", "there is no chroot "+client.Chroot(), "make it, or is it misspelt?")
		return nil
	case err != nil:
		return err
	}
	skew := results[1].Stat.Modified.Sub(before.Add(after.Sub(before) / 2)).Round(time.Millisecond)
	if skew.Abs() > mostSkew+after.Sub(before)/2 {
		d.wrong("/", fmt.Sprintf("the servers' clock is %v from this machine's", skew), "ages that are shown are wrong by that; no guarantee depends on it (NTP?)")
		return nil
	}
	d.fine("/", fmt.Sprintf("the servers' clock is %v from this machine's", skew))
	return nil
}

// nodes tells what is odd about the recipes that were found. connected are the
// sessions that are connected to a server, or nil if that is not known.
func (d *diagnosis) nodes(s *survey, connected []string, own string) {
	for _, r := range s.recipes {
		if strings.HasPrefix(r.Path, demoRoot) {
			d.wrong(r.Path, "a demo has left it", "no demo runs? delete the nodes below "+strings.TrimSuffix(demoRoot, "/"))
		}
		for _, odd := range r.odd() {
			d.wrong(r.Path, odd, remedy(odd))
		}
		for _, c := range r.Contenders {
			if connected != nil && c.Session != sessionName(0) && c.Session != own && !slices.Contains(connected, c.Session) {
				d.wrong(r.Path, fmt.Sprintf("%s (%s) %s, and its session is connected to no server", c.owner(), c.Session, c.State),
					"the servers end the session after its time-out; until then others wait")
			}
		}
	}
	for _, path := range s.Hidden {
		d.wrong(path, "its children must not be listed with these credentials", "present others (--auth, ZK_AUTH), or leave it to its owner")
	}
	if connected == nil {
		d.fine(s.path, "which sessions are connected is not known: not all servers allow the command cons (4lw.commands.whitelist)")
	}
	d.fine(s.path, fmt.Sprintf("%s, %s", plural(len(s.recipes), "recipe", "recipes"), plural(len(s.graph().Circles), "circle", "circles")))
	for _, circle := range s.graph().Circles {
		d.wrong(s.path, "sessions wait for each other: "+strings.Join(circle, ", "), "\""+program+" graph\" tells at which paths; break one of the locks")
	}
}

// remedies are what to do about what is odd, by a part of its text.
var remedies = []struct{ part, do string }{
	{"dialects", "one path, one dialect: let the programs agree, or give one of them another path"},
	{"several recipes", "give each recipe a path of its own"},
	{"no session", "a program made the node persistent, or a person did: delete it, if nothing depends on it"},
	{"asked to give up", "the holder may not heed it: the verb break takes it by force"},
	{"sequence numbers", "move to a fresh path before the counter is full: claims are refused then"},
	{"open round", "members have died; the round ends when the others have finished"},
	{"dead letter", "look at them: the path with /dead is a queue, too"},
}

func remedy(odd string) string {
	for _, r := range remedies {
		if strings.Contains(odd, r.part) {
			return r.do
		}
	}
	return ""
}

// read is what a stream has until its end, or until a limit.
func read(from io.Reader) string {
	data, _ := io.ReadAll(io.LimitReader(from, 64<<20))
	return string(data)
}
