package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/fence"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/zkembed"
)

// A transaction of the holder.
func ExampleSQL_Guard() {
	write := func(ctx context.Context, db *sql.DB, hold *coord.Hold, body string) error {
		table, err := fence.NewSQL(fence.PostgreSQL, "fence") // made by table.Schema()
		if err != nil {
			return err
		}
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := table.Guard(ctx, tx, "report", hold.Token()); err != nil {
			return err // fence.ErrStale: another holds, and has written
		}
		if _, err := tx.ExecContext(ctx, "UPDATE report SET body = $1", body); err != nil {
			return err
		}
		return tx.Commit()
	}
	_ = write
}

// A server refuses the requests of a former holder.
func ExampleNewHandler() {
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
	m, err := lock.New(client, "/locks/report")
	if err != nil {
		log.Fatal(err)
	}

	report := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNoContent) })
	name := func(r *http.Request) string { return r.URL.Path }
	h, err := fence.NewHandler(fence.Memory(), name, report) // in production, fence.Dir or a table
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(h)
	defer server.Close()

	var tokens []int64
	for range 2 {
		err := m.Do(ctx, func(ctx context.Context, hold *coord.Hold) error {
			tokens = append(tokens, hold.Token())
			web := &http.Client{Transport: fence.NewTransport(hold, nil)}
			reply, err := web.Post(server.URL+"/report", "text/plain", strings.NewReader("all is well"))
			if err != nil {
				return err
			}
			fmt.Println("the holder:", reply.Status)
			return reply.Body.Close()
		})
		if err != nil {
			log.Fatal(err)
		}
	}

	late, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/report", nil)
	if err != nil {
		log.Fatal(err)
	}
	late.Header.Set(fence.Header, fmt.Sprint(tokens[0])) // as the first holder has sent it
	reply, err := http.DefaultClient.Do(late)
	if err != nil {
		log.Fatal(err)
	}
	defer reply.Body.Close()
	fmt.Println("a former one:", reply.Status)
	// Output:
	// the holder: 204 No Content
	// the holder: 204 No Content
	// a former one: 412 Precondition Failed
}

// A file shows that it is fenced, and that it is not.
func ExampleCheck() {
	dir, err := os.MkdirTemp("", "fence")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file, draft := filepath.Join(dir, "probe"), filepath.Join(dir, "draft")
	token := int64(42) // in production, that of a hold
	for _, rename := range []func(ctx context.Context, token int64) error{
		func(ctx context.Context, token int64) error { return fence.Rename(ctx, draft, file, token) },
		func(context.Context, int64) error { return os.Rename(draft, file) },
	} {
		err := fence.Check(context.Background(), token, func(ctx context.Context, token int64) error {
			if err := os.WriteFile(draft, []byte("x"), 0o600); err != nil {
				return err
			}
			return rename(ctx, token)
		})
		fmt.Println("not fenced:", errors.Is(err, fence.ErrUnfenced))
	}
	// Output:
	// not fenced: false
	// not fenced: true
}
