package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/embed"
)

// Server is a running member. All methods may be called concurrently.
type Server struct {
	etcd      *embed.Etcd
	endpoints []string
	lock      *fileutil.LockedFile
	failure   *failure
	streams   *streams

	close   func() // makes run stop the server
	closing <-chan struct{}
	done    chan struct{} // closed when run has ended
	err     error         // why the server stopped by itself; set before done is closed
	left    error         // the error of Close; set before done is closed
}

// Start starts a member and returns when it serves clients. A single member does so at once, one of several members when a
// majority of them is running. ctx bounds the start only. The caller closes the server.
//
// Errors name what is wrong with the options, the directory (it cannot be written, is in use, or has the data of a newer etcd
// or of another cluster) or the addresses. With these errors nothing in the directory is changed. After an error from etcd's
// own start, such as a damaged log, files that etcd had opened may stay open until the process ends.
func Start(ctx context.Context, o Options) (*Server, error) {
	o, err := o.checked()
	if err != nil {
		return nil, err
	}
	s, err := start(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("embedded etcd in %s: %w", o.Dir, err)
	}
	return s, nil
}

func start(ctx context.Context, o Options) (*Server, error) {
	lock, err := claim(o.Dir)
	if err != nil {
		return nil, err
	}
	d, err := readDatabase(o.Dir)
	if err == nil {
		err = d.check(o)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	closing, stop := context.WithCancel(context.Background())
	s := &Server{lock: lock, failure: newFailure(), streams: newStreams(), close: stop, closing: closing.Done(), done: make(chan struct{})}
	if err := s.launch(o); err != nil {
		stop()
		return nil, errors.Join(err, lock.Close())
	}
	go s.run()
	if err := s.ready(ctx, o); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// launch starts etcd. A port that was free when it was chosen may be taken before etcd binds it. In that case another one is
// chosen.
func (s *Server) launch(o Options) error {
	for tries := 10; ; tries-- {
		addr, chosen, err := choosePort(o.ListenClient)
		if err != nil {
			return err
		}
		cfg := o.config(addr, s.failure.logger(o.Logger), s.streams.options())
		err = s.startEtcd(cfg)
		if chosen && tries > 1 && errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err == nil {
			u := cfg.AdvertiseClientUrls[0]
			s.endpoints = []string{u.String()}
		}
		return err
	}
}

// choosePort replaces port 0 by a free one. etcd sends clients and members the address in its configuration, so the port must
// be known before etcd listens.
func choosePort(addr string) (_ string, chosen bool, err error) {
	if _, port, _ := net.SplitHostPort(addr); port != "0" {
		return addr, false, nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return "", false, err
	}
	return l.Addr().String(), true, l.Close()
}

// startEtcd runs etcd's start in its own goroutine, because the failure hook ends that goroutine where etcd would have ended
// the process.
func (s *Server) startEtcd(cfg *embed.Config) error {
	type started struct {
		etcd *embed.Etcd
		err  error
	}
	result := make(chan started, 1)
	go func() {
		defer close(result)
		e, err := embed.StartEtcd(cfg)
		result <- started{e, err}
	}()
	select {
	case r, ok := <-result:
		if !ok {
			return s.failure.reason()
		}
		s.etcd = r.etcd
		return r.err
	case <-s.failure.happened:
		go func() {
			if r, ok := <-result; ok && r.err == nil {
				r.etcd.Close()
			}
		}()
		return s.failure.reason()
	}
}

// ready waits until the member has joined its cluster and serves.
func (s *Server) ready(ctx context.Context, o Options) error {
	select {
	case <-s.etcd.Server.ReadyNotify():
	case <-s.done:
		return s.err
	case <-ctx.Done():
		if o.Peers != nil && s.etcd.Server.Leader() == 0 {
			return fmt.Errorf("no leader was found among the members %q: %w", o.Peers, context.Cause(ctx))
		}
		return context.Cause(ctx)
	}
	// Only now etcd has read the log, which has the members.
	members := map[string]bool{}
	for _, m := range s.etcd.Server.Cluster().Members() {
		members[m.Name] = true
		for _, u := range m.PeerURLs {
			members[u] = true
		}
	}
	for name, u := range o.peerURLs() {
		if !members[u.String()] {
			return fmt.Errorf("its cluster does not know the member %q of Peers, at %s: add it first with etcdctl member add", name, u.String())
		}
	}
	return nil
}

// Endpoints returns the URLs at which clients reach this member.
func (s *Server) Endpoints() []string { return append([]string(nil), s.endpoints...) }

// Done returns a channel that is closed when the server has stopped, by Close or by itself.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err returns the reason why the server stopped by itself: its data cannot be written, or the member was removed from its
// cluster. It is nil while the server runs and after Close.
func (s *Server) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}

// Close stops the server and waits until it has stopped; a second Close does the same. Calls of clients in progress get some
// seconds to end; watches end at once. After a failure of the server, etcd sometimes cannot stop. Then Close returns an
// error, and the directory stays in use until the process ends.
func (s *Server) Close() error {
	s.close()
	<-s.done
	return s.left
}

// run waits for the end of the server, and stops all parts of it.
func (s *Server) run() {
	defer close(s.done)
	select {
	case <-s.closing:
	case <-s.failure.happened:
		s.err = s.failure.reason()
	case err, ok := <-s.etcd.Err():
		if !ok {
			err = errors.New("etcd has stopped")
		}
		s.err = fmt.Errorf("etcd cannot serve: %w", err)
	case <-s.etcd.Server.StopNotify():
		// etcd stops by itself for this reason alone. The other members may tell it before it has the removal in its own log.
		s.err = errors.New("the member was removed from its cluster: its directory is of no more use")
	}
	s.left = s.stop()
}

// hangTime is how long an etcd that has failed may take to stop. Some of its goroutines wait for others that have ended.
const hangTime = 3 * time.Second

// stop stops etcd. If etcd hangs, its directory stays locked.
func (s *Server) stop() error {
	s.streams.end()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-s.etcd.Server.ReadyNotify():
		default:
			s.etcd.Server.Stop() // Close would wait for a listener that waits for a leader
		}
		s.etcd.Close()
	}()
	var hangs <-chan time.Time
	if s.failure.reason() != nil {
		hangs = time.After(hangTime)
	}
	select {
	case <-stopped:
		return s.lock.Close()
	case <-hangs:
		return fmt.Errorf("etcd does not stop after: %w", s.failure.reason())
	}
}
