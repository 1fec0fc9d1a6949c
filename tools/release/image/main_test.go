//go:build linux

package main

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

const version = "v1.2.3"

// build makes an archive with the image of this machine's command, which stands
// in for another architecture's, too.
func build(t *testing.T) (archive, digest string) {
	t.Helper()
	dir := t.TempDir()
	command := filepath.Join(dir, "zkcoord")
	compile := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", command,
		"./cmd/zkcoord")
	compile.Dir, compile.Env = "../../..", append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	other := "arm64"
	if runtime.GOARCH == other {
		other = "amd64"
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	zones := filepath.Join(strings.TrimSpace(string(goroot)), "lib", "time", "zoneinfo.zip")
	archive = filepath.Join(dir, "image.tar")
	is, err := write(archive, version, "c0ffee", "1700000000", zones,
		[]string{runtime.GOARCH + "=" + command, other + "=" + command})
	if err != nil {
		t.Fatal(err)
	}
	return archive, is.String()
}

// unpack writes an archive's files into a folder.
func unpack(t *testing.T, r io.Reader, dir string) {
	t.Helper()
	archive := tar.NewReader(r)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(to, 0o755)
		} else {
			var data []byte
			if data, err = io.ReadAll(archive); err == nil {
				err = errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, data, 0o644))
			}
		}
		if err == nil {
			err = os.Chmod(to, h.FileInfo().Mode())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// load makes an archive, and reads the image of this machine's architecture
// from it, as an engine does.
func load(t *testing.T) v1.Image {
	t.Helper()
	archive, digest := build(t)
	dir := t.TempDir()
	data, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	unpack(t, bytes.NewReader(data), dir)
	images, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := images.IndexManifest()
	if err != nil || len(entries.Manifests) != 1 || entries.Manifests[0].Digest.String() != digest {
		t.Fatalf("%v: %+v, and not one index, %s", err, entries, digest)
	}
	index, err := images.ImageIndex(entries.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	platforms, err := index.IndexManifest()
	if err != nil || len(platforms.Manifests) != 2 {
		t.Fatalf("%v: %+v, and not two platforms", err, platforms)
	}
	for _, p := range platforms.Manifests {
		if p.Platform.OS == "linux" && p.Platform.Architecture == runtime.GOARCH {
			img, err := index.Image(p.Digest)
			if err != nil {
				t.Fatal(err)
			}
			return img
		}
	}
	t.Fatalf("no image for %s: %+v", runtime.GOARCH, platforms.Manifests)
	return nil
}

func TestAnImageIsTheSameToTheDigestWhereverItIsMade(t *testing.T) {
	one, first := build(t)
	two, second := build(t)
	a, errA := os.ReadFile(one)
	b, errB := os.ReadFile(two)
	if errA != nil || errB != nil || first != second || !bytes.Equal(a, b) {
		t.Fatalf("%s and %s, of %d and %d bytes: %v", first, second, len(a), len(b), errors.Join(errA, errB))
	}
}

func TestTheImageHasTheCommandCertificatesAndItsVersion(t *testing.T) {
	img := load(t)
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c := config.Config
	if c.User != "65532:65532" || len(c.Entrypoint) != 1 || c.Entrypoint[0] != "/usr/bin/zkcoord" ||
		c.Labels["org.opencontainers.image.version"] != version || c.Labels["org.opencontainers.image.revision"] != "c0ffee" {
		t.Errorf("configuration: %+v", c)
	}
	root := t.TempDir()
	unpack(t, mutate.Extract(img), root)
	if zones, err := zip.OpenReader(root + "/" + zonesInside); err != nil {
		t.Errorf("time zones: %v", err)
	} else if _, err := zones.Open("Europe/Zurich"); err != nil {
		t.Errorf("a time zone: %v", err)
	}
	pem, err := os.ReadFile(root + "/etc/ssl/certs/ca-certificates.crt")
	if err != nil || !x509.NewCertPool().AppendCertsFromPEM(pem) || strings.Count(string(pem), "BEGIN CERTIFICATE") < 100 {
		t.Errorf("%v: certificates of %d bytes", err, len(pem))
	}
	if tmp, err := os.Stat(root + "/tmp"); err != nil || tmp.Mode()&(os.ModeSticky|0o777) != os.ModeSticky|0o777 {
		t.Errorf("/tmp: %v, %v", tmp, err)
	}
}

// The test runs the command in the image's files, as the image's user, with
// what an engine mounts. That takes root, and no engine.
func TestTheCommandRunsInTheImage(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("root alone can change the root of a process")
	}
	root := t.TempDir()
	unpack(t, mutate.Extract(load(t)), root)
	for dir := root; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) { // for its user to enter
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	proc := filepath.Join(root, "proc")
	if err := errors.Join(os.Mkdir(proc, 0o755), syscall.Mount("proc", proc, "proc", 0, "")); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Unmount(proc, syscall.MNT_DETACH) }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	in := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "/usr/bin/zkcoord", args...)
		cmd.Dir, cmd.Env = "/", []string{"PATH=/usr/bin", "HOME=/"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: user, Gid: user}}
		return cmd
	}
	if out, err := in("version").CombinedOutput(); err != nil || !strings.Contains(string(out), "zkcoord") {
		t.Fatalf("version: %v: %s", err, out)
	}
	server := in("server", "--addr", "127.0.0.1:0")
	said, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	}()
	address, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	locked := in("lock", "/nightly", "--", "/usr/bin/zkcoord", "held")
	locked.Env = append(locked.Env, "ZK_SERVERS="+strings.TrimSpace(address))
	if out, err := locked.CombinedOutput(); err != nil {
		t.Fatalf("a command under a lock: %v: %s", err, out)
	}
}
