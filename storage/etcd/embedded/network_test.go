package embedded_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/etcd"
	"github.com/keelson-dev/keelson/storage/etcd/embedded"
	"github.com/keelson-dev/keelson/storage/storagetest"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// address is an endpoint without its scheme.
func address(t testing.TB, endpoint string) string {
	t.Helper()
	u, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

func TestBrokenConnections(t *testing.T) {
	t.Parallel()
	s := start(t, embedded.Options{})
	p := storagetest.NewProxy(t, address(t, s.Endpoints()[0]))
	o := etcd.Options{Endpoints: []string{p.Addr()}}
	strikes := []func(){
		func() { p.Cut(); p.Throttle(20 << 10) },
		p.BlackHole,
		p.Refuse,
	}
	n := 0
	storagetest.Faults(t, storagetest.Faulty{
		Backends: []storage.Backend{open(t, o), open(t, o)},
		Faults: []storagetest.Fault{{
			Name:   "cut and slow, silent, refused",
			Strike: func(*testing.T) { strikes[n%len(strikes)](); n++ },
			Heal:   func(*testing.T) { p.Heal() },
		}},
	})
}

// stalling forwards TCP connections, and stops one of them after it has sent so many bytes to the client: a connection full
// of a response that is not read fast enough.
type stalling struct {
	listener net.Listener
	target   string
	limit    int64
	stalled  chan struct{} // receives a token for each connection that was stopped
	release  chan struct{} // closed: all connections continue
	work     sync.WaitGroup

	mu    sync.Mutex // guards conns
	conns []net.Conn
}

func newStalling(t *testing.T, target string, limit int64) *stalling {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &stalling{listener: l, target: target, limit: limit, stalled: make(chan struct{}, 100), release: make(chan struct{})}
	p.work.Go(p.accept)
	t.Cleanup(func() {
		p.free()
		l.Close()
		p.mu.Lock()
		for _, c := range p.conns {
			c.Close()
		}
		p.mu.Unlock()
		p.work.Wait()
	})
	return p
}

func (p *stalling) free() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.release:
	default:
		close(p.release)
	}
}

func (p *stalling) accept() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", p.target)
		if err != nil {
			near.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, near, far)
		p.mu.Unlock()
		p.work.Go(func() { io.Copy(far, near); far.Close() })
		p.work.Go(func() {
			defer near.Close()
			if _, err := io.CopyN(near, far, p.limit); err != nil {
				return
			}
			p.stalled <- struct{}{}
			<-p.release
			io.Copy(near, far)
		})
	}
}

// fillLarge writes so many MiB under large/.
func fillLarge(t *testing.T, c *clientv3.Client, mib int) {
	t.Helper()
	value := string(bytes.Repeat([]byte("0123456789abcdef"), 1<<16))
	for i := range mib {
		mustPut(t, c, fmt.Sprintf("large/%03d", i), value)
	}
}

