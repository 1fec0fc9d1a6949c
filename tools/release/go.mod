module github.com/zkcoord/zkcoord/tools/release

go 1.25.0

require github.com/CycloneDX/cyclonedx-go v0.9.2
