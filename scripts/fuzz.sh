#!/usr/bin/env bash
# No bytes from a server upset a client, nor those of a client its attendant, nor requests the control of the embedded
# server: made-up bytes, on one processor.
#
#	fuzz.sh TRIES	for each target
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for package in ./coord/internal/wire ./coord/internal/attend ./zkembed/control; do
	for target in $(grep -ho '^func Fuzz[A-Za-z]*' $package/*_test.go | cut -c6-); do
		CGO_ENABLED=0 go test -tags fuzz -trimpath -vet=off -run '^$' -fuzz "^$target\$" -fuzztime "$1x" \
			-fuzzminimizetime 10x -parallel 1 $package
	done
done
