package recipe_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
)

func methods[T any]() (names []string) {
	of := reflect.TypeFor[T]()
	for i := range of.NumMethod() {
		names = append(names, of.Method(i).Name)
	}
	return names
}

// What only the author of a recipe needs is a function of this package.
func TestAUserMeetsNoMethodOfAnAuthor(t *testing.T) {
	require.Equal(t, strings.Fields("Children Close Create Delete EnsureDir Exists Get Info Set Synced Txn Wait"),
		methods[*coord.Client]())
	require.Equal(t, strings.Fields("Abandon Context Deadline Done Err Node Release Revoked Session Token Txn"),
		methods[*coord.Hold]())
}
