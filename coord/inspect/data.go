package inspect

import (
	"fmt"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/internal/dialect"
)

// CheckData fails with [coord.ErrInvalid] if the data of a claim would be read
// as something else: as a request to give up, or as a line that this module
// adds ([OwnData]).
func CheckData(data []byte) error {
	switch {
	case dialect.IsRequest(data):
		return fmt.Errorf("%w: the data %.40q mean a request to give up", coord.ErrInvalid, data)
	case len(dialect.Own(data)) < len(data):
		return fmt.Errorf(
			"%w: the data have a line that begins with COORD, which stands for a priority or for the holds around a claim",
			coord.ErrInvalid)
	}
	return nil
}

// NamesOwner reports whether data begin with a [coord.Info.Identity].
func NamesOwner(data []byte) bool { return dialect.NamesOwner(data) }

// OwnData returns the data that a claim was made with, also where they stand
// behind a request to give up. Nil: the request took their place. The line that
// names the holds around the claim ([Contender.Under]) is no part of them, and
// neither is another that [Note] added.
func OwnData(data []byte) []byte { return dialect.Own(data) }

// Note returns the data with a further line, "COORD-<key>=<value>", for those
// who know the key: [Noted] reads it. Curator and Kazoo take it for data.
func Note(data []byte, key, value string) []byte { return dialect.Note(data, key, value) }

// Noted returns the value that [Note] added under a key.
func Noted(data []byte, key string) (value string, found bool) { return dialect.Noted(data, key) }

// IsOurs reports whether a claim was made by this module: its GUID is a UUID of
// version 8, where Curator's and Kazoo's are of version 4.
func IsOurs(c coord.Contender) bool { return dialect.IsOurs(c.GUID) }
