package jvm

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/plimsoll-dev/plimsoll/build"
	"github.com/plimsoll-dev/plimsoll/test/image"
)

// packages hold the JDK and the libraries that its own programs and the JVM in
// the image are linked with.
var packages = []string{
	"openjdk-17-jdk-headless", "openjdk-17-jre-headless", "libc6", "zlib1g", "libgcc-s1", "libstdc++6",
}

// modules of Java are all that Heap.java uses.
const modules = "java.base,jdk.httpserver"

// libraries are copied into the image, by patterns below the unpacked packages.
var libraries = []string{
	"lib64/ld-linux-*.so.*", "lib/*-linux-gnu*/ld-linux-*.so.*",
	"lib/*-linux-gnu*/libc.so.6", "lib/*-linux-gnu*/libm.so.6", "lib/*-linux-gnu*/libdl.so.2",
	"lib/*-linux-gnu*/libpthread.so.0", "lib/*-linux-gnu*/librt.so.1",
	"lib/*-linux-gnu*/libz.so.1*", "lib/*-linux-gnu*/libgcc_s.so.1", "usr/lib/*-linux-gnu*/libstdc++.so.6*",
}

// assemble makes the image's tar in a directory of its own that is removed again.
func assemble(ctx context.Context, tar string) error {
	dir, err := os.MkdirTemp("", "plimsoll-jvm-")
	if err != nil {
		return fmt.Errorf("making a directory to build the JVM image in: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // A temporary directory: nothing depends on it.

	b := builder{ctx: ctx, dir: dir}
	b.unpack()
	b.link()
	b.compile()
	b.copyLibraries()
	b.makeDirectories("tmp", "proc", "dev", "sys", "etc")
	if b.err != nil {
		return fmt.Errorf("building the JVM image: %w", b.err)
	}
	return image.Write(tar, image.Config{
		Reference:  Reference,
		Entrypoint: []string{"/opt/jre/bin/java", "-cp", "/opt/app", "Heap"},
	}, build.Dir(b.root()))
}

// builder runs the steps one after the other; after the first error the rest do
// nothing.
type builder struct {
	ctx context.Context
	dir string
	err error
}

// debian is where the packages are unpacked, root what the image will hold.
func (b *builder) debian() string { return filepath.Join(b.dir, "debian") }
func (b *builder) root() string   { return filepath.Join(b.dir, "root") }

func (b *builder) unpack() {
	b.run("apt-get", "update") // A new machine has no lists, or old ones.
	b.run("apt-get", append([]string{"-o", "APT::Sandbox::User=root", "download"}, packages...)...)
	for _, deb := range b.glob(filepath.Join(b.dir, "*.deb")) {
		b.run("dpkg", "-x", deb, b.debian())
	}
}

func (b *builder) link() {
	b.run(b.jdk("jlink"), "--add-modules", modules, "--strip-debug", "--no-header-files", "--no-man-pages",
		"--compress=2", "--output", filepath.Join(b.root(), "opt", "jre"))
}

func (b *builder) compile() {
	file := filepath.Join(b.dir, "Heap.java")
	if b.err == nil {
		b.err = os.WriteFile(file, source, 0o644)
	}
	b.run(b.jdk("javac"), "-d", filepath.Join(b.root(), "opt", "app"), file)
}

// jdk finds one of the JDK's programs. It runs on the machine's own libraries.
func (b *builder) jdk(program string) string {
	found := b.glob(filepath.Join(b.debian(), "usr/lib/jvm/java-17-*", "bin", program))
	if b.err != nil {
		return ""
	}
	return found[0]
}

func (b *builder) copyLibraries() {
	for _, pattern := range libraries {
		for _, file := range b.glob(filepath.Join(b.debian(), pattern)) {
			b.copy(file)
		}
	}
}

// copy puts a file of a package to the same place in the image. Links become
// files: their targets may be absolute, and would be looked for on this machine.
func (b *builder) copy(file string) {
	if b.err != nil {
		return
	}
	rel, err := filepath.Rel(b.debian(), file)
	if err != nil {
		b.err = err
		return
	}
	content, err := os.ReadFile(b.resolve(file))
	if err != nil {
		b.err = err
		return
	}
	dst := filepath.Join(b.root(), rel)
	if b.err = os.MkdirAll(filepath.Dir(dst), 0o755); b.err == nil {
		b.err = os.WriteFile(dst, content, 0o755)
	}
}

// resolve follows one link within the unpacked packages.
func (b *builder) resolve(file string) string {
	target, err := os.Readlink(file)
	switch {
	case err != nil:
		return file
	case filepath.IsAbs(target):
		return filepath.Join(b.debian(), target)
	}
	return filepath.Join(filepath.Dir(file), target)
}

func (b *builder) makeDirectories(names ...string) {
	for _, name := range names {
		if b.err == nil {
			b.err = os.MkdirAll(filepath.Join(b.root(), name), 0o755)
		}
	}
}

func (b *builder) glob(pattern string) []string {
	if b.err != nil {
		return nil
	}
	found, err := filepath.Glob(pattern)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("looking for %s: %w", filepath.Base(pattern), fs.ErrNotExist)
	}
	b.err = err
	return found
}

func (b *builder) run(program string, args ...string) {
	if b.err != nil {
		return
	}
	cmd := exec.CommandContext(b.ctx, program, args...)
	cmd.Dir = b.dir
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		b.err = fmt.Errorf("running %s: %w: %s", filepath.Base(program), err, strings.TrimSpace(output.String()))
	}
}
