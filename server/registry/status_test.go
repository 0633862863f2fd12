package registry_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestReads(t *testing.T) {
	f := setup(t, nil)
	first := f.create("a")
	f.create("b")
	_, err := f.typed.Create(f.ctx, "other", widget("c"))
	must(t, err)

	rec, err := f.reg.GetRecord(f.ctx, "a", storage.Read{})
	must(t, err)
	equal(t, "resourceVersion", fmt.Sprint(rec.Revision), first.ResourceVersion)
	for ns, want := range map[string]int{"ns": 2, "other": 1, "": 3, "none": 0} {
		page, err := f.reg.ListRecords(f.ctx.In(ns), storage.ListOptions{})
		must(t, err)
		equal(t, "records in "+ns, page.Count, want)
	}
	_, err = f.reg.GetRecord(f.ctx, "none", storage.Read{})
	s := wantStatus(t, err, 404, metav1.StatusReasonNotFound, `widgets.example.com "none" not found`)
	if d := s.Details; d.Group != "example.com" || d.Kind != "widgets" || d.Name != "none" {
		t.Errorf("details %+v", d)
	}
	w, err := f.reg.WatchRecords(f.ctx.In("other"), storage.WatchOptions{Initial: true})
	must(t, err)
	defer w.Close()
	events, err := w.Next(f.ctx)
	must(t, err)
	equal(t, "watched", events[0].Record.Key, "other/c")
}

func TestReadsOfTheFuture(t *testing.T) {
	f := setup(t, nil)
	f.create("a")
	want := fmt.Sprintf("Timeout: Too large resource version: 99999, current: %d", f.revision())
	at := storage.Read{Match: storage.NotOlderThan, Revision: 99999}
	_, err := f.reg.GetRecord(f.ctx, "a", at)
	s := wantStatus(t, err, 504, metav1.StatusReasonTimeout, want)
	equal(t, "retry", s.Details.RetryAfterSeconds, 1)
	equal(t, "cause", s.Details.Causes[0].Type, metav1.CauseTypeResourceVersionTooLarge)
	_, err = f.reg.ListRecords(f.ctx, storage.ListOptions{At: at})
	wantStatus(t, err, 504, metav1.StatusReasonTimeout, want)
	_, err = f.reg.ListRecords(f.ctx, storage.ListOptions{Continue: "garbage!"})
	wantStatus(t, err, 400, metav1.StatusReasonBadRequest, "invalid continue token: continue key is not valid...")
}

// failing is a store whose methods all fail.
type failing struct {
	storage.Interface
	err error
}

func (s failing) Get(context.Context, string, storage.Read) (storage.Record, error) {
	return storage.Record{}, s.err
}
func (s failing) List(context.Context, storage.ListOptions) (storage.Page, error) {
	return storage.Page{}, s.err
}
func (s failing) Watch(context.Context, storage.WatchOptions) (storage.Watch, error) {
	return nil, s.err
}
func (s failing) Create(context.Context, string, runtime.Object, storage.WriteOptions) (storage.Record, error) {
	return storage.Record{}, s.err
}
func (s failing) Update(context.Context, string, storage.WriteOptions, storage.ChangeFunc) (storage.Record, error) {
	return storage.Record{}, s.err
}
func (s failing) Decode(storage.Record) (runtime.Object, error) { return nil, s.err }

func failingRegistry(t *testing.T, err error) *registry.Registry {
	t.Helper()
	return registryOver(t, failing{err: err})
}

func registryOver(t *testing.T, store storage.Interface) *registry.Registry {
	t.Helper()
	scheme := runtime.NewScheme()
	must(t, runtime.Register[*Widget](scheme, widgetKind, runtime.KindOptions[*Widget]{}))
	reg, newErr := registry.New(registry.Options{Scheme: scheme, Kind: widgetKind, Resource: widgetResource, Namespaced: true, Storage: store})
	must(t, newErr)
	return reg
}

