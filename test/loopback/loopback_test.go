package loopback

import (
	"net"
	"testing"
)

func TestAddressesCanBeListenedOnAndAreNeverTheSame(t *testing.T) {
	for range 50 {
		l, err := net.Listen("tcp", Address(t))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		if port := l.Addr().(*net.TCPAddr).Port; port < firstPort || port > lastPort {
			t.Errorf("port %d is one that outgoing connections get", port)
		}
	}
}

func TestPortsInUseAreNotGiven(t *testing.T) {
	taken, err := net.Listen("tcp", Address(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	inUse := taken.Addr().(*net.TCPAddr).Port
	givenBefore, err := Port()
	if err != nil {
		t.Fatal(err)
	}
	draws := 0
	port, err := free(func() int {
		draws++
		switch draws {
		case 1:
			return inUse
		case 2:
			return givenBefore
		}
		return firstPort + draws
	})
	if err != nil || port == inUse || port == givenBefore {
		t.Errorf("with %d in use and %d given before, the port is %d (%v)", inUse, givenBefore, port, err)
	}
	if port, err := free(func() int { return inUse }); err == nil {
		t.Errorf("with nothing but a port in use, port %d is given", port)
	}
}
