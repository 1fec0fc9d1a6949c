package coord

import (
	"cmp"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNamesAreReadInEitherDialect(t *testing.T) {
	const uuid, hex32 = "0b1f7a3c-98aa-4a53-8d0b-5f2f3d1c2e4a", "0b1f7a3c98aa4a538d0b5f2f3d1c2e4a"
	for name, want := range map[string]Contender{
		"_c_" + uuid + "-lock-0000000007":    {GUID: uuid, Kind: kindLock, Sequence: 7},
		"_c_" + hex32 + "-lock-0000000007":   {GUID: hex32, Kind: kindLock, Sequence: 7},
		"_c_" + uuid + "-__READ__0000000012": {GUID: uuid, Kind: kindRead, Sequence: 12},
		"_c_" + uuid + "-__WRIT__0000000012": {GUID: uuid, Kind: kindWrite, Sequence: 12},
		"_c_" + uuid + "-latch-2147483647":   {GUID: uuid, Kind: kindLatch, Sequence: 2147483647},
		"_c_" + uuid + "-lease-0000000000":   {GUID: uuid, Kind: kindLease, Sequence: 0},
		"_c_" + uuid + "-lock--2147483648":   {GUID: uuid, Kind: kindLock, Sequence: -2147483648},
		"_c_" + uuid + "-lock--000000001":    {GUID: uuid, Kind: kindLock, Sequence: -1},
		hex32 + "__lock__0000000003":         {GUID: hex32, Kind: kindLock, Sequence: 3, Dialect: Kazoo},
		hex32 + "__rlock__0000000003":        {GUID: hex32, Kind: kindRead, Sequence: 3, Dialect: Kazoo},
		"_c_" + uuid + "-custom-0000000001":  {GUID: uuid, Kind: "custom", Sequence: 1},
	} {
		want.Name, want.Dialect = name, cmp.Or(want.Dialect, Curator)
		got, ok := parseName(name, []string{"custom"})
		require.True(t, ok, name)
		require.Equal(t, want, got)
	}
}

func TestNamesOfNoKnownShapeAreIgnored(t *testing.T) {
	const uuid = "0b1f7a3c-98aa-4a53-8d0b-5f2f3d1c2e4a"
	for _, name := range []string{
		"", "_c_", "_c_short", "garbage", "lock-0000000001", "x-123-0000000001", "日本",
		"_c_" + uuid, "_c_" + uuid + "-", "_c_" + uuid + "-lock-", "_c_" + uuid + "-lock-123",
		"_c_" + uuid + "-lock-99999999999", "_c_" + uuid + "-lock-+000000001", "_c_" + uuid + "-lock-00000000x1",
		"_c_" + uuid + "-other-0000000001", "_c_zzzzzzzz-98aa-4a53-8d0b-5f2f3d1c2e4a-lock-0000000001",
		"0b1f7a3c98aa4a538d0b5f2f3d1c2e4a", "0b1f7a3c98aa4a538d0b5f2f3d1c2e4a__lock__1",
	} {
		_, ok := parseName(name, nil)
		require.False(t, ok, name)
	}
}

func TestADialectReadsWhatItWrites(t *testing.T) {
	for _, d := range []Dialect{Curator, Kazoo} {
		for _, k := range []string{kindLock, kindRead, kindLatch, kindLease, "custom"} {
			guid := d.newGUID()
			got, ok := parseName(d.prefix(guid, k)+"0000000042", []string{k})
			require.True(t, ok)
			require.Equal(t, guid, got.GUID)
			require.Equal(t, d, got.Dialect)
			require.EqualValues(t, 42, got.Sequence)
			require.Equal(t, d.marker(k), d.marker(got.Kind))
		}
	}
}

func TestAReaderThatTookAWritersPlaceStandsRightBehindIt(t *testing.T) {
	line := Line{Kinds: []string{kindRead, kindWrite}}
	order := line.Order([]string{
		"_c_0b1f7a3c98aa4a538d0b5f2f3d1c2e4a-__READ__0000000002",
		"_c_0b1f7a3c98aa4a538d0b5f2f3d1c2e4b-__READ__0000000001",
		"_c_0b1f7a3c98aa4a538d0b5f2f3d1c2e4c-__WRIT__0000000001",
	}, Curator)
	require.Equal(t, []string{kindWrite, kindRead, kindRead}, []string{order[0].Kind, order[1].Kind, order[2].Kind})
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
	require.Equal(t, []string{"pair2", kindLock}, kinds(Line{}.Order(names, Curator)))
	require.Equal(t, []string{"pair2", kindRead}, kinds(Line{}.Order(names, Kazoo)))
	require.Equal(t, []string{kindLock}, kinds(Line{Kinds: []string{kindLock}}.Order(names, Curator)))
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

func FuzzNamesAreReadOrNot(f *testing.F) {
	f.Add("_c_0b1f7a3c98aa4a538d0b5f2f3d1c2e4a-lock-0000000001")
	f.Add("_c_short")
	f.Fuzz(func(t *testing.T, name string) {
		for _, parse := range []func(string, []string) (Contender, bool){parseName, parseOf} {
			if c, ok := parse(name, nil); ok && (c.Name != name || c.Kind == "") {
				t.Fatal(c)
			}
		}
	})
}
