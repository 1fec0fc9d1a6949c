package zkembed_test

import (
	"fmt"
	"log"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkcoord/zkcoord/zkembed"
)

// connect is what a program does with any ZooKeeper server.
func connect(s *zkembed.Server) *zk.Conn {
	conn, _, err := zk.Connect([]string{s.ConnectString()}, 10*time.Second, zk.WithLogger(quiet{}))
	if err != nil {
		log.Fatal(err)
	}
	return conn
}

func Example() {
	server, err := zkembed.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	conn := connect(server)
	defer conn.Close()

	path, err := conn.Create("/job-", []byte("hello"), zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	fmt.Println(path, err)
	for _, n := range server.Nodes() {
		fmt.Printf("%s is %s and holds %q\n", n.Path, n.Kind, n.Data)
	}
	// Output:
	// /job-0000000000 <nil>
	// /job-0000000000 is ephemeral and holds "hello"
}

// A create whose reply gets lost: the client sees an error, the node is there.
func ExampleServer_Inject() {
	server, err := zkembed.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	conn := connect(server)
	defer conn.Close()

	fault := server.Inject(zkembed.Match{
		Ops: []zkembed.Op{zkembed.OpCreate}, PathPrefix: "/job", Times: 1,
	}, zkembed.LoseReply())
	_, err = conn.Create("/job", nil, 0, zk.WorldACL(zk.PermAll))
	fmt.Println("error:", err)
	fmt.Println("struck:", fault.Fired(), "nodes:", len(server.Nodes()))
	// Output:
	// error: zk: connection closed
	// struck: 1 nodes: 1
}

// A session that ends takes its ephemeral nodes along.
func ExampleServer_ExpireSession() {
	server, err := zkembed.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	conn := connect(server)
	defer conn.Close()

	_, err = conn.Create("/me", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	fmt.Println(err, len(server.Nodes()))
	err = server.ExpireSession(conn.SessionID())
	fmt.Println(err, len(server.Nodes()))
	// Output:
	// <nil> 1
	// <nil> 0
}

// How many requests a piece of code costs.
func ExampleServer_SessionCounts() {
	server, err := zkembed.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	conn := connect(server)
	defer conn.Close()
	if _, err := conn.Create("/a", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		log.Fatal(err)
	}

	before := server.SessionCounts(conn.SessionID())
	_, _, _ = conn.Get("/a")
	_, _ = conn.Set("/a", []byte("x"), -1)
	cost := server.SessionCounts(conn.SessionID()).Since(before)
	fmt.Println(cost.Total(), cost[zkembed.OpGetData], cost[zkembed.OpSetData])
	// Output: 2 1 1
}
