package crew

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"time"
)

// Tell writes a message to the parent, in one write: it arrives whole or not at
// all.
func Tell(out io.Writer, message any) {
	data, err := json.Marshal(message)
	if err != nil {
		panic(err) // messages are made of numbers and strings
	}
	_, _ = out.Write(append(data, '\n')) // if the parent is gone, so is this process soon
}

// Orders returns a context as UntilEOF does, and the lines that the parent
// says.
func Orders(parent context.Context, in io.Reader) (ctx context.Context, orders <-chan string, cancel context.CancelFunc) {
	ctx, cancel = context.WithCancel(parent)
	lines := make(chan string)
	go func() {
		defer cancel()
		for from := bufio.NewScanner(in); from.Scan(); {
			select {
			case lines <- from.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, lines, cancel
}

// UntilEOF returns a context that ends with in: when the parent says so, or is
// gone.
func UntilEOF(parent context.Context, in io.Reader) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	return ctx, cancel
}

// Rest lets time pass, until ctx ends.
func Rest(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
