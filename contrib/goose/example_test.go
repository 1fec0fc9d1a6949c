package goose_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"testing/fstest"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	zkgoose "github.com/zkcoord/zkcoord/contrib/goose"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/zkembed"
)

// Every replica does this when it starts.
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

	db, err := sql.Open("sqlite3", "file:example?mode=memory&cache=shared")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	locker, err := zkgoose.New(client, "/locks/migrations")
	if err != nil {
		log.Fatal(err)
	}
	migrations := fstest.MapFS{"1_people.sql": {Data: []byte("-- +goose Up\nCREATE TABLE people (name TEXT);")}}
	provider, err := goose.NewProvider(database.DialectSQLite3, db, migrations, goose.WithLocker(locker))
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		made, err := provider.Up(ctx)
		fmt.Println(len(made), err)
	}
	// Output:
	// 1 <nil>
	// 0 <nil>
}
