#!/usr/bin/env bash
# The tests, on the embedded and on real servers. Together, the two leave nothing out:
#
#	test.sh		all but the proofs, with the race detector
#	test.sh proofs	what takes long or only computes, and the linters; docs/testing.md has the list
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/compiling.sh

# Proofs by name are those of other packages: TestProof... They try many schedules, or much data, and have smaller ones
# beside them.
name='^TestProof'
proofs=(internal/proofs/faults cmd/internal/run cmd/internal/see cmd/internal/attend cmd/internal/cli cmd/internal/demo
	coord/attend internal/docs internal/interop contrib/prom internal/zktest internal/fencetest internal/proofs/soak
	internal/proofs/history internal/proofs/workload zkembed/internal/contract packaging)
alone=(internal/proofs/simulate internal/mutants)

# Results are never taken from the cache, since they depend on servers. The limit is for a package that never ends, not
# for slow machines.
run=(go test -vet=off -count=1 -timeout 45m)
race() { ZKTEST_SERVERS=all CGO_ENABLED=1 GORACE=atexit_sleep_ms=0 "${run[@]}" "${detecting[@]}" "$@"; }
plain() { CGO_ENABLED=0 "${run[@]}" "${plainly[@]}" "$@"; }

# First all is compiled, for session timeouts are short; and real servers start faster from an archive of their classes.
prepare() { # prepare PACKAGE...
	CGO_ENABLED=1 go list "${detecting[@]}" -test -deps -export "$@" >/dev/null
	CGO_ENABLED=0 go list -trimpath -deps -export ./cmd/zkcoord >/dev/null
	export ZKTEST_CLASSES=$PWD/artefacts/classes.jsa
	mkdir -p artefacts
	local output
	output=$(race -run '^TestAServerStartsFromAnArchiveOfItsClasses$' ./internal/zktest -classes "$ZKTEST_CLASSES" 2>&1) ||
		{ echo "$output"; return 1; }
}

# The longest come first.
tests() {
	local others
	others=$(go list work | grep -vxFf <(printf 'github.com/zkcoord/zkcoord/%s\n' "${proofs[@]}" "${alone[@]}"))
	prepare $others
	race -skip "$name" -p "$(nproc)" ./coord ./coord/shards ./coord/group $others
}

waiting() { race -p 1 "${proofs[@]/#/./}"; }

computing() {
	race ./internal/proofs/simulate
	plain -v -run "$name" ./coord/internal/window -scope medium | grep -v '^=== '
	local others
	others=$(grep -rl "^func ${name#^}" coord --include='*_test.go' | grep -v /window/ | xargs -n1 dirname | sort -u)
	plain -run "$name" $(printf './%s ' $others)
	plain ./internal/mutants
	scripts/fuzz.sh 100000
}

reading() {
	scripts/lint.sh . "${adapters[@]}"
	for module in "${adapters[@]}"; do (cd "$module" && race ./...); done
	for module in "${beside[@]}"; do (cd "$module" && ZKTEST_SERVERS=all plain -short ./...); done
}

# What computes gets what the others leave of the processors.
all_proofs() {
	local lanes=() failed=0
	prepare work
	waiting & lanes+=($!)
	for lane in computing reading; do
		(renice -n 19 $BASHPID >/dev/null; $lane) & lanes+=($!)
	done
	for lane in "${lanes[@]}"; do wait "$lane" || failed=1; done
	return $failed
}

case ${1:-} in
'') tests ;;
proofs) all_proofs ;;
*) echo "usage: test.sh [proofs]" >&2; exit 2 ;;
esac
