//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"context"
	"errors"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/election"
)

// candidate makes an election a lock whose holder leads.
type candidate struct {
	*election.Election
	data []byte
}

func (c candidate) Acquire(ctx context.Context) (*coord.Hold, error) {
	t, err := c.Campaign(ctx, c.data)
	if err != nil {
		return nil, err
	}
	return t.Hold, nil
}

// TryAcquire is not offered: a candidate stands for election.
func (c candidate) TryAcquire(ctx context.Context) (*coord.Hold, error) { return c.Acquire(ctx) }

// lead runs the command as lock does.
func (v *electVerb) lead(s *streams, c *connection) error {
	verb := &lockVerb{
		Timeout: v.Timeout, KillAfter: v.KillAfter, OnRevoke: v.OnRevoke, Path: v.Path, Cmd: v.Cmd,
		stand: func(client *coord.Client) (locker, error) {
			e, err := election.New(client, string(v.Path))
			if err != nil {
				return nil, err
			}
			stand := candidate{Election: e}
			if v.Data != nil {
				stand.data = []byte(*v.Data)
			}
			return stand, nil
		},
	}
	for led := false; ; {
		err := verb.Run(s, c)
		var status *exitError
		if !v.Again || verb.left || !errors.As(err, &status) {
			return err
		}
		led = led || status.code == exitLost
		if status.code != exitLost && (!led || status.code != exitUnavailable) {
			return err
		}
		if status.err != nil {
			s.note("%v", status.err) // else it has been told
		}
		s.note("stands for election at %s again", v.Path)
	}
}
