package coord_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/zkembed"
)

// oncePerSlot runs a job for a slot of time, such as a day, unless a host has
// run it for that slot or a later one. Slots compare as strings. A job that
// failed, or whose host died before the slot was noted, is run again by the
// next host that calls.
func oncePerSlot(ctx context.Context, client *coord.Client, path, slot string, job func(context.Context) error) error {
	m, err := lock.New(client, path+"/lock")
	if err != nil {
		return err
	}
	return m.Do(ctx, func(ctx context.Context, h *coord.Hold) error {
		// The server may lag behind the former holder's note: read afresh.
		last, stat, err := client.Fresh().Get(ctx, path+"/last")
		if errors.Is(err, coord.ErrNoNode) {
			_, err = h.Txn(ctx, coord.CreateOp(path+"/last", nil))
		}
		if err != nil || string(last) >= slot {
			return err
		}
		if err := job(ctx); err != nil { // ctx ends if the lock is lost
			return err
		}
		_, err = h.Txn(ctx, coord.SetOp(path+"/last", []byte(slot), stat.Version))
		return err
	})
}

// A cron job is on many hosts, and runs once for each slot, however much the
// hosts' clocks differ: the host that is first notes the slot, by a transaction
// that fails if its lock is lost.
func ExampleHold_Txn_oncePerSlot() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	srv, err := zkembed.Start() // in production, a ZooKeeper ensemble
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	client, err := coord.Open(ctx, srv.ConnectString())
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)

	for _, host := range []string{"host1", "host2", "host3"} {
		for _, slot := range []string{"2026-11-22", "2026-11-23"} {
			err := oncePerSlot(ctx, client, "/cron/report", slot, func(context.Context) error {
				fmt.Println(host, "reports for", slot)
				return nil
			})
			if err != nil {
				log.Fatal(err)
			}
		}
	}
	// Output:
	// host1 reports for 2026-11-22
	// host1 reports for 2026-11-23
}
