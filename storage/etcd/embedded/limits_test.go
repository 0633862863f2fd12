package embedded_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/etcd"
	"github.com/keelson-dev/keelson/storage/etcd/embedded"
	"github.com/keelson-dev/keelson/storage/storagetest"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"google.golang.org/grpc/metadata"
)

func expiring(key string, ttl time.Duration) storage.Commit {
	return storage.Commit{Key: key, Expect: storage.AnyRevision, Value: []byte("v"), TTL: ttl}
}

func mustCommit(t testing.TB, b storage.Backend, c storage.Commit) int64 {
	t.Helper()
	res, err := b.Commit(bounded(t), c)
	if err != nil {
		t.Fatal(err)
	}
	return res.Revision
}

func leases(t *testing.T, c *clientv3.Client) []clientv3.LeaseStatus {
	t.Helper()
	r, err := c.Leases(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	return r.Leases
}

// Keys with the same TTL share leases, and are deleted together.
func TestLeases(t *testing.T) {
	s := start(t, embedded.Options{})
	c := rawOf(t, s)
	b := open(t, etcd.Options{Endpoints: s.Endpoints(), LeaseMaxObjects: 10})
	ctx := bounded(t)
	f, err := b.Watch(ctx, storage.WatchRange{From: revision(t, b), Prev: true})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i := range 10 {
		mustCommit(t, b, expiring(fmt.Sprint("k", i), time.Hour))
	}
	first := leases(t, c)
	if len(first) != 1 {
		t.Fatalf("%d leases for 10 keys", len(first))
	}
	for i := range 15 {
		mustCommit(t, b, expiring(fmt.Sprint("m", i), time.Hour))
	}
	mustCommit(t, b, expiring("other", 2*time.Hour))
	if n := len(leases(t, c)); n != 4 {
		t.Errorf("%d leases for 25 keys of one TTL, at most 10 each, and one of another", n)
	}
	if ttl, err := c.TimeToLive(ctx, first[0].ID); err != nil || ttl.GrantedTTL < 3600 || ttl.GrantedTTL > 3660 {
		t.Errorf("the lease lasts %+v, %v; want an hour and up to a minute", ttl, err)
	}
	mustCommit(t, b, storage.Commit{Key: "stays", Value: []byte("v")})
	for i := 0; i < 27; {
		got, err := f.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range got.Changes {
			if i++; c.Expiring != (c.Key != "stays") {
				t.Errorf("the change of %s: Expiring is %v", c.Key, c.Expiring)
			}
		}
	}
	if got, err := b.Get(ctx, "k1", 0); err != nil || !got.KV.Expiring {
		t.Errorf("Get: %+v, %v; want Expiring", got, err)
	}
	if got, err := b.Get(ctx, "stays", 0); err != nil || got.KV.Expiring {
		t.Errorf("Get: %+v, %v; want not Expiring", got, err)
	}

	// The end of a lease deletes its keys at one revision.
	if _, err := c.Revoke(ctx, first[0].ID); err != nil {
		t.Fatal(err)
	}
	got, err := f.Next(ctx)
	if err != nil || len(got.Changes) != 10 {
		t.Fatalf("Next: %+v, %v; want 10 changes at once", got, err)
	}
	for i, c := range got.Changes {
		if !c.Deleted || c.Revision != got.Changes[0].Revision || c.Prev == nil || !c.Prev.Expiring || c.Key != fmt.Sprint("k", i) {
			t.Errorf("change %d is %+v", i, c)
		}
	}
	// A lease that has ended early is replaced.
	for _, l := range leases(t, c) {
		if _, err := c.Revoke(ctx, l.ID); err != nil {
			t.Fatal(err)
		}
	}
	mustCommit(t, b, expiring("again", time.Hour))
	if n := len(leases(t, c)); n != 1 {
		t.Errorf("%d leases", n)
	}
}

func TestNoSpace(t *testing.T) {
	s := start(t, embedded.Options{QuotaBytes: 4 << 20})
	b := open(t, etcd.Options{Endpoints: s.Endpoints()})
	ctx := bounded(t)
	if err := b.Ready(ctx); err != nil {
		t.Fatalf("Ready: %v", err)
	}
	_, err := b.Commit(ctx, storage.Commit{Key: "huge", Value: make([]byte, 2<<20)})
	if !errors.Is(err, storage.ErrTooLarge) {
		t.Errorf("a value of 2 MiB: %v, want ErrTooLarge", err)
	}
	large, n := bytes.Repeat([]byte("v"), 256<<10), 0
	for ; err == nil || errors.Is(err, storage.ErrTooLarge); n++ {
		_, err = b.Commit(ctx, storage.Commit{Key: fmt.Sprint("k", n), Value: large})
	}
	if !errors.Is(err, storage.ErrNoSpace) {
		t.Fatalf("Commit: %v, want ErrNoSpace", err)
	}
	if err := b.Ready(ctx); !errors.Is(err, storage.ErrNoSpace) {
		t.Errorf("Ready: %v, want ErrNoSpace", err)
	}
	if err := b.Health(ctx); err != nil {
		t.Errorf("Health: %v", err)
	}
	// etcd makes the put with which the quota is reached, but returns an error: the put counts as acknowledged.
	if got, err := b.Range(ctx, storage.Range{}); err != nil || len(got.KVs) != n-1 {
		t.Errorf("Range: %d values, %v; %d were acknowledged", len(got.KVs), err, n-1)
	}
	if _, err := b.Commit(ctx, storage.Commit{Key: "k0", Expect: storage.AnyRevision, Delete: true}); err != nil {
		t.Errorf("a deletion: %v", err)
	}
}

// authenticated makes root the only user who may do anything.
func authenticated(t *testing.T, c *clientv3.Client) {
	t.Helper()
	ctx := bounded(t)
	_, err := c.UserAdd(ctx, "root", "right")
	if err == nil {
		_, err = c.UserGrantRole(ctx, "root", "root")
	}
	if err == nil {
		_, err = c.AuthEnable(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestAuthentication(t *testing.T) {
	t.Parallel()
	s := start(t, embedded.Options{AuthTokenTTL: time.Second})
	authenticated(t, rawOf(t, s))
	p := storagetest.NewProxy(t, address(t, s.Endpoints()[0]))
	for name, o := range map[string]etcd.Options{
		"wrong password": {Username: "root", Password: "wrong"},
		"unknown user":   {Username: "nobody", Password: "right"},
		"no user":        {},
	} {
		o.Endpoints = s.Endpoints()
		notOpened(t, name, o, "Options.Username and Options.Password")
	}
	b := open(t, etcd.Options{Endpoints: []string{p.Addr()}, Username: "root", Password: "right"})
	ctx := bounded(t)
	f, err := b.Watch(ctx, storage.WatchRange{Prefix: "k", From: revision(t, b)})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	other := raw(t, clientv3.Config{Endpoints: s.Endpoints()})
	login, err := other.Authenticate(ctx, "root", "right")
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range []bool{false, true} {
		if !cut && testing.Short() {
			continue
		}
		time.Sleep(2500 * time.Millisecond) // the token expires
		old := metadata.AppendToOutgoingContext(ctx, rpctypes.TokenFieldNameGRPC, login.Token)
		if _, err := other.Get(old, "k"); !errors.Is(err, rpctypes.ErrInvalidAuthToken) {
			t.Errorf("with a token of then: %v", err)
		}
		if cut {
			p.Cut() // the stream has to be opened again
		}
		want, at := commitSomehow(t, b), int64(0)
		for at < want {
			got, err := f.Next(ctx)
			if err != nil {
				t.Fatal(err)
			}
			at = got.Progress
		}
		if got, err := b.Range(ctx, storage.Range{}); err != nil || len(got.KVs) != 1 {
			t.Fatalf("Range: %+v, %v", got, err)
		}
	}
	if _, err := b.Commit(ctx, expiring("e", time.Hour)); err != nil {
		t.Errorf("a commit with a TTL: %v", err)
	}
}

// commitSomehow commits until the commit is known to have happened.
func commitSomehow(t *testing.T, b storage.Backend) int64 {
	t.Helper()
	ctx := bounded(t)
	for {
		res, err := b.Commit(ctx, storage.Commit{Key: "k", Expect: storage.AnyRevision, Value: []byte("v")})
		if err == nil {
			return res.Revision
		}
		if !errors.Is(err, storage.ErrUnavailable) {
			t.Fatal(err)
		}
	}
}

// notOpened checks that Open fails with an error that names the endpoint and what else is wanted.
func notOpened(t *testing.T, name string, o etcd.Options, want string) {
	t.Helper()
	b, err := etcd.Open(bounded(t), o)
	if err == nil {
		b.Close()
		t.Errorf("%s: it opens", name)
		return
	}
	if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), o.Endpoints[0]) {
		t.Errorf("%s: error %q, want one with %q and the endpoint", name, err, want)
	}
}

func TestTLS(t *testing.T) {
	ca, otherAuthority := newAuthority(t), newAuthority(t)
	s := start(t, embedded.Options{ClientTLS: ca.files(t, "server")})
	plain := start(t, embedded.Options{})
	mixed := ca.client(t, "")
	mixed.Certificates = otherAuthority.client(t, "mallory").Certificates
	host, plainHost := address(t, s.Endpoints()[0]), address(t, plain.Endpoints()[0])

	for _, endpoint := range []string{host, "https://" + host} {
		b := open(t, etcd.Options{Endpoints: []string{endpoint}, TLS: ca.client(t, "client")})
		mustCommit(t, b, storage.Commit{Key: endpoint, Value: []byte("v")})
	}
	for _, endpoint := range []string{plainHost, "http://" + plainHost} {
		b := open(t, etcd.Options{Endpoints: []string{endpoint}})
		mustCommit(t, b, storage.Commit{Key: endpoint, Value: []byte("v")})
	}
	notOpened(t, "no client certificate", etcd.Options{Endpoints: []string{"https://" + host}, TLS: ca.client(t, "")}, "client certificate")
	notOpened(t, "another authority's client", etcd.Options{Endpoints: []string{"https://" + host}, TLS: mixed}, "client certificate")
	notOpened(t, "another authority's server", etcd.Options{Endpoints: []string{"https://" + host}, TLS: otherAuthority.client(t, "client")}, "TLS.RootCAs")
	notOpened(t, "TLS is missing", etcd.Options{Endpoints: []string{"http://" + host}}, "https://")
	notOpened(t, "TLS is too much", etcd.Options{Endpoints: []string{"https://" + plainHost}, TLS: ca.client(t, "client")}, "http://")
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	notOpened(t, "nobody is there", etcd.Options{Endpoints: []string{"http://" + host}}, "refused")
}

// A closed backend leaves neither goroutines nor watches.
func TestBackendLeavesNothing(t *testing.T) {
	p := serveElsewhere(t, embedded.Options{Dir: t.TempDir(), UnsafeNoFsync: true})
	before := goleak.IgnoreCurrent()
	b, err := etcd.Open(bounded(t), etcd.Options{Endpoints: []string{p.endpoint}, CompactionInterval: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx := bounded(t)
	for i := range 5 {
		mustCommit(t, b, expiring(fmt.Sprint("k", i), time.Hour))
		f, err := b.Watch(ctx, storage.WatchRange{From: 1})
		if errors.Is(err, storage.ErrCompacted) {
			f, err = b.Watch(ctx, storage.WatchRange{From: revision(t, b)})
		}
		if err != nil {
			t.Fatal(err)
		}
		f.RequestProgress()
		if i == 0 {
			f.Close()
		}
	}
	if _, err := b.Range(ctx, storage.Range{}); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
	// Neither does a backend that could not be opened.
	p.kill()
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if b, err := etcd.Open(ctx, etcd.Options{Endpoints: []string{p.endpoint}}); err == nil {
		b.Close()
		t.Error("it opens")
	}
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
}
