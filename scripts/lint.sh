#!/usr/bin/env bash
# vet: mistakes the compiler lets pass. gofumpt: one format, so that diffs show changes only. staticcheck: dead code and
# misuse of the standard library. errcheck: an error that nobody looks at is a fault that nobody sees. apidiff: what users
# of the last release would have to change, if it is not in the changelog.
#
#	lint.sh			all modules
#	lint.sh MODULE...	the workspace (.), or modules beside it
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/compiling.sh
tools=$PWD/artefacts/tools

# Linters see the code as the tests compile it, and use what was compiled for them.
flags=$GOFLAGS
compile() { export CGO_ENABLED=$1 GOFLAGS="$flags $(printf " '%s'" "${@:2}")"; }

workspace() {
	local unformatted
	unformatted=$("$tools/gofumpt" -l .)
	[ -z "$unformatted" ] || { printf 'not formatted (run make fmt):\n%s\n' "$unformatted"; exit 1; }
	compile 1 "${detecting[@]}"
	go vet work
	"$tools/staticcheck" work
	"$tools/errcheck" -ignoretests -exclude tools/errcheck.txt work
	scripts/apidiff.sh
}

[ $# -gt 0 ] || set -- . "${adapters[@]}" "${beside[@]}"
for module in "$@"; do
	(
		cd "$module"
		case " ${adapters[*]} " in
		*" $module "*) compile 1 "${detecting[@]}" ;;
		*) compile 0 "${plainly[@]}" ;;
		esac
		if [ "$module" = . ]; then workspace; else go vet ./... && "$tools/staticcheck" ./...; fi
	)
done
