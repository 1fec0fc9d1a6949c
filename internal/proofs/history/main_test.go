package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

const key = "/key"

// story is a history written by hand, in ms.
type story struct{ records []Record }

// op adds an operation and returns its ID.
func (s *story) op(client string, kind Kind, call, ret int, details ...Detail) int {
	r := Record{
		ID: len(s.records) + 1, Client: client, Key: key, Kind: kind, Outcome: OK,
		Call: time.Duration(call) * time.Millisecond, Return: time.Duration(ret) * time.Millisecond,
	}
	for _, d := range details {
		d(&r)
	}
	s.records = append(s.records, r)
	return r.ID
}

func ofID(id int) Detail       { return func(r *Record) { r.Of = id } }
func outcome(o Outcome) Detail { return func(r *Record) { r.Outcome = o } }

func (s *story) last() *Record { return &s.records[len(s.records)-1] }

// hold adds a grant with its end.
func (s *story) hold(client string, kind Kind, from, to int, end Kind, token int64) int {
	id := s.op(client, kind, from-1, from, Token(token))
	s.op(client, end, to, to+1, ofID(id))
	return id
}

// holds checks that a rule is content with a story, and violated catches a
// planted violation directly and, if the rule has a model, by the model too.
func holds(t *testing.T, rule Rule, s *story) {
	t.Helper()
	j := rule.Judge(s.records)
	require.Empty(t, j.Violations)
	require.Empty(t, j.pictures)
	require.Zero(t, j.Undecided)
}

func violated(t *testing.T, rule Rule, s *story, words string) {
	t.Helper()
	j := rule.Judge(s.records)
	require.NotEmpty(t, j.Violations)
	require.Contains(t, j.Violations[0].Text, words)
	require.NotEmpty(t, j.Violations[0].Records)
	if rule.parts != nil {
		require.NotEmpty(t, j.pictures, "the model allows it")
	}
}

// violatedDirectly is for what models do not cover.
func violatedDirectly(t *testing.T, rule Rule, s *story, words string) {
	t.Helper()
	rule.parts = nil
	violated(t, rule, s, words)
}
