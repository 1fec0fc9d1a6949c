#!/usr/bin/env bash
# The catalogue of faults: scenarios that stand beside their code once, the others with three seeds, of which the first
# has full length.
#
#	faults.sh 'SEED...' [SCENARIO]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/compiling.sh
seeds=$1 scenario=${2:-}
export ZKTEST_SERVERS=all FAULTS_LONG=1

beside=$(grep -rlE '^func TestF[0-9]' --include='*_test.go' coord | xargs -n1 dirname | sort -u | sed 's|^|./|')
grep -rqE "^func Test(${scenario:-F})" --include='*_test.go' coord internal/proofs/faults ||
	{ echo "RUN=$scenario: no such scenario; docs/testing.md has the catalogue"; exit 1; }
go test -count=1 -run "^Test(${scenario:-F[0-9]})" $beside
go test -count=1 -run "Test${scenario:-F49}" ./internal/proofs/faults # 20,000 holds, without the race detector
for seed in $seeds; do
	echo "FAULTS_SEED=$seed FAULTS_LONG=$FAULTS_LONG"
	CGO_ENABLED=1 FAULTS_SEED=$seed go test -race -count=1 ${scenario:+-v} -timeout 30m -run "Test$scenario" ./internal/proofs/faults
	FAULTS_LONG=
done
