package memnet

import (
	"net"
	"syscall"
	"testing"
)

// short is a listener whose first Accept fails because the process has no file descriptor left.
type short struct {
	net.Listener
	failed bool
}

func (s *short) Accept() (net.Conn, error) {
	if !s.failed {
		s.failed = true
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: syscall.EMFILE}
	}
	return s.Listener.Accept()
}

// TestAcceptFailsForAMoment checks that an address opened by Listen is still served after that.
func TestAcceptFailsForAMoment(t *testing.T) {
	t.Parallel()
	tcp, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := NewListener("localhost:443")
	if err := l.Add(&short{Listener: tcp}); err != nil {
		t.Fatal(err)
	}
	client, err := new(net.Dialer).DialContext(t.Context(), "tcp", tcp.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	ended := make(chan struct{})
	go func() {
		l.feeding.Wait()
		close(ended)
	}()
	select {
	case served := <-l.conns:
		_ = served.Close()
	case <-ended:
		t.Error("nothing is accepted any more")
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	<-ended
}
