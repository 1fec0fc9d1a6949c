package see

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

type DoctorVerb struct {
	look.Surveyed
}

// finding is what the doctor found somewhere, and what to do about it.
type finding struct {
	Wrong bool   `json:"wrong"`
	Where string `json:"where"` // a server's address, or a path
	Found string `json:"found"`
	Do    string `json:"do,omitempty"`
}

// Diagnosis has all findings.
type Diagnosis struct {
	Findings []finding `json:"findings"`
	Wrong    int       `json:"wrong"`
	look.Extent
}

// Run looks at the servers and at the nodes below a path.
func (v *DoctorVerb) Run(s *term.Streams, c *conn.Connection) error {
	v.Dialect = c.LineDialect()
	if _, err := c.Options(); err != nil {
		return err
	}
	d := &Diagnosis{Findings: []finding{}}
	reached := d.servers(c)
	switch err := c.With(func(ctx context.Context, client *coord.Client) error {
		return v.examine(ctx, d, c, client, reached)
	}); {
	case err == nil:
	case term.StatusOf(err).Code == term.ExitUsage:
		return err
	default:
		d.wrong(c.ZK, term.Briefly(err).Error(), remedy(err, "check the servers first; --connect-timeout gives more time"))
	}
	if err := d.tell(s); err != nil {
		return err
	}
	if d.Wrong > 0 {
		return term.Silently(term.ExitFailed)
	}
	return nil
}

// examine makes the findings that need a session.
func (v *DoctorVerb) examine(
	ctx context.Context, d *Diagnosis, c *conn.Connection, client *coord.Client, reached []string,
) error {
	d.session(c, client)
	if err := d.clock(ctx, client); err != nil {
		return err
	}
	found, err := v.Look(ctx, client)
	if err != nil {
		return err
	}
	d.Extent = found.Extent
	if found.Absent {
		d.wrong(v.Path, "there is no such node, so nothing was looked at", "check the path, and the chroot in --zk")
	}
	// After the survey, since clients may have connected meanwhile.
	d.sessions(c, found, reached)
	d.nodes(found)
	return nil
}

// remedy is what to do about a server's error: what this error calls for, or
// else usually.
func remedy(err error, usually string) string {
	switch {
	case errors.Is(err, coord.ErrAuthFailed):
		return "present credentials that the server accepts: --auth or ZK_AUTH"
	case errors.Is(err, errors.ErrUnsupported):
		return "check the server's version and configuration"
	}
	return usually
}

func (d *Diagnosis) fine(where, found string) {
	d.Findings = append(d.Findings, finding{Where: where, Found: found})
}

func (d *Diagnosis) wrong(where, found, do string) {
	d.Findings = append(d.Findings, finding{true, where, found, do})
	d.Wrong++
}

// tell writes the findings, problems last, where people look first.
func (d *Diagnosis) tell(s *term.Streams) error {
	if s.JSON {
		return s.Print(d, "")
	}
	var t term.Table
	for _, f := range d.Findings {
		if !f.Wrong {
			t.Add(f.Found, "ok", term.Plain(f.Where))
		}
	}
	for _, f := range d.Findings {
		if f.Wrong {
			t.Add(f.Found+"\n→ "+f.Do, "WRONG", term.Plain(f.Where))
		}
	}
	to := s.Page()
	_ = t.Write(to)
	to.Say("", "%s wrong; %s", term.Plural(d.Wrong, "thing is", "things are"), d.Extent)
	return nil
}

// servers connects to each server separately, to all at the same time, and
// returns the ones that it reached.
func (d *Diagnosis) servers(c *conn.Connection) (reached []string) {
	addresses, chroot := conn.AddressesOf(c.ZK)
	seen := make([]server, len(addresses))
	var looking sync.WaitGroup
	for i, address := range addresses {
		looking.Go(func() { seen[i] = reach(*c, address, chroot) })
	}
	looking.Wait()
	var leaders []int64 // the session at each leader
	for i, address := range addresses {
		s := seen[i]
		if s.err != nil {
			d.wrong(address, term.Briefly(s.err).Error(),
				remedy(s.err, "is a server there, part of a quorum, and reachable from here?"))
			continue
		}
		again := slices.ContainsFunc(leaders, func(other int64) bool { return ofOneServer(s.session, other) })
		if (s.mode == "leader" || s.mode == "standalone") && !again {
			leaders = append(leaders, s.session)
		}
		d.fine(address, fmt.Sprintf("%s, a write takes %v", s.mode, s.took.Round(100*time.Microsecond)))
		reached = append(reached, address)
	}
	if len(leaders) > 1 {
		d.wrong(c.ZK,
			fmt.Sprintf("%d servers lead, or stand alone: they are several ensembles, each with locks of its own", len(leaders)),
			"name the servers of one ensemble")
	}
	return reached
}

// ofOneServer reports whether two sessions were opened at one server, which may
// have several names. A server numbers its sessions consecutively; its first
// number is made of its id in the ensemble and its start in milliseconds, times
// 2^16.
func ofOneServer(session, other int64) bool { return max(session, other)-min(session, other) < 1<<16 }

// server is what a look at a server showed: its role in the ensemble, a session
// there, and how long a write took.
type server struct {
	mode    string
	session int64
	took    time.Duration
	err     error
}

// reach opens a session at one server, and writes.
func reach(c conn.Connection, address, chroot string) (s server) {
	c.ZK, c.Note = address+chroot, func(string, ...any) {}
	s.err = c.With(func(ctx context.Context, client *coord.Client) error {
		begun := time.Now()
		err := recipe.Retry(ctx, client, func(ctx context.Context) error {
			_, err := client.Txn(ctx, coord.CheckOp("/", -1))
			return err
		})
		if errors.Is(err, coord.ErrNoNode) {
			err = nil // the chroot is missing: the servers have agreed on that
		}
		s.took = time.Since(begun)
		s.mode, s.session = c.Mode(ctx, address), client.Info().SessionID
		return err
	})
	return s
}

