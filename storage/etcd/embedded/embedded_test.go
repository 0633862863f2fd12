package embedded_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage/etcd/embedded"
	"go.etcd.io/bbolt"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// start runs a server that ends with the test.
func start(t testing.TB, o embedded.Options) *embedded.Server {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
		o.UnsafeNoFsync = true
	}
	ctx, cancel := context.WithTimeout(context.Background(), waitTime)
	defer cancel()
	s, err := embedded.Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// raw returns etcd's own client.
func raw(t testing.TB, c clientv3.Config) *clientv3.Client {
	t.Helper()
	c.Logger = zap.NewNop()
	client, err := clientv3.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func rawOf(t testing.TB, s *embedded.Server) *clientv3.Client {
	t.Helper()
	return raw(t, clientv3.Config{Endpoints: s.Endpoints()})
}

// bounded returns a context that ends even if the server is broken.
func bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*waitTime)
	t.Cleanup(cancel)
	return ctx
}

func mustPut(t testing.TB, c *clientv3.Client, key, value string, opts ...clientv3.OpOption) int64 {
	t.Helper()
	r, err := c.Put(bounded(t), key, value, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return r.Header.Revision
}

func TestDataStays(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "when missing")
	o := embedded.Options{Dir: dir}
	for round := range 3 {
		s, err := embedded.Start(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		c := rawOf(t, s)
		mustPut(t, c, fmt.Sprint("k", round), "v")
		r, err := c.Get(t.Context(), "k", clientv3.WithPrefix())
		if err != nil || len(r.Kvs) != round+1 || r.Header.Revision != int64(round+2) {
			t.Fatalf("round %d: %v, %v", round, r, err)
		}
		c.Close()
		if s.Err() != nil {
			t.Errorf("Err: %v", s.Err())
		}
		select {
		case <-s.Done():
			t.Error("the server is done before Close")
		default:
		}
		for range 2 {
			if err := s.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		}
		<-s.Done()
		if s.Err() != nil {
			t.Errorf("Err after Close: %v", s.Err())
		}
	}
}

func TestNothingIsLeft(t *testing.T) {
	before := goleak.IgnoreCurrent()
	s, err := embedded.Start(t.Context(), embedded.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
	// The port is free again.
	l, err := net.Listen("tcp", strings.TrimPrefix(s.Endpoints()[0], "http://"))
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}

// A server that closes before its clients does not wait for their watches, which continue when it is back.
func TestWatchOutlivesTheServer(t *testing.T) {
	o := embedded.Options{Dir: t.TempDir(), ListenClient: freeAddresses(t, 1)[0]}
	s := start(t, o)
	c := raw(t, clientv3.Config{Endpoints: s.Endpoints()})
	w := c.Watch(bounded(t), "k", clientv3.WithCreatedNotify())
	if r := <-w; !r.Created {
		t.Fatalf("the watch begins with %+v", r)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	start(t, o)
	revision := mustPut(t, c, "k", "v")
	for r := range w {
		if err := r.Err(); err != nil {
			t.Fatalf("the watch ended: %v", err)
		}
		if len(r.Events) > 0 {
			if r.Events[0].Kv.ModRevision != revision {
				t.Errorf("got %v, want revision %d", r.Events, revision)
			}
			return
		}
	}
	t.Error("the watch ended")
}

// The server returns Unavailable, so that clients try another member.
func TestStreamsEndAsUnavailable(t *testing.T) {
	s := start(t, embedded.Options{})
	w, err := pb.NewWatchClient(rawOf(t, s).ActiveConnection()).Watch(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	create := &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{Key: []byte("k")}}
	if err := w.Send(&pb.WatchRequest{RequestUnion: create}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Recv(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("the stream ends with %v, want code Unavailable", err)
	}
}

func TestBadOptions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	three := map[string]string{"a": "127.0.0.1:1", "b": "127.0.0.1:2", "c": "127.0.0.1:3"}
	for name, test := range map[string]struct {
		options embedded.Options
		want    string
	}{
		"no directory":           {embedded.Options{Dir: ""}, "Dir is required"},
		"name":                   {embedded.Options{Name: "a=b"}, "Name"},
		"quota":                  {embedded.Options{QuotaBytes: -1}, "QuotaBytes"},
		"heartbeat":              {embedded.Options{Heartbeat: time.Microsecond}, "Heartbeat"},
		"long heartbeat":         {embedded.Options{Heartbeat: time.Hour}, "Heartbeat"},
		"progress":               {embedded.Options{ProgressInterval: -1}, "ProgressInterval"},
		"token":                  {embedded.Options{AuthTokenTTL: time.Millisecond}, "AuthTokenTTL"},
		"no port":                {embedded.Options{ListenClient: "127.0.0.1"}, "ListenClient"},
		"a scheme":               {embedded.Options{ListenClient: "http://127.0.0.1:0"}, "ListenClient"},
		"a named port":           {embedded.Options{ListenClient: "127.0.0.1:http"}, "ListenClient"},
		"a named host":           {embedded.Options{ListenClient: "host.example:1"}, "ListenClient"},
		"every address":          {embedded.Options{ListenClient: ":2379"}, "AdvertiseClient"},
		"every address, by name": {embedded.Options{ListenClient: "0.0.0.0:2379"}, "AdvertiseClient"},
		"advertise everywhere":   {embedded.Options{AdvertiseClient: ":1"}, "AdvertiseClient"},
		"advertise no port":      {embedded.Options{AdvertiseClient: "127.0.0.1:0"}, "AdvertiseClient"},
		"listen to nobody":       {embedded.Options{ListenPeer: "127.0.0.1:1"}, "without Peers"},
		"TLS to nobody":          {embedded.Options{PeerTLS: embedded.TLS{CertFile: "x"}}, "without Peers"},
		"not a member":           {embedded.Options{Name: "d", Peers: three}, `"d"`},
		"no members":             {embedded.Options{Peers: map[string]string{}}, `"default"`},
		"a member without name":  {embedded.Options{Name: "a", Peers: map[string]string{"a": "h:1", "": "h:2"}}, "not empty"},
		"a member without port":  {embedded.Options{Name: "a", Peers: map[string]string{"a": "h:1", "b": "h"}}, `Peers["b"]`},
		"a member's scheme":      {embedded.Options{Name: "a", Peers: map[string]string{"a": "http://h:1"}}, `Peers["a"]`},
		"two at one address":     {embedded.Options{Name: "a", Peers: map[string]string{"a": "h:1", "b": "h:1"}}, "same address"},
		"any port for members":   {embedded.Options{Name: "a", Peers: three, ListenPeer: ":0"}, "ListenPeer"},
		"half a certificate":     {embedded.Options{ClientTLS: embedded.TLS{CertFile: file}}, "ClientTLS needs both"},
		"only a CA":              {embedded.Options{ClientTLS: embedded.TLS{CAFile: file}}, "ClientTLS needs both"},
		"no certificate file":    {embedded.Options{ClientTLS: embedded.TLS{CertFile: "/none", KeyFile: "/none"}}, "/none"},
		"no certificate":         {embedded.Options{ClientTLS: embedded.TLS{CertFile: file, KeyFile: file}}, "ClientTLS"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "dir")
			if name != "no directory" {
				test.options.Dir = dir
			}
			s, err := embedded.Start(t.Context(), test.options)
			if err == nil {
				s.Close()
				t.Fatal("it starts")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %q, want one with %q", err, test.want)
			}
			if _, err := os.Stat(dir); err == nil {
				t.Error("the directory was made")
			}
		})
	}
}

// refused starts a server that must not start, and checks that the directory's files stay as they are.
func refused(t *testing.T, o embedded.Options, want string) {
	t.Helper()
	before := contents(t, o.Dir)
	s, err := embedded.Start(bounded(t), o)
	if err == nil {
		s.Close()
		t.Fatal("it starts")
	}
	if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), o.Dir) {
		t.Errorf("error %q, want one with %q and the directory", err, want)
	}
	after := contents(t, o.Dir)
	for name, was := range before {
		if !bytes.Equal(after[name], was) {
			t.Errorf("%s has changed", name)
		}
	}
	for name := range after {
		if _, was := before[name]; !was && filepath.Base(name) != "lock" {
			t.Errorf("%s is new", name)
		}
	}
}

