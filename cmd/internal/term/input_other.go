//go:build !linux

package term

import (
	"os"

	"github.com/zkcoord/zkcoord/coord/queue"
)

// NewInput makes a file without a name, and reserves the space of the largest
// item.
func NewInput() (*os.File, error) {
	file, err := os.CreateTemp("", "zkcoord-item-")
	if err != nil {
		return nil, err
	}
	err = os.Remove(file.Name())
	if err == nil {
		_, err = file.Write(make([]byte, queue.MaxSize))
	}
	if err == nil {
		_, err = file.Seek(0, 0)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}
