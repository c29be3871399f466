package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// asCommand makes the test binary be the command itself, for tests of what a
// process does with signals.
const asCommand = "PLIMSOLL_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	os.Exit(m.Run())
}

// TestCtrlCLeavesTheOldFileWhole interrupts the real process while the server
// thinks about its first answer.
func TestCtrlCLeavesTheOldFileWhole(t *testing.T) {
	manifests := folder(t, map[string]string{"a.yaml": deployment("shop", "a", "{}")})
	for verb, args := range map[string][]string{"recommend": nil, "explain": {"a"}, "backtest": nil} {
		t.Run(verb, func(t *testing.T) {
			asked := make(chan struct{}, 100)
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				asked <- struct{}{}
				<-r.Context().Done()
			}))
			defer server.Close()
			path := filepath.Join(folder(t, map[string]string{"out": "what was there"}), "out")
			args := append(append([]string{verb}, args...), "--prometheus", server.URL, "--manifests", manifests, "--output-file", path)
			cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
			cmd.Env = append(os.Environ(), asCommand+"=1")
			var errs bytes.Buffer
			cmd.Stderr = &errs
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			<-asked
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			err := cmd.Wait()
			if cmd.ProcessState.ExitCode() != exitInterrupted || !strings.Contains(errs.String(), "Interrupted") {
				t.Errorf("%v: %s", err, errs.String())
			}
			onlyFile(t, path, "what was there")
		})
	}
}

// onlyFile fails where the file is not what it should be, or not alone.
func onlyFile(t *testing.T, path, want string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil || string(text) != want {
		t.Errorf("%s is %q, want %q: %v", path, text, want, err)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("the folder holds %v", left)
	}
}

func TestEveryCommandWritesItsFile(t *testing.T) {
	for verb, args := range map[string][]string{"recommend": nil, "explain": {"checkout"}, "backtest": {"--strategies", "none"}} {
		t.Run(verb, func(t *testing.T) {
			args := append(append([]string{verb}, args...), examples...)
			want := execute(t, "", args...)
			path := filepath.Join(t.TempDir(), "out")
			got := execute(t, "", append(args, "--output-file", path)...)
			if got.code != 0 || got.out != "" || got.err != want.err {
				t.Errorf("exit code %d, output %q, errors %q", got.code, got.out, got.err)
			}
			onlyFile(t, path, want.out)
		})
	}
}

func TestAFileIsWrittenWholeOrNotAtAll(t *testing.T) {
	full := errors.New("disk full")
	write := func(text string, err error) func(io.Writer) error {
		return func(w io.Writer) error {
			fmt.Fprint(w, text)
			return err
		}
	}
	path := filepath.Join(folder(t, map[string]string{"out": "old"}), "out")
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeFile(t.Context(), path, write("half", full)); !errors.Is(err, full) {
		t.Errorf("%v, want %v", err, full)
	}
	onlyFile(t, path, "old")
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	if err := writeFile(interrupted, path, write("new", nil)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that it was interrupted", err)
	}
	onlyFile(t, path, "old")
	if err := writeFile(t.Context(), path, write("new", nil)); err != nil {
		t.Fatal(err)
	}
	onlyFile(t, path, "new")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, want that of the file before: %v", info.Mode(), err)
	}
	fresh := filepath.Join(t.TempDir(), "out")
	if err := writeFile(t.Context(), fresh, write("new", nil)); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(fresh); err != nil || info.Mode().Perm() != newFileMode {
		t.Errorf("mode %v of a new file: %v", info.Mode(), err)
	}
}

func TestALinkStaysOneAndADeviceIsNotReplaced(t *testing.T) {
	root := folder(t, map[string]string{"real/out": "old"})
	link := filepath.Join(root, "link")
	if err := os.Symlink(filepath.Join(root, "real", "out"), link); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(root, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	hello := func(w io.Writer) error { _, err := io.WriteString(w, "hello"); return err }
	read := make(chan string, 1)
	go func() {
		text, err := os.ReadFile(pipe)
		read <- fmt.Sprint(string(text), err)
	}()
	for _, path := range []string{link, pipe} {
		if err := writeFile(t.Context(), path, hello); err != nil {
			t.Fatal(err)
		}
	}
	if got := <-read; got != "hello<nil>" {
		t.Errorf("the pipe gave %s", got)
	}
	onlyFile(t, filepath.Join(root, "real", "out"), "hello")
	for path, want := range map[string]fs.FileMode{link: fs.ModeSymlink, pipe: fs.ModeNamedPipe} {
		if info, err := os.Lstat(path); err != nil || info.Mode().Type() != want {
			t.Errorf("%s became a %v: %v", path, info.Mode(), err)
		}
	}
}

func TestAFileThatCannotBeWrittenIsRefusedFirst(t *testing.T) {
	for path, want := range map[string]string{t.TempDir(): "is a folder", filepath.Join(t.TempDir(), "none", "out"): "no such file"} {
		for _, verb := range []string{"recommend", "backtest"} {
			r := execute(t, "", append([]string{verb, "--output-file", path, "-o", "xml"}, examples...)...)
			for _, want := range []string{"--output-file", want, "--output:"} { // All faults at once.
				if r.code != exitError || !strings.Contains(r.err, want) {
					t.Errorf("%s: exit code %d, and %q is missing in: %s", verb, r.code, want, r.err)
				}
			}
		}
	}
}
