# How tests and linters compile; to be sourced. Debug information, and dependencies that are optimized, take more time than
# they save. Builds do not ask the version control system: the checkout may be a copy, or belong to somebody else. SQLite
# is Debian's: its driver would compile one.
export GOFLAGS="${GOFLAGS:-} -buildvcs=false -tags=libsqlite3"
export GOGC=400 # compilers that collect garbage seldom take a fifth less time

detecting=(-race '-gcflags=all=-N -l -dwarf=false' -gcflags=std=-dwarf=false
	-gcflags=github.com/zkcoord/...=-dwarf=false -gcflags=github.com/go-zookeeper/...=-dwarf=false)
# Without the race detector, as releases are compiled: the command is compiled once for all.
plainly=(-trimpath '-gcflags=all=-N -l' -gcflags=std= -gcflags=github.com/zkcoord/...= -gcflags=github.com/go-zookeeper/...=)

# Modules beside the workspace: adapters with workspaces of their own, and what only this tree runs.
adapters=(contrib/certmagic contrib/goose)
beside=(bench cmd/internal/ui/browser internal/judges tools/manifests tools/release)
