package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/zkembed"
)

// Kind is what goes wrong.
type Kind string

// The kinds of faults. The first eight are the actions of package zkembed, and
// strike requests or events.
const (
	Drop         Kind = "drop"           // cuts the connection instead of carrying the request out
	Hang         Kind = "hang"           // neither carries it out nor answers, nor anything behind it
	LoseReply    Kind = "lose_reply"     // carries it out, and cuts the connection without a reply
	Delay        Kind = "delay"          // carries it out later
	DelayReply   Kind = "delay_reply"    // replies later
	CarryOutLate Kind = "carry_out_late" // cuts the connection, and carries it out later
	ReplyError   Kind = "error"          // answers with an error instead
	DelayEvents  Kind = "delay_events"   // delivers watch events later
	Cut          Kind = "cut"            // holds packets up, one way or both
	Lag          Kind = "lag"            // puts sessions on a follower that runs behind
	Isolate      Kind = "isolate"        // puts sessions on a follower that is cut off, one way or both
	Stop         Kind = "stop"           // the server is down
)

// Fault says what goes wrong, and for whom. A field that the kind does not use
// must be left out.
type Fault struct {
	// Do is the kind.
	Do Kind `json:"do"`
	// Sessions are struck, and no others. They must be alive. Without the field
	// all are; an empty list is refused.
	Sessions []Session `json:"sessions,omitzero"`
	// Ops are the operations to strike, by ZooKeeper's names, as GET /requests
	// counts them.
	Ops []string `json:"ops,omitzero"`
	// PathPrefix is how one of the request's paths must begin.
	PathPrefix string `json:"path_prefix,omitzero"`
	// Skip lets so many requests pass before the fault strikes.
	Skip int `json:"skip,omitzero"`
	// Times is how often the fault strikes; without it, every time.
	Times int `json:"times,omitzero"`
	// By is how late something is: "500ms".
	By Duration `json:"by,omitzero"`
	// Error is the error of the kind "error", by Java's name: "NoNode".
	Error string `json:"error,omitzero"`
	// Direction is "to_server" or "to_client"; for the kind isolate "to_leader"
	// or "to_follower". Without it, both ways.
	Direction string `json:"direction,omitzero"`
	// NewConns says what becomes of new connections in a cut of all sessions:
	// "hang" unless set, "refuse", or "accept".
	NewConns string `json:"new_connections,omitzero"`
}

// State is a fault in force.
type State struct {
	ID int `json:"id"`
	// Struck is how often the fault struck: requests, events, packets held up,
	// delayed or turned away.
	Struck int `json:"struck"`
	Fault
}

// Session is a session's id: 0x1 in JSON, which may come as a number, too.
type Session int64

// ParseSession reads an id, decimal or as 0x1.
func ParseSession(text string) (Session, error) {
	id, err := strconv.ParseInt(text, 0, 64)
	if err != nil {
		return 0, fmt.Errorf("control: session %q: want 0x1 or a decimal number", text)
	}
	return Session(id), nil
}

func (s Session) String() string { return fmt.Sprintf("0x%x", int64(s)) }

// MarshalJSON writes the id as a string, since not every language has such
// numbers.
func (s Session) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// UnmarshalJSON reads a string or a number.
func (s *Session) UnmarshalJSON(data []byte) (err error) {
	*s, err = ParseSession(strings.Trim(string(data), `"`))
	return err
}

// Duration is a [time.Duration], as "1.5s" in JSON.
type Duration time.Duration

// MarshalText writes "1.5s".
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads "1.5s".
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	*d = Duration(parsed)
	return err
}

// matching are the fields that choose requests.
const matching = "Sessions Ops PathPrefix Skip Times"

// uses are the fields of each kind but Do.
var uses = map[Kind]string{
	Drop: matching, Hang: matching, LoseReply: matching, Delay: matching + " By", DelayReply: matching + " By",
	CarryOutLate: matching + " By", ReplyError: matching + " Error", DelayEvents: "Sessions PathPrefix Skip Times By",
	Cut: "Sessions Direction NewConns", Lag: "Sessions By", Isolate: "Sessions Direction", Stop: "",
}

