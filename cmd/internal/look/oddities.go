package look

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord/once"
)

// Oddity is what an operator should look at, and what to do about it.
type Oddity struct{ Name, Found, Do string }

// kindOfOddity is something that can be wrong with a recipe. ls, inspect,
// doctor and the page show it; the exporter shows its name.
type kindOfOddity struct {
	name, do string
	find     func(Report) string // what is wrong, or ""
}

// oddities is everything that can be wrong with a recipe. docs/operations.md
// has a run-book for each.
var oddities = []kindOfOddity{
	{
		"unknown-contender",
		"give each recipe a path of its own: behind a contender of an unknown recipe this program's claims are refused, and before it both may hold",
		func(r Report) string {
			n := r.Unknown()
			return is(n > 0 && r.Dialect == mixed, "%s of an unknown recipe beside others",
				term.Plural(n, "contender is", "contenders are"))
		},
	},
	{
		"two-dialects", "one path, one dialect: let the programs agree, or give one of them another path",
		func(r Report) string {
			return is(r.Dialect == mixed && r.Unknown() == 0, "two dialects, which do not see each other")
		},
	},
	{
		"several-recipes", "give each recipe a path of its own", func(r Report) string {
			return is(r.Kind == mixed && r.Dialect != mixed, "several recipes at one path: %s", strings.Join(r.kinds, ", "))
		},
	},
	{
		"orphan", "a program made the node persistent, or a person did: delete it, if nothing depends on it",
		func(r Report) string {
			n := r.count(func(c Contender) bool { return c.Orphan })
			return is(n > 0, "%s to no session, and will never go by %s",
				term.Plural(n, "contender belongs", "contenders belong"), term.Pick(n, "itself", "themselves"))
		},
	},
	{
		"asked", "the holder may not obey: the verb break takes it by force", func(r Report) string {
			n := r.count(func(c Contender) bool { return c.Revoked })
			return is(n > 0, "%d asked to give up", n)
		},
	},
	{
		"silent-holder",
		"its process is paused, overloaded or cut off: unless a server hears from it, its node goes when its session ends",
		func(r Report) string {
			var silent []string
			for _, c := range r.Contenders {
				if c.Holds && c.Silence() != "" {
					silent = append(silent, c.Who()+" holds and is "+c.Silence())
				}
			}
			return Few(silent)
		},
	},
	{
		"deadlock", `"` + term.Program + ` graph" shows the circle; break one of its locks`,
		func(r Report) string {
			return is(len(r.deadlock) > 0, "deadlock: a circle over %s", strings.Join(r.deadlock, ", "))
		},
	},
	{
		"full-counter", "move to a fresh path before the counter is full: claims are refused then", func(r Report) string {
			return is(r.Left < fewLeft, "%d of %d sequence numbers are used up; use another path before the rest is",
				math.MaxInt32-r.Left, math.MaxInt32)
		},
	},
	{
		"members-gone", "members have died; the round ends when the others have finished", func(r Report) string {
			if r.Round == nil || !r.Round.Open {
				return ""
			}
			gone := r.Round.Members - r.Round.Inside - r.Round.Finished
			return is(gone > 0, "%s gone from the open round", term.Plural(gone, "member is", "members are"))
		},
	},
	{
		"orphaned-item", "a program made the claim persistent, or a person did: break with --node takes the item back",
		func(r Report) string {
			n := r.Queue.orphans()
			return is(n > 0, "%s in the hand of no session, and will never come back by %s",
				term.Plural(n, "item is", "items are"), term.Pick(n, "itself", "themselves"))
		},
	},
	{
		"poisoned-item",
		"its consumers do not move it to the dead letters (receive --dead, DeadLetters): queue bury or drop takes it out",
		func(r Report) string {
			n := r.Queue.often()
			return is(n > 0, "%s %d times or more", term.Plural(n, "item was delivered", "items were delivered"), TooOften)
		},
	},
	{
		"dead-letters", "look at them: " + term.Program +
			" queue dead; queue requeue puts them back, queue acknowledge says that they stay", func(r Report) string {
			n := r.Queue.unseen()
			return is(n > 0, "%s", term.Plural(n, "dead letter", "dead letters"))
		},
	},
	{
		"failed-job", term.Program + " once --list shows why; --forget has it done again", func(r Report) string {
			if r.Schedule != nil || r.Ledger == nil || r.Ledger.Failed == 0 {
				return ""
			}
			return is(true, "%s failed, and nobody tries again: %s", term.Plural(r.Ledger.Failed, "job has", "jobs have"),
				r.Ledger.keys(once.Failed))
		},
	},
	{
		"unfinished-job",
		"its process died or lost its hold: only the job itself can tell how far it came; " + term.Program +
			" once --forget has it done again",
		func(r Report) string {
			if r.Schedule != nil || r.Ledger == nil || r.Ledger.Unfinished == 0 {
				return ""
			}
			return is(true, "%s begun, no end is on record, and nobody has it: %s",
				term.Plural(r.Ledger.Unfinished, "job was", "jobs were"), r.Ledger.keys(once.Unfinished))
		},
	},
	{
		"failing-schedule", term.Program + " cron --list shows why", func(r Report) string {
			if r.Schedule == nil || r.Schedule.Failing == 0 {
				return ""
			}
			since := "no slot on record ended well"
			if r.Schedule.LastSuccess != nil {
				since = "the last success was " + term.Age(*r.Schedule.LastSuccess) + " ago"
			}
			return is(true, "the last %s failed; %s", term.Plural(r.Schedule.Failing, "slot has", "slots have"), since)
		},
	},
	{
		"hanging-slot", "see whether its job goes on; " + term.Program + " revoke asks its process to end it",
		func(r Report) string {
			if r.Schedule == nil || r.Schedule.Hanging == "" {
				return ""
			}
			return is(true, "the slot %s has been under way for longer than the time between two slots", r.Schedule.Hanging)
		},
	},
	{
		"unserved-schedule", "start its programs, or remove it if it is not wanted any more", func(r Report) string {
			if r.Schedule == nil {
				return ""
			}
			return r.Schedule.unserved
		},
	},
	{
		"mark-ahead", "correct the wrong clocks; then " + term.Program + " cron --rewind has the schedule go on",
		func(r Report) string {
			if r.Schedule == nil || r.Schedule.Ahead == 0 {
				return ""
			}
			return markAhead(r.Schedule.Ahead, r.Schedule.Through)
		},
	},
	{
		"different-jobs",
		"if no change of the schedule is under way, give each its own path: a slot is run for one of them only",
		func(r Report) string {
			if r.Schedule == nil {
				return ""
			}
			return is(len(r.Schedule.Jobs) > 1, "%d different jobs at one path: %s", len(r.Schedule.Jobs), Few(r.Schedule.Jobs))
		},
	},
	{
		"different-options", "if no change of the programs is under way, give all the same options, or each its own path",
		func(r Report) string {
			switch {
			case r.Ledger != nil && len(r.Ledger.Options) > 1:
				return is(true, "clients with different options make attempts by turns: %s", strings.Join(r.Ledger.Options, "; "))
			case r.Queue != nil && len(r.Queue.Options) > 1:
				return is(true, "consumers have different options: %s", strings.Join(r.Queue.Options, "; "))
			}
			return ""
		},
	},
	{
		"no-members", "start its members, or remove it", func(r Report) string {
			if r.Shards == nil || r.Shards.Members > 0 {
				return ""
			}
			return is(true, "no member is there, and %s unowned", term.Plural(r.Shards.Unowned, "key is", "keys are"))
		},
	},
	{
		"unowned-key",
		term.Program + " shards shows each key: is its member still starting, or its former owner still draining?",
		func(r Report) string {
			if r.Shards == nil || r.Shards.Members == 0 || r.Shards.Unowned == 0 {
				return ""
			}
			return is(true, "%s no owner: %s", term.Plural(r.Shards.Unowned, "key has", "keys have"), Few(r.Shards.unowned))
		},
	},
	{
		"failing-key", term.Program + " shards shows why, and when it is tried again", func(r Report) string {
			if r.Shards == nil || r.Shards.Failing == 0 {
				return ""
			}
			return is(true, "%s: %s", term.Plural(r.Shards.Failing, "key fails", "keys fail"), Few(r.Shards.failing))
		},
	},
	{
		"kept-slot",
		"wait for the owner or the end of its cooldown, or let others have the number: " + term.Program + " slot --forget",
		func(r Report) string {
			if r.Numbers == nil || len(r.Numbers.Kept) == 0 || r.Waiting() == 0 {
				return ""
			}
			var kept []string
			for _, k := range r.Numbers.Kept {
				kept = append(kept, k.String())
			}
			return is(true, "%s for others: %s",
				term.Pick(r.Waiting(), "one waits, and a number is kept", "some wait, and numbers are kept"), Few(kept))
		},
	},
	{
		"slots-disagree", "give all programs the same number of slots, unless it is being changed", func(r Report) string {
			if r.Numbers == nil || len(r.Numbers.Counts) < 2 {
				return ""
			}
			return is(true, "holders disagree about how many slots there are: %s",
				strings.Trim(fmt.Sprint(r.Numbers.Counts), "[]"))
		},
	},
}

// Findings are the oddities of a recipe.
func (r Report) Findings() (odd []Oddity) {
	for _, k := range oddities {
		if found := k.find(r); found != "" {
			odd = append(odd, Oddity{k.name, found, k.do})
		}
	}
	return odd
}

// Oddities are the texts of the findings, without what to do.
func (r Report) Oddities() []string {
	texts := []string{}
	for _, o := range r.Findings() {
		texts = append(texts, o.Found)
	}
	return texts
}

// OddityNames are the names of everything that can be odd.
func OddityNames() (names []string) {
	for _, k := range oddities {
		names = append(names, k.name)
	}
	return names
}

// is is the formatted text if so, and otherwise "".
func is(so bool, format string, args ...any) string {
	if !so {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// Few joins the first MostNamed texts, and says how many more there are.
func Few(all []string) string {
	if more := len(all) - MostNamed; more > 0 {
		all = append(slices.Clone(all[:MostNamed]), fmt.Sprintf("%d more", more))
	}
	return strings.Join(all, ", ")
}

// count counts the contenders for which so returns true.
func (r Report) count(so func(Contender) bool) (n int) {
	for _, c := range r.Contenders {
		if so(c) {
			n++
		}
	}
	return n
}
