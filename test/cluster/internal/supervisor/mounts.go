package supervisor

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// mountPoints returns where file systems of the wanted types are mounted, in the
// order of mounting.
func mountPoints(want func(fsType string) bool) ([]string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var points []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		// The number of fields before the dash varies.
		before, after, ok := strings.Cut(lines.Text(), " - ")
		fields, types := strings.Fields(before), strings.Fields(after)
		if ok && len(fields) > 4 && len(types) > 0 && want(types[0]) {
			points = append(points, unescape(fields[4]))
		}
	}
	return points, lines.Err()
}

// unescape undoes the kernel's octal escapes for blanks and backslashes.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// unmountBelow unmounts everything at or below the given paths, the last mounted
// first. A mount in use goes from sight now and for good with its last user.
func unmountBelow(paths ...string) error {
	points, err := mountPoints(func(string) bool { return true })
	if err != nil {
		return fmt.Errorf("listing the mounts: %w", err)
	}
	slices.Reverse(points)
	for _, point := range points {
		for _, path := range paths {
			if point != path && !strings.HasPrefix(point, path+"/") {
				continue
			}
			if err := unix.Unmount(point, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
				return fmt.Errorf("unmounting %s: %w", point, err)
			}
			break
		}
	}
	return nil
}
