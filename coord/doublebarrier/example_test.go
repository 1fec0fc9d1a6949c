package doublebarrier_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/zkembed"
)

// Three workers start together, each does its share, and nobody goes on before
// all have finished.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	server, err := zkembed.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()

	work := []string{"apples", "bread", "cheese"}
	worker := func() error {
		client, err := coord.Open(ctx, server.ConnectString())
		if err != nil {
			return err
		}
		defer client.Close(ctx)
		b, err := doublebarrier.New(client, "/jobs/count", len(work))
		if err != nil {
			return err
		}
		return b.Do(ctx, func(ctx context.Context, m *doublebarrier.Member) error {
			share := work[m.Index()]
			_, err := m.Txn(ctx, coord.CreateOp("/count-"+share, fmt.Append(nil, len(share))))
			return err
		})
	}

	var wg sync.WaitGroup
	for range work {
		wg.Go(func() {
			if err := worker(); err != nil {
				log.Print(err)
			}
		})
	}
	wg.Wait()
	for _, n := range server.Nodes() {
		if len(n.Data) > 0 && n.Path != "/jobs/count/ready" {
			fmt.Printf("%s = %s\n", n.Path, n.Data)
		}
	}
	// Output:
	// /count-apples = 6
	// /count-bread = 5
	// /count-cheese = 6
}

// Enter and Leave on their own, and what to do with the outcome.
func ExampleBarrier_Enter() {
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

	b, err := doublebarrier.New(client, "/jobs/nightly", 2)
	if err != nil {
		log.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			m, err := b.Enter(ctx)
			if err != nil {
				log.Fatal(err)
			}
			if m.Index() == 1 {
				_ = m.GiveUp(ctx, nil) // as if it had crashed
				return
			}
			err = m.Leave(ctx)
			var incomplete *doublebarrier.IncompleteError
			switch {
			case errors.As(err, &incomplete):
				fmt.Println("do the shares of", incomplete.Missing, "again")
			case err != nil:
				log.Fatal(err)
			}
		})
	}
	wg.Wait()

	// Output:
	// do the shares of [1] again
}

// Members that listen tell each other where, and then each what it has found.
func ExampleMember_Gather() {
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

	b, err := doublebarrier.New(client, "/jobs/sum", 3)
	if err != nil {
		log.Fatal(err)
	}
	work := func(address string) error {
		m, err := b.EnterWith(ctx, []byte(address))
		if err != nil {
			return err
		}
		addresses := m.Data()
		sum, err := compute(ctx, m, addresses)
		if err != nil {
			return err
		}
		sums, err := m.Gather(ctx, sum) // leaves; with an IncompleteError come the results there are
		if err != nil {
			return err
		}
		if m.Index() == 0 {
			fmt.Printf("%d addresses, sums %s\n", len(addresses), sums)
		}
		return nil
	}
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			if err := work(fmt.Sprintf("host%d:7000", i)); err != nil {
				log.Print(err)
			}
		})
	}
	wg.Wait()
	// Output:
	// 3 addresses, sums [0 1 2]
}

func compute(_ context.Context, m *doublebarrier.Member, _ [][]byte) ([]byte, error) {
	return fmt.Append(nil, m.Index()), nil
}

func ExampleWaitForNextRound() {
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

	// Six processes, two at a time.
	b, err := doublebarrier.New(client, "/jobs/pairs", 2, doublebarrier.WaitForNextRound())
	if err != nil {
		log.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	members := map[int64]int{}
	for range 6 {
		wg.Go(func() {
			err := b.Do(ctx, func(_ context.Context, m *doublebarrier.Member) error {
				mu.Lock()
				defer mu.Unlock()
				members[m.Round()]++
				return nil
			})
			if err != nil {
				log.Print(err)
			}
		})
	}
	wg.Wait()
	fmt.Println(members)
	// Output:
	// map[1:2 2:2 3:2]
}
