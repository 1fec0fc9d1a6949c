package cli

import "runtime/debug"

type versionVerb struct{}

// Run prints what the Go toolchain noted at the build.
func (versionVerb) Run(s *streams) error {
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
	commit := ""
	if v.Commit != "" {
		commit = ", commit " + v.Commit
	}
	return s.print(v, "%s %s (%s%s)\n", program, v.Version, v.Go, commit)
}