// sessions reports contenders whose sessions are connected to none of the named
// servers, if every one of them was reached and tells who is connected. Such a
// session is not wrong by itself: its server may not be named.
func (d *Diagnosis) sessions(c *conn.Connection, s *look.Survey, reached []string) {
	connected := map[string]conn.Remote{}
	addresses, _ := conn.AddressesOf(c.ZK)
	for _, address := range addresses {
		sessions, told := map[string]conn.Remote(nil), false
		if slices.Contains(reached, address) {
			sessions, told = c.Connections(context.Background(), address)
		}
		if !told {
			d.fine(s.Path,
				"which sessions are connected is not known: "+address+
					" does not tell (allow cons or dump in 4lw.commands.whitelist)")
			return
		}
		maps.Copy(connected, sessions)
	}
	for _, r := range s.Recipes {
		for i, c := range r.Contenders {
			if c.Age == nil || c.Orphan {
				continue
			}
			is, found := connected[c.Session]
			if !found {
				d.fine(r.Path,
					fmt.Sprintf(
						"%s (%s) %s, and its session is connected to none of the named servers: either it uses another server, "+
							"or its process is dead or cut off, and its node stays until its session ends", c.Who(), c.Session, c.State))
				continue
			}
			r.Contenders[i].Hear(is)
			if c.Holds {
				continue // a holder's silence is an oddity
			}
			c.Hear(is)
			if silence := c.Silence(); silence != "" {
				d.fine(r.Path,
					fmt.Sprintf("%s (%s) %s, and its session is %s, its timeout: its process is paused, overloaded or cut off, "+
						"and unless a server hears from it, its node goes when its session ends", c.Who(), c.Session, c.State, silence))
			}
		}
	}
}

// session compares the session timeout that was asked for with the one that was
// granted.
func (d *Diagnosis) session(c *conn.Connection, client *coord.Client) {
	granted := client.Info().SessionTimeout
	if asked := c.SessionTimeout; asked != 0 && granted != asked.Truncate(time.Millisecond) {
		d.wrong(c.ZK, fmt.Sprintf("asked for a session timeout of %v, the servers grant %v", asked, granted),
			"they allow 2 to 20 ticks (minSessionTimeout, maxSessionTimeout)")
		return
	}
	d.fine(c.ZK, fmt.Sprintf("session timeout %v: after a crash, others wait so long", granted))
}

// mostSkew is how far apart clocks may be before the ages shown mislead.
const mostSkew = 2 * time.Second

// clock compares this machine's clock with the leader's. It makes a node and
// deletes it, which also shows whether a node may be made.
func (d *Diagnosis) clock(ctx context.Context, client *coord.Client) error {
	node := "/zkcoord-doctor-" + strings.ToLower(rand.Text()[:12])
	before := time.Now()
	results, err := client.Txn(ctx, coord.EphemeralOp(node, nil), coord.SetOp(node, nil, -1), coord.DeleteOp(node, -1))
	after := time.Now()
	switch {
	case errors.Is(err, coord.ErrNoAuth):
		d.wrong("/", "no node may be made here, or none that may then be changed",
			"present credentials (--auth, ZK_AUTH), set another ACL (--acl), have the ACL of / changed, or use a chroot of your own")
		return nil
	case errors.Is(err, coord.ErrNoNode):
		d.wrong("/", "there is no chroot "+client.Info().Chroot, "make it, unless it is misspelt")
		return nil
	case err != nil:
		return err
	}
	skew := results[1].Stat.Modified.Sub(before.Add(after.Sub(before) / 2)).Round(time.Millisecond)
	told := fmt.Sprintf("the servers' clock is %v from this machine's", skew)
	if skew.Abs() > mostSkew+after.Sub(before)/2 {
		d.wrong("/", told,
			"set the wrong clock (NTP): the ages shown are wrong by that, and cron's slots are due by a client's clock, "+
				"at most a minute before the servers'; nothing else depends on it")
	} else {
		d.fine("/", told)
	}
	return nil
}

// nodes reports the oddities of the recipes that were found.
func (d *Diagnosis) nodes(s *look.Survey) {
	for _, r := range s.Recipes {
		if strings.HasPrefix(r.Path, look.DemoRoot) {
			d.wrong(r.Path, "a demo has left it", "no demo runs? delete the nodes below "+strings.TrimSuffix(look.DemoRoot, "/"))
		}
		if r.Kind == look.UnknownKind {
			d.fine(r.Path,
				fmt.Sprintf("%s of an unknown recipe%s; this program's other claims are refused there",
					term.Plural(r.Unknown(), "contender is", "contenders are"), r.LikelyText()))
		}
		for _, odd := range r.Findings() {
			d.wrong(r.Path, odd.Found, odd.Do)
		}
	}
	for _, path := range s.Hidden {
		d.wrong(path, "its children may not be listed with these credentials",
			"present others (--auth, ZK_AUTH), or leave it to its owner")
	}
	d.fine(s.Path,
		fmt.Sprintf("%s, %s", term.Plural(len(s.Recipes), "recipe", "recipes"), circleCount(len(s.Certain), len(s.Possible))))
	for _, c := range s.Possible {
		d.fine(s.Path,
			fmt.Sprintf(
				"sessions %s wait for each other over %s: for ever if each is one thread, but not if they have several; "+
					"their claims do not say under which holds they were made", strings.Join(c.Sessions(), ", "),
				strings.Join(c.Paths(), ", ")))
	}
}
