package look

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/internal/layout"
)

// The kinds of recipes that keep records of jobs. Each job has a lock of its
// own below the path.
const (
	onceKind = "once"
	cronKind = "cron"
)

// LedgerReport is what inspect shows of a ledger of jobs, or of the slots of a
// schedule.
type LedgerReport struct {
	Jobs       int         `json:"jobs"`       // on record, of those that were looked at
	Running    int         `json:"running"`    // somebody has them, or waits to try again
	Failed     int         `json:"failed"`     // the last attempt has failed, and nobody tries again
	Unfinished int         `json:"unfinished"` // the last attempt was begun, no end is on record, and nobody has them
	OldestRun  *float64    `json:"oldest_run"` // seconds since the oldest attempt under way began; null: none is
	Options    []string    `json:"options"`    // of clients that take turns at attempts, if they differ
	More       bool        `json:"more"`       // there are more, which were not looked at
	First      []JobReport `json:"first"`      // some that are not done

	all   []once.Result
	lines []string // the directories of jobs that somebody may have
}

// JobReport is a job that is not done.
type JobReport struct {
	Key     string     `json:"key"`
	State   once.State `json:"state"`
	By      string     `json:"by"`
	Attempt int        `json:"attempt"`
	Begun   time.Time  `json:"begun"`
	Error   string     `json:"error,omitempty"`
}

// mostJobs is how many records of a ledger are looked at.
const mostJobs = 10_000

// bucket is the name of a directory of keys.
var bucket = regexp.MustCompile(`^[0-3][0-9]$`)

// inLedger finds out whether there is a ledger at path, of jobs or of a
// schedule.
func (r *Report) inLedger(
	ctx context.Context, client *coord.Client, path conn.NodePath, names []string,
) ([]inspect.Contender, error) {
	keys, isCron := layout.Once[0], false
	for _, part := range layout.Cron {
		isCron = isCron || slices.Contains(names, part) && !slices.Contains(layout.Once, part)
	}
	if !isCron && !slices.Contains(names, keys) {
		return nil, nil
	}
	dirs, err := Children(ctx, client, string(path)+"/"+keys)
	isLedger := len(dirs) > 0 && !slices.ContainsFunc(dirs, func(name string) bool { return !bucket.MatchString(name) })
	if err != nil || !isLedger && !isCron {
		return nil, err
	}
	if isCron {
		if is, err := r.schedule(ctx, client, path); !is || err != nil {
			return nil, err
		}
	} else {
		r.is(onceKind)
	}
	ledger, err := once.New(client, string(path))
	if err == nil {
		r.Ledger, err = newLedgerReport(ctx, client, ledger)
	}
	if err == nil && r.Schedule != nil {
		r.Schedule.conclude(r.Ledger.all)
	}
	return nil, err
}

// newLedgerReport reads the records of a ledger.
func newLedgerReport(ctx context.Context, client *coord.Client, ledger *once.Once) (*LedgerReport, error) {
	l := &LedgerReport{First: []JobReport{}}
	for res, err := range ledger.List(ctx) {
		if errors.Is(err, coord.ErrNoAuth) {
			l.More = true
			break
		}
		if err != nil {
			return nil, err
		}
		l.More = len(l.all) == mostJobs
		if l.More {
			break
		}
		l.all = append(l.all, res)
	}
	lines, err := l.retried(ctx, client, ledger)
	if err != nil {
		return nil, err
	}
	l.Jobs, l.Options = len(l.all), byTurns(l.all)
	for i, res := range l.all {
		l.count(res, lines[i])
	}
	slices.SortFunc(l.First, func(a, b JobReport) int { return strings.Compare(a.Key, b.Key) })
	return l, nil
}

// byTurns returns the options of clients that take turns at attempts. It leaves
// out options that were replaced once and for all, as by an upgrade of all
// clients.
func byTurns(all []once.Result) []string {
	first, last := map[string]time.Time{}, map[string]time.Time{}
	for _, res := range slices.SortedFunc(slices.Values(all), func(a, b once.Result) int {
		return a.Begun.Compare(b.Begun)
	}) {
		if _, found := first[res.Options]; !found {
			first[res.Options] = res.Begun
		}
		last[res.Options] = res.Begun
	}
	delete(first, "") // of earlier versions
	turns := []string{}
	for a := range first {
		for b := range first {
			if a != b && first[a].Before(last[b]) && first[b].Before(last[a]) && !slices.Contains(turns, a) {
				turns = append(turns, a)
			}
		}
	}
	slices.Sort(turns)
	return turns
}

