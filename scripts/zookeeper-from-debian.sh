#!/usr/bin/env bash
# Puts the server of a newer Debian's ZooKeeper into a folder, for ZKTEST_ZOOKEEPER; nothing is installed. What else it
# needs comes from the installed packages.
#
#	zookeeper-from-debian.sh SUITE FOLDER
set -euo pipefail

[ $# -eq 2 ] || { echo "usage: $0 SUITE FOLDER, such as: $0 testing artefacts/zookeeper" >&2; exit 2; }
suite=$1 folder=$2
for command in apt-get dpkg-deb; do
	command -v $command >/dev/null || { echo "$0: there is no $command here" >&2; exit 1; }
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{lists,cache/archives/partial,out}
cat >"$work/sources" <<EOF
deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $suite main
EOF
apt() { # with lists and sources of its own
	apt-get -qq -o Dir::Etc::sourcelist="$work/sources" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$work/lists" \
		-o Dir::Cache="$work/cache" -o APT::Sandbox::User="$(id -un)" -o Acquire::Retries=3 "$@"
}
apt update
(cd "$work/out" && apt download libzookeeper-java)
dpkg-deb -x "$work"/out/*.deb "$work/x"
mkdir -p "$folder"
for name in zookeeper zookeeper-jute; do
	cp -L "$work/x/usr/share/java/$name.jar" "$folder/$name.jar"
done
basename "$(readlink "$work/x/usr/share/java/zookeeper.jar")" .jar
