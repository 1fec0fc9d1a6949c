//go:build linux || darwin || freebsd || openbsd

package see

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/cron"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/lock"
	jobs "github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/coord/shards"
	"github.com/zkcoord/zkcoord/coord/slots"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// plight is something that can be wrong with a recipe: how it comes about, at a
// path, and what every view says then.
type plight struct {
	make func(p *plights, path string)
	says string
}

// plights are made in one world.
type plights struct {
	*testing.T
	w *zktest.World
	c *coord.Client
}

func (p *plights) lock(c *coord.Client, path string) *coord.Hold {
	p.Helper()
	return coordtest.Acquire(p.T, cmdtest.Must(lock.New(c, path)))
}

func (p *plights) open(opts ...coord.Option) *coord.Client {
	p.Helper()
	return cmdtest.Open(p.T, p.w, opts...)
}

// errJob is how jobs and slots end.
var errJob = errors.New("the disk is full")

// secondly is a schedule.
type secondly struct{}

func (secondly) Next(t time.Time) time.Time { return t.Truncate(time.Second).Add(time.Second) }

// allPlights are all things that can be wrong, by their names.
var allPlights = map[string]plight{
	"two-dialects": {says: twoDialects, make: func(p *plights, path string) {
		cmdtest.Contend(p.T, p.w, path, map[string]string{
			"_c_" + cmdtest.Guid1 + "-lock-0000000001":                        "x",
			strings.ReplaceAll(cmdtest.Guid2, "-", "") + "__lock__0000000002": "y",
		})
	}},
	"unknown-contender": {says: "1 contender is of an unknown recipe beside others", make: func(p *plights, path string) {
		cmdtest.Contend(p.T, p.w, path,
			map[string]string{"_c_" + cmdtest.Guid1 + "-lock-0000000001": "x", "other-0000000002": "y"})
	}},
	"mark-ahead": {says: "no slot is due before 2096-01-01T00:00:00Z", make: func(p *plights, path string) {
		cmdtest.Contend(p.T, p.w, path, nil)
		cmdtest.ByHand(p.T, p.w, path+"/mark", `{"through":"2096-01-01T00:00:00Z"}`)
	}},
	"different-jobs": {says: "2 different jobs at one path: backup, report", make: func(p *plights, path string) {
		cmdtest.Contend(p.T, p.w, path, nil)
		cmdtest.ByHand(p.T, p.w, path+"/mark", `{}`)
		cmdtest.ByHand(p.T, p.w, path+"/runners", "")
		cmdtest.ByHand(p.T, p.w, path+"/runners/1-1", "host1\nreport")
		cmdtest.ByHand(p.T, p.w, path+"/runners/2-1", "host2\nbackup")
	}},
	"different-options": {
		says: "clients with different options make attempts by turns: 1 attempts; 3 attempts",
		make: func(p *plights, path string) {
			for i, n := range []int{1, 3, 1} {
				ledger := cmdtest.Must(jobs.New(p.c, path, jobs.Attempts(n, 0)))
				cmdtest.Must(
					ledger.Do(p.Context(), strconv.Itoa(i), func(context.Context, *jobs.Run) ([]byte, error) { return nil, nil }))
			}
		},
	},
	"failing-key": {says: `1 key fails: "one" (the disk is full)`, make: func(p *plights, path string) {
		ctx, cancel := context.WithCancel(context.Background())
		s := cmdtest.Must(shards.New(p.c, path, shards.Keys("one")))
		ended := coordtest.Go(func() error {
			return s.Run(ctx, func(context.Context, string, coord.Held) error { return errJob })
		})
		p.Cleanup(func() {
			cancel()
			zktest.Receive(p, coordtest.Soon, ended, "the end of the member")
		})
	}},
	"several-recipes": {says: "several recipes at one path: lock, queue", make: func(p *plights, path string) {
		require.NoError(p, cmdtest.Must(queue.New(p.c, path)).Put(p.Context(), []byte("item")))
		cmdtest.Contend(p.T, p.w, path, map[string]string{"_c_" + cmdtest.Guid1 + "-lock-0000000001": "x"})
	}},
	"orphan": {says: noSession, make: func(p *plights, path string) {
		cmdtest.Contend(p.T, p.w, path, nil)
		cmdtest.ByHand(p.T, p.w, path+"/_c_"+cmdtest.Guid1+"-lock-0000000001", "by hand")
	}},
	"asked": {says: "1 asked to give up", make: func(p *plights, path string) {
		require.NoError(p, inspect.Revoke(p.Context(), p.c, p.lock(p.c, path).Node()))
	}},
	"silent-holder": {says: "holds and is silent for ", make: func(p *plights, path string) {
		// It is silent from half of its session timeout to the end: for long
		// enough to be seen by every view on a busy machine.
		p.w.SetTimeout(40 * time.Second)
		holder := cmdtest.Start(p.T, append([]string{"--zk", p.w.ConnectString(), "--session-timeout", "40s"},
			cmdtest.Sh(path, "echo holds; "+cmdtest.UntilEOF)...)...)
		require.Equal(p, "holds", holder.Line())
		holder.Signal(syscall.SIGSTOP)
		p.Cleanup(func() {
			holder.Signal(syscall.SIGCONT)
			_ = holder.In.Close()
			holder.Exit()
		})
	}},
	"deadlock": {says: "deadlock: a circle over ", make: func(p *plights, path string) {
		alice, bob := p.open(), p.open()
		a, b := p.lock(alice, path), p.lock(bob, path+"-other")
		under := func(h *coord.Hold, c *coord.Client, path string) func(context.Context) (*coord.Hold, error) {
			return func(ctx context.Context) (*coord.Hold, error) {
				return cmdtest.Must(lock.New(c, path)).Acquire(h.Context(ctx))
			}
		}
		cmdtest.Waits(p.T, p.w, path+"-other", 2, under(a, alice, path+"-other"))
		cmdtest.Waits(p.T, p.w, path, 2, under(b, bob, path))
	}},
	"full-counter": {says: usedUp, make: func(p *plights, path string) {
		cmdtest.Contend(p.T, p.w, path, map[string]string{"_c_" + cmdtest.Guid1 + "-lock-2100000002": "x"})
	}},
	"members-gone": {says: "1 member is gone from the open round", make: func(p *plights, path string) {
		mortal := p.open()
		first := coordtest.Go(func() error {
			return coordtest.Err(cmdtest.Must(doublebarrier.New(mortal, path, 2)).Enter(coordtest.Limited(p.T)))
		})
		cmdtest.Must(cmdtest.Must(doublebarrier.New(p.c, path, 2)).Enter(coordtest.Limited(p.T)))
		require.NoError(p, zktest.Receive(p, coordtest.Soon, first, "the first"))
		p.w.ExpireSession(mortal.Info().SessionID)
	}},
	"orphaned-item": {says: "1 item is in the hand of no session", make: func(p *plights, path string) {
		require.NoError(p, cmdtest.Must(queue.New(p.c, path)).Put(p.Context(), []byte("item")))
		cmdtest.Contend(p.T, p.w, path+"/taken", nil)
		cmdtest.ByHand(p.T, p.w, path+"/taken/entry-100-0000000000", "by hand")
	}},
	"poisoned-item": {says: "1 item was delivered 10 times or more", make: func(p *plights, path string) {
		require.NoError(p, cmdtest.Must(queue.New(p.c, path)).Put(p.Context(), []byte("item")))
		for range 2 * look.TooOften { // a delivery takes up to two
			cmdtest.Must(p.w.Admin().Set(path+"/entries/entry-100-0000000000", []byte("item"), -1))
		}
	}},
	"dead-letters": {says: "1 dead letter", make: func(p *plights, path string) {
		require.NoError(p, cmdtest.Must(queue.New(p.c, path)).Put(p.Context(), []byte("item")))
		dead := cmdtest.Must(queue.New(p.c, path+"/dead"))
		require.NoError(p, dead.PutBatch(p.Context(), [][]byte{[]byte("seen"), []byte("item")}))
		seen := cmdtest.Must(dead.Peek(p.Context())).Name
		require.Equal(p, 1, cmdtest.Must(cmdtest.Must(queue.New(p.c, path)).Acknowledge(p.Context(), seen)))
	}},
	"failed-job": {says: `1 job has failed, and nobody tries again: "invoice"`, make: func(p *plights, path string) {
		ledger := cmdtest.Must(jobs.New(p.c, path))
		_, err := ledger.Do(p.Context(), "invoice", func(context.Context, *jobs.Run) ([]byte, error) { return nil, errJob })
		require.ErrorIs(p, err, errJob)
		cmdtest.Must(ledger.Do(p.Context(), "done", func(context.Context, *jobs.Run) ([]byte, error) { return nil, nil }))
	}},
	"unfinished-job": {
		says: `1 job was begun, no end is on record, and nobody has it: "invoice"`,
		make: func(p *plights, path string) {
			mortal := p.open()
			_, _, err := cmdtest.Must(jobs.New(mortal, path)).Begin(p.Context(), "invoice")
			require.NoError(p, err)
			p.w.ExpireSession(mortal.Info().SessionID)
		},
	},
	"failing-schedule": {
		says: "the last 3 slots have failed; no slot on record ended well",
		make: func(p *plights, path string) {
			c := cmdtest.Must(cron.New(p.c, path, secondly{}))
			for range 3 {
				slot := cmdtest.Must(c.Begin(p.Context()))
				cmdtest.Must(slot.End(p.Context(), nil, errJob))
			}
		},
	},
	"unserved-schedule": {says: "nobody has begun the slot that was due ", make: func(p *plights, path string) {
		cmdtest.Contend(p.T, p.w, path, nil)
		cmdtest.ByHand(p.T, p.w, path+"/mark", `{"through":"2026-01-01T00:00:00Z","next":"2026-01-02T00:00:00Z"}`)
	}},
	"hanging-slot": {
		says: "the slot 2026-11-23T02:30:00Z has been under way for longer than the time between two slots",
		make: func(p *plights, path string) {
			ledger := cmdtest.Must(jobs.New(p.c, path))
			for slot, state := range map[string]jobs.State{
				"2026-11-22T02:30:00Z": jobs.Done, "2026-11-23T02:30:00Z": jobs.Running,
			} {
				line := cmdtest.Must(ledger.Line(slot))
				data := cmdtest.Must(
					json.Marshal(
						map[string]any{
							"run": slot, "state": state, "by": "host7", "attempt": 1, "begun": time.Now().Add(-25 * time.Hour),
						}))
				cmdtest.Contend(p.T, p.w, line.Dir, nil)
				cmdtest.ByHand(p.T, p.w, line.Dir+"/record", string(data)+"\n")
				if state == jobs.Running {
					cmdtest.Contend(p.T, p.w, line.Dir, map[string]string{"_c_" + cmdtest.Guid1 + "-lock-0000000000": "host7"})
				}
			}
			cmdtest.ByHand(p.T, p.w, path+"/mark",
				`{"through":"2026-11-23T02:30:00Z","open":[{"slot":"2026-11-23T02:30:00Z","begun":1}]}`)
		},
	},
	"no-members": {says: "no member is there, and 2 keys are unowned", make: func(p *plights, path string) {
		require.NoError(p, cmdtest.Must(shards.New(p.c, path)).SetKeys(p.Context(), "one", "two"))
	}},
	"unowned-key": {says: `2 keys have no owner: "one", "two"`, make: func(p *plights, path string) {
		require.NoError(p, cmdtest.Must(shards.New(p.c, path)).SetKeys(p.Context(), "one", "two"))
		cmdtest.Contend(p.T, p.w, path+"/members",
			map[string]string{"_c_" + cmdtest.Guid1 + "-member-0000000000": `{"id":"deaf","weight":1}`})
	}},
	"kept-slot": {
		says: `one waits, and a number is kept for others: 0 for "host1", for `,
		make: func(p *plights, path string) {
			durable := coordtest.Acquire(p.T, cmdtest.Must(slots.New(p.c, path, 1, slots.Durable("host1", time.Hour))))
			require.NoError(p, durable.Release(p.Context()))
			cmdtest.Waits(p.T, p.w, path+"/line", 1, cmdtest.Must(slots.New(p.open(), path, 1)).Acquire)
		},
	},
	"slots-disagree": {says: "holders disagree about how many slots there are: 2 3", make: func(p *plights, path string) {
		coordtest.Acquire(p.T, cmdtest.Must(slots.New(p.c, path, 2)))
		coordtest.Acquire(p.T, cmdtest.Must(slots.New(p.c, path, 3)))
	}},
}

