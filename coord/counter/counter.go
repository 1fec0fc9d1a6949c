package counter

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"strconv"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/coord/value"
)

var (
	// ErrRange: the number does not fit: 32 bits, or 64 if it was made with
	// [Int64].
	ErrRange = errors.New("the number is out of range")
	// ErrNoNumber: the node has other data than a number of its dialect.
	ErrNoNumber = errors.New("the data are no number")
)

// Counter is a number at a path. It is configuration, not state, and safe for
// concurrent use.
type Counter struct {
	client *coord.Client
	path   string
	value  *value.Value
	text   bool
	bytes  int // of a number that is made
}

// Option sets something about a [Counter].
type Option func(*Counter) error

// Int64 makes a number that does not exist yet with 64 bits, for Curator's
// DistributedAtomicLong. The default is 32 bits, for its SharedCount. A number
// that exists stays as it is. In the Kazoo dialect all numbers have 64 bits.
func Int64() Option {
	return func(c *Counter) error {
		c.bytes = 8
		return nil
	}
}

// New returns the counter at path, which is 0 as long as it does not exist. It
// does no I/O. An invalid argument fails with [coord.ErrInvalid].
func New(client *coord.Client, path string, opts ...Option) (*Counter, error) {
	v, err := value.New(client, path)
	if err != nil {
		return nil, err
	}
	c := &Counter{client, path, v, client.Info().Dialect == coord.Kazoo, 4}
	if err := recipe.Configure(c, path, opts); err != nil {
		return nil, err
	}
	return c, nil
}

// Add adds to the number, once, and returns the sum.
func (c *Counter) Add(ctx context.Context, delta int64) (sum int64, err error) {
	err = c.value.Change(ctx, func(now value.State) ([]byte, error) {
		number, err := c.decode(now.Data)
		if err != nil {
			return nil, err
		}
		sum = number + delta
		if sum > number != (delta > 0) {
			return nil, c.failure("add", fmt.Errorf("%w: %d + %d", ErrRange, number, delta))
		}
		return c.encode("add", sum, now.Data)
	})
	if err != nil {
		return 0, c.failure("add", err)
	}
	return sum, nil
}

// Get reads the number. One request.
func (c *Counter) Get(ctx context.Context) (int64, error) {
	now, err := c.value.Get(ctx)
	if err != nil {
		return 0, err
	}
	return c.decode(now.Data)
}

// Set sets the number, whatever it is, or was: other data are replaced. It
// waits for nobody.
func (c *Counter) Set(ctx context.Context, number int64) error {
	var now value.State
	if !c.text { // it stays as wide as it is
		var err error
		if now, err = c.value.Get(ctx); err != nil {
			return c.failure("set", err)
		}
	}
	data, err := c.encode("set", number, now.Data)
	if err != nil {
		return err
	}
	return c.value.Set(ctx, data)
}

// Remove deletes the number, which then is 0; it fails with [ErrNoNumber] if
// the node has other data. See [value.Value.Remove].
func (c *Counter) Remove(ctx context.Context) error {
	if _, err := c.Get(ctx); err != nil {
		return c.failure("remove", err)
	}
	return c.value.Remove(ctx)
}

// Observe yields the number: now, and again at each change. Only the last pair
// has an error: ctx has ended, for instance. See [recipe.Observe].
func (c *Counter) Observe(ctx context.Context) iter.Seq2[int64, error] {
	return func(yield func(int64, error) bool) {
		for now, err := range c.value.Observe(ctx) {
			number := int64(0)
			if err == nil {
				number, err = c.decode(now.Data)
			}
			if !yield(number, err) || err != nil {
				return
			}
		}
	}
}

func (c *Counter) failure(op string, err error) error {
	return recipe.Failure(c.client, op, c.path, err)
}

// encode writes a number as wide as the one before.
func (c *Counter) encode(op string, number int64, before []byte) ([]byte, error) {
	bytes := c.bytes
	if len(before) == 4 || len(before) == 8 {
		bytes = len(before)
	}
	switch {
	case c.text:
		return strconv.AppendInt(nil, number, 10), nil
	case bytes == 8:
		return binary.BigEndian.AppendUint64(nil, uint64(number)), nil
	case number < math.MinInt32 || number > math.MaxInt32:
		return nil, c.failure(op, fmt.Errorf("%w: %d: the counter has 32 bits", ErrRange, number))
	}
	return binary.BigEndian.AppendUint32(nil, uint32(number)), nil
}

// decode reads a number. Kazoo leaves a node empty that it has just made.
func (c *Counter) decode(data []byte) (number int64, err error) {
	switch {
	case len(data) == 0:
		return 0, nil
	case c.text:
		if number, err = strconv.ParseInt(string(data), 10, 64); err == nil {
			return number, nil
		}
	case len(data) == 4:
		return int64(int32(binary.BigEndian.Uint32(data))), nil
	case len(data) == 8:
		return int64(binary.BigEndian.Uint64(data)), nil
	}
	return 0, c.failure("read", fmt.Errorf("%w: %.40q", ErrNoNumber, data))
}
