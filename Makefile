# What one changes the library with: make test for every change, make proofs for one of the library, make lint, make fmt.
SHELL := /bin/bash
TOOLS := $(CURDIR)/artefacts/tools
export GOFLAGS := $(GOFLAGS) -buildvcs=false -tags=libsqlite3
.PHONY: test proofs lint fmt tools tidy deps zookeeper simulate faults soak mutants model fuzz kafka judges benchcmp bench \
	bench-full bench-scale bench-deps screenshot install dist deb image vuln

test: deps
	@scripts/test.sh
proofs: deps tools
	@scripts/test.sh proofs
lint: tools
	@scripts/lint.sh
fmt: tools
	$(TOOLS)/gofumpt -w .
tools: # as releases are compiled
	@cd tools && CGO_ENABLED=0 go build -race=false -trimpath -o $(TOOLS)/ github.com/kisielk/errcheck \
		honnef.co/go/tools/cmd/staticcheck mvdan.cc/gofumpt
tidy: # go.mod and go.sum of every module
	@scripts/tidy.sh

# Debian's packages for the tests: real servers, a JDK, a C compiler, and more. Another ZooKeeper, from Debian's suite SUITE:
# make zookeeper && make soak ZOOKEEPER=artefacts/zookeeper
deps:
	@scripts/install-debian.sh
SUITE ?= testing
zookeeper: deps
	@scripts/zookeeper-from-debian.sh $(SUITE) artefacts/zookeeper
ifneq ($(ZOOKEEPER),)
export ZKTEST_ZOOKEEPER := $(abspath $(ZOOKEEPER))
endif

# Longer proofs; docs/testing.md tells what each shows.
#	make simulate [FROM=1] [SEEDS=1000]	until stopped, or so many; make simulate SEED=4711 REPEAT=50
#	make faults [RUN=F18] [SEEDS='1 2 3']	the catalogue
#	make soak [DURATION=10m] [SEED=1]	all recipes on a real ensemble under a mix of faults
#	make mutants [RUN=window]		guards switched off one by one
#	make fuzz [TRIES=10000000]
simulate:
	cd internal/proofs/simulate && go test -count=1 -timeout 0 -run WhateverGoesWrong $(if $(SEED),-seed $(SEED) -repeat \
		$(or $(REPEAT),1),-from $(or $(FROM),1) -seeds $(or $(SEEDS),0))
faults: deps
	@scripts/faults.sh '$(or $(SEEDS),1 2 3)' '$(RUN)'
soak: deps
	ZKTEST_SERVERS=all CGO_ENABLED=1 GORACE=halt_on_error=1 SOAK_DURATION=$(or $(DURATION),10m) SOAK_SEED=$(SEED) \
		go test -race -count=1 -v -timeout 0 -run '^TestSoak$$' ./internal/proofs/soak
mutants:
	go run ./internal/mutants -run '$(RUN)'
model: # every schedule of the trust window in its large scope: some minutes and GiB
	set -o pipefail; go test -count=1 -v -timeout 0 -run '^TestProof' ./coord/internal/window -scope large | grep -v '^=== '
fuzz:
	@scripts/fuzz.sh $(or $(TRIES),100000)
kafka: # a lock fences Kafka's producers: see docs/fencing.md
	cd internal/kafkatest && go vet ./... && go test -count=1 ./...
judges: deps # suites that others wrote, see docs/judged.md; Vitess compiles for minutes
	cd internal/judges && ZKTEST_SERVERS=all go test -count=1 ./...
	cd internal/judges/vitess && ZKTEST_SERVERS=all go test -count=1 ./...

# Speed, on an otherwise idle machine. Some of it: make bench-full ROWS=queue SITES=one
#	make benchcmp BASE=main [BENCH=HandOff] [COUNT=10]	Go benchmarks beside those of another revision
#	make bench			beside Curator, Kazoo, etcd and the protocol's limits, into artefacts/bench
#	make bench-full, bench-scale	half an hour into docs/benchmarks.md, 20 minutes into docs/scaling.md
benchcmp:
	@scripts/benchcmp.sh "$(BASE)" "$(or $(BENCH),.)" "$(or $(COUNT),6)"
MEASURE = cd bench && ZKTEST_SERVERS=all go test -tags etcd -count=1 -v -timeout 0 -run '^TestFigures$$' . -rows '$(or $(ROWS),*)'
bench: bench-deps
	$(MEASURE) -sites '$(or $(SITES),one*)' -repetitions 3 -during 250ms -document ../artefacts/bench/benchmarks.md
bench-full: bench-deps
	$(MEASURE) -sites '$(or $(SITES),*)' -repetitions 5 -during 750ms -document ../docs/benchmarks.md
bench-scale: bench-deps
	$(MEASURE) -scale -sites '$(or $(SITES),*)' -repetitions 1 -during 2s -document ../docs/scaling.md
bench-deps:
	@scripts/install-debian.sh bench

screenshot: deps # of the command's page, for the documents
	cd cmd/internal/ui/browser && go test -count=1 -run Picture . -update
PREFIX ?= /usr/local
install: # the command with its manual page and completions: make install PREFIX=$HOME/.local
	@scripts/dist.sh install $(DESTDIR)$(PREFIX)
dist: # what a release consists of
	@scripts/dist.sh all artefacts/dist linux/amd64 linux/arm64 darwin/amd64 darwin/arm64
deb: # a Debian package for this machine alone
	@scripts/dist.sh deb artefacts/dist
image: # an OCI image of the command; it needs no daemon
	@scripts/dist.sh image artefacts/dist
vuln: # known vulnerabilities in what is linked, where the machine can reach the database
	go run golang.org/x/vuln/cmd/govulncheck@v1.1.4 work
