package zktest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAFolderWithoutZooKeeperIsNamed(t *testing.T) {
	folder := t.TempDir()
	_, err := findJars(folder)
	require.ErrorContains(t, err, folder+"/zookeeper-jute.jar")
	require.ErrorContains(t, err, "make zookeeper")

	_, err = findJars("artefacts/zookeeper")
	require.ErrorContains(t, err, "absolute")
}
