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
	component := func(kind cdx.ComponentType, path, version string) cdx.Component {
		url := "pkg:golang/" + path + "@" + version
		return cdx.Component{BOMRef: url, Type: kind, Name: path, Version: version, PackageURL: url}
	}
	program := component(cdx.ComponentTypeApplication, info.Main.Path, version)
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &program}
	components := []cdx.Component{component(cdx.ComponentTypeLibrary, "std", info.GoVersion)}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		if m.Version == "(devel)" { // the library, of the same tree
			m.Version = version
		}
		library := component(cdx.ComponentTypeLibrary, m.Path, m.Version)
		library.Properties = &[]cdx.Property{{Name: "go.sum", Value: m.Sum}}
		components = append(components, library)
	}
	bom.Components = &components
	encoder := cdx.NewBOMEncoder(os.Stdout, cdx.BOMFileFormatJSON)
	encoder.SetPretty(true)
	return encoder.Encode(bom)
}
