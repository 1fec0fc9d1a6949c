package cli

import (
	"cmp"
	"runtime/debug"

	"github.com/zkcoord/zkcoord/cmd/internal/term"
)

// version and commit are set by a build of a release; see scripts/dist.sh.
var version, commit string

type versionVerb struct{}

// Run prints what the build has set, or else what the Go toolchain noted.
func (versionVerb) Run(s *term.Streams) error {
	v := struct {
		Version string `json:"version"`
		Commit  string `json:"commit,omitempty"`
		Go      string `json:"go"`
	}{Version: "unknown"}
	if info, ok := debug.ReadBuildInfo(); ok {
		v.Version, v.Go = info.Main.Version, info.GoVersion
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				v.Commit = setting.Value
			}
		}
	}
	v.Version, v.Commit = cmp.Or(version, v.Version), cmp.Or(commit, v.Commit)
	of := ""
	if v.Commit != "" {
		of = ", commit " + v.Commit
	}
	return s.Print(v, "%s %s (%s%s)\n", term.Program, v.Version, v.Go, of)
}
