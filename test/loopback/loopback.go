// Package loopback finds addresses on loopback for servers that tests start.
package loopback

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

// Ports are drawn from below what Linux gives to outgoing connections (32768 and
// up), so that none of those can take one between the draw and the server's start.
const (
	firstPort = 20000
	lastPort  = 31999
)

// given are the ports that this process has been given: whoever was may not
// listen yet.
var given sync.Map

// Port returns a port that nobody listens on, and that Port has not returned
// before in this process. It is an error where none is found.
func Port() (int, error) {
	return free(func() int { return firstPort + rand.IntN(lastPort-firstPort+1) })
}

func free(draw func() int) (int, error) {
	const attempts = 100
	for range attempts {
		port := draw()
		l, err := net.Listen("tcp", At(port))
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			return 0, fmt.Errorf("giving port %d free again: %w", port, err)
		}
		if _, before := given.LoadOrStore(port, true); !before {
			return port, nil
		}
	}
	return 0, errors.New("looking for a free port: none found")
}

// At is the loopback address of a port.
func At(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// Address is that of a port as Port returns it.
func Address(t testing.TB) string {
	t.Helper()
	port, err := Port()
	if err != nil {
		t.Fatal(err)
	}
	return At(port)
}