// One table has all that can be wrong with a recipe. Every view shows each
// entry; it has one name in the metrics, and a run-book.
func TestEverythingThatCanBeWrongWithARecipeIsToldByEveryView(t *testing.T) {
	require.ElementsMatch(t, look.OddityNames(), slices.Collect(maps.Keys(allPlights)), "each has a scene")
	operations := string(cmdtest.Must(os.ReadFile("../../../docs/operations.md")))
	for name := range allPlights {
		require.True(t, regexp.MustCompile("(?m)^\\| [^|]*`"+name+"`").MatchString(operations), "the run-books lack %s", name)
	}
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		p := &plights{t, w, cmdtest.Open(t, w)}
		at := func(name string) string { return w.Path("odd/" + name) }
		allPlights["silent-holder"].make(p, at("silent-holder")) // which takes its time
		for name, plight := range allPlights {
			if name != "silent-holder" {
				plight.make(p, at(name))
			}
		}
		page := cmdtest.On(t, w, "ui", w.Path("odd")).Line()
		exporter := cmdtest.On(t, w, "exporter", "--listen", "127.0.0.1:0", w.Path("odd")).Line()
		missing := map[string]bool{}
		oneByOne := slices.DeleteFunc(slices.Collect(maps.Keys(allPlights)),
			func(name string) bool { return name == "deadlock" }) // it takes several paths
		for name := range allPlights {
			for _, view := range []string{"ls", "doctor", "page", "exporter"} {
				missing[view+": "+name] = true
			}
		}
		for _, name := range oneByOne {
			missing["inspect: "+name] = true
		}
		t.Cleanup(func() {
			if len(missing) > 0 {
				t.Logf("not told: %v", slices.Sorted(maps.Keys(missing)))
			}
		})
		told := func(view, name string, odd ...string) {
			if slices.ContainsFunc(odd, func(text string) bool { return strings.Contains(text, allPlights[name].says) }) {
				delete(missing, view+": "+name)
			}
		}
		looks := map[string]func(){
			"ls": func() {
				for _, r := range cmdtest.Parse[Listing](t, cmdtest.On(t, w, "--json", "ls", w.Path("odd")).Gives(0)).Recipes {
					told("ls", strings.TrimPrefix(r.Path, w.Path("odd")+"/"), r.Odd...)
				}
			},
			"doctor": func() {
				found := cmdtest.On(t, w, "--json", "doctor", w.Path("odd")).Gives(term.ExitFailed)
				for _, f := range cmdtest.Parse[Diagnosis](t, found).Findings {
					if f.Wrong {
						told("doctor", strings.TrimPrefix(f.Where, w.Path("odd")+"/"), f.Found)
					}
				}
			},
			"page": func() {
				for _, r := range sightAt(t, page).Recipes {
					told("page", strings.TrimPrefix(r.Path, w.Path("odd")+"/"), r.Odd...)
				}
			},
			"exporter": func() {
				odd := regexp.MustCompile(`(?m)^zkcoord_path_odd\{kind="\w+",odd="([\w-]+)",path="([^"]*)"\} 1$`)
				for _, sample := range odd.FindAllStringSubmatch(scrape(t, exporter), -1) {
					if sample[2] == at(sample[1]) {
						delete(missing, "exporter: "+sample[1])
					}
				}
			},
		}
		zktest.Eventually(t, 2*cmdtest.Soon, func() bool {
			for view, ask := range looks {
				if slices.ContainsFunc(slices.Collect(maps.Keys(missing)), func(what string) bool {
					return strings.HasPrefix(what, view+": ")
				}) {
					ask()
				}
			}
			for _, name := range oneByOne {
				if missing["inspect: "+name] {
					told("inspect", name,
						cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "inspect", at(name)).Gives(0)).Odd...)
				}
			}
			return len(missing) == 0
		}, "not all is told")
	})
}

