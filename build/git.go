package build

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"time"
)

// ReadSource asks git about the checkout in dir: the version is the tag, or what
// `git describe` makes of it, with "-dirty" where files were changed. The time is
// that of the commit, also in a changed tree.
func ReadSource(ctx context.Context, dir string) (Source, error) {
	var s Source
	var seconds string
	for _, ask := range []struct {
		into *string
		args []string
	}{
		{&s.Version, []string{"describe", "--tags", "--always", "--dirty"}},
		{&s.Revision, []string{"rev-parse", "HEAD"}},
		{&seconds, []string{"log", "-1", "--format=%ct"}},
	} {
		out, err := git(ctx, dir, ask.args...)
		if err != nil {
			return s, err
		}
		*ask.into = out
	}
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return s, fmt.Errorf("reading the time of the commit: %w", err)
	}
	s.Created = time.Unix(at, 0).UTC()
	return s, nil
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("asking git for the version (--version needs none): %w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	return string(bytes.TrimSpace(out)), nil
}
