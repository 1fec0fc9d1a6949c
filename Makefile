# The race detector and the real servers need packages that "make deps" installs; see scripts/install-debian.sh.
SHELL := /bin/bash
TOOLS := $(CURDIR)/artefacts/tools

# All of the workspace (go.work); adapters with workspaces of their own; and what only this tree runs: without the race
# detector, as the command is compiled.
PACKAGES := work
APART    := contrib/certmagic contrib/goose
ASIDE    := bench cmd/internal/ui/browser tools/manifests tools/release
NESTED   := $(ASIDE) $(APART)

# Builds do not ask the version control system: the checkout may be a copy, or belong to somebody else. SQLite is Debian's:
# its driver would compile one.
export GOFLAGS := $(GOFLAGS) -buildvcs=false -tags=libsqlite3

# The real servers of the tests are Debian's of this machine, unless ZOOKEEPER names a folder with another version:
# make zookeeper && make soak ZOOKEEPER=artefacts/zookeeper
ifneq ($(ZOOKEEPER),)
export ZKTEST_ZOOKEEPER := $(abspath $(ZOOKEEPER))
endif

# No bytes from a server upset a client, nor those of a client its attendant: made-up bytes, on one processor. For longer:
# make fuzz TRIES=10000000
TRIES ?= 100000
.PHONY: fuzz
fuzz:
	@for pkg in wire attend; do for target in $$(grep -ho '^func Fuzz[A-Za-z]*' coord/internal/$$pkg/*_test.go | cut -c6-); do \
		CGO_ENABLED=0 go test -tags fuzz -trimpath -vet=off -run '^$$' -fuzz "^$$target\$$" -fuzztime $(TRIES)x -fuzzminimizetime 10x \
			-parallel 1 ./coord/internal/$$pkg || exit 1; \
	done; done

.PHONY: test lint fmt tidy tools deps zookeeper soak faults mutants simulate model benchcmp bench bench-full bench-scale

# Everything, on the embedded and on real servers. Four lanes run at the same time: the race detector's tests, which
# mostly wait, and need a processor as soon as they go on, for their session timeouts are short; and, with what is left
# of the processors, tests that only compute, what reads the code, and what computes without the race detector. Compilers
# that collect garbage seldom take a fifth less time.
test: export ZKTEST_CLASSES = $(CLASSES)
test lint: export GOGC = 400
test: deps
	@$(MAKE) --no-print-directory -j test-waiting test-computing test-reading test-spare

# Tests need no debug information, and measure no dependencies but the library's own: a compiler that writes no debug
# information, and does not optimize the other dependencies, takes less time. Tests without the race detector share the
# standard library and the project with the command, which is compiled as releases are.
quickly   = '-gcflags=all=$(strip -N -l $1)' $(foreach kept,std github.com/zkcoord/... github.com/go-zookeeper/...,'-gcflags=$(kept)=$1')
DETECTING = -race $(call quickly,-dwarf=false)
PLAINLY   = -trimpath $(call quickly,)

# Results are never taken from the cache, since they depend on servers. The longest packages come first; "lint" vets. At
# its end a process with the race detector would sleep for a second. HUNG is for a package that never ends, not for slow
# machines: at a low priority tests wait until the others are done.
# Tests that try many schedules, or much data, and have others of their package beside them for the race detector, are for
# test-spare: the model of the trust window, the double barrier's random deaths, and the like; and the table of mutants.
RACE       = env ZKTEST_SERVERS=all CGO_ENABLED=1 GORACE=atexit_sleep_ms=0 go test $(DETECTING) -vet=off -count=1 \
	$(HUNG) -skip '^(($(MODEL))|($(EXPLORED)|$(ARCHIVING))$$)'
HUNG      := -timeout 45m
CLASSES   := $(CURDIR)/artefacts/classes.jsa
ARCHIVING := TestAServerStartsFromAnArchiveOfItsClasses
MODEL     := TestNoScheduleBreaksTheTrust|TestTheModelFinds
EXPLORED  := TestNoMemberHangsAndNoRoundsMixWhileMembersDieAtRandom|TestEveryScheduleKeepsThePromises|$\
	TestNoSingleLossHangsOrSplitsARound|TestAWaitingConsumerGetsWhatTheOthersLeave|TestAThousandKeysOverFiftyMembers|$\
	TestAllJobsAreListed|TestNoListingOf100000KeysIsLargerThanAMegabyte
EXPLORING := ./coord/doublebarrier ./coord/once ./coord/queue ./coord/shards
COMPUTING := ./internal/proofs/simulate
TABLES    := ./internal/mutants
LONGEST   := ./internal/proofs/faults ./coord/doublebarrier ./cmd/internal/cli ./internal/docs ./cmd/internal/run \
	./internal/zktest ./internal/interop ./packaging ./cmd/internal/see
.PHONY: test-waiting test-computing test-reading test-spare compiled model-medium explored
test-waiting: compiled
	$(RACE) -p $$((($$(nproc) + 1) / 2)) $(LONGEST) $$(go list $(PACKAGES) | grep -vxF "$$(go list $(COMPUTING) $(TABLES) $(LONGEST))")
test-computing: compiled
	nice -n 19 $(RACE) -p 1 $(COMPUTING)
compiled: # once for all lanes
	@CGO_ENABLED=1 go list $(DETECTING) -test -deps -export $(PACKAGES) >/dev/null
	@CGO_ENABLED=0 go list -trimpath -deps -export ./cmd/zkcoord >/dev/null
	@mkdir -p artefacts && out=$$($(RACE) -skip '^$$' -run '$(ARCHIVING)' ./internal/zktest -classes $(CLASSES) 2>&1) || \
		{ echo "$$out"; exit 1; }
# Modules of one test each, whose dependencies keep the linters busy, are linted by "make lint" alone.
test-reading: compiled
	@for m in $(NESTED); do $(MAKE) -n test/$$m | grep -q "^cd $$m &&" || { echo "test/$$m runs no test: mend its rule"; exit 1; }; done
	@nice -n 19 $(MAKE) --no-print-directory -j2 -Otarget lint/work $(APART:%=lint/%) $(NESTED:%=test/%)
test-spare: compiled
	@nice -n 19 $(MAKE) --no-print-directory -j1 model-medium explored fuzz

# Without the race detector, which slows them down tenfold.
model-medium:
	set -o pipefail; CGO_ENABLED=0 go test $(PLAINLY) -vet=off -count=1 $(HUNG) -v -run '$(MODEL)' ./coord/internal/window \
		-scope medium | grep -v '^=== '
explored: # all that test-waiting skips
	@for t in $(subst |, ,$(EXPLORED)); do grep -qs "^func $$t(" $(EXPLORING:%=%/*_test.go) || \
		{ echo "no $$t in $(EXPLORING): mend EXPLORED or EXPLORING"; exit 1; }; done
	CGO_ENABLED=0 go test $(PLAINLY) -vet=off -count=1 $(HUNG) -run '^($(EXPLORED))$$' $(EXPLORING)
	CGO_ENABLED=0 go test $(PLAINLY) -vet=off -count=1 $(HUNG) $(TABLES)

# vet: mistakes the compiler lets pass. gofumpt: one format, so that diffs show changes only. staticcheck: dead code and
# misuse of the standard library. errcheck: an error that nobody looks at is a fault that nobody sees. apidiff: what users
# of the last release would have to change, if it is not in the changelog.
lint: lint/work $(NESTED:%=lint/%)
.PHONY: lint/work $(NESTED:%=lint/%) $(NESTED:%=test/%)
lint/work: tools
	@unformatted=$$($(TOOLS)/gofumpt -l .) && test -z "$$unformatted" || \
		{ echo "not formatted (run make fmt):"; echo "$$unformatted"; exit 1; }
	export CGO_ENABLED=1 GOFLAGS="$(GOFLAGS) $(DETECTING)"; go vet $(PACKAGES) && $(TOOLS)/staticcheck $(PACKAGES) && \
		$(TOOLS)/errcheck -ignoretests -exclude tools/errcheck.txt $(PACKAGES)
	@scripts/apidiff.sh

# The nested modules, each as it is tested. Adapters come after the workspace, whose dependencies they share.
HOW     = $(if $(filter $*,$(ASIDE)),$(PLAINLY),$(DETECTING))
CGO     = CGO_ENABLED=$(if $(filter $*,$(ASIDE)),0,1)
$(APART:%=lint/%): lint/work
$(NESTED:%=lint/%): lint/%: tools
	@cd $* && $(CGO) go vet $(HOW) ./... && $(CGO) GOFLAGS="$(GOFLAGS) $(HOW)" $(TOOLS)/staticcheck ./...
test/bench: | $(filter-out test/bench,$(NESTED:%=test/%)) # in a second each contender does something: not at the busiest
$(NESTED:%=test/%): test/%:
	@cd $* && echo "$*:" && $(CGO) GORACE=atexit_sleep_ms=0 go test $(HOW) -vet=off -count=1 $(HUNG) ./...

fmt: tools
	$(TOOLS)/gofumpt -w .

tools:
	@cd tools && CGO_ENABLED=0 go build -race=false -trimpath -o $(TOOLS)/ github.com/kisielk/errcheck \
		honnef.co/go/tools/cmd/staticcheck mvdan.cc/gofumpt # as releases are compiled

# go.mod and go.sum of every module.
tidy:
	@scripts/tidy.sh

deps:
	@scripts/install-debian.sh

# A newer ZooKeeper, from Debian's suite SUITE, into artefacts/zookeeper; nothing is installed.
SUITE ?= testing
zookeeper: deps
	@scripts/zookeeper-from-debian.sh $(SUITE) artefacts/zookeeper

# All recipes under a long mix of faults on a real ensemble: make soak DURATION=10m SEED=1 (see internal/proofs/soak/doc.go).
DURATION ?= 10m
soak: deps
	ZKTEST_SERVERS=all CGO_ENABLED=1 GORACE=halt_on_error=1 SOAK_DURATION=$(DURATION) SOAK_SEED=$(SEED) \
		go test -race -count=1 -v -timeout 0 -run '^TestSoak$$' ./internal/proofs/soak

# The catalogue of faults: scenarios that stand beside their code once, the others with three seeds, of which the first
# has full length; or one: make faults RUN=F18 SEEDS=7
RUN   ?=
SEEDS ?= 1 2 3
BESIDE = $$(grep -rlE '^func TestF[0-9]' --include=*_test.go ./coord | xargs -n1 dirname | sort -u)
faults: deps
	@grep -rqE '^func Test($(or $(RUN),F))' --include=*_test.go coord internal/proofs/faults || \
		{ echo "RUN=$(RUN): no such scenario; docs/testing.md has the catalogue"; exit 1; }
	ZKTEST_SERVERS=all FAULTS_LONG=1 go test -count=1 -run '^Test($(or $(RUN),F[0-9]))' $(BESIDE)
	ZKTEST_SERVERS=all FAULTS_LONG=1 go test -count=1 -run 'Test$(or $(RUN),F49)' ./internal/proofs/faults # 20,000 holds, without the race detector
	@long=1; for seed in $(SEEDS); do \
		echo "FAULTS_SEED=$$seed FAULTS_LONG=$$long"; \
		ZKTEST_SERVERS=all CGO_ENABLED=1 FAULTS_LONG=$$long FAULTS_SEED=$$seed \
			go test -race -count=1 $(if $(RUN),-v) -timeout 30m -run 'Test$(RUN)' ./internal/proofs/faults || exit 1; \
		long=; \
	done

# Switches off one guard at a time and expects the tests to fail: make mutants, or make mutants RUN=window
mutants:
	go run ./internal/mutants -run '$(RUN)'

# A lock fences Kafka's producers: see docs/fencing.md. The broker and its client take a minute to compile.
.PHONY: kafka
kafka:
	cd internal/kafkatest && go vet ./... && go test -count=1 ./...

# Every schedule of the trust window's model, in its large scopes (see coord/internal/window/model_test.go): some minutes
# and GiB.
model:
	set -o pipefail; go test -count=1 -v -timeout 0 -run '$(MODEL)' ./coord/internal/window -scope large | grep -v '^=== '

# All recipes under faults in virtual time, by seed: until stopped, or make simulate SEEDS=1000 FROM=1; or one seed again:
# make simulate SEED=4711 REPEAT=50 (see internal/proofs/simulate/doc.go).
simulate:
	cd internal/proofs/simulate && go test -count=1 -timeout 0 -run WhateverGoesWrong $(if $(SEED),-seed $(SEED) -repeat \
		$(or $(REPEAT),1),-from $(or $(FROM),1) -seeds $(if $(filter command environment,$(origin SEEDS)),$(SEEDS),0))

# The Go benchmarks of this tree beside those of another revision, by turns, with benchstat's verdict: make benchcmp
# BASE=main, or some of them: make benchcmp BASE=HEAD~3 BENCH=HandOff COUNT=10
BENCH ?= .
COUNT ?= 6
benchcmp:
	@scripts/benchcmp.sh "$(BASE)" "$(BENCH)" "$(COUNT)"

# The recipes beside Curator, Kazoo, go-zookeeper's lock, etcd, a Redis lock and the limits of the protocol, on real
# servers (see bench/doc.go): a short run on single servers into artefacts/bench, or make bench-full, for half an hour of an
# otherwise idle machine, into docs. Some of it, beside the former figures of the rest: make bench-full ROWS=queue
# SITES=one
ROWS ?= *
MEASURE = cd bench && ZKTEST_SERVERS=all go test -tags etcd -count=1 -v -timeout 0 -run '^TestFigures$$' . -rows '$(ROWS)'
bench: bench-deps
	$(MEASURE) -sites '$(or $(SITES),one*)' -repetitions 3 -during 250ms -document ../artefacts/bench/benchmarks.md
bench-full: bench-deps
	$(MEASURE) -sites '$(or $(SITES),*)' -repetitions 5 -during 750ms -document ../docs/benchmarks.md
# How the cost grows with waiters, clients, members, items and locks: some 20 minutes of an otherwise idle machine, into
# docs/scaling.md. Some of it: make bench-scale ROWS=locks SITES=one
bench-scale: bench-deps
	$(MEASURE) -scale -sites '$(or $(SITES),*)' -repetitions 1 -during 2s -document ../docs/scaling.md
.PHONY: bench-deps
bench-deps:
	@scripts/install-debian.sh bench

# The picture of the command's page in the documents.
.PHONY: screenshot
screenshot: deps
	cd cmd/internal/ui/browser && go test -count=1 -run Picture . -update

# The command with its manual page and completions: make install, or make install PREFIX=$HOME/.local
PREFIX ?= /usr/local
.PHONY: install dist deb vuln
install:
	@scripts/dist.sh install $(DESTDIR)$(PREFIX)

# What a release consists of, into artefacts/dist; or a Debian package for this machine alone.
dist:
	@scripts/dist.sh all artefacts/dist linux/amd64 linux/arm64 darwin/amd64 darwin/arm64
deb:
	@scripts/dist.sh deb artefacts/dist

# Known vulnerabilities in what is linked, where the machine can reach the database.
vuln:
	go run golang.org/x/vuln/cmd/govulncheck@v1.1.4 $(PACKAGES)
