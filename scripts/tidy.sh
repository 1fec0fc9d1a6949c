#!/usr/bin/env bash
# Brings go.mod and go.sum of every module up to date. The modules of the workspace require the library in a version
# that may not be published yet: they are tidied with the library of this tree in its place.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export GOWORK=off
library=$(go list -m) root=$PWD
for mod in $(git ls-files --cached --others --exclude-standard -- go.mod '*/go.mod'); do
	(
		cd "$(dirname "$mod")"
		if go mod edit -json | grep -q '"Replace": null' && [ "$(go list -m)" != "$library" ]; then
			go mod edit -replace="$library=$root"
			trap 'go mod edit -dropreplace="$library"' EXIT
		fi
		go mod tidy
	)
done
