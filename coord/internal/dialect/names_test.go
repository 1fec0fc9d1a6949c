package dialect

import (
	"cmp"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNamesAreReadInEitherDialect(t *testing.T) {
	const uuid, hex32 = "0b1f7a3c-98aa-4a53-8d0b-5f2f3d1c2e4a", "0b1f7a3c98aa4a538d0b5f2f3d1c2e4a"
	for name, want := range map[string]Name{
		"_c_" + uuid + "-lock-0000000007":    {GUID: uuid, Kind: Lock, Sequence: 7},
		"_c_" + hex32 + "-lock-0000000007":   {GUID: hex32, Kind: Lock, Sequence: 7},
		"_c_" + uuid + "-__READ__0000000012": {GUID: uuid, Kind: Read, Sequence: 12},
		"_c_" + uuid + "-__WRIT__0000000012": {GUID: uuid, Kind: Write, Sequence: 12},
		"_c_" + uuid + "-latch-2147483647":   {GUID: uuid, Kind: Latch, Sequence: 2147483647},
		"_c_" + uuid + "-lease-0000000000":   {GUID: uuid, Kind: Lease, Sequence: 0},
		"_c_" + uuid + "-lock--2147483648":   {GUID: uuid, Kind: Lock, Sequence: -2147483648},
		"_c_" + uuid + "-lock--000000001":    {GUID: uuid, Kind: Lock, Sequence: -1},
		hex32 + "__lock__0000000003":         {GUID: hex32, Kind: Lock, Sequence: 3, Dialect: Kazoo},
		hex32 + "__rlock__0000000003":        {GUID: hex32, Kind: Read, Sequence: 3, Dialect: Kazoo},
		"_c_" + uuid + "-custom-0000000001":  {GUID: uuid, Kind: "custom", Sequence: 1},
	} {
		want.Name, want.Dialect = name, cmp.Or(want.Dialect, Curator)
		got, ok := parse(name, []string{"custom"})
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
		_, ok := parse(name, nil)
		require.False(t, ok, name)
	}
}

func TestANameThatEndsInASequenceNumberIsAContendersOfAnUnknownRecipe(t *testing.T) {
	const uuid, hex32 = "0b1f7a3c-98aa-4a53-8d0b-5f2f3d1c2e4a", "0b1f7a3c98aa4a538d0b5f2f3d1c2e4a"
	for name, sequence := range map[string]int32{
		"0000000003": 3, "x-123-0000000001": 1, "n_0000000002": 2, "lock-0000000001": 1, "guid-n_0000000004": 4,
		"zlock#" + uuid + "#0000000005": 5, "72057594-host:8983_solr-n_0000000006": 6,
		"_c_" + uuid + "-n_0000000007": 7, "_c_" + uuid + "-other-0000000008": 8, "test1_lock_0000000009": 9,
		hex32 + "0000000010": 10, "x-2147483647": math.MaxInt32, "日本0000000001": 1,
		"-2147483648": math.MinInt32, "lock--2147483648": math.MinInt32, "n_-1000000000": -1000000000,
	} {
		got, ok := ParseUnknown(name)
		require.True(t, ok, name)
		require.Equal(t, Name{Name: name, Sequence: sequence, Dialect: Unknown}, got)
		_, known := parse(name, nil)
		require.False(t, known, name)
	}
	for _, name := range []string{
		"", "123456789", "holder", "lock-", "x-9999999999", "x-000000000a", "0000000001-x", "x-00000000٣",
		"0b1f7a3c-98aa-4a53-8d0b-5f0123456789", "_c_0b1f7a3c-98aa-4a53-8d0b-5f0123456789",
		"0b1f7a3c98aa4a538d0b5f0123456789", "_c_0b1f7a3c98aa4a538d0b5f0123456789",
	} {
		_, ok := ParseUnknown(name)
		require.False(t, ok, name)
	}
}

func TestADialectReadsWhatItWrites(t *testing.T) {
	for _, d := range []Dialect{Curator, Kazoo} {
		for _, k := range []string{Lock, Read, Latch, Lease, "custom"} {
			guid := GUID(d)
			got, ok := Parse(Prefix(d, guid, k)+"0000000042", []string{k})
			require.True(t, ok)
			require.Equal(t, guid, got.GUID)
			require.Equal(t, d, got.Dialect)
			require.EqualValues(t, 42, got.Sequence)
			require.Equal(t, d.marker(k), d.marker(got.Kind))
		}
	}
}

func FuzzNamesAreReadOrNot(f *testing.F) {
	f.Add("_c_0b1f7a3c98aa4a538d0b5f2f3d1c2e4a-lock-0000000001")
	f.Add("_c_short")
	f.Fuzz(func(t *testing.T, name string) {
		for _, read := range []func(string, []string) (Name, bool){parse, Parse} {
			if c, ok := read(name, nil); ok && (c.Name != name || c.Kind == "") {
				t.Fatal(c)
			}
		}
	})
}
