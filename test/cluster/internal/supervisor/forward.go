package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Forward is a TCP address that leads to another.
type Forward struct {
	// Listen is host:port. The machine need not have the address yet: that of the pod
	// network's gateway comes with the first pod.
	Listen string
	// To is the host:port that connections are passed on to.
	To string
}

// Forward passes connections on, until the supervisor ends.
func (s *Supervisor) Forward(f Forward) error {
	if err := s.request(request{Forward: &f}); err != nil {
		return fmt.Errorf("leading %s to %s: %w", f.Listen, f.To, err)
	}
	return nil
}

// forward listens. What is accepted is served on goroutines that share nothing with
// the server and end with its process.
func forward(f Forward) error {
	config := net.ListenConfig{Control: freeBind}
	l, err := config.Listen(context.Background(), "tcp4", f.Listen)
	if err != nil {
		return err
	}
	go func() {
		for {
			conn, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				log.Printf("accepting on %s: %v", f.Listen, err) // The kernel is short of something.
				<-time.After(acceptPause)
				continue
			}
			go pass(conn.(*net.TCPConn), f.To)
		}
	}()
	return nil
}

// acceptPause keeps a failing accept from taking a whole core.
const acceptPause = 100 * time.Millisecond

func freeBind(_, _ string, c syscall.RawConn) error {
	var set error
	err := c.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_FREEBIND, 1)
	})
	return errors.Join(err, set)
}

// pass connects conn with the address and returns when both directions have ended.
func pass(conn *net.TCPConn, to string) {
	defer func() { _ = conn.Close() }() // There is nobody to tell.
	dialled, err := (&net.Dialer{}).Dial("tcp4", to)
	if err != nil {
		return // The caller sees its connection close.
	}
	server := dialled.(*net.TCPConn)
	defer func() { _ = server.Close() }()
	var both sync.WaitGroup
	both.Go(func() { stream(server, conn) })
	both.Go(func() { stream(conn, server) })
	both.Wait()
}

// stream copies until the end of from, and tells to of it.
func stream(to, from *net.TCPConn) {
	if _, err := io.Copy(to, from); err != nil {
		// One side broke off: the other has nobody to talk to any more.
		_, _ = from.Close(), to.Close()
		return
	}
	_ = to.CloseWrite() // It may have gone first.
}