func TestStorageErrors(t *testing.T) {
	ctx := registry.NewCall(t.Context(), authn.System(), "ns")
	for _, c := range []struct {
		err     error
		code    int32
		reason  metav1.StatusReason
		message string
	}{
		{storage.ErrNotFound, 404, metav1.StatusReasonNotFound, `widgets.example.com "a" not found`},
		{fmt.Errorf("%w: 9 bytes", storage.ErrTooLarge), 413, metav1.StatusReasonRequestEntityTooLarge, "Request entity too large: object is too large: 9 bytes"},
		{
			&storage.FileError{Op: "write", Path: "/secret.db", Err: storage.ErrNoSpace}, 507, "InsufficientStorage",
			"the storage is full: what makes it grow is refused until something has been deleted or the operator has made room",
		},
		{
			&storage.FileError{Op: "read", Path: "/secret.db", Err: errors.New("input/output error")}, 500, metav1.StatusReasonInternalError,
			"Internal error occurred: the storage failed, and the log of the server says why",
		},
		{storage.ErrClosed, 503, metav1.StatusReasonServiceUnavailable, "storage is closed"},
		{context.DeadlineExceeded, 504, metav1.StatusReasonTimeout, "Timeout: request did not complete within the allotted timeout"},
	} {
		reg := failingRegistry(t, c.err)
		_, err := reg.GetRecord(ctx, "a", storage.Read{})
		wantStatus(t, err, c.code, c.reason, c.message)
		_, _, err = reg.UpdateRecord(ctx, "a", putOf(widget("a")), nil)
		wantStatus(t, err, c.code, c.reason, c.message)
		_, _, err = reg.DeleteRecord(ctx, "a", nil)
		wantStatus(t, err, c.code, c.reason, c.message)
		if !errors.Is(c.err, storage.ErrNotFound) {
			_, err = reg.CreateRecord(ctx, widget("a"), nil)
			wantStatus(t, err, c.code, c.reason, c.message)
			_, err = reg.ListRecords(ctx, storage.ListOptions{})
			wantStatus(t, err, c.code, c.reason, c.message)
			_, err = reg.DeleteRecords(ctx, nil, storage.ListOptions{})
			wantStatus(t, err, c.code, c.reason, c.message)
		}
	}
	filling := failingRegistry(t, &storage.FillingError{RetryAfter: 7 * time.Second})
	_, err := filling.ListRecords(ctx, storage.ListOptions{})
	s := wantStatus(t, err, 429, metav1.StatusReasonTooManyRequests, "storage is (re)initializing")
	equal(t, "retry", s.Details.RetryAfterSeconds, 7)
	_, err = filling.WatchRecords(ctx, storage.WatchOptions{})
	s = wantStatus(t, err, 429, metav1.StatusReasonTooManyRequests, "storage is (re)initializing")
	equal(t, "retry of a watch", s.Details.RetryAfterSeconds, 7)
	for _, plain := range []error{context.Canceled, errors.New("something else")} {
		if _, err := failingRegistry(t, plain).GetRecord(ctx, "a", storage.Read{}); !errors.Is(err, plain) {
			t.Errorf("got %v, want %v as it is", err, plain)
		}
	}
}

// If the storage is unavailable, neither reads nor writes have a Retry-After: clients would repeat them without an error for the user.
// The error of a write says that its outcome is not known.
func TestUnavailable(t *testing.T) {
	ctx := registry.NewCall(t.Context(), authn.System(), "ns")
	reg := failingRegistry(t, fmt.Errorf("etcd: %w: no leader", storage.ErrUnavailable))
	const cause = "etcd: storage is unavailable: no leader"
	var reads, writes []error
	_, err := reg.GetRecord(ctx, "a", storage.Read{})
	reads = append(reads, err)
	_, err = reg.ListRecords(ctx, storage.ListOptions{})
	reads = append(reads, err)
	_, err = reg.WatchRecords(ctx, storage.WatchOptions{})
	reads = append(reads, err)
	_, err = reg.CreateRecord(ctx, widget("a"), nil)
	writes = append(writes, err)
	_, _, err = reg.UpdateRecord(ctx, "a", putOf(widget("a")), nil)
	writes = append(writes, err)
	_, _, err = reg.DeleteRecord(ctx, "a", nil)
	writes = append(writes, err)
	for _, err := range reads {
		if s := wantStatus(t, err, 503, metav1.StatusReasonServiceUnavailable, cause); s.Details != nil && s.Details.RetryAfterSeconds != 0 {
			t.Errorf("a read has details %+v", s.Details)
		}
	}
	for _, err := range writes {
		if s := wantStatus(t, err, 503, metav1.StatusReasonServiceUnavailable, cause+"; if this was a change, it may have been made"); s.Details != nil {
			t.Errorf("a write has details %+v", s.Details)
		}
	}
}

