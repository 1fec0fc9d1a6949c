package lock_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"log"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/zkembed"
)

// home returns the ensemble that a lock lives on: the one whose name, hashed
// together with the lock's, gives the largest number.
func home(name string, ensembles []string) string {
	weight := func(ensemble string) []byte {
		sum := sha256.Sum256([]byte(ensemble + "\x00" + name))
		return sum[:]
	}
	return slices.MaxFunc(ensembles, func(a, b string) int { return bytes.Compare(weight(a), weight(b)) })
}

// Locks on several ensembles, each on the one that its name is hashed to. A
// client is opened for each ensemble, here one server each.
func Example_severalEnsembles() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	clients := map[string]*coord.Client{}
	ensembles := []string{"a", "b"}
	for _, ensemble := range ensembles {
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
		clients[ensemble] = client
	}

	for _, name := range []string{"/accounts/3", "/accounts/5", "/accounts/7"} {
		m, err := lock.New(clients[home(name, ensembles)], name)
		if err != nil {
			log.Fatal(err)
		}
		err = m.Do(ctx, func(context.Context, *coord.Hold) error {
			fmt.Println(name, "is held on", home(name, ensembles))
			return nil
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// /accounts/3 is held on b
	// /accounts/5 is held on a
	// /accounts/7 is held on a
}

func TestAnotherEnsembleTakesItsShareOfTheLocksAndMovesNoOther(t *testing.T) {
	const n = 10_000
	moved := 0
	for i := range n {
		name := fmt.Sprintf("/accounts/%d", i)
		before, after := home(name, []string{"a", "b", "c"}), home(name, []string{"a", "b", "c", "d"})
		if before != after {
			require.Equal(t, "d", after)
			moved++
		}
	}
	require.InDelta(t, n/4, moved, n/50)
}
