package crew

import (
	"context"
	"encoding/json"
	"io"
)

// Tell writes a message to the parent. One write: what arrives has arrived whole.
func Tell(out io.Writer, message any) {
	data, err := json.Marshal(message)
	if err != nil {
		panic(err) // messages are made of numbers and strings
	}
	_, _ = out.Write(append(data, '\n')) // if the parent is gone, so is this process soon
}

// UntilEOF returns a context that ends with in: when the parent says so, or is gone.
func UntilEOF(parent context.Context, in io.Reader) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	return ctx, cancel
}
