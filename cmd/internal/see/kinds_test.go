//go:build linux || darwin || freebsd || openbsd

package see

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/cron"
	"github.com/zkcoord/zkcoord/coord/group"
	"github.com/zkcoord/zkcoord/coord/slots"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestInspectAndLsShowWhoHasNumbers(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		client := cmdtest.Open(t, w)
		ids := cmdtest.Must(slots.New(client, w.Path("app/ids"), 2, slots.Durable("host1", 0)))
		slot := coordtest.Acquire(t, ids)
		other := coordtest.Acquire(t, cmdtest.Must(slots.New(client, w.Path("app/ids"), 2)))
		waits := coordtest.Go(func() error {
			third, err := slots.New(client, w.Path("app/ids"), 2)
			if err == nil {
				err = third.Do(coordtest.Limited(t), func(context.Context, *slots.Slot) error { return nil })
			}
			return err
		})
		var r look.Report
		zktest.Eventually(t, coordtest.Soon, func() bool {
			r, _ = cmdtest.Seen[look.Report](t, w, w.Path("app/ids"))
			return len(r.Contenders) == 3
		}, "one waits")
		require.Equal(t, look.NumbersKind, r.Kind)
		require.Zero(t, r.Others)
		require.Len(t, r.Holders(), 2)
		require.Equal(t, "waits", r.Contenders[2].State)
		require.Equal(t, slot.Token(), r.Contenders[0].Token)
		require.Equal(t, client.Info().Identity, r.Contenders[0].Owner)
		require.Contains(t, cmdtest.On(t, w, "ls", w.Path("app")).Gives(0), "slots")
		require.NoError(t, slot.Release(coordtest.Limited(t)))
		require.NoError(t, zktest.Receive(t, coordtest.Soon, waits, "the third"))
		require.Zero(t, cmdtest.On(t, w, "break", "--yes", w.Path("app/ids")).Exit())
		zktest.Receive(t, coordtest.Soon, other.Done(), "the loss")
		r, text := cmdtest.Seen[look.Report](t, w, w.Path("app/ids"))
		require.Equal(t, look.NumbersKind, r.Kind)
		require.Contains(t, text, "slots; nobody holds it, nobody waits")
	})
}

func TestInspectShowsTheMembersOfAGroup(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		for _, dialect := range []coord.Dialect{coord.Curator, coord.Kazoo} {
			client, path := cmdtest.Open(t, w, coord.WithDialect(dialect)), w.Path("app/"+string(dialect))
			m := cmdtest.Must(cmdtest.Must(group.New(client, path)).Join(coordtest.Limited(t), "host1", []byte("10.1.2.3:80")))
			require.NoError(t, client.Create(coordtest.Limited(t), path+"/other", nil))
			r, text := cmdtest.Seen[look.Report](t, w, path)
			require.Equal(t, look.GroupKind, r.Kind)
			require.Equal(t, string(dialect), r.Dialect)
			require.Equal(t, 1, r.Others)
			require.Len(t, r.Holders(), 1)
			require.Equal(t, m.Node(), r.Contenders[0].Node)
			require.Contains(t, text, "10.1.2.3:80")
			require.NoError(t, m.Leave(coordtest.Limited(t)))
		}
		require.Equal(t, term.ExitOK, cmdtest.On(t, w, "ls", w.Path("app")).Exit())
	})
}

func TestShardsAreToldForWhatTheyAre(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		p := cmdtest.On(t, w, "shards", "--keys", "one", w.Path("s"), "--", "sh", "-c", "echo begun; exec sleep 60")
		require.Equal(t, "begun", p.Line())
		require.Contains(t, cmdtest.On(t, w, "inspect", w.Path("s")).Gives(0), "shards "+w.Path("s"))
		r := cmdtest.Parse[map[string]any](t, cmdtest.On(t, w, "inspect", w.Path("s"), "--json").Gives(0))
		require.Equal(t, "shards", r["kind"])
		require.Zero(t, r["others"])
		all := cmdtest.On(t, w, "ls", w.Path("")).Gives(0)
		require.Contains(t, all, w.Path("s")+"/keys/one", "who owns the key")
		require.NotContains(t, all, "/members")
		p.Signal(syscall.SIGTERM)
		p.Exit()
	})
}

// A clock that was wrong has left it.
func TestF65AMarkFromTheFutureIsShownAndPutBack(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		p := cmdtest.On(t, w, "cron", w.Path("cron"), "@every 1s", "--", "sh", "-c", "echo $COORD_INSTANT")
		require.NotEmpty(t, p.Line())
		_, err := w.Admin().Set(w.Path("cron/mark"), []byte(`{"through":"2096-01-01T00:00:00Z"}`), -1)
		require.NoError(t, err)
		p.Tells("no slot is due until then")
		const ahead = "no slot is due before 2096-01-01T00:00:00Z"
		require.Contains(t, cmdtest.On(t, w, "cron", "--list", w.Path("cron")).Gives(0), ahead)
		require.Contains(t, cmdtest.On(t, w, "inspect", w.Path("cron")).Gives(0), ahead)
		require.Contains(t, cmdtest.On(t, w, "ls", w.Path("cron")).Gives(0), ahead)
		require.Contains(t, cmdtest.On(t, w, "doctor", w.Path("cron")).Gives(term.ExitFailed), ahead)
		exporter := cmdtest.On(t, w, "exporter", "--listen", "127.0.0.1:0", w.Path("cron"))
		require.Regexp(t, `zkcoord_path_cron_mark_ahead_seconds{[^}]*} [0-9.]+e\+09`, scrape(t, exporter.Line()))

		now := cron.Key(time.Now())
		require.Contains(t, cmdtest.On(t, w, "cron", "--rewind", w.Path("cron")).Gives(0),
			"put back from 2096-01-01T00:00:00Z")
		for p.Line() < now { // it goes on
		}
		require.Contains(t, cmdtest.On(t, w, "cron", "--rewind", w.Path("cron")).Gives(0), "nothing was changed")
		require.NotContains(t, cmdtest.On(t, w, "doctor", w.Path("cron")).Gives(0), ahead)
		require.Equal(t, term.ExitFailed, cmdtest.On(t, w, "cron", "--rewind", w.Path("none")).Exit())
	})
}

