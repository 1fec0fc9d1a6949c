#!/usr/bin/env bash
# Compares the Go benchmarks of this tree with those of another revision, run by turns on the same machine:
#
#	benchcmp.sh REVISION [PATTERN] [COUNT]
set -euo pipefail

[ $# -ge 1 ] && [ -n "$1" ] || { echo "usage: make benchcmp BASE=revision [BENCH=pattern] [COUNT=n]" >&2; exit 2; }
base=$1 pattern=${2:-.} count=${3:-6}
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/base"
git archive "$base" | tar -x -C "$work/base"
ln -s "$PWD" "$work/here"

for side in base here; do
	cd "$work/$side"
	for package in $(grep -rl --include='*_test.go' '^func Benchmark' coord | xargs -r dirname | sort -u); do
		go test -c -o "$work/bin/$side/$package/run" "./$package"
	done
	mkdir -p "$work/bin/$side" # a revision may have no benchmarks
	touch "$work/$side.txt"
done
cd "$work"
for ((i = 0; i < count; i++)); do
	for side in base here; do
		for package in $(cd "bin/$side" && find . -name run -printf '%h\n' | sort); do
			(cd "$side/$package" && "$work/bin/$side/$package/run" -test.run '^$' -test.bench "$pattern") |
				grep -v '^zktest:' | tee -a "$side.txt"
		done
	done
done
cd here/tools
go tool benchstat "base=$work/base.txt" "here=$work/here.txt"
