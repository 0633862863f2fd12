package server_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/client"
	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/server/servertest"
)

var remoteBoats = client.Target{Resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "boats"}, Namespace: "default"}

var remoteBoat = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Boat"}

// remote returns Readers of a server, and the client that they use.
func remote(t *testing.T, srv *servertest.Server, o client.ReadersOptions, dial func(ctx context.Context, network, address string) (net.Conn, error)) (*client.Client, *client.Readers) {
	t.Helper()
	c, err := client.New(client.Config{Server: srv.URL, CA: srv.CA, Token: srv.Token}, client.Options{Dial: dial})
	if err != nil {
		t.Fatal(err)
	}
	o.BackoffMin, o.BackoffMax, o.Refresh, o.Wait = time.Millisecond, 10*time.Millisecond, 5*time.Millisecond, time.Minute
	readers := client.NewReaders(c, o)
	t.Cleanup(func() {
		readers.Close()
		c.Close()
	})
	return c, readers
}

func boatOf(name, color string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Boat",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"color": color}}}
}

func revisionOf(t *testing.T, obj metav1.Object) int64 {
	t.Helper()
	revision, err := strconv.ParseInt(obj.GetResourceVersion(), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

// boatsOf returns name, color and resourceVersion of boats.
func boatsOf(objs []runtime.Object) []string {
	out := []string{}
	for _, obj := range objs {
		u := obj.(*unstructured.Unstructured)
		color, _, _ := unstructured.NestedString(u.Object, "spec", "color")
		out = append(out, fmt.Sprintf("%s=%s@%s", u.GetName(), color, u.GetResourceVersion()))
	}
	return out
}

// The objects of another server are read as they are, with or without a Go type, however they are listed.
func TestRemoteReader(t *testing.T) {
	t.Parallel()
	for _, pages := range []bool{false, true} {
		srv := servertest.New(t, builtin.New(builtin.Options{}), servertest.Untyped("example.com/v1", "Boat"))
		scheme := runtime.NewScheme()
		if _, err := scheme.Import(corev1.AddToScheme); err != nil {
			t.Fatal(err)
		}
		c, readers := remote(t, srv, client.ReadersOptions{Scheme: scheme, Pages: pages, PageSize: 2}, srv.DialContext)
		ctx := t.Context()
		for _, name := range []string{"a", "b", "c"} {
			if err := c.Create(ctx, remoteBoats, boatOf(name, "red"), nil); err != nil {
				t.Fatal(err)
			}
		}
		boats := readers.Reader(remoteBoat)
		l, err := boats.List(ctx, runtime.Query{})
		if err != nil || len(l.Items) != 3 {
			t.Fatalf("boats: %v %v", l, err)
		}
		made := &corev1.ConfigMap{}
		maps := client.Target{Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespace: "default"}
		if err := c.Create(ctx, maps, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Data: map[string]string{"a": "b"}}, made); err != nil {
			t.Fatal(err)
		}
		typed := runtime.Read[*corev1.ConfigMap](readers)
		got, err := typed.Get(ctx, "default", "m", runtime.AtLeast(revisionOf(t, made)))
		if err != nil || got.Data["a"] != "b" || got.UID != made.UID || got.Kind != "ConfigMap" {
			t.Errorf("typed: %v %v", got, err)
		}
		// States of several kinds at one revision are read, even if one of the kinds does not change.
		at := max(boats.Changed().Revision, typed.Changed().Revision)
		for _, r := range []interface {
			Changes(context.Context, int64, runtime.Freshness) (runtime.Changes[runtime.Object], error)
		}{boats, readers.Reader(corev1.SchemeGroupVersion.WithKind("ConfigMap"))} {
			if all, err := r.Changes(ctx, 0, runtime.Exactly(at)); err != nil || all.Revision != at || !all.Reset {
				t.Errorf("at one revision: %v %v", all, err)
			}
		}
		if _, err := boats.List(ctx, runtime.Query{Fields: fields.OneTermEqualSelector("spec.nothing", "x")}); !apierrors.IsBadRequest(err) {
			t.Errorf("a field that the server does not know: %v", err)
		}
		remoteWrites(t, c, boats, l.Revision)
	}
}

// remoteWrites follows an update and a deletion.
func remoteWrites(t *testing.T, c *client.Client, boats runtime.Reader[runtime.Object], since int64) {
	t.Helper()
	ctx := t.Context()
	one, now := remoteBoats, &unstructured.Unstructured{}
	one.Name = "a"
	if err := c.Get(ctx, one, now); err != nil {
		t.Fatal(err)
	}
	stale := now.DeepCopy()
	if err := unstructured.SetNestedField(now.Object, "green", "spec", "color"); err != nil {
		t.Fatal(err)
	}
	if err := c.Update(ctx, one, now, now); err != nil {
		t.Fatal(err)
	}
	_ = unstructured.SetNestedField(stale.Object, "blue", "spec", "color")
	if err := c.Update(ctx, one, stale, nil); !apierrors.IsConflict(err) {
		t.Errorf("an old resourceVersion: %v", err)
	}
	other := one
	other.Name = "b"
	if err := c.Delete(ctx, other, nil); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(ctx, other, nil); !apierrors.IsNotFound(err) {
		t.Errorf("deleted twice: %v", err)
	}
	changes, err := boats.Changes(ctx, since, runtime.Live())
	if err != nil || changes.Reset || len(changes.All) != 2 || changes.All[0].Object.(*unstructured.Unstructured).GetResourceVersion() != now.GetResourceVersion() || !changes.All[1].Deleted {
		t.Errorf("changes: %+v %v", changes, err)
	}
	past, err := boats.List(ctx, runtime.Query{At: runtime.Exactly(revisionOf(t, now))})
	if err != nil || len(past.Items) != 3 {
		t.Errorf("before the deletion: %v %v", past, err)
	}
	live, err := boats.List(ctx, runtime.Query{At: runtime.Live()})
	here, err2 := boats.List(ctx, runtime.Query{})
	if err != nil || err2 != nil || !slices.Equal(boatsOf(live.Items), boatsOf(here.Items)) || len(here.Items) != 2 {
		t.Errorf("live %v %v, cached %v %v", live, err, here, err2)
	}
}

// Watches that end, expire or break, and lists that fail, delay a state, but do not lose it.
func TestRemoteReaderFaults(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, servertest.Untyped("example.com/v1", "Boat"))
	c, readers := remote(t, srv, client.ReadersOptions{PageSize: 3}, srv.DialContext)
	match := func(verbs ...string) servertest.Match {
		return servertest.Match{Verbs: verbs, Resources: []string{"boats"}}
	}
	for _, f := range []servertest.Fault{
		{Match: match("watch"), Rate: 0.5, Seed: 1, Events: 5, Drop: true},
		{Match: match("watch"), Rate: 0.2, Seed: 2, Events: 3, Expired: true},
		{Match: match("watch"), Rate: 0.2, Seed: 3, Expired: true},
		{Match: match("list"), Rate: 0.2, Seed: 4, Error: apierrors.NewInternalError(errors.New("injected"))},
		{Match: match("list"), Rate: 0.1, Seed: 5, Expired: true},
		{Match: match("list", "watch"), Rate: 0.1, Seed: 6, Drop: true},
	} {
		defer srv.Inject(f)()
	}
	boats, random := readers.Reader(remoteBoat), rand.New(rand.NewPCG(7, 7))
	var last, before int64
	for range 200 {
		one := remoteBoats
		one.Name = fmt.Sprint("b", random.IntN(8))
		made := &unstructured.Unstructured{}
		err := c.Create(t.Context(), remoteBoats, boatOf(one.Name, fmt.Sprint(random.IntN(100))), made)
		switch {
		case err == nil:
			last = revisionOf(t, made)
		case apierrors.IsAlreadyExists(err):
			err = c.Delete(t.Context(), one, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		l, err := boats.List(t.Context(), runtime.Query{})
		if err != nil && !errors.Is(err, runtime.ErrNotReady) {
			t.Fatal(err)
		}
		if err == nil && l.Revision < before {
			t.Fatalf("the state of %d after that of %d", l.Revision, before)
		}
		before = max(before, l.Revision)
	}
	arrives(t, c, boats, last)
}

// arrives waits until a reader has the state of the server.
func arrives(t *testing.T, c *client.Client, boats runtime.Reader[runtime.Object], revision int64) {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	for {
		if err := c.List(t.Context(), remoteBoats, metav1.ListOptions{}, list); err == nil {
			break
		} else if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
	at, err := strconv.ParseInt(list.GetResourceVersion(), 10, 64)
	if err != nil || at < revision {
		t.Fatalf("list at %d after %d: %v", at, revision, err)
	}
	want := []runtime.Object{}
	for i := range list.Items {
		want = append(want, &list.Items[i])
	}
	for {
		l, err := boats.List(t.Context(), runtime.Query{At: runtime.AtLeast(at)})
		if errors.Is(err, runtime.ErrNotReady) {
			continue
		}
		if err != nil || !slices.Equal(boatsOf(l.Items), boatsOf(want)) {
			t.Errorf("%v\ngot  %s\nwant %s", err, boatsOf(l.Items), boatsOf(want))
		}
		return
	}
}

// A server that is restarted without its data, and with another token, is read again.
func TestRemoteReaderRestart(t *testing.T) {
	t.Parallel()
	var now atomic.Pointer[servertest.Server]
	file := filepath.Join(t.TempDir(), "token")
	start := func() *servertest.Server {
		srv := servertest.New(t, servertest.Untyped("example.com/v1", "Boat"))
		if err := os.WriteFile(file, []byte(srv.Token), 0o600); err != nil {
			t.Fatal(err)
		}
		now.Store(srv)
		return srv
	}
	first := start()
	c, err := client.New(client.Config{Server: first.URL, Insecure: true, TokenFile: file},
		client.Options{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			return now.Load().DialContext(ctx, network, address)
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	lost := make(chan error)
	readers := client.NewReaders(c, client.ReadersOptions{Stale: -1, BackoffMin: time.Millisecond, BackoffMax: 10 * time.Millisecond,
		Hooks: client.ReaderHooks{Retry: func(_ schema.GroupVersionKind, err error, _ time.Duration) {
			select {
			case lost <- err:
			case <-t.Context().Done():
			}
		}}})
	t.Cleanup(readers.Close)
	for i := range 20 {
		if err := c.Create(t.Context(), remoteBoats, boatOf(fmt.Sprint("old", i), "red"), nil); err != nil {
			t.Fatal(err)
		}
	}
	boats := readers.Reader(remoteBoat)
	old, err := boats.List(t.Context(), runtime.Query{})
	if err != nil || len(old.Items) != 20 {
		t.Fatalf("%v %v", old, err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	outage := &client.OutageError{}
	for !errors.As(boats.Ready(t.Context()), &outage) {
		<-lost
	}
	if l, err := boats.List(t.Context(), runtime.Query{}); err != nil || l.Revision != old.Revision || len(l.Items) != 20 {
		t.Errorf("while the server is away: %v %v", l, err)
	}
	start()
	if err := c.Create(t.Context(), remoteBoats, boatOf("new", "red"), nil); err != nil {
		t.Fatal(err)
	}
	for {
		select {
		case <-lost:
		case <-time.After(time.Millisecond):
		}
		if l, err := boats.List(t.Context(), runtime.Query{}); err != nil {
			t.Fatal(err)
		} else if len(l.Items) == 1 && l.Revision < old.Revision {
			break
		}
	}
	if c, err := boats.Changes(t.Context(), old.Revision, runtime.Freshness{}); err != nil || !c.Reset || len(c.All) != 1 {
		t.Errorf("changes since a revision of the other history: %+v %v", c, err)
	}
}
