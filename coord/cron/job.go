package cron

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// longestJob bounds what [Describe] takes, in bytes.
const longestJob = 4096

// Describe puts on record what this client runs, and by which schedule, as long
// as its session lasts: one node, and a watch on the list of them. A client
// that finds another description there reports it, once ([event.Differs]), and
// reads it again at each look, one request. It goes on: a change of the
// schedule may be under way. If none is, two different jobs share a path, and
// swallow each other's slots.
func Describe(job string) Option {
	return func(c *Cron) error {
		if job == "" || len(job) > longestJob {
			return fmt.Errorf("%w: a description of %d bytes: it must have 1 to %d", coord.ErrInvalid, len(job), longestJob)
		}
		c.job = job
		return nil
	}
}

// Job is what a client runs that has given a description.
type Job struct {
	Text    string // as [Describe] took it
	By      string // the [coord.Info.Identity] of the client, or of one of them
	Clients int    // that run it
}

func (c *Cron) runners() string { return c.path + "/runners" }

// enrol puts the description on record, and looks for others.
func (c *Cron) enrol(v *coord.View) error {
	if c.job == "" {
		return nil
	}
	names, err := v.ChildrenIfAny(c.runners())
	if err != nil {
		return err
	}
	own := jobID(c.job) + "-" + strconv.FormatUint(uint64(c.client.Info().SessionID), 16)
	if err := c.compare(v.Context(), names); err != nil || slices.Contains(names, own) {
		return err
	}
	op := coord.EphemeralOp(c.runners()+"/"+own, []byte(c.client.Info().Identity+"\n"+c.job))
	err = recipe.Retry(v.Context(), c.client, func(ctx context.Context) error {
		_, err := recipe.TxnIn(ctx, c.client, c.runners(), op)
		return err
	})
	if errors.Is(err, coord.ErrNodeExists) { // it is not in the listing yet
		err = nil
	}
	return err
}

// compare reports descriptions that are not this client's, each once.
func (c *Cron) compare(ctx context.Context, names []string) error {
	read := map[string]bool{jobID(c.job): true}
	for _, name := range names {
		id, _, _ := strings.Cut(name, "-")
		if read[id] {
			continue
		}
		other, err := c.readJob(ctx, name)
		if err != nil {
			return err
		}
		read[id] = other.Text != ""
		if read[id] {
			recipe.ReportOnce(c.client, slog.LevelWarn, event.Event{Kind: event.Differs, Path: c.path, Err: fmt.Errorf(
				"another client runs another job at this path: %q, and this client %q; each slot is run by one of them only",
				other.Text, c.job)})
		}
	}
	return nil
}

// readJob reads a description; it is empty if its client has gone.
func (c *Cron) readJob(ctx context.Context, name string) (Job, error) {
	data, _, err := c.client.Get(ctx, c.runners()+"/"+name)
	if errors.Is(err, coord.ErrNoNode) {
		return Job{}, nil
	}
	by, text, _ := strings.Cut(string(data), "\n")
	return Job{Text: text, By: by}, err
}

// Jobs returns the different jobs that clients run at the path at present, as
// they describe them ([Describe]), by their texts, and how many clients run
// each. More than one swallow each other's slots.
// One listing, and a read for each of them.
func (c *Cron) Jobs(ctx context.Context) (all []Job, err error) {
	names, err := c.client.Children(ctx, c.runners())
	if errors.Is(err, coord.ErrNoNode) {
		return nil, nil
	}
	of, clients := map[string]Job{}, map[string]int{}
	for _, name := range names {
		id, _, _ := strings.Cut(name, "-")
		clients[id]++
		if of[id].Text == "" && err == nil {
			of[id], err = c.readJob(ctx, name)
		}
	}
	for id, job := range of {
		job.Clients = clients[id]
		if job.Text != "" {
			all = append(all, job)
		}
	}
	slices.SortFunc(all, func(a, b Job) int { return strings.Compare(a.Text, b.Text) })
	return all, c.failed("jobs", err)
}

// jobID names a description.
func jobID(text string) string {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(text)) // never fails
	return strconv.FormatUint(hash.Sum64(), 16)
}
