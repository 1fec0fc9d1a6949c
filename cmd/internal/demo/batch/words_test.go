package batch

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheFilesOfARepositoryAreItsTexts(t *testing.T) {
	dir := t.TempDir()
	for name, data := range map[string]string{
		"go.mod": "module m\n", "below/text": "words", ".hidden": "words", ".below/text": "words", "empty": "",
		"zero": "a\x00b", "other": "caf\xe9", "largest": strings.Repeat("x", largestFile), "larger": strings.Repeat("x", largestFile+1),
	} {
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(data), 0o600))
	}
	t.Chdir(filepath.Join(dir, "below"))
	files, err := OwnFiles()
	require.NoError(t, err)
	for i := range files {
		files[i], err = filepath.Rel(dir, files[i])
		require.NoError(t, err)
	}
	require.ElementsMatch(t, []string{"go.mod", "below/text", "largest"}, files)
}

func TestWordsAreCountedAsWcDoes(t *testing.T) {
	if _, err := exec.LookPath("wc"); err != nil {
		t.Skip("there is no wc here")
	}
	var files []string
	for i, text := range []string{"one", "", "one two\nthree\tfour\n", "ünï cödé — 42", strings.Repeat("a b ", 1000)} {
		files = append(files, filepath.Join(t.TempDir(), "file "+strconv.Itoa(i)))
		require.NoError(t, os.WriteFile(files[i], []byte(text), 0o600))
	}
	own, err := OwnFiles()
	require.NoError(t, err)
	require.NotEmpty(t, own)
	for _, file := range append(files, own[:min(len(own), 100)]...) {
		cmd := exec.Command("wc", "-w", file)
		cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
		out, err := cmd.Output()
		require.NoError(t, err)
		want, err := strconv.Atoi(strings.Fields(string(out))[0])
		require.NoError(t, err)
		got, err := CountWords(file)
		require.NoError(t, err)
		require.Equal(t, want, got, file)
	}
}

// zkcoord demo batch > file, in the folder whose files are counted.
func TestTheFileThatTheProgramWritesIsNotCounted(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "text"), []byte("words"), 0o600))
	output, err := os.Create(filepath.Join(dir, "output"))
	require.NoError(t, err)
	stdout := os.Stdout
	os.Stdout = output
	t.Cleanup(func() {
		os.Stdout = stdout
		require.NoError(t, output.Close())
	})
	_, err = output.WriteString("so far")
	require.NoError(t, err)
	t.Chdir(dir)
	files, err := OwnFiles()
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(dir, "text")}, files)
}
