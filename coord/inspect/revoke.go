package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/internal/author"
	"github.com/zkcoord/zkcoord/coord/internal/dialect"
)

// Notice returns the path of the node into which requests to a claim are
// written, and what a leader proclaims. It is the claim's own node, except for
// the leader of an election in Curator's dialect: its notice has the name
// without the number, and package election makes and deletes it along with the
// term. A LeaderLatch of Curator's that waits behind a candidate watches its
// node once, and reacts to its deletion only: after a write into the node, the
// latch, and all candidates behind it, would wait for ever.
func Notice(node string) string { return dialect.Notice(node) }

// Revoke asks the claim at node to give up its hold, or the turn it waits for:
// it writes the dialect's request into the node, which closes the holder's
// [coord.Hold.Revoked]. Whether and when the holder obeys is its business. A
// node that is gone already is no error; one that is no claim, such as a
// queue's item, is refused with [coord.ErrInvalid]. Where the node's data begin
// with a [coord.Info.Identity], they are kept behind the request ([OwnData]);
// other data are lost, including the data of Curator's and Kazoo's claims,
// since Curator obeys only a bare request. Three requests, of which the first
// two make sure whose node it is.
//
// A contender of an unknown recipe is asked only by [RevokeIn]: what is written
// into its node may mean something else to it, or stop its line. Revoke fails
// with [errors.ErrUnsupported].
//
// In an election in Curator's dialect the leader is asked by its [Notice]: the
// data there are kept, at the cost of one request. No other candidate can be
// asked: Curator's LeaderLatch obeys no request, and one that is written into
// the node of a candidate could end the election for a LeaderLatch that waits
// behind it. Revoke writes nothing then and fails with [errors.ErrUnsupported].
func Revoke(ctx context.Context, c *coord.Client, node string) error {
	return RevokeIn(ctx, c, "", node)
}

// RevokeIn is [Revoke] in a line of a described dialect: it writes what
// [coord.Description.Revoke] says, and fails with [errors.ErrUnsupported] if
// that says nothing. "" is the client's dialect.
func RevokeIn(ctx context.Context, c *coord.Client, d coord.Dialect, node string) error {
	_, err := ask(ctx, c, cmp.Or(d, c.Info().Dialect), node)
	return unlessGone(c, "revoke", node, err)
}

// ask asks as [Revoke] does, and returns which claim was asked.
func ask(ctx context.Context, c *coord.Client, d coord.Dialect, node string) (claim int64, err error) {
	c = c.Synced()
	if err := coord.CheckDialect(d); err != nil {
		return 0, err
	}
	return toClaim(ctx, c, node, 0, func(ctx context.Context, data []byte, stat coord.Stat) error {
		if stat.Owner == 0 {
			return fmt.Errorf("%w: no claim: it belongs to no session", coord.ErrInvalid)
		}
		if notice := Notice(node); notice != node {
			return note(ctx, c, node, notice)
		}
		kept := dialect.Kept(d, data)
		if !dialect.NamesOwner(kept) {
			kept = nil
		}
		request := dialect.RequestTo(d, path.Base(node), kept)
		if request == nil {
			return fmt.Errorf(
				"%w: its recipe is unknown, or its dialect names no request to give up; Break takes its place from it",
				errors.ErrUnsupported)
		}
		_, err := c.Set(ctx, node, request, stat.Version)
		return err
	})
}

// note writes a request into the notice of the leader that has the node.
func note(ctx context.Context, c *coord.Client, node, notice string) error {
	data, stat, err := c.Get(ctx, notice)
	if errors.Is(err, coord.ErrNoAuth) {
		stat.Version, err = -1, nil
	}
	if err == nil {
		_, err = c.Set(ctx, notice, dialect.Request(c.Info().Dialect, dialect.Own(data)), stat.Version)
	}
	if !errors.Is(err, coord.ErrNoNode) {
		return err
	}
	_, there, err := c.Exists(ctx, node)
	switch {
	case err != nil:
		return err
	case there:
		return fmt.Errorf(
			"%w: it cannot be asked to give up, since it waits, or leads as Curator's LeaderLatch; Break takes its place from it", errors.ErrUnsupported)
	}
	return coord.ErrNoNode
}

