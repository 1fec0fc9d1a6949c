package attend_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/attend"
	"github.com/zkcoord/zkcoord/zkembed"
)

// A program that acts under a hold of this process, and may outlive it, gets
// the connection to the attendant: the session is not closed while it runs.
func Example_program() {
	server, err := zkembed.Start()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	dir, err := os.MkdirTemp("", "attend")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "attend.sock") // of a host: attend.DefaultSocket
	l, err := attend.Listen(socket, 0o660)
	if err != nil {
		fmt.Println(err)
		return
	}
	serving, end := context.WithCancel(context.Background())
	defer end()
	served := make(chan error, 1)
	go func() { served <- attend.New(attend.Options{}).Serve(serving, l) }()

	connections := make(chan *os.File, 1)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, err := coord.Open(ctx, server.ConnectString(), coord.WithAttendant(socket, func(connection *os.File) {
		select {
		case connections <- connection:
		default: // of an attendant that was restarted: for programs that start from now on
			_ = connection.Close()
		}
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	connection := <-connections
	program := exec.CommandContext(ctx, "echo", "acts under the hold")
	program.ExtraFiles = []*os.File{connection}
	text, err := program.Output()
	fmt.Print(string(text))
	if err != nil {
		fmt.Println(err)
	}
	_, _ = connection.Close(), client.Close(ctx)
	end()
	fmt.Println(<-served)
	// Output:
	// acts under the hold
	// <nil>
}
