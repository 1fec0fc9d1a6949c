// Command sbom writes a CycloneDX bill of materials of a Go binary: the modules
// that the toolchain noted in it, with their checksums.
package main

import (
	"debug/buildinfo"
	"fmt"
	"os"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: sbom BINARY VERSION")
		os.Exit(64)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func write(binary, version string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	url := func(path, version string) string { return "pkg:golang/" + path + "@" + version }
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &cdx.Component{
		BOMRef: url(info.Main.Path, version), Type: cdx.ComponentTypeApplication, Name: info.Main.Path, Version: version,
		PackageURL: url(info.Main.Path, version),
	}}
	components := []cdx.Component{{
		BOMRef: url("std", info.GoVersion), Type: cdx.ComponentTypeLibrary, Name: "std", Version: info.GoVersion, PackageURL: url("std", info.GoVersion),
	}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		if m.Version == "(devel)" { // the library, of the same tree
			m.Version = version
		}
		components = append(components, cdx.Component{
			BOMRef: url(m.Path, m.Version), Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: url(m.Path, m.Version),
			Properties: &[]cdx.Property{{Name: "go.sum", Value: m.Sum}},
		})
	}
	bom.Components = &components
	encoder := cdx.NewBOMEncoder(os.Stdout, cdx.BOMFileFormatJSON)
	encoder.SetPretty(true)
	return encoder.Encode(bom)
}
