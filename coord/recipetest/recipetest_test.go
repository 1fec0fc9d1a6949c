package recipetest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/coord/recipetest"
)

// notes is a recipe: notes that are left, and waited for.
type notes struct {
	client *coord.Client
	path   string
}

func (n *notes) leave(ctx context.Context) error {
	err := recipe.Retry(ctx, n.client, func(ctx context.Context) error { return n.client.Create(ctx, n.path+"/a", nil) })
	if errors.Is(err, coord.ErrNodeExists) {
		return nil
	}
	return err
}

func (n *notes) wait(ctx context.Context) error {
	err := n.client.Wait(ctx, func(v *coord.View) (bool, error) {
		names, err := v.ChildrenIfAny(n.path)
		return len(names) > 0, err
	})
	return recipe.Failure(n.client, "wait", n.path, err)
}

func (n *notes) one(ctx context.Context) error {
	return n.client.Wait(ctx, func(v *coord.View) (bool, error) {
		names, err := v.ChildrenIfAny(n.path)
		if err == nil && len(names) != 1 {
			err = errors.New("there is not one note")
		}
		return true, err
	})
}

// table is the recipe's, right in all.
func table() recipetest.Recipe[*notes] {
	leave := func(ctx context.Context, n *notes) error { return n.leave(ctx) }
	return recipetest.Recipe[*notes]{
		New: func(c *coord.Client, path string) (*notes, error) { return &notes{c, path}, recipe.Check(c, path) },
		Refused: map[string]func(context.Context, *notes) error{"a nil look": func(ctx context.Context, n *notes) error {
			return n.client.Wait(ctx, nil)
		}},
		Calls: []recipetest.Call[*notes]{
			{
				Name: "Leave", Do: leave, Requests: 6, RoundTrips: 6, Done: func(ctx context.Context, n *notes) error {
					return n.one(ctx)
				},
			},
			{
				Name: "Wait", Do: func(ctx context.Context, n *notes) error { return n.wait(ctx) }, Ready: leave, Unblock: leave,
				Op: "wait", Requests: 1, RoundTrips: 1,
			},
		},
	}
}

func TestARecipeThatIsRightPasses(t *testing.T) { recipetest.Run(t, table()) }

// faults are what may be wrong with a recipe, and the subtest that finds it.
var faults = map[string]struct {
	subtest string
	make    func(r *recipetest.Recipe[*notes])
}{
	"takes any path": {"refused", func(r *recipetest.Recipe[*notes]) {
		r.New = func(c *coord.Client, path string) (*notes, error) { return &notes{c, path}, nil }
	}},
	"asks before it refuses": {"refused", func(r *recipetest.Recipe[*notes]) {
		r.Refused["leave and look"] = func(ctx context.Context, n *notes) error {
			return errors.Join(n.leave(ctx), coord.ErrInvalid)
		}
	}},
	"asks though the context has ended": {"Leave/context_ended", func(r *recipetest.Recipe[*notes]) {
		r.Calls[0].Do = func(ctx context.Context, n *notes) error {
			return errors.Join(n.leave(context.WithoutCancel(ctx)), ctx.Err())
		}
	}},
	"hides that the client is closed": {"Leave/closed_client", func(r *recipetest.Recipe[*notes]) {
		r.Calls[0].Do = func(ctx context.Context, n *notes) error {
			if err := n.leave(ctx); !errors.Is(err, coord.ErrClosed) {
				return err
			}
			return nil
		}
	}},
	"outlasts its context": {"Leave/no_answer", func(r *recipetest.Recipe[*notes]) {
		r.Calls[0].Do = func(ctx context.Context, n *notes) error {
			err := n.leave(ctx)
			if err != nil && !errors.Is(err, context.Canceled) {
				time.Sleep(time.Second)
			}
			return err
		}
	}},
	"does not say what it did": {"Leave/no_answer", func(r *recipetest.Recipe[*notes]) {
		r.Calls[0].Do = func(ctx context.Context, n *notes) error {
			if n.leave(ctx) != nil {
				return ctx.Err()
			}
			return nil
		}
	}},
	"gives up":              {"Leave/lost_request", once},
	"is throttled":          {"Leave/throttled", once},
	"ends with its session": {"Leave/session_ended", once},
	"does it twice": {"Leave/lost_reply", func(r *recipetest.Recipe[*notes]) {
		r.Calls[0].Do = func(ctx context.Context, n *notes) error {
			return recipe.Retry(ctx, n.client, func(ctx context.Context) error {
				_, err := n.client.Txn(ctx, coord.AppendOp(n.path+"/n-", nil))
				if errors.Is(err, coord.ErrNoNode) {
					_, err = n.client.Txn(ctx, coord.CreateOp(n.path, nil), coord.AppendOp(n.path+"/n-", nil))
				}
				return err
			})
		}
		r.Calls[0].Ready = func(ctx context.Context, n *notes) error { return n.client.EnsureDir(ctx, n.path) }
	}},
	"costs more": {"Leave/cost", func(r *recipetest.Recipe[*notes]) { r.Calls[0].Requests-- }},
	"leaves what it made": {"Leave/no_answer", func(r *recipetest.Recipe[*notes]) {
		r.Calls[0].Do = func(ctx context.Context, n *notes) error {
			if _, err := recipe.AcquireName(ctx, n.client, coord.NameSpec{Path: n.path + "-name"}); err != nil {
				return err
			}
			return n.leave(ctx)
		}
	}},
	"does not wait": {"Wait/waiting,_until_its_turn_comes", func(r *recipetest.Recipe[*notes]) {
		r.Calls[1].Do = func(ctx context.Context, n *notes) error { return n.client.EnsureDir(ctx, n.path) }
	}},
	"is not woken": {"Wait/waiting,_cut_off_while_its_turn_comes", func(r *recipetest.Recipe[*notes]) {
		r.Calls[1].Do = func(ctx context.Context, n *notes) error {
			if _, there, err := n.client.Exists(ctx, n.path); there || err != nil {
				return err
			}
			<-ctx.Done()
			return recipe.Failure(n.client, "wait", n.path, ctx.Err())
		}
	}},
}

// once makes one request, and no other.
func once(r *recipetest.Recipe[*notes]) {
	r.Calls[0].Do = func(ctx context.Context, n *notes) error {
		err := n.client.Create(ctx, n.path+"/a", nil)
		if errors.Is(err, coord.ErrNodeExists) {
			return nil
		}
		return err
	}
}

// TestARecipeThatIsWrongFails runs each of them in a process of its own, in
// which the test fails.
func TestARecipeThatIsWrongFails(t *testing.T) {
	if fault, is := faults[os.Getenv("RECIPETEST_FAULT")]; is {
		r := table()
		fault.make(&r)
		recipetest.Run(t, r)
		return
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0],
				"-test.run=^TestARecipeThatIsWrongFails$/^"+strings.ReplaceAll(fault.subtest, "/", "$/^")+"$")
			cmd.Env = append(os.Environ(), "RECIPETEST_FAULT="+name)
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "--- FAIL: TestARecipeThatIsWrongFails/"+fault.subtest) {
				t.Errorf("%s passes: %v\n%s", fault.subtest, err, out)
			}
		})
	}
}
