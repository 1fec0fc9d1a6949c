//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/see"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// section is a part of the command's document.
func section(t *testing.T, title string) string {
	t.Helper()
	text := string(cmdtest.Must(os.ReadFile("../../../docs/command.md")))
	_, text, found := strings.Cut(text, "\n## "+title+"\n")
	require.True(t, found, title)
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// fieldsOf are the fields of an object in JSON, and of those within it; some
// may be left out of it.
func fieldsOf(object reflect.Type, within bool) (always, perhaps []string) {
	for object.Kind() == reflect.Slice || object.Kind() == reflect.Pointer {
		object = object.Elem()
	}
	if object.Kind() != reflect.Struct {
		return nil, nil
	}
	for i := range object.NumField() {
		f := object.Field(i)
		if !f.IsExported() && !f.Anonymous {
			continue
		}
		if name, omit, _ := strings.Cut(f.Tag.Get("json"), ","); omit != "" {
			perhaps = append(perhaps, name)
		} else if name != "" {
			always = append(always, name)
		}
		if within || f.Anonymous {
			a, p := fieldsOf(f.Type, within)
			always, perhaps = append(always, a...), append(perhaps, p...)
		}
	}
	return always, perhaps
}

var (
	quoted  = regexp.MustCompile(`(\S?)\s*"([a-z0-9_]+)"`)
	inWords = regexp.MustCompile("`([a-z0-9_]+)`")
)

// keys are the keys of objects in a text, of which values may be left out.
func keys(text string) (found []string) {
	for _, match := range quoted.FindAllStringSubmatch(text, -1) {
		if match[1] != ":" { // which comes before a value
			found = append(found, match[2])
		}
	}
	return found
}

func TestTheDocumentTellsEveryFieldOfTheJSONAndNoOther(t *testing.T) {
	t.Parallel()
	inspect, list, doctor := section(t, "inspect, top"), section(t, "ls, graph"), section(t, "doctor")
	object := regexp.MustCompile("it\\s+is\\s+one\\s+object:\\s+`({.*})`")
	lists := object.FindAllString(list, -1)
	require.Len(t, lists, 2, "of ls, and of graph")
	part := func(name string) string {
		found := regexp.MustCompile("`\"" + name + "\": ({.*})`").FindStringSubmatch(inspect)
		require.NotNil(t, found, name)
		return found[1]
	}
	line := regexp.MustCompile("(?s)```json\n(.*?)```").FindString(inspect)
	for name, c := range map[string]struct {
		objects []any
		within  bool
		told    string
		words   string
	}{
		"inspect": {[]any{look.Report{}, look.Contender{}}, false, line, inspect},
		"round":   {[]any{look.RoundReport{}}, true, part("round"), inspect},
		"queue":   {[]any{look.QueueReport{}}, true, part("queue"), inspect},
		"closed":  {[]any{look.Closing{}}, true, part("closed"), inspect},
		"ls":      {[]any{see.Listing{}}, true, lists[0], list},
		"graph":   {[]any{see.WaitGraph{}}, true, lists[1], list},
		"doctor":  {[]any{see.Diagnosis{}}, true, object.FindString(doctor), doctor},
	} {
		fields, described := map[string]bool{}, map[string]bool{}
		for _, key := range keys(c.told) {
			described[key] = true
		}
		for _, o := range c.objects {
			always, perhaps := fieldsOf(reflect.TypeOf(o), c.within)
			for _, field := range always {
				fields[field] = true
			}
			for _, field := range perhaps { // may be told in words
				fields[field] = true
				if inWords := inWords.FindAllString(c.words, -1); slices.Contains(inWords, "`"+field+"`") || strings.Contains(c.words, "`\""+field+"\":") {
					described[field] = true
				}
			}
		}
		require.Equal(t, slices.Sorted(maps.Keys(fields)), slices.Sorted(maps.Keys(described)), name)
	}
}

func TestTheDocumentTellsEveryStateOfAContender(t *testing.T) {
	t.Parallel()
	text := section(t, "inspect, top")
	made := map[string]bool{}
	for _, file := range []string{"inspect.go", "inspect_rounds.go", "inspect_queue.go"} {
		for _, match := range regexp.MustCompile(`State(?:: | = )"([a-z]+)"`).FindAllStringSubmatch(string(cmdtest.Must(os.ReadFile("../look/"+file))), -1) {
			made[match[1]] = true
			require.Contains(t, text, "`"+match[1]+"`")
		}
	}
	require.Len(t, made, 6)
}

func TestTheDocumentTellsEveryMetricAndNoOther(t *testing.T) {
	t.Parallel()
	var made, told []string
	for _, match := range regexp.MustCompile(`(?:metric|ofRecipe)\("([a-z_]+)"`).FindAllStringSubmatch(string(cmdtest.Must(os.ReadFile("../see/exporter.go"))), -1) {
		made = append(made, match[1])
	}
	for _, match := range regexp.MustCompile("`(?:zkcoord_path)?_([a-z_]+)`").FindAllStringSubmatch(section(t, "exporter"), -1) {
		told = append(told, match[1])
	}
	require.ElementsMatch(t, made, told)
	w := zktest.New(t, zktest.Embedded)
	object := cmdtest.Parse[map[string]string](t, cmdtest.On(t, w, "--json", "exporter", "--listen", "127.0.0.1:0", "/").Line())
	require.Equal(t, []string{"metrics"}, slices.Collect(maps.Keys(object)))
	require.Contains(t, section(t, "JSON"), "| `exporter` | `metrics` |")
}

func TestExitStatusesOfVerbsThatLook(t *testing.T) {
	w := cmdtest.World(t)
	cmdtest.Contend(t, w, cmdtest.Below(w), nil)
	secret := w.Path("secret")
	_, err := w.Admin().Create(secret, nil, 0, zk.DigestACL(zk.PermAll, "user", "password"))
	require.NoError(t, err)
	for verb, status := range map[string]int{
		"inspect " + secret: term.ExitFailed, "top " + secret: term.ExitFailed, // refused
		"ls " + secret: term.ExitOK, "graph " + secret: term.ExitOK, // which tell so
		"doctor " + secret: term.ExitFailed, // to whom that is wrong
		"inspect":          term.ExitUsage, "top l": term.ExitUsage, "ls l": term.ExitUsage, "graph --most 0": term.ExitUsage, "doctor l": term.ExitUsage, "exporter l": term.ExitUsage,
		"exporter --listen " + strings.Split(w.ConnectString(), "/")[0] + " /": term.ExitFailed, // taken
	} {
		require.Equal(t, status, cmdtest.On(t, w, strings.Fields(verb)...).Exit(), verb)
	}
}