// validate refuses what would not do what it says.
func (f Fault) validate() error {
	fields, known := uses[f.Do]
	if !known {
		return fmt.Errorf("do: no fault is called %q", f.Do)
	}
	given := reflect.ValueOf(f)
	for i := range given.NumField() {
		field := given.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		used := slices.Contains(strings.Fields(fields), field.Name)
		switch {
		case field.Name == "Do":
		case !used && !given.Field(i).IsZero():
			return fmt.Errorf("%s: a fault of kind %q has none", name, f.Do)
		case used && given.Field(i).IsZero() && (name == "by" || name == "error"):
			return fmt.Errorf("%s: a fault of kind %q needs it", name, f.Do)
		}
	}
	switch {
	case f.Sessions != nil && len(f.Sessions) == 0, f.Ops != nil && len(f.Ops) == 0:
		return errors.New("a list is empty: leave it out to strike all")
	case f.Skip < 0 || f.Times < 0 || f.By < 0:
		return errors.New("skip, times and by must not be negative")
	case f.NewConns != "" && f.Sessions != nil:
		return errors.New("new_connections: nobody knows a new connection's session, so it goes with a cut of all")
	}
	return nil
}

// action is what zkembed does to a request; ok is false for other kinds.
func (f Fault) action() (a zkembed.Action, ok bool, err error) {
	by := time.Duration(f.By)
	switch f.Do {
	case Drop:
		a = zkembed.Drop()
	case Hang:
		a = zkembed.Hang()
	case LoseReply:
		a = zkembed.LoseReply()
	case Delay:
		a = zkembed.Delay(by)
	case DelayReply:
		a = zkembed.DelayReply(by)
	case CarryOutLate:
		a = zkembed.CarryOutLate(by)
	case DelayEvents:
		a = zkembed.DelayEvents(by)
	case ReplyError:
		codes := zkembed.Codes()
		i := slices.IndexFunc(codes, func(c zkembed.Code) bool { return c.String() == f.Error })
		if i < 0 {
			return a, true, fmt.Errorf("error: no error is called %q; known are %v", f.Error, codes)
		}
		a = zkembed.ReplyError(codes[i])
	default:
		return a, false, nil
	}
	return a, true, nil
}

// match says which requests an action strikes.
func (f Fault) match() (zkembed.Match, error) {
	m := zkembed.Match{PathPrefix: f.PathPrefix, Skip: f.Skip, Times: f.Times}
	if f.Sessions != nil {
		m.Func = func(r zkembed.Request) bool { return slices.Contains(f.Sessions, Session(r.Session)) }
	}
	known := zkembed.Ops()
	for _, name := range f.Ops {
		i := slices.IndexFunc(known, func(o zkembed.Op) bool { return o.String() == name })
		if i < 0 {
			return m, fmt.Errorf("ops: no operation is called %q; known are %v", name, known)
		}
		m.Ops = append(m.Ops, known[i])
	}
	return m, nil
}

// ways are what Direction may be.
var ways = map[Kind]map[string]zkembed.Direction{
	Cut:     {"": zkembed.Both, "to_server": zkembed.ToServer, "to_client": zkembed.ToClient},
	Isolate: {"": zkembed.Both, "to_leader": zkembed.ToLeader, "to_follower": zkembed.ToFollower},
}

var newConns = map[string]zkembed.NewConns{
	"": zkembed.HangDial, "hang": zkembed.HangDial, "refuse": zkembed.RefuseDial, "accept": zkembed.AcceptDial,
}

func (f Fault) ids() (ids []int64) {
	for _, id := range f.Sessions {
		ids = append(ids, int64(id))
	}
	return ids
}

// acting is a fault in force.
type acting struct {
	struck func() int
	end    func()
}

// begin puts the fault in force.
func (f Fault) begin(s *zkembed.Server) (acting, error) {
	way, known := ways[f.Do][f.Direction]
	if !known && f.Direction != "" {
		return acting{}, fmt.Errorf("direction: a fault of kind %q has no %q", f.Do, f.Direction)
	}
	conns, known := newConns[f.NewConns]
	if !known {
		return acting{}, fmt.Errorf("new_connections: %q is none of hang, refuse and accept", f.NewConns)
	}
	a, strikes, err := f.action()
	m, wrong := f.match()
	if err = errors.Join(err, wrong); err != nil {
		return acting{}, err
	}
	switch {
	case strikes:
		in := s.Inject(m, a)
		return acting{in.Fired, in.Remove}, nil
	case f.Do == Cut:
		in := s.Partition(zkembed.Cut{Direction: way, Sessions: f.ids(), NewConns: conns})
		return acting{in.Fired, in.Heal}, nil
	case f.Do == Stop:
		before := s.TurnedAway()
		s.Stop()
		return acting{func() int { return s.TurnedAway() - before }, s.Resume}, nil
	}
	in := s.AddFollower(time.Duration(f.By), f.ids()...)
	if f.Do == Isolate {
		in.Silence(way)
	}
	return acting{func() int { return in.Link().Delayed + in.Link().Held }, in.Stop}, nil
}
