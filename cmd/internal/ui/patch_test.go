package ui

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// viewer applies patches as the page does.
type viewer struct {
	has  int
	seen map[string]any
}

func (v *viewer) ask(t *testing.T, s *sights) (bytes int) {
	t.Helper()
	data, whole := s.since(v.has)
	var got map[string]any
	require.NoError(t, json.Unmarshal(data, &got))
	v.has = s.version
	if whole {
		v.seen = got
		return len(data)
	}
	for name, value := range got {
		members, is := value.(map[string]any)
		has, was := v.seen[name].(map[string]any)
		if !is || !was {
			v.seen[name] = value
			continue
		}
		for key, value := range members {
			if has[key] = value; value == nil {
				delete(has, key)
			}
		}
	}
	return len(data)
}

func TestAViewerGetsWhatHasChangedAndHasAllOfIt(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 0))
	now := map[string]any{"list": []any{}, "of": map[string]any{}, "empty": map[string]any{}}
	var s sights
	viewers := []*viewer{{has: -1}, {has: -1}, {has: 1000}}
	for i := range 300 {
		recipes := now["of"].(map[string]any)
		for range r.IntN(5) {
			key := fmt.Sprint(r.IntN(50))
			recipes[key] = map[string]any{"n": float64(i), "deep": map[string]any{"x": "y"}}
			delete(recipes, fmt.Sprint(r.IntN(50)))
		}
		if r.IntN(3) == 0 {
			now["list"] = []any{float64(i)}
		}
		if i%100 == 99 { // a part of it goes, or comes
			if _, found := now["more"]; found {
				delete(now, "more")
			} else {
				now["more"] = map[string]any{"a": "b"}
			}
		}
		data, err := json.Marshal(now)
		require.NoError(t, err)
		s.take(data)
		for _, v := range viewers[:1+r.IntN(len(viewers))] {
			v.ask(t, &s)
			require.Equal(t, now, v.seen)
		}
	}
}

func TestAnUnchangedSightIsNotSentAgain(t *testing.T) {
	recipes := map[string]any{}
	for i := range 1000 {
		recipes[fmt.Sprint("/locks/", i)] = map[string]any{"owner": fmt.Sprint("owner ", i)}
	}
	var s sights
	take := func() {
		data, err := json.Marshal(map[string]any{"path": "/", "recipes": recipes})
		require.NoError(t, err)
		s.take(data)
	}
	v := &viewer{has: -1}
	take()
	require.Greater(t, v.ask(t, &s), 30_000)
	take()
	require.Equal(t, len("{}"), v.ask(t, &s))
	recipes["/locks/7"] = "another"
	delete(recipes, "/locks/8")
	take()
	require.Equal(t, len(`{"recipes":{"/locks/7":"another","/locks/8":null}}`), v.ask(t, &s))
}
