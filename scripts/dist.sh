#!/usr/bin/env bash
# Builds zkcoord with its manual page, completions and examples.
#
#	dist.sh install DIR	for this machine, into DIR/bin and DIR/share
#	dist.sh deb DIR		a Debian package for this machine, into DIR
#	dist.sh image DIR	an OCI image for Linux on amd64 and arm64, as an archive, into DIR; writes its digest
#	dist.sh all DIR OS/ARCH...
#				an archive for each target, a Debian package for each that is Linux, a bill of materials (CycloneDX),
#				and SHA256SUMS, into DIR, where they replace those of older versions
#
# DIR may have other files, and folders of any name.
#
# What it builds is the same for the same commit and toolchain: paths, times and owners are not in it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

what=$1 out=$(mkdir -p "$2" && cd "$2" && pwd)
version=$(git describe --tags --dirty 2>/dev/null || git describe --always --dirty 2>/dev/null || echo unknown)
commit=$(git rev-parse HEAD 2>/dev/null || echo unknown)
seconds=$(git log -1 --format=%ct 2>/dev/null || echo 0)
day=$(date -u -d "@$seconds" +%Y-%m-%d 2>/dev/null || date -u -r "$seconds" +%Y-%m-%d)
host=$(go env GOHOSTOS)/$(go env GOHOSTARCH)

build() { # build OS ARCH FILE
	CGO_ENABLED=0 GOOS=$1 GOARCH=$2 GOFLAGS=-buildvcs=false go build -trimpath -o "$3" -ldflags \
		"-s -w -buildid= -X github.com/zkcoord/zkcoord/cmd/internal/cli.version=$version -X github.com/zkcoord/zkcoord/cmd/internal/cli.commit=$commit" \
		./cmd/zkcoord
}

tree() { # tree OS ARCH DIR: the binary, and what goes with it, as written by a binary for this machine
	local self=$work/self share=$3/share
	[ -e "$self" ] || build "${host%/*}" "${host#*/}" "$self"
	mkdir -p "$3/bin" "$share"/{man/man1,bash-completion/completions,zsh/site-functions,fish/vendor_completions.d,doc/zkcoord/examples}
	if [ "$1/$2" = "$host" ]; then rm -f "$3/bin/zkcoord" && cp "$self" "$3/bin/zkcoord"; else build "$1" "$2" "$3/bin/zkcoord"; fi
	call() { (exec -a zkcoord "$self" "$@"); }
	call __manual | sed "1s/\"[0-9-]*\"/\"$day\"/" | gzip -9n >"$share/man/man1/zkcoord.1.gz"
	call completion bash >"$share/bash-completion/completions/zkcoord"
	call completion zsh >"$share/zsh/site-functions/_zkcoord"
	call completion fish >"$share/fish/vendor_completions.d/zkcoord.fish"
	cp LICENSE "$share/doc/zkcoord/"
	(cd docs && find . -name '*.md' -o -name '*.svg' -o -name '*.png') | tar -C docs -T - -cf - | tar -C "$share/doc/zkcoord" -xf -
	# What lies beside the documents in the repository is linked there.
	find "$share/doc/zkcoord" -name '*.md' -exec sed -i.orig 's#](\.\./#](https://github.com/zkcoord/zkcoord/blob/main/#g' {} +
	find "$share/doc/zkcoord" -name '*.orig' -delete
	cp packaging/zkcoord-elect@.service packaging/zkcoord-attend.{service,socket,conf} "$share/doc/zkcoord/examples/"
}

deb() { # deb ARCH DIR
	# Debian's order: commits after a tag come after it (1.2.3+3-g0a1b2c3), and all before the first tag in the order of time.
	local number=${version#v}
	[[ $number =~ ^[0-9]+\.[0-9]+ ]] && number=${number/-/+} || number=0.0.0+$seconds.$number
	local to=$work/$1.deb
	mkdir -p "$to/DEBIAN" "$to/usr"
	cp -r "$2/bin" "$2/share" "$to/usr/"
	mv "$to/usr/share/zsh/site-functions" "$to/usr/share/zsh/vendor-completions"
	mkdir -p "$to/usr/lib/systemd/system" "$to/usr/lib/sysusers.d"
	mv "$to/usr/share/doc/zkcoord/examples/"zkcoord-attend.{service,socket} "$to/usr/lib/systemd/system/"
	mv "$to/usr/share/doc/zkcoord/examples/zkcoord-attend.conf" "$to/usr/lib/sysusers.d/zkcoord.conf"
	rm "$to/usr/share/doc/zkcoord/LICENSE"
	cp packaging/copyright "$to/usr/share/doc/zkcoord/"
	gzip -9n <CHANGELOG.md >"$to/usr/share/doc/zkcoord/changelog.gz"
	local kib=$(find "$to/usr" -type f -printf '%s\n' | awk '{ n += $1 } END { print int((n + 1023) / 1024) }')
	sed "s/^Package: .*/&\nVersion: $number\nArchitecture: $1\nInstalled-Size: $kib/" packaging/control >"$to/DEBIAN/control"
	(cd "$to" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum >DEBIAN/md5sums)
	chmod -R u=rwX,go=rX "$to"
	SOURCE_DATE_EPOCH=$seconds dpkg-deb -Zgzip --root-owner-group --build "$to" "$out/zkcoord_${version}_$1.deb" >/dev/null
}

archive() { # archive NAME: a tree, without what differs from machine to machine
	tar --sort=name --mtime="@$seconds" --owner=0 --group=0 --numeric-owner --mode='u=rwX,go=rX' -C "$work" -cf - "$1" | gzip -9n >"$out/$1.tar.gz"
}

made() { # what "all" has made in the current directory, of any version
	find . -maxdepth 1 -type f \( -name 'zkcoord-*.tar.gz' -o -name 'zkcoord_*.deb' -o -name 'zkcoord-*.cdx.json' \) -printf '%P\n' | sort
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

case $what in
install)
	tree "${host%/*}" "${host#*/}" "$out"
	;;
deb)
	tree linux "${host#*/}" "$work/deb"
	deb "${host#*/}" "$work/deb"
	;;
image)
	platforms=()
	for arch in amd64 arm64; do
		build linux $arch "$work/$arch"
		platforms+=("$arch=$work/$arch")
	done
	cd tools/release && CGO_ENABLED=0 GOFLAGS=-buildvcs=false go run -trimpath ./image "$out/zkcoord-$version.oci.tar" \
		"$version" "$commit" "$seconds" "$(go env GOROOT)/lib/time/zoneinfo.zip" "${platforms[@]}"
	;;
all)
	(cd "$out" && made | xargs rm -f SHA256SUMS)
	for target in "${@:3}"; do
		name=zkcoord-$version-${target%/*}-${target#*/}
		tree "${target%/*}" "${target#*/}" "$work/$name"
		archive "$name"
		[ "${target%/*}" != linux ] || deb "${target#*/}" "$work/$name"
	done
	(cd tools/release && CGO_ENABLED=0 GOFLAGS=-buildvcs=false go run -trimpath ./sbom "$work/zkcoord-$version-${3/\//-}/bin/zkcoord" "$version") >"$out/zkcoord-$version.cdx.json"
	(cd "$out" && made | xargs sha256sum >SHA256SUMS)
	;;
esac
