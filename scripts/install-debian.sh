#!/usr/bin/env bash
# Installs what the tests on real servers need and this machine lacks, from Debian's packages: a JDK, ZooKeeper,
# Curator, Kazoo, PostgreSQL, MariaDB, SQLite, curl, shells that complete, systemd's checker of units, Chromium, clocks
# that are wrong, and a C compiler, which Go's race detector needs. Does nothing when all is there.
#
#	install-debian.sh [bench]	with etcd and Redis, which the benchmarks measure too
set -euo pipefail

packages=()
need() { # need PACKAGE... -- COMMAND...: the packages, unless the command succeeds
	local wanted=()
	while [ "$1" != -- ]; do
		wanted+=("$1")
		shift
	done
	shift
	"$@" >/dev/null 2>&1 || packages+=("${wanted[@]}")
}

jars=/usr/share/java
need default-jdk-headless -- command -v javac
need libzookeeper-java -- test -e $jars/zookeeper.jar
need libslf4j-java -- test -e $jars/slf4j-simple.jar
need libcurator-recipes-java -- test -e $jars/curator-recipes.jar
need python3 python3-kazoo -- /usr/bin/python3 -c 'import kazoo'
need postgresql -- compgen -G '/usr/lib/postgresql/*/bin/postgres'
need mariadb-server-core -- test -x /usr/sbin/mariadbd # the program alone: no server is started
need libsqlite3-dev -- test -e /usr/include/sqlite3.h
need systemd -- command -v systemd-analyze
need curl -- command -v curl
need zsh -- command -v zsh
need fish -- command -v fish
need chromium -- command -v chromium
need faketime -- compgen -G '/usr/lib/*/faketime/libfaketime.so.1'
need gcc libc6-dev -- command -v "$(go env CC)"
if [ "${1:-}" = bench ]; then
	need etcd-server -- command -v etcd
	need redis-server -- command -v redis-server
fi

# Prometheus and its checker of rules, into the user's cache: its package would start a server.
cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/zkcoord
for tool in prometheus promtool; do
	command -v $tool >/dev/null || [ -x "$cache/$tool" ] || fetch=yes
done
[ ${#packages[@]} -gt 0 ] || [ -n "${fetch:-}" ] || exit 0

fail() {
	cat >&2 <<EOF
install-debian.sh: $1
The tests on real servers need these Debian packages: ${packages[*]} ${fetch:+prometheus}
Without them, this runs all that the embedded server can serve:
	ZKTEST_SERVERS=embedded go test work
EOF
	exit 1
}

command -v apt-get >/dev/null || fail "there is no apt-get here"
as_root=()
if [ "$(id -u)" -ne 0 ] && [ ${#packages[@]} -gt 0 ]; then
	sudo -n true 2>/dev/null || fail "only root may install packages"
	as_root=(sudo -n)
fi

echo "install-debian.sh: installing ${packages[*]} ${fetch:+prometheus}" >&2
apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 "$@"; }

update() { apt update || echo "install-debian.sh: apt-get update failed; trying with the package lists there are" >&2; }
if [ ${#packages[@]} -gt 0 ]; then
	update
	apt install -y --no-install-recommends "${packages[@]}" >&2 || fail "apt-get install failed"
fi
if [ -n "${fetch:-}" ]; then
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	download() { apt-get -qq -o Acquire::Retries=3 -o APT::Sandbox::User="$(id -un)" download prometheus; }
	(cd "$work" && { download 2>/dev/null || { update && download; }; } && dpkg-deb -x prometheus_*.deb x) >&2 ||
		fail "apt-get download failed"
	mkdir -p "$cache"
	mv "$work"/x/usr/bin/{prometheus,promtool} "$cache"
fi
