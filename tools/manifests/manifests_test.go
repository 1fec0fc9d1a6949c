package manifests

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

var block = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// decode reads a manifest by the type that it says it is of. A field that the
// type does not have is an error.
func decode(t *testing.T, manifest string) (name string, selector, labels map[string]string) {
	t.Helper()
	var kind struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(manifest), &kind))
	switch kind.APIVersion + " " + kind.Kind {
	case "apps/v1 Deployment":
		var d appsv1.Deployment
		require.NoError(t, yaml.UnmarshalStrict([]byte(manifest), &d))
		validate(t, d.Spec.Template.Spec)
		return d.Name, d.Spec.Selector.MatchLabels, d.Spec.Template.Labels
	case "apps/v1 DaemonSet":
		var d appsv1.DaemonSet
		require.NoError(t, yaml.UnmarshalStrict([]byte(manifest), &d))
		validate(t, d.Spec.Template.Spec)
		return d.Name, d.Spec.Selector.MatchLabels, d.Spec.Template.Labels
	case "batch/v1 CronJob":
		var j batchv1.CronJob
		require.NoError(t, yaml.UnmarshalStrict([]byte(manifest), &j))
		return j.Name, nil, nil
	case "v1 Service":
		var s corev1.Service
		require.NoError(t, yaml.UnmarshalStrict([]byte(manifest), &s))
		return s.Name, nil, nil
	}
	t.Fatalf("no type for %+v:\n%s", kind, manifest)
	return "", nil, nil
}

// validate checks that a pod has containers, and what they mount.
func validate(t *testing.T, pod corev1.PodSpec) {
	t.Helper()
	volumes := map[string]bool{}
	for _, v := range pod.Volumes {
		volumes[v.Name] = true
	}
	require.NotEmpty(t, pod.Containers)
	for _, c := range pod.Containers {
		require.NotEmpty(t, c.Name)
		require.NotEmpty(t, c.Image)
		for _, m := range c.VolumeMounts {
			require.True(t, volumes[m.Name], "%s mounts %s, which the pod does not have", c.Name, m.Name)
			delete(volumes, m.Name)
		}
	}
	require.Empty(t, volumes, "no container mounts them")
}

func TestTheManifestsInTheDocumentsAreValid(t *testing.T) {
	documents, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	shown := 0
	for _, doc := range documents {
		text, err := os.ReadFile(doc)
		require.NoError(t, err)
		for _, found := range block.FindAllStringSubmatch(string(text), -1) {
			for _, manifest := range strings.Split(found[1], "\n---\n") {
				shown++
				name, selector, labels := decode(t, manifest)
				require.NotEmpty(t, name)
				for key, value := range selector {
					require.Equal(t, value, labels[key], "%s: the selector does not select its own pods", name)
				}
			}
		}
	}
	require.Positive(t, shown)
}

func TestAFieldThatIsMisspeltIsFound(t *testing.T) {
	var d appsv1.Deployment
	require.ErrorContains(t, yaml.UnmarshalStrict([]byte("spec: {replica: 3}"), &d), "replica")
}

// Every manifest, and the Compose file, names the image by one name.
func TestTheComposeFileNamesTheImageOfTheManifests(t *testing.T) {
	document, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	named := regexp.MustCompile(`image: (\S+/zkcoord:\S+)`).FindSubmatch(document)
	require.NotNil(t, named)
	file, err := os.ReadFile("../../packaging/compose.yaml")
	require.NoError(t, err)
	var compose struct {
		Services map[string]struct {
			Image   string   `json:"image"`
			Command []string `json:"command"`
		} `json:"services"`
	}
	require.NoError(t, yaml.Unmarshal(file, &compose))
	require.Len(t, compose.Services, 5)
	for name, s := range compose.Services {
		if name != "zookeeper" {
			require.Equal(t, string(named[1]), s.Image, name)
			require.NotEmpty(t, s.Command, name)
		}
	}
}