func contents(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		if files[path], err = os.ReadFile(path); err != nil {
			t.Error(err)
		}
		return nil
	})
	return files
}

// used returns a directory that a server has used.
func used(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s := start(t, embedded.Options{Dir: dir, UnsafeNoFsync: true})
	c := rawOf(t, s)
	mustPut(t, c, "k", "v")
	c.Close()
	s.Close()
	return dir
}

func TestDirectoryRefused(t *testing.T) {
	t.Run("a file", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		refused(t, embedded.Options{Dir: file}, "not a directory")
		refused(t, embedded.Options{Dir: filepath.Join(file, "below")}, "not a directory")
	})
	t.Run("in use by this process", func(t *testing.T) {
		dir := t.TempDir()
		s := start(t, embedded.Options{Dir: dir, UnsafeNoFsync: true})
		inUse(t, dir)
		mustPut(t, rawOf(t, s), "k", "v")
	})
	t.Run("in use by another process", func(t *testing.T) {
		dir := t.TempDir()
		p := serveElsewhere(t, embedded.Options{Dir: dir, UnsafeNoFsync: true})
		inUse(t, dir)
		mustPut(t, raw(t, clientv3.Config{Endpoints: []string{p.endpoint}}), "k", "v")
		p.kill()
		start(t, embedded.Options{Dir: dir}) // the lock ends with the process
	})
	t.Run("in use by another program", func(t *testing.T) {
		dir := used(t)
		db, err := bbolt.Open(filepath.Join(dir, "member", "snap", "db"), 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		refused(t, embedded.Options{Dir: dir}, "in use")
	})
	t.Run("of a newer etcd", func(t *testing.T) {
		for bucket, key := range map[string]string{"meta": "storageVersion", "cluster": "clusterVersion"} {
			dir := used(t)
			edit(t, dir, bucket, key, "3.9.0")
			refused(t, embedded.Options{Dir: dir}, "etcd 3.9, which is newer")
			edit(t, dir, bucket, key, "x")
			refused(t, embedded.Options{Dir: dir}, key)
		}
	})
	t.Run("not of an etcd", func(t *testing.T) {
		dir := used(t)
		db := filepath.Join(dir, "member", "snap", "db")
		if err := os.WriteFile(db, bytes.Repeat([]byte("garbage "), 10_000), 0o600); err != nil {
			t.Fatal(err)
		}
		refused(t, embedded.Options{Dir: dir}, db)
	})
	t.Run("of another cluster", func(t *testing.T) {
		dir := used(t)
		addrs := freeAddresses(t, 2)
		refused(t, embedded.Options{Dir: dir, Name: "other"}, `the member "default"`)
		refused(t, embedded.Options{Dir: dir, Name: "other", Peers: map[string]string{"other": addrs[0]}}, `the member "default"`)
		refused(t, embedded.Options{Dir: dir, Peers: map[string]string{"default": addrs[0]}}, "etcdctl member update")
		_, err := embedded.Start(bounded(t), embedded.Options{Dir: dir, Peers: map[string]string{"default": "127.0.0.1:2380", "more": addrs[1]}, ListenPeer: addrs[0]})
		if err == nil || !strings.Contains(err.Error(), `the member "more"`) {
			t.Errorf("error %v, want one with %q", err, "more")
		}
		start(t, embedded.Options{Dir: dir}) // it was not damaged
	})
}

