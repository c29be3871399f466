package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are drawn from below what Linux gives to outgoing connections (32768 and
// up), so that none of those can take one between the draw and the server's start.
const (
	firstPort = 20000
	lastPort  = 31999
)

// freePort returns a loopback port that nobody listens on.
func freePort() (int, error) {
	const attempts = 100
	for range attempts {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		l, err := net.Listen("tcp", loopback(port))
		if err != nil {
			continue
		}
		return port, l.Close()
	}
	return 0, errors.New("looking for a free port: none found")
}

// freePorts fills each of the ports.
func freePorts(ports ...*int) error {
	taken := map[int]bool{}
	for _, p := range ports {
		for *p == 0 || taken[*p] {
			port, err := freePort()
			if err != nil {
				return err
			}
			*p = port
		}
		taken[*p] = true
	}
	return nil
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func httpURL(port int) string  { return fmt.Sprintf("http://127.0.0.1:%d", port) }
func httpsURL(port int) string { return fmt.Sprintf("https://127.0.0.1:%d", port) }
