package proxy

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

// packet joins ints, longs, strings and single bytes as jute does.
func packet(parts ...any) (b []byte) {
	for _, part := range parts {
		switch v := part.(type) {
		case int:
			b = binary.BigEndian.AppendUint32(b, uint32(v))
		case int64:
			b = binary.BigEndian.AppendUint64(b, uint64(v))
		case byte:
			b = append(b, v)
		case string:
			b = append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
		}
	}
	return b
}

var (
	header = func(op int32, done byte) []byte { return packet(int(op), done, -1) }
	acl    = packet(1, 31, "world", "anyone")
)

func TestAPacketNamesTheNodesItIsAbout(t *testing.T) {
	multi := packet(7, int(OpMulti))
	for _, part := range [][]byte{
		header(OpCreateTTL, 0), packet("/ttl", "data"), acl, packet(5, int64(1000)),
		header(OpCreate, 0), packet("/created", "data"), acl, packet(0),
		header(OpSetData, 0), packet("/set", "data", -1),
		header(OpCheck, 0), packet("/checked", 3),
		header(-1, 1),
	} {
		multi = append(multi, part...)
	}
	for name, c := range map[string]struct {
		body  []byte
		op    int32
		paths []string
	}{
		"create": {packet(1, int(OpCreate), "/a", "data"), OpCreate, []string{"/a"}},
		"ping":   {packet(-2, int(OpPing)), OpPing, nil},
		"setWatches": {
			packet(-8, int(OpSetWatches), int64(9), 2, "/d1", "/d2", 0, 1, "/c"), OpSetWatches, []string{"/d1", "/d2", "/c"},
		},
		"multi": {multi, OpMulti, []string{"/ttl", "/created", "/set", "/checked"}},
	} {
		f := parseRequest(c.body)
		require.Equal(t, c.op, f.Op, name)
		require.Equal(t, c.paths, f.Paths, name)
	}
}

func TestAPathCoversWhatIsBelowItButNoNamesake(t *testing.T) {
	f := &Frame{Paths: []string{"/a/b", "/c"}}
	for path, want := range map[string]bool{
		"/a": true, "/a/b": true, "/c": true, "/": true, "/a/": false, "/a/b/c": false, "/b": false,
	} {
		require.Equal(t, want, f.about(path), path)
	}
}

func FuzzNoPacketBreaksTheParser(f *testing.F) {
	f.Add(packet(7, int(OpMulti), int(OpCreate), byte(0), -1, "/a", "data", 1<<30))
	f.Add(packet(-8, int(OpSetWatches), int64(9), 1<<30, "/d1"))
	f.Add(packet(1, int(OpCreate), 1<<30))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, body []byte) {
		request, reply := parseRequest(body), parseReply(body)
		total := 0
		for _, path := range append(request.Paths, reply.Paths...) {
			total += len(path)
		}
		require.LessOrEqual(t, total, 2*len(body), "paths come from the packet")
	})
}
