package fence_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord/fence"
)

// place is a file that is written by renaming others into its place.
type place struct {
	*testing.T
	dir, path string
}

func newPlace(t *testing.T) place {
	dir := t.TempDir()
	return place{t, dir, filepath.Join(dir, "report")}
}

// write writes a file of its own, and renames it.
func (p place) write(ctx context.Context, content string, token int64) error {
	f, err := os.CreateTemp(p.dir, "new-*")
	require.NoError(p, err)
	_, err = f.WriteString(content)
	require.NoError(p, err)
	require.NoError(p, f.Close())
	return fence.Rename(ctx, f.Name(), p.path, token)
}

func (p place) content() string {
	p.Helper()
	content, err := os.ReadFile(p.path)
	require.NoError(p, err)
	return string(content)
}

func TestAFileIsReplacedOnlyWithATokenThatIsNotOlder(t *testing.T) {
	p := newPlace(t)
	require.NoError(t, p.write(t.Context(), "first", 41))
	require.NoError(t, p.write(t.Context(), "again", 41))
	require.NoError(t, p.write(t.Context(), "second", 42))
	require.ErrorIs(t, p.write(t.Context(), "late", 41), fence.ErrStale)
	require.Equal(t, "second", p.content())
	require.Error(t, p.write(t.Context(), "none", 0))
	require.Equal(t, "second", p.content())

	late, err := filepath.Glob(filepath.Join(p.dir, "new-*"))
	require.NoError(t, err)
	require.Len(t, late, 2, "what was refused is where it was")
}

// The token is on disk before the rename: a rename that fails after that has
// shut out older tokens.
func TestAFailedRenameLetsNoOlderTokenIn(t *testing.T) {
	p := newPlace(t)
	require.NoError(t, p.write(t.Context(), "first", 41))
	aside := filepath.Join(p.dir, "directory")
	require.NoError(t, os.Mkdir(aside, 0o700))
	require.Error(t, fence.Rename(t.Context(), aside, p.path, 42), "a directory in the place of a file")
	require.ErrorIs(t, p.write(t.Context(), "late", 41), fence.ErrStale)
	require.NoError(t, p.write(t.Context(), "second", 42))
	require.Equal(t, "second", p.content())
}

func TestAFileWhoseTokenCannotBeReadIsNotReplaced(t *testing.T) {
	for _, text := range []string{
		"x", "42", strings.Repeat("0", 20) + "\n", "-0000000000000000041\n", strings.Repeat("9", 20) + "\n",
		strings.Repeat("1", 30),
	} {
		p := newPlace(t)
		require.NoError(t, p.write(t.Context(), "first", 41))
		require.NoError(t, os.WriteFile(p.path+".fence", []byte(text), 0o600))
		require.ErrorContains(t, p.write(t.Context(), "second", 42), "remove it when", text)
		require.Equal(t, "first", p.content())
	}
}

// Writers come in any order: at the end, the newest one's file is in place, and
// until then the tokens in place never fall.
func TestWritersOfOneFileTakeTurns(t *testing.T) {
	p := newPlace(t)
	const writers, each = 8, 10
	var wg sync.WaitGroup
	seen := make([][]string, writers)
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				token := int64(1 + i*writers + (w*5)%writers)
				err := p.write(t.Context(), fmt.Sprintf("%04d", token), token)
				if err != nil && !strings.Contains(err.Error(), fence.ErrStale.Error()) {
					t.Errorf("token %d: %v", token, err)
				}
				seen[w] = append(seen[w], p.content())
			}
		})
	}
	wg.Wait()
	require.Equal(t, fmt.Sprintf("%04d", writers*each), p.content())
	for _, contents := range seen {
		require.IsNonDecreasing(t, contents)
	}
}

// The token's first write may have failed before it was on disk.
func TestAKnownTokenIsWrittenToDiskAgain(t *testing.T) {
	p := newPlace(t)
	require.NoError(t, p.write(t.Context(), "first", 41))
	long := time.Unix(0, 0)
	require.NoError(t, os.Chtimes(p.path+".fence", long, long))
	require.NoError(t, p.write(t.Context(), "again", 41))
	info, err := os.Stat(p.path + ".fence")
	require.NoError(t, err)
	require.NotEqual(t, long.Unix(), info.ModTime().Unix())
}

// A name may be as long as a file's name, which has a suffix, too.
func TestAStoreOfFilesTakesEachNameThatIsValid(t *testing.T) {
	store := fence.Dir(t.TempDir())
	token := int64(41)
	for _, name := range []string{
		"a", strings.Repeat("a", 249), strings.Repeat("a", 250), strings.Repeat("a", 255), strings.Repeat("b", 255),
		strings.Repeat("ä/", 85),
	} {
		token++
		require.NoError(t, store.Raise(t.Context(), name, token))
		require.ErrorIs(t, store.Raise(t.Context(), name, token-1), fence.ErrStale)
		newest, err := store.Newest(t.Context(), name)
		require.NoError(t, err)
		require.Equal(t, token, newest)
		require.NoError(t, store.Forget(t.Context(), name))
	}
	require.Error(t, store.Raise(t.Context(), strings.Repeat("a", 256), token))
}