// RevokeAndWait asks as [Revoke] does and waits until that claim's node is
// gone, even if another has its name by then. When forceAfter is positive and
// the node is still there after that time, it deletes it by force ([Break]) and
// reports that: the holder then loses its hold, but may go on acting on it for
// as long as the news takes to reach it. If forced is false and err is nil, the
// node went without force.
func RevokeAndWait(
	ctx context.Context, c *coord.Client, node string, forceAfter time.Duration,
) (forced bool, err error) {
	claim, err := ask(ctx, c, c.Info().Dialect, node)
	if err != nil {
		return false, unlessGone(c, "revoke", node, err)
	}
	return Await(ctx, c, node, claim, forceAfter)
}

// Await waits, as [RevokeAndWait] does but without asking, until the claim at
// node that has this token ([Contender.Token]) is gone.
func Await(
	ctx context.Context, c *coord.Client, node string, token int64, forceAfter time.Duration,
) (forced bool, err error) {
	waiting, cancel := ctx, context.CancelFunc(func() {})
	if forceAfter > 0 {
		waiting, cancel = context.WithTimeout(ctx, forceAfter)
	}
	defer cancel()
	err = awaitGone(waiting, c.Synced(), node, token)
	if err == nil || ctx.Err() != nil || waiting.Err() == nil {
		return false, author.Of(c).Failure("revoke", node, err)
	}
	return BreakClaim(ctx, c, node, token)
}

// Break deletes a claim's node by force. The next claim gets its turn; the
// former holder sees its loss as soon as the news reaches it, and may have
// acted on the hold until then. It deletes the claim that has the node when it
// is called, and none that takes the name afterwards (but for one that does so
// during the last of its requests, and whose node has the same version). Three
// requests, and one more for a leader's [Notice], which goes, too.
func Break(ctx context.Context, c *coord.Client, node string) error {
	_, err := BreakClaim(ctx, c, node, 0)
	return err
}

// BreakClaim is [Break] of the claim that has this token ([Contender.Token]),
// and of no other claim of the name; 0 is the one that is there. It reports
// whether it has deleted the node, or may have, by a request whose answer was
// lost.
func BreakClaim(ctx context.Context, c *coord.Client, node string, token int64) (deleted bool, err error) {
	_, err = toClaim(ctx, c.Synced(), node, token, func(ctx context.Context, _ []byte, stat coord.Stat) error {
		err := c.Delete(ctx, node, stat.Version)
		deleted = deleted || err == nil || errors.Is(err, coord.ErrUnconfirmed)
		return err
	})
	err = unlessGone(c, "break", node, err)
	if notice := Notice(node); err == nil && notice != node {
		err = author.Of(c).Retry(ctx, func(ctx context.Context) error { return c.Delete(ctx, notice, -1) })
	}
	return deleted, unlessGone(c, "break", node, err)
}

// toClaim calls act for a claim's node, and again if act finds that the node's
// version has changed. claim, a czxid, distinguishes the claim from others of
// the same name; 0 stands for the one that is found first. toClaim fails with
// [coord.ErrNoNode] if the claim is gone. c must be a fresh client.
func toClaim(
	ctx context.Context, c *coord.Client, node string, claim int64,
	act func(ctx context.Context, data []byte, stat coord.Stat) error,
) (int64, error) {
	err := author.Of(c).Retry(ctx, func(ctx context.Context) error {
		for {
			there := true
			data, stat, err := c.Get(ctx, node)
			if errors.Is(err, coord.ErrNoAuth) { // which need not forbid the act
				stat, there, err = c.Exists(ctx, node)
			}
			switch {
			case err != nil:
				return err
			case !there, claim != 0 && stat.Czxid != claim:
				return coord.ErrNoNode
			}
			claim = stat.Czxid
			if err = act(ctx, data, stat); !errors.Is(err, coord.ErrBadVersion) {
				return err
			}
		}
	})
	return claim, err
}

func unlessGone(c *coord.Client, op, node string, err error) error {
	if errors.Is(err, coord.ErrNoNode) {
		return nil
	}
	return author.Of(c).Failure(op, node, err)
}

// awaitGone waits until the node of this czxid is gone.
func awaitGone(ctx context.Context, c *coord.Client, node string, czxid int64) error {
	err := c.Wait(ctx, func(v *coord.View) (gone bool, err error) {
		_, stat, err := v.Get(node)
		if errors.Is(err, coord.ErrNoNode) {
			return true, nil
		}
		return err == nil && stat.Czxid > czxid, err
	})
	return author.Of(c).Failure("wait", node, err)
}

// IsRevocation reports whether a claim's data are a request to give up its
// hold, in either dialect: the request alone, as other programs write it, or as
// the first line, before the data that the claim had. No claim of your own may
// have such data: see [CheckData].
func IsRevocation(data []byte) bool { return dialect.IsRequest(data) }
