package coordtest

import (
	"context"
	"log"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/zkembed"
)

// Connect opens an example's client on a server of its own. In production it is
// coord.Open(ctx, "zk1:2181,zk2:2181,zk3:2181/app").
func Connect(ctx context.Context) (client *coord.Client, stop func()) {
	srv, err := zkembed.Start()
	if err != nil {
		log.Fatal(err)
	}
	client, err = coord.Open(ctx, srv.ConnectString())
	if err != nil {
		log.Fatal(err)
	}
	return client, func() {
		_ = client.Close(context.Background())
		_ = srv.Close()
	}
}