// retried finds the failed jobs that somebody tries again, and marks them as
// running. It returns the directory of each job that somebody may have, and ""
// for others.
func (l *LedgerReport) retried(ctx context.Context, client *coord.Client, ledger *once.Once) ([]string, error) {
	lines := make([]string, len(l.all))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(Surveyors)
	for i, res := range l.all {
		if res.State != once.Failed && res.State != once.Running {
			continue
		}
		group.Go(func() error {
			line, err := ledger.Line(res.Key)
			if err != nil {
				return err
			}
			if res.State == once.Failed {
				names, err := Children(ctx, client, line.Dir)
				if err != nil || len(LineOf(names)) == 0 {
					return err
				}
				l.all[i].State = once.Running
			}
			lines[i] = line.Dir
			return nil
		})
	}
	return lines, group.Wait()
}

// count counts a job.
func (l *LedgerReport) count(res once.Result, line string) {
	if line != "" {
		l.lines = append(l.lines, line)
	}
	switch res.State {
	case once.Running:
		l.Running++
		if age := term.SinceThen(res.Begun); age != nil && (l.OldestRun == nil || *age > *l.OldestRun) {
			l.OldestRun = age
		}
	case once.Failed:
		l.Failed++
	case once.Unfinished:
		l.Unfinished++
	default:
		return
	}
	if len(l.First) < mostShown {
		l.First = append(l.First,
			JobReport{
				res.Key, res.State, strings.ToValidUTF8(res.By, "�"), res.Attempt, res.Begun, strings.ToValidUTF8(res.Err, "�"),
			})
	}
}

// Newest are the jobs that were begun last, the newest first.
func (l *LedgerReport) Newest(most int) []once.Result {
	all := slices.SortedFunc(slices.Values(l.all), func(a, b once.Result) int { return b.Begun.Compare(a.Begun) })
	return all[:min(len(all), most)]
}

// keys names the first jobs in a state.
func (l *LedgerReport) keys(state once.State) string {
	var keys []string
	for _, res := range l.all {
		if res.State == state {
			keys = append(keys, strconv.Quote(res.Key))
		}
	}
	slices.Sort(keys)
	return Few(keys)
}

func (l *LedgerReport) String() string {
	text := term.Plural(l.Jobs, "job", "jobs")
	if l.More {
		text = "more than " + text
	}
	for _, part := range []struct {
		n    int
		what string
	}{{l.Running, "under way"}, {l.Failed, "failed"}, {l.Unfinished, "unfinished"}} {
		if part.n > 0 {
			text += fmt.Sprintf(", %d %s", part.n, part.what)
		}
	}
	return text
}

// table shows the jobs that are not done.
func (l *LedgerReport) table(to term.Page) {
	if l == nil || len(l.First) == 0 {
		return
	}
	t := term.Table{Heads: []string{"JOB", "STATE", "ATTEMPT", "BEGUN", "BY", "ERROR"}}
	for _, job := range l.First {
		begun := ""
		if age := term.SinceThen(job.Begun); age != nil {
			begun = term.Age(*age) + " ago"
		}
		t.Add("", strconv.Quote(job.Key), string(job.State), strconv.Itoa(job.Attempt), begun, Contender{Owner: job.By}.Who(),
			term.Plain(job.Error))
	}
	_ = t.Write(to)
	if more := l.Running + l.Failed + l.Unfinished - len(l.First); more > 0 {
		fmt.Fprintf(to, "… and %d more\n", more)
	}
}

// dueFor is how long a slot must be overdue before the schedule counts as
// unserved: a minute by which clocks differ, one between two looks at them, and
// one to begin the slot.
const dueFor = 3 * time.Minute

// shortest is how long a slot must be under way before it counts as hanging.
const shortest = time.Minute
