package coord

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAReaderThatTookAWritersPlaceStandsRightBehindIt(t *testing.T) {
	line := Line{Kinds: []string{"read", "write"}}
	order := line.Order([]string{
		"_c_0b1f7a3c98aa4a538d0b5f2f3d1c2e4a-__READ__0000000002",
		"_c_0b1f7a3c98aa4a538d0b5f2f3d1c2e4b-__READ__0000000001",
		"_c_0b1f7a3c98aa4a538d0b5f2f3d1c2e4c-__WRIT__0000000001",
	}, Curator)
	require.Equal(t, []string{"write", "read", "read"}, []string{order[0].Kind, order[1].Kind, order[2].Kind})
	require.EqualValues(t, 1, order[1].Sequence)
}

func TestALineWithoutKindsHasEveryKindOfItsDialect(t *testing.T) {
	names := []string{
		"_c_0b1f7a3c98aa4a538d0b5f2f3d1c2e4a-lock-0000000003", "_c_0b1f7a3c98aa4a538d0b5f2f3d1c2e4b-pair2-0000000002",
		"0b1f7a3c98aa4a538d0b5f2f3d1c2e4c__rlock__0000000001", "0b1f7a3c98aa4a538d0b5f2f3d1c2e4d__pair2__0000000000",
		"lock-0000000004", "_c_0b1f7a3c98aa4a538d0b5f2f3d1c2e4e--0000000005",
	}
	kinds := func(line []Contender) (kinds []string) {
		for _, c := range line {
			kinds = append(kinds, c.Kind)
		}
		return kinds
	}
	require.Equal(t, []string{"pair2", "lock"}, kinds(Line{}.Order(names, Curator)))
	require.Equal(t, []string{"pair2", "read"}, kinds(Line{}.Order(names, Kazoo)))
	require.Equal(t, []string{"lock"}, kinds(Line{Kinds: []string{"lock"}}.Order(names, Curator)))
}

func TestALineOfAnyDialectHasContendersOfBothAndMindsNoOther(t *testing.T) {
	line, foreign := Line{Kinds: []string{"pair2"}, AnyDialect: true}.parse([]string{
		"_c_0b1f7a3c98aa4a538d0b5f2f3d1c2e4b-pair2-0000000002",
		"0b1f7a3c98aa4a538d0b5f2f3d1c2e4d__pair2__0000000001",
		"_c_0b1f7a3c98aa4a538d0b5f2f3d1c2e4a-lock-0000000000",
	}, Curator)
	require.Empty(t, foreign)
	require.Len(t, line, 2)
	require.Equal(t, []Dialect{Kazoo, Curator}, []Dialect{line[0].Dialect, line[1].Dialect})
}
