#!/usr/bin/env bash
# Tells what users of the last release would have to change: incompatible changes of exported Go names since its tag.
# They are an error unless the changelog's section Unreleased has a part Changed or Removed, where they belong.
#
#	apidiff.sh [REVISION]	compared with the last tag v*, or with REVISION
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export GOWORK=off # the library alone
base=${1:-$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null || true)}
if [ -z "$base" ]; then
	echo "apidiff: no release is tagged, so there is nothing to be compatible with"
	exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/base"
git archive "$base" | tar -x -C "$work/base"
module=$(go list -m)
(cd tools && CGO_ENABLED=0 go build -race=false -trimpath -o "$work/apidiff" golang.org/x/exp/cmd/apidiff)
apidiff() { "$work/apidiff" -m "$@" 2> >(grep -v '^Ignoring internal package' >&2); }
(cd "$work/base" && apidiff -w "$work/old" "$module")
apidiff -w "$work/new" "$module"
changes=$(apidiff -incompatible "$work/old" "$work/new")
if [ -z "$changes" ]; then
	echo "apidiff: compatible with $base"
	exit 0
fi
echo "apidiff: incompatible with $base:"
echo "$changes"
if ! sed -n '/^## Unreleased/,/^## [^U]/p' CHANGELOG.md | grep -qE '^### (Changed|Removed)'; then
	echo "apidiff: CHANGELOG.md, Unreleased, does not tell of it under Changed or Removed" >&2
	exit 1
fi