func TestF70TwoDifferentJobsAtOnePathAreShown(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		one := cmdtest.On(t, w, "cron", w.Path("cron"), "@every 1s", "--", "sh", "-c", "echo one")
		require.Equal(t, "one", one.Line())
		require.NotContains(t, cmdtest.On(t, w, "ls", w.Path("cron")).Gives(0), "different jobs")
		two := cmdtest.On(t, w, "cron", w.Path("cron"), "@hourly", "--", "sh", "-c", "echo secret")
		two.Tells("runs another job at this path")
		one.Tells("runs another job at this path")
		// A process has no session between two slots, and is not there then.
		shown := func(verb string) (text string) {
			zktest.Eventually(t, cmdtest.Soon, func() bool {
				p := cmdtest.On(t, w, verb, w.Path("cron"))
				text = p.Output()
				return strings.Contains(text, "2 different jobs at one path") && (p.Exit() == term.ExitFailed) == (verb == "doctor")
			}, "%s does not show it", verb)
			return text
		}
		text := shown("ls") + shown("inspect") + shown("doctor")
		require.NotContains(t, text, "secret")
	})
}

func TestItIsShownWhoServesAScheduleAndWhenItsNextSlotIsDue(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		path := w.Path("cron")
		at := func() look.ScheduleReport {
			r, _ := cmdtest.Seen[look.Report](t, w, path)
			return *r.Schedule
		}
		var all []*cmdtest.Process
		for range 2 {
			all = append(all, cmdtest.On(t, w, "cron", path, "@yearly", "--", "true"))
			zktest.Eventually(t, cmdtest.Soon, func() bool {
				names, _, err := w.Admin().Children(path + "/runners")
				return err == nil && len(names) == len(all)
			}, "it is there")
		}
		require.Equal(t, 2, at().Members)
		require.Positive(t, *at().NextDue)
		require.Regexp(t, `no slot on record, next due in [^,]+, 2 members`, cmdtest.On(t, w, "ls", path).Gives(0))
		require.Regexp(t, `2 processes run @yearly \(UTC\): true, .*\nthe next slot is due at 20\d\d-01-01T00:00:00Z`,
			cmdtest.On(t, w, "cron", "--list", path).Gives(0))
		exporter := cmdtest.On(t, w, "exporter", "--listen", "127.0.0.1:0", path)
		require.Regexp(t, `(?s)zkcoord_path_cron_members{[^}]*} 2\n.*zkcoord_path_cron_next_due_seconds{[^}]*} [1-9]`,
			scrape(t, exporter.Line()))
		for _, p := range all {
			p.Signal(syscall.SIGTERM)
			p.Exit()
		}
		require.Zero(t, at().Members)
		require.Positive(t, *at().NextDue, "as they had noted it")

		_, err := w.Admin().Set(path+"/mark", []byte(`{"through":"2026-01-01T00:00:00Z","next":"2026-01-02T00:00:00Z"}`), -1)
		require.NoError(t, err)
		const unserved = "nobody has begun the slot that was due "
		require.Contains(t, cmdtest.On(t, w, "cron", "--list", path).Gives(0), unserved)
		require.Contains(t, cmdtest.On(t, w, "doctor", path).Gives(term.ExitFailed), unserved)
		require.Negative(t, *at().NextDue)
	})
}

func TestALedgerIsToldForWhatItIs(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		require.Zero(t, cmdtest.On(t, w, "once", w.Path("jobs"), "key", "--", "true").Exit())
		p := cmdtest.On(t, w, "cron", w.Path("cron"), "@every 1s", "--", "sh", "-c", "echo begun; exec sleep 60")
		require.Equal(t, "begun", p.Line())
		for _, kind := range []string{"once", "cron"} {
			at := map[string]string{"once": w.Path("jobs"), "cron": w.Path("cron")}[kind]
			require.Contains(t, cmdtest.On(t, w, "inspect", at).Gives(0), kind+" --list "+at)
			r := cmdtest.Parse[map[string]any](t, cmdtest.On(t, w, "inspect", at, "--json").Gives(0))
			require.Equal(t, kind, r["kind"])
			require.Zero(t, r["others"])
		}
		all := cmdtest.On(t, w, "ls", w.Path("")).Gives(0)
		require.Equal(t, 1, strings.Count(all, w.Path("jobs")), all)
		require.Contains(t, all, w.Path("cron")+"/keys/", "who runs the slot")
		require.NotContains(t, all, "guards")
		p.Signal(syscall.SIGTERM)
		p.Exit()
	})
}
