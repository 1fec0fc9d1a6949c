package fence

import (
	"context"
	"fmt"
	"sync"
)

// Store keeps the newest token of each name. [Memory], [Dir] and [SQL.Store]
// make one. Its methods may be called by many at the same time.
type Store interface {
	// Raise makes the token the newest of the name; the same one again changes
	// nothing. It fails with [ErrStale] if the newest one is larger. When it
	// returns nil, the token is kept for good.
	Raise(ctx context.Context, name string, token int64) error

	// Newest returns the newest token of the name, or 0 if there is none.
	Newest(ctx context.Context, name string) (int64, error)

	// Forget removes the name: the next token is accepted, whatever it is. Call
	// it when no former holder of the name is left.
	Forget(ctx context.Context, name string) error
}

// Memory returns a store that lives as long as the process. It is for tests,
// and for what lives no longer itself: after a restart every token is accepted.
func Memory() Store { return &memory{newest: map[string]int64{}} }

type memory struct {
	mu     sync.Mutex
	newest map[string]int64
}

func (m *memory) Raise(ctx context.Context, name string, token int64) error {
	if err := valid(name, token); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := accepts(name, m.newest[name], token); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("fence %s: %w", name, context.Cause(ctx))
	}
	m.newest[name] = token
	return nil
}

func (m *memory) Newest(_ context.Context, name string) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.newest[name], validName(name)
}

func (m *memory) Forget(_ context.Context, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.newest, name)
	return validName(name)
}
