// Command image writes an OCI image of the static command for several
// platforms as one archive, and prints its digest. It needs no daemon.
package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is who runs in a container: nobody that has an account.
const user = 65532

const zonesInside = "usr/share/zoneinfo.zip"

const usage = "usage: image ARCHIVE VERSION COMMIT SECONDS ZONES ARCH=BINARY..."

func main() {
	if len(os.Args) < 7 {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(64)
	}
	digest, err := write(os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5], os.Args[6:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
	fmt.Println(digest)
}

func write(archive, version, commit, seconds, zones string, binaries []string) (v1.Hash, error) {
	epoch, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return v1.Hash{}, fmt.Errorf("the time of the commit: %w", err)
	}
	created := time.Unix(epoch, 0).UTC()
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, b := range binaries {
		arch, file, ok := strings.Cut(b, "=")
		if !ok {
			return v1.Hash{}, fmt.Errorf("%q is not ARCH=BINARY", b)
		}
		img, err := image(file, arch, zones, labels(version, commit, created), created)
		if err != nil {
			return v1.Hash{}, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	digest, err := index.Digest()
	if err == nil {
		err = pack(archive, index, version, created)
	}
	return digest, err
}

func labels(version, commit string, created time.Time) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":    "zkcoord",
		"org.opencontainers.image.version":  version,
		"org.opencontainers.image.revision": commit,
		"org.opencontainers.image.created":  created.Format(time.RFC3339),
		"org.opencontainers.image.source":   "https://github.com/zkcoord/zkcoord",
		"org.opencontainers.image.licenses": "Apache-2.0",
	}
}

// image is the binary of one architecture, Go's archive of time zones, the
// certificates that the binary trusts, and a folder for files that last no
// longer than the container.
func image(binary, arch, zones string, labels map[string]string, created time.Time) (v1.Image, error) {
	program, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	times, err := os.ReadFile(zones)
	if err != nil {
		return nil, err
	}
	content, err := files([]file{
		{name: "etc/passwd", mode: 0o644, data: fmt.Appendf(nil, "zkcoord:x:%d:%d::/:/sbin/nologin\n", user, user)},
		{name: "etc/group", mode: 0o644, data: fmt.Appendf(nil, "zkcoord:x:%d:\n", user)},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, data: certificates()},
		{name: "tmp/", mode: 0o1777},
		{name: "usr/bin/zkcoord", mode: 0o755, data: program},
		{name: zonesInside, mode: 0o644, data: times},
	}, created)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	},
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err = mutate.Append(img, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: created}}})
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", arch, v1.Time{Time: created}
	config.Config = v1.Config{
		User:       fmt.Sprintf("%d:%d", user, user),
		Env:        []string{"PATH=/usr/bin", "ZONEINFO=/" + zonesInside},
		Entrypoint: []string{"/usr/bin/zkcoord"},
		WorkingDir: "/",
		Labels:     labels,
	}
	return mutate.ConfigFile(img, config)
}

// certificates are those that Mozilla trusts, as of the pinned module.
func certificates() []byte {
	var all bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil { // a file cannot say it
			_ = pem.Encode(&all, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return all.Bytes()
}

// pack writes an image layout (OCI) with the index as its only entry.
func pack(archive string, index v1.ImageIndex, version string, created time.Time) error {
	dir, err := os.MkdirTemp("", "image")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	images, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	name := map[string]string{"org.opencontainers.image.ref.name": version}
	if err := images.AppendIndex(index, layout.WithAnnotations(name)); err != nil {
		return err
	}
	var all []file
	err = fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		all = append(all, file{name: name, mode: 0o644, data: data})
		return err
	})
	if err != nil {
		return err
	}
	packed, err := files(all, created)
	if err != nil {
		return err
	}
	return os.WriteFile(archive, packed, 0o644)
}

// file is one of an archive; a folder's name ends in a slash.
type file struct {
	name string
	mode int64
	data []byte
}

// files is an archive that is the same whenever and wherever it is made. It has
// the folders that the files need.
func files(all []file, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	made := map[string]bool{"./": true}
	add := func(f file) error {
		made[f.name] = true
		kind := byte(tar.TypeReg)
		if strings.HasSuffix(f.name, "/") {
			kind = tar.TypeDir
		}
		err := w.WriteHeader(&tar.Header{Typeflag: kind, Name: f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: at})
		if err == nil {
			_, err = w.Write(f.data)
		}
		return err
	}
	var folders func(name string) error
	folders = func(name string) error {
		dir := path.Dir(strings.TrimSuffix(name, "/")) + "/"
		if made[dir] {
			return nil
		}
		if err := folders(dir); err != nil {
			return err
		}
		return add(file{name: dir, mode: 0o755})
	}
	for _, f := range all {
		if err := folders(f.name); err != nil {
			return nil, err
		}
		if err := add(f); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}
