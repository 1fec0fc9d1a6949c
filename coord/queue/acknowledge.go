package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue/internal/store"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// Acknowledge notes that dead letters have been seen, and stay: they can be
// read, received and put back as before, but nobody need look at them any more.
// letters are the names of their nodes ([DeadLetter.Name]). Acknowledge stops
// at the first that it cannot note, and says how many it has: [coord.ErrNoNode]
// when the letter is gone. To acknowledge a letter twice changes nothing. One
// request for each, and one more.
//
// [Queue.Requeue], [Queue.Drop] and [Queue.Bury] delete a letter's
// acknowledgement with it. If another program removes the letter, its
// acknowledgement counts for no other letter, and is deleted with the letter's
// record.
func (q *Queue) Acknowledge(ctx context.Context, letters ...string) (acknowledged int, err error) {
	dead := q.at.dead()
	dir, _, err := q.client.Exists(ctx, dead.Entries)
	for err == nil && acknowledged < len(letters) {
		if err = dead.acknowledge(ctx, letters[acknowledged], dir); err == nil {
			acknowledged++
		}
	}
	return acknowledged, q.explain("acknowledge", err)
}

// Acknowledged lists the dead letters that are acknowledged. One request if
// there are none, otherwise three.
func (q *Queue) Acknowledged(ctx context.Context) ([]string, error) {
	letters, _, err := q.at.dead().acknowledged(ctx)
	return letters, q.explain("list the acknowledged letters", err)
}

// acknowledge makes the node that acknowledges a letter, while there is one.
func (l nodes) acknowledge(ctx context.Context, letter string, dir coord.Stat) error {
	if !store.IsItem(letter) {
		return fmt.Errorf("%w: %q is no item's name", coord.ErrInvalid, letter)
	}
	return recipe.Retry(ctx, l.Client, func(ctx context.Context) error {
		_, err := recipe.TxnIn(ctx, l.Client, l.Acknowledged, coord.CheckOp(l.Entry(letter), -1),
			coord.CreateOp(l.acknowledgement(letter, dir), []byte(l.Client.Info().Identity)))
		if errors.Is(err, coord.ErrNodeExists) { // made before
			return nil
		}
		return err
	})
}

// acknowledgement is the node that acknowledges a letter. The letters' names
// come again when their directory is made anew, so its name has the transaction
// that made the directory, in two parts: ten digits at the end would be a
// contender's.
func (l nodes) acknowledgement(letter string, dir coord.Stat) string {
	return fmt.Sprintf("%s/%s-in-%x.%x", l.Acknowledged, letter, dir.Czxid>>32, uint32(dir.Czxid))
}

// acknowledged lists the letters of this queue that are acknowledged, and the
// nodes that acknowledge none that is there.
func (l nodes) acknowledged(ctx context.Context) (letters, orphans []string, err error) {
	nodes, err := l.Client.Children(ctx, l.Acknowledged)
	if errors.Is(err, coord.ErrNoNode) || err == nil && len(nodes) == 0 {
		return nil, nil, nil
	}
	var dir coord.Stat
	if err == nil {
		dir, _, err = l.Client.Exists(ctx, l.Entries)
	}
	var there []string
	if err == nil && dir.Children > 0 {
		there, err = l.Client.Children(ctx, l.Entries)
	}
	slices.Sort(there)
	for _, node := range nodes {
		letter := store.CutItem(node)
		_, found := slices.BinarySearch(there, letter)
		if found && l.Acknowledged+"/"+node == l.acknowledgement(letter, dir) {
			letters = append(letters, letter)
		} else {
			orphans = append(orphans, node)
		}
	}
	slices.Sort(letters)
	return letters, orphans, err
}

// acknowledgedBy returns the node that acknowledges a letter of this queue, or
// "".
func (l nodes) acknowledgedBy(ctx context.Context, letter string) (node string, err error) {
	if all, _, err := l.Client.Exists(ctx, l.Acknowledged); err != nil || all.Children == 0 {
		return "", err
	}
	dir, _, err := l.Client.Exists(ctx, l.Entries)
	if err != nil {
		return "", err
	}
	node = l.acknowledgement(letter, dir)
	if _, there, err := l.Client.Exists(ctx, node); err != nil || !there {
		return "", err
	}
	return node, nil
}
