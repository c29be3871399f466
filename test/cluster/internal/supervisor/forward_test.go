package supervisor

import (
	"io"
	"net"
	"testing"

	"github.com/plimsoll-dev/plimsoll/test/loopback"
)

func TestForwardPassesBothDirectionsToTheirEnd(t *testing.T) {
	server, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	// The server answers once it has heard the end: the half-closed connection must
	// stay open the other way.
	go func() {
		conn, err := server.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		heard, _ := io.ReadAll(conn)
		_, _ = conn.Write(append([]byte("heard "), heard...))
	}()

	s, _ := launch(t)
	at := loopback.Address(t)
	if err := s.Forward(Forward{Listen: at, To: server.Addr().String()}); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp4", at)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write([]byte("this")); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); err != nil || string(got) != "heard this" {
		t.Errorf("the answer is %q, %v", got, err)
	}
}

func TestForwardListensWhereTheMachineHasNoAddressYet(t *testing.T) {
	s, _ := launch(t)
	const gateway = "198.18.255.254:20443" // Of the network that is set aside for benchmarks.
	if err := s.Forward(Forward{Listen: gateway, To: "127.0.0.1:1"}); err != nil {
		t.Error(err)
	}
	if err := s.Forward(Forward{Listen: gateway, To: "127.0.0.1:1"}); err == nil {
		t.Error("listening a second time at the same address is no error")
	}
}

func TestForwardToNobodyClosesTheConnection(t *testing.T) {
	s, _ := launch(t)
	at := loopback.Address(t)
	if err := s.Forward(Forward{Listen: at, To: loopback.Address(t)}); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp4", at)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.ReadAll(conn); err != nil {
		t.Errorf("reading gave %v, want the end", err)
	}
}