func TestADeadLetterThatIsAcknowledgedIsNothingOddInAnyView(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		allPlights["dead-letters"].make(&plights{t, w, cmdtest.Open(t, w)}, w.Path("jobs"))
		require.Contains(t, cmdtest.On(t, w, "doctor", w.Path("jobs")).Gives(term.ExitFailed), "1 dead letter")
		require.Contains(t, cmdtest.On(t, w, "inspect", w.Path("jobs")).Gives(0), "2 dead letters, 1 acknowledged")
		require.Equal(t, "2 letters acknowledged", cmdtest.On(t, w, "queue", "acknowledge", "--all", w.Path("jobs")).Output())

		require.Contains(t, cmdtest.On(t, w, "doctor", w.Path("jobs")).Gives(0), "0 things are wrong")
		for _, path := range []string{"jobs", "jobs/dead"} {
			r := cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "inspect", w.Path(path)).Gives(0))
			require.Empty(t, r.Odd)
			require.Zero(t, r.Others)
			require.Zero(t, r.Queue.Unseen)
		}
		for _, r := range cmdtest.Parse[Listing](t, cmdtest.On(t, w, "--json", "ls", w.Path("jobs")).Gives(0)).Recipes {
			require.Empty(t, r.Odd)
		}
		for _, r := range sightAt(t, cmdtest.On(t, w, "ui", w.Path("jobs")).Line()).Recipes {
			require.Empty(t, r.Odd)
		}
		text := scrape(t, cmdtest.On(t, w, "exporter", "--listen", "127.0.0.1:0", w.Path("jobs")).Line())
		require.NotContains(t, text, "zkcoord_path_odd{")
		require.Contains(t, text, `zkcoord_path_queue_dead_letters{kind="queue",path="`+w.Path("jobs")+`"} 2`)
		require.Contains(t, text, `zkcoord_path_queue_dead_letters_unacknowledged{kind="queue",path="`+w.Path("jobs")+`"} 0`)
	})
}

// After the members of shards have died, nothing is left but the plan.
func TestAServiceThatDiesDoesNotVanish(t *testing.T) {
	w := cmdtest.World(t)
	c := cmdtest.Open(t, w)
	require.NoError(t, cmdtest.Must(shards.New(c, w.Path("s"))).SetKeys(t.Context(), "one", "two"))
	for _, part := range []string{"members", "keys"} { // as the servers do with empty containers
		if err := w.Admin().Delete(w.Path("s/"+part), -1); err != nil {
			require.ErrorIs(t, err, zk.ErrNoNode)
		}
	}
	require.Contains(t, cmdtest.On(t, w, "ls", w.Path("s")).Gives(0), "no member is there, and 2 keys are unowned")
}
