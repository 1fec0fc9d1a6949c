package zktest

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { Main(m) }

func TestTheSwitchDecidesWhatRunsWhatIsSkippedAndWhatFails(t *testing.T) {
	const run, skip, fail = "run", "skip", "fail"
	absent := errors.New("no java")
	for _, c := range []struct {
		choice        string
		ci            bool
		missing       error
		embeddedWants string
		realWants     string
	}{
		{"", false, nil, run, run},
		{"", false, absent, run, skip},
		{"", true, absent, run, fail},
		{"embedded", true, absent, run, skip},
		{"embedded", false, nil, run, skip},
		{"real", false, nil, skip, run},
		{"real", false, absent, skip, fail},
		{"all", true, nil, run, run},
		{"all", false, absent, run, fail},
		{"sometimes", false, nil, fail, fail},
	} {
		for backend, want := range map[Backend]string{Embedded: c.embeddedWants, Real: c.realWants, Ensemble: c.realWants} {
			reason, err := decide(backend, c.choice, c.ci, c.missing)
			got := run
			if err != nil {
				got = fail
			} else if reason != "" {
				got = skip
			}
			require.Equal(t, want, got, "%v with %+v: %v %v", backend, c, reason, err)
		}
	}
}

func TestWhatIsLeftOutIsNamed(t *testing.T) {
	reason, err := decide(Real, "", false, errors.New("no java command found"))
	require.NoError(t, err)
	require.Contains(t, reason, "no java command found")
	_, err = decide(Embedded, "sometimes", false, nil)
	require.ErrorContains(t, err, `ZKTEST_SERVERS="sometimes"`)
}

func TestAFolderWithoutZooKeeperIsNamed(t *testing.T) {
	folder := t.TempDir()
	_, err := findJars(folder)
	require.ErrorContains(t, err, folder+"/zookeeper-jute.jar")
	require.ErrorContains(t, err, "make zookeeper")

	_, err = findJars("artefacts/zookeeper")
	require.ErrorContains(t, err, "absolute")
}