// A large response over TLS whose connection is stuck delays neither watches nor small reads and writes, because these have
// connections of their own. With one connection for everything it would.
func TestListDoesNotStarveWatches(t *testing.T) {
	ca := newAuthority(t)
	files := ca.files(t, "server")
	files.CAFile = ""
	s := start(t, embedded.Options{ClientTLS: files})
	fillLarge(t, raw(t, clientv3.Config{Endpoints: s.Endpoints(), TLS: ca.client(t, "")}), 16)

	t.Run("three connections", func(t *testing.T) {
		p := newStalling(t, address(t, s.Endpoints()[0]), 2<<20)
		b := open(t, etcd.Options{Endpoints: []string{"https://" + p.listener.Addr().String()}, TLS: ca.client(t, "")})
		ctx := bounded(t)
		f, err := b.Watch(ctx, storage.WatchRange{Prefix: "k", From: revision(t, b)})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		listed := list(ctx, b)
		<-p.stalled
		for i := range 100 {
			res, err := b.Commit(ctx, storage.Commit{Key: "k", Expect: storage.AnyRevision, Value: fmt.Append(nil, i)})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := f.Next(ctx); err != nil || len(got.Changes) != 1 || got.Changes[0].Revision != res.Revision {
				t.Fatalf("Next: %+v, %v; want revision %d", got, err, res.Revision)
			}
			if got, err := b.Get(ctx, "k", 0); err != nil || got.KV.Revision != res.Revision {
				t.Fatalf("Get: %+v, %v", got, err)
			}
			if got, err := b.Range(ctx, storage.Range{CountOnly: true}); err != nil || got.Count != 17 {
				t.Fatalf("Range: %+v, %v", got, err)
			}
		}
		select {
		case err := <-listed:
			t.Fatalf("the list has ended, its connection was not stopped: %v", err)
		default:
		}
		p.free()
		if err := <-listed; err != nil {
			t.Error(err)
		}
	})

	t.Run("one connection", func(t *testing.T) {
		p := newStalling(t, address(t, s.Endpoints()[0]), 2<<20)
		c := raw(t, clientv3.Config{Endpoints: []string{"https://" + p.listener.Addr().String()}, TLS: ca.client(t, "")})
		ctx := bounded(t)
		w := c.Watch(ctx, "k", clientv3.WithCreatedNotify())
		<-w
		listed := make(chan error, 1)
		go func() {
			_, err := c.Get(ctx, "large/", clientv3.WithPrefix())
			listed <- err
		}()
		<-p.stalled
		want := mustPut(t, raw(t, clientv3.Config{Endpoints: s.Endpoints(), TLS: ca.client(t, "")}), "k", "v")
		short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
		select {
		case r := <-w:
			t.Fatalf("the watch got %+v through a connection that is stopped", r)
		case <-short.Done():
		}
		p.free()
		if r := <-w; r.Err() != nil || r.Events[0].Kv.ModRevision != want {
			t.Errorf("the watch got %+v, want revision %d", r, want)
		}
		if err := <-listed; err != nil {
			t.Error(err)
		}
	})

	t.Run("under load", func(t *testing.T) {
		b := open(t, etcd.Options{Endpoints: s.Endpoints(), TLS: ca.client(t, "")})
		one := raw(t, clientv3.Config{Endpoints: s.Endpoints(), TLS: ca.client(t, "")})
		changes := 100
		if testing.Short() {
			changes = 20
		}
		ctx, cancel := context.WithCancel(bounded(t))
		defer cancel()
		f, err := b.Watch(ctx, storage.WatchRange{Prefix: "k", From: revision(t, b)})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		stop := loop(func() error { return <-list(ctx, b) })
		worst, sum := latencies(t, changes, b, func() (int64, error) {
			got, err := f.Next(ctx)
			if err != nil {
				return 0, err
			}
			return got.Progress, nil
		})
		t.Logf("watch beside lists of 16 MiB, three connections: mean %v, worst %v", sum/time.Duration(changes), worst)
		t.Logf("lists done: %d", stop(t))

		w := one.Watch(ctx, "k")
		stop = loop(func() error {
			_, err := one.Get(ctx, "large/", clientv3.WithPrefix())
			return err
		})
		worst, sum = latencies(t, changes, b, func() (int64, error) {
			r := <-w
			return r.Events[len(r.Events)-1].Kv.ModRevision, r.Err()
		})
		t.Logf("watch beside lists of 16 MiB, one connection: mean %v, worst %v", sum/time.Duration(changes), worst)
		t.Logf("lists done: %d", stop(t))
	})
}

func revision(t testing.TB, b storage.Backend) int64 {
	t.Helper()
	got, err := b.Get(bounded(t), "none", 0)
	if err != nil {
		t.Fatal(err)
	}
	return got.Revision
}

// list reads the large values, and checks that they are complete.
func list(ctx context.Context, b storage.Backend) <-chan error {
	done := make(chan error, 1)
	go func() {
		res, err := b.Range(ctx, storage.Range{From: "large/", To: "large0"})
		if err == nil && len(res.KVs) != 16 {
			err = fmt.Errorf("the list has %d values", len(res.KVs))
		}
		done <- err
	}()
	return done
}

// loop runs a func again and again, in two goroutines, until stop is called, which returns the number of runs.
func loop(do func() error) (stop func(*testing.T) int) {
	var all sync.WaitGroup
	end, failed := make(chan struct{}), make(chan error, 2)
	counts := make([]int, 2)
	for i := range counts {
		all.Go(func() {
			for {
				select {
				case <-end:
					return
				default:
				}
				if err := do(); err != nil {
					failed <- err
					return
				}
				counts[i]++
			}
		})
	}
	return func(t *testing.T) int {
		t.Helper()
		close(end)
		all.Wait()
		select {
		case err := <-failed:
			t.Error(err)
		default:
		}
		return counts[0] + counts[1]
	}
}

// latencies returns the times from the begin of each commit until the watch delivers it.
func latencies(t *testing.T, n int, b storage.Backend, next func() (int64, error)) (worst, sum time.Duration) {
	t.Helper()
	for i := range n {
		begun := time.Now()
		res, err := b.Commit(bounded(t), storage.Commit{Key: "k", Expect: storage.AnyRevision, Value: fmt.Append(nil, i)})
		if err != nil {
			t.Fatal(err)
		}
		for at := int64(0); at < res.Revision; {
			if at, err = next(); err != nil {
				t.Fatal(err)
			}
		}
		took := time.Since(begun)
		worst, sum = max(worst, took), sum+took
	}
	return worst, sum
}
