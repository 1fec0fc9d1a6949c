package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	if _, err := c.options(); err != nil {
		return err
	}
	d := &diagnosis{Findings: []finding{}}
	reached := d.servers(c)
	switch err := c.with(func(ctx context.Context, client *coord.Client) error {
		return v.examine(ctx, d, c, client, reached)
	}); {
	case err == nil:
	case statusOf(err).code == exitUsage:
		return err
	default:
		d.wrong(c.ZK, briefly(err).Error(), "see to the servers first; --connect-timeout gives more time")
	}
	if err := d.tell(s); err != nil {
		return err
	}
	if d.Wrong > 0 {
		return silently(exitFailed)
	}
	return nil
}

// examine looks at what a session shows.
func (v *doctorVerb) examine(ctx context.Context, d *diagnosis, c *connection, client *coord.Client, reached []string) error {
	d.session(c, client)
	if err := d.clock(ctx, client); err != nil {
		return err
	}
	found, err := v.look(ctx, client)
	if err != nil {
		return err
	}
	d.extent = found.extent
	d.nodes(found)
	// Afterwards, since clients may have connected meanwhile.
	d.sessions(c, found, reached)
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
	var t table
	for _, f := range d.Findings {
		mark, found := "ok", f.Found
		if f.Wrong {
			mark = "WRONG"
		}
		if f.Do != "" {
			found += "\n→ " + f.Do
		}
		t.add(found, mark, plain(f.Where))
	}
	to := s.page()
	if err := t.write(to); err != nil {
		return err
	}
	return to.say("", "%s wrong; %s", plural(d.Wrong, "thing is", "things are"), d.extent)
}

// servers looks at each server by itself, and returns those that were reached.
func (d *diagnosis) servers(c *connection) (reached []string) {
	addresses, chroot := addressesOf(c.ZK)
	leaders := 0
	for _, address := range addresses {
		mode, took, err := c.examine(address, chroot)
		if err != nil {
			d.wrong(address, briefly(err).Error(), "is a server there, part of a quorum, and reachable from here?")
			continue
		}
		if mode == "leader" || mode == "standalone" {
			leaders++
		}
		d.fine(address, fmt.Sprintf("%s, a write takes %v", mode, took.Round(100*time.Microsecond)))
		reached = append(reached, address)
	}
	if leaders > 1 {
		d.wrong(c.ZK, fmt.Sprintf("%d servers lead, or stand alone: they are several ensembles, each with locks of its own", leaders),
			"name the servers of one ensemble")
	}
	return reached
}

// examine opens a session at one server, and tells its part in the ensemble and
// how long a write takes there.
func (c connection) examine(address, chroot string) (mode string, took time.Duration, err error) {
	c.ZK, c.note, c.ConnectTimeout = address+chroot, func(string, ...any) {}, min(c.ConnectTimeout, lookWithin)
	err = c.with(func(ctx context.Context, client *coord.Client) error {
		begun := time.Now()
		err := client.Flush(ctx)
		took = time.Since(begun)
		mode = c.mode(ctx, address)
		return err
	})
	return mode, took, err
}

// sessions tells which contenders' sessions are connected to none of the
// servers, if each was reached and tells who is connected. That is no fault by
// itself: not all servers need be named.
func (d *diagnosis) sessions(c *connection, s *survey, reached []string) {
	connected := map[string]bool{}
	addresses, _ := addressesOf(c.ZK)
	for _, address := range addresses {
		sessions, told := c.connections(context.Background(), address)
		if !told || !slices.Contains(reached, address) {
			d.fine(s.path, "which sessions are connected is not known: "+address+" does not tell (cons or dump, in 4lw.commands.whitelist)")
			return
		}
		for session := range sessions {
			connected[session] = true
		}
	}
	d.disconnected(s, connected)
}

func (d *diagnosis) disconnected(s *survey, connected map[string]bool) {
	for _, r := range s.recipes {
		for _, c := range r.Contenders {
			if c.Age != nil && !c.Orphan && !connected[c.Session] {
				d.fine(r.Path, fmt.Sprintf("%s (%s) %s, and its session is connected to no server that is named: its process is dead or cut off, "+
					"and its node stays until the session's end, or it uses another server", c.owner(), c.Session, c.State))
			}
		}
	}
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

// nodes tells what is odd about the recipes that were found.
func (d *diagnosis) nodes(s *survey) {
	for _, r := range s.recipes {
		if strings.HasPrefix(r.Path, demoRoot) {
			d.wrong(r.Path, "a demo has left it", "no demo runs? delete the nodes below "+strings.TrimSuffix(demoRoot, "/"))
		}
		for _, odd := range r.odd() {
			d.wrong(r.Path, odd.found, odd.do)
		}
	}
	for _, path := range s.Hidden {
		d.wrong(path, "its children must not be listed with these credentials", "present others (--auth, ZK_AUTH), or leave it to its owner")
	}
	circles := s.graph().Circles
	d.fine(s.path, fmt.Sprintf("%s, %s", plural(len(s.recipes), "recipe", "recipes"), plural(len(circles), "circle", "circles")))
	for _, circle := range circles {
		d.wrong(s.path, "sessions wait for each other: "+strings.Join(circle, ", "), "\""+program+" graph\" tells at which paths; break one of the locks")
	}
}