func inUse(t *testing.T, dir string) {
	t.Helper()
	_, err := embedded.Start(bounded(t), embedded.Options{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "in use") || !strings.Contains(err.Error(), dir) {
		t.Errorf("error %v, want one with %q and the directory", err, "in use")
	}
}

// edit changes etcd's own records.
func edit(t *testing.T, dir, bucket, key, value string) {
	t.Helper()
	db, err := bbolt.Open(filepath.Join(dir, "member", "snap", "db"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte(bucket)).Put([]byte(key), []byte(value)) })
	if err != nil {
		t.Fatal(err)
	}
}

func TestPortTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	addr := l.Addr().String()
	refused(t, embedded.Options{Dir: t.TempDir(), ListenClient: addr}, addr)
	refused(t, embedded.Options{Dir: t.TempDir(), Name: "a", Peers: map[string]string{"a": addr}}, addr)
}

func TestDamagedLog(t *testing.T) {
	dir := used(t)
	segments, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	if err != nil || len(segments) == 0 {
		t.Fatal(segments, err)
	}
	log, err := os.ReadFile(segments[0])
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(log, []byte("default")) // the member's name, within a record
	if at < 0 {
		t.Fatal("the log does not have the member's name")
	}
	log[at] ^= 1
	if err := os.WriteFile(segments[0], log, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = embedded.Start(bounded(t), embedded.Options{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), ".wal") {
		t.Errorf("error %v, want one with the file", err)
	}
}

func TestStartIsGivenUp(t *testing.T) {
	addrs := freeAddresses(t, 3)
	o := embedded.Options{Dir: t.TempDir(), Name: "a", Peers: map[string]string{"a": addrs[0], "b": addrs[1], "c": addrs[2]}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := embedded.Start(ctx, o)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no leader") {
		t.Errorf("error %v, want one about the leader", err)
	}
}
