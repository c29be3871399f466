package cluster

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-dev/plimsoll/test/cluster/internal/retry"
)

// links lists the machine's network links.
func links() ([]string, error) {
	entries, err := os.ReadDir("/sys/class/net")
	if err != nil {
		return nil, fmt.Errorf("listing the network links: %w", err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}

// linksTimeout is how long the kernel gets to remove the pods' links: it does so
// in the background, after the last process of a network namespace has gone.
const linksTimeout = 20 * time.Second

// awaitLinks waits until no pod's link is there that was not among before.
func awaitLinks(before []string) error {
	return retry.For(linksTimeout, func() error {
		now, err := links()
		if err != nil {
			return err
		}
		now = slices.DeleteFunc(now, func(name string) bool {
			return !strings.HasPrefix(name, "veth") || slices.Contains(before, name)
		})
		if len(now) > 0 {
			return fmt.Errorf("stopping the cluster: network links are left: %s", strings.Join(now, " "))
		}
		return nil
	})
}