// For one object, kube-apiserver has another error than for a list.
func TestUnreadableObject(t *testing.T) {
	ctx := registry.NewCall(t.Context(), authn.System(), "ns")
	reg := failingRegistry(t, &storage.UnreadableError{Key: "ns/a", StoredKey: "/registry/widgets/ns/a", Revision: 7, Err: errors.New("bad bytes")})
	_, get := reg.GetRecord(ctx, "a", storage.Read{})
	_, _, put := reg.UpdateRecord(ctx, "a", putOf(widget("a")), nil)
	_, _, remove := reg.DeleteRecord(ctx, "a", nil)
	for _, err := range []error{get, put, remove} {
		s := wantStatus(t, err, 500, metav1.StatusReasonInternalError, "Internal error occurred: StorageError: corrupt object, Code: 7, "+
			"Key: /registry/widgets/ns/a, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=7: bad bytes")
		equal(t, "causes", len(s.Details.Causes), 1)
	}
	_, err := reg.WatchRecords(ctx, storage.WatchOptions{})
	wantStatus(t, err, 500, metav1.StatusReasonStoreReadError, "failed to read one or more widgets.example.com from the storage: ...")
}

func TestUnreadableListNamesEachKey(t *testing.T) {
	ctx := registry.NewCall(t.Context(), authn.System(), "ns")
	u := &storage.UnreadableError{
		Key: "ns/a", StoredKey: "/registry/widgets/ns/a", Err: errors.New("bad"),
		More: []*storage.UnreadableError{{Key: "ns/b", Err: errors.New("worse")}}, Truncated: true,
	}
	_, err := failingRegistry(t, u).ListRecords(ctx, storage.ListOptions{})
	s := wantStatus(t, err, 500, metav1.StatusReasonStoreReadError, `failed to read one or more widgets.example.com from the storage: stored objects cannot be read: "ns/a": bad; "ns/b": worse; and others`)
	equal(t, "causes", fmt.Sprint(s.Details.Causes), fmt.Sprint([]metav1.StatusCause{
		{Type: metav1.CauseTypeUnexpectedServerResponse, Field: "/registry/widgets/ns/a", Message: "bad"},
		{Type: metav1.CauseTypeUnexpectedServerResponse, Field: "ns/b", Message: "worse"},
		{Type: metav1.CauseTypeTooMany, Message: "too many errors, the list is truncated"},
	}))
	equal(t, "details", s.Details.Name+" "+s.Details.Kind, "list widgets")
}

func TestExpired(t *testing.T) {
	ctx := registry.NewCall(t.Context(), authn.System(), "ns")
	_, err := failingRegistry(t, &storage.ExpiredError{Revision: 5}).ListRecords(ctx, storage.ListOptions{})
	wantStatus(t, err, 410, metav1.StatusReasonExpired, "The resourceVersion for the provided list is too old.")
	_, err = failingRegistry(t, &storage.ExpiredError{Revision: 5}).ListRecords(ctx, storage.ListOptions{Continue: "x"})
	wantStatus(t, err, 410, metav1.StatusReasonExpired, "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.")
	_, err = failingRegistry(t, &storage.ExpiredError{Revision: 5, Continue: "token"}).ListRecords(ctx, storage.ListOptions{Continue: "x"})
	s := wantStatus(t, err, 410, metav1.StatusReasonExpired, "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.")
	equal(t, "continue", s.Continue, "token")

	_, err = failingRegistry(t, &storage.ExpiredError{Revision: 5, Oldest: 9}).WatchRecords(ctx, storage.WatchOptions{})
	wantStatus(t, err, 410, metav1.StatusReasonExpired, "too old resource version: 5 (9)")
	_, err = failingRegistry(t, &storage.ExpiredError{Revision: 5}).WatchRecords(ctx, storage.WatchOptions{})
	wantStatus(t, err, 410, metav1.StatusReasonExpired, "The resourceVersion for the provided watch is too old.")
	_, err = failingRegistry(t, storage.ErrClosed).WatchRecords(ctx, storage.WatchOptions{})
	wantStatus(t, err, 503, metav1.StatusReasonServiceUnavailable, "storage is closed")
}

// The watch of a real store ends with the documented errors when the store is compacted or closed.
func TestWatchErrors(t *testing.T) {
	f := setup(t, nil)
	f.create("a")
	for range 3 {
		_, err := f.typed.Change(f.ctx, "ns", "a", func(w *Widget) error { w.Spec.Size++; return nil })
		must(t, err)
	}
	must(t, f.backend.Compact(f.ctx, f.revision()))
	_, err := f.reg.WatchRecords(f.ctx, storage.WatchOptions{From: 2})
	wantStatus(t, err, 410, metav1.StatusReasonExpired, "...")
	w, err := f.reg.WatchRecords(f.ctx, storage.WatchOptions{})
	must(t, err)
	defer w.Close()
	must(t, f.backend.Close())
	if _, err := w.Next(f.ctx); !errors.Is(err, storage.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
}
