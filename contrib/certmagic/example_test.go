package certmagic_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/caddyserver/certmagic"

	zkcertmagic "github.com/zkcoord/zkcoord/contrib/certmagic"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/zkembed"
)

// Every host does this.
func Example() {
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

	shared, err := os.MkdirTemp("", "certificates") // on all hosts the same: NFS, say
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(shared)
	locker, err := zkcertmagic.New(client, "/locks/certificates")
	if err != nil {
		log.Fatal(err)
	}
	certmagic.Default.Storage = locker.Storage(&certmagic.FileStorage{Path: shared})
	// certmagic.HTTPS([]string{"example.com"}, handler) takes its locks there.

	fmt.Println(certmagic.Default.Storage.Lock(ctx, "issue_cert_example.com"))
	fmt.Println(certmagic.Default.Storage.Unlock(ctx, "issue_cert_example.com"))
	// Output:
	// <nil>
	// <nil>
}
