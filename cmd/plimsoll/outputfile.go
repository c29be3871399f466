package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
)

// outputFile is the file that a command writes into; empty is standard output.
type outputFile string

func (o *outputFile) bind(f *pflag.FlagSet) {
	f.StringVar((*string)(o), "output-file", "", "file to write into, whole or not at all, instead of standard output")
}

// check refuses a file that could not be written, before anything is loaded.
func (o outputFile) check() error {
	if o == "" {
		return nil
	}
	if err := checkWritable(string(o)); err != nil {
		return fmt.Errorf("--output-file: %w", err)
	}
	return nil
}

// write lets a command write into the file, or to the stream without one.
func (o outputFile) write(ctx context.Context, std io.Writer, write func(io.Writer) error) error {
	if o == "" {
		return write(std)
	}
	if err := writeFile(ctx, string(o), write); err != nil {
		return fmt.Errorf("--output-file: %w", err)
	}
	return nil
}

// stream is what is written to, for who asks whether it is a terminal.
func (o outputFile) stream(std io.Writer) io.Writer {
	if o == "" {
		return std
	}
	return io.Discard
}

// checkWritable refuses a folder, and a file in a folder that is not there.
func checkWritable(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a folder: name a file", path)
	}
	info, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is no folder", filepath.Dir(path))
	}
	return nil
}

// newFileMode is what a file gets that was not there; the umask does not count,
// as it does not for the one that replaces a file.
const newFileMode fs.FileMode = 0o644

// writeFile writes a file whole or not at all: into another one in the same
// folder, which takes its place, and its mode, when all of it is on the disk. A
// link is followed. What is no regular file, such as /dev/stdout, is written to
// as it is.
func writeFile(ctx context.Context, path string, write func(w io.Writer) error) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	mode := newFileMode
	if info, err := os.Stat(path); err == nil {
		if !info.Mode().IsRegular() {
			return writeThrough(path, write)
		}
		mode = info.Mode().Perm()
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	err = errors.Join(fill(f, write), f.Chmod(mode), f.Sync(), f.Close(), ctx.Err())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncFolder(filepath.Dir(path))
}

func writeThrough(path string, write func(w io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(fill(f, write), f.Close())
}

func fill(f *os.File, write func(w io.Writer) error) error {
	w := bufio.NewWriter(f)
	return errors.Join(write(w), w.Flush())
}

// syncFolder makes a new name in a folder last. Where folders cannot be synced,
// the file itself is on the disk all the same.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return nil //nolint:nilerr // A folder may be writable and not readable.
	}
	defer folder.Close()
	if err := folder.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrInvalid) {
		return err
	}
	return nil
}
