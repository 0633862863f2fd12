package registry_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/request"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

type WidgetSpec struct {
	Size     int32    `json:"size"`
	Replicas int32    `json:"replicas,omitempty"`
	Parallel *int64   `json:"parallel,omitempty"`
	Color    string   `json:"color,omitempty"`
	Small    int8     `json:"small,omitempty"`
	Tags     []string `json:"tags,omitempty"`
}

type WidgetStatus struct {
	Ready    bool              `json:"ready,omitempty"`
	Replicas int32             `json:"replicas,omitempty"`
	Selector string            `json:"selector,omitempty"`
	Seen     map[string]string `json:"seen,omitempty"`
}

type Widget = runtime.Resource[WidgetSpec, WidgetStatus]

var (
	widgetKind     = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	widgetResource = schema.GroupResource{Group: "example.com", Resource: "widgets"}
	start          = time.Date(2026, 5, 4, 3, 2, 1, 987654321, time.FixedZone("", 3600))
)

// fixture is a registry of widgets over a store in memory, whose clock the test may set.
type fixture struct {
	t       *testing.T
	reg     *registry.Registry
	typed   *registry.Typed[*Widget]
	store   *storage.Store
	backend *memory.Backend
	now     time.Time
	ctx     *registry.Call // in namespace "ns"
	warned  *request.Warnings
}

// setup makes a fixture; options, which may be nil, change the registry's options before it is made.
func setup(t *testing.T, options func(o *registry.Options)) *fixture {
	t.Helper()
	f := &fixture{t: t, backend: memory.New(memory.Options{}), now: start, warned: request.NewWarnings(http.Header{})}
	t.Cleanup(func() { must(t, f.backend.Close()) })
	f.ctx = registry.NewCall(t.Context(), &authn.User{Name: "admin"}, "ns")
	f.ctx.OnWarning = f.warned.Add
	scheme := runtime.NewScheme()
	must(t, runtime.Register[*Widget](scheme, widgetKind, runtime.KindOptions[*Widget]{}))
	o := registry.Options{Scheme: scheme, Kind: widgetKind, Resource: widgetResource, Namespaced: true}
	o.Now = func() time.Time { return f.now }
	if options != nil {
		options(&o)
	}
	typed, err := codec.NewTyped(scheme, widgetKind)
	must(t, err)
	f.store, err = storage.NewStore(f.backend, storage.StoreOptions{
		Prefix: "/registry/example.com/widgets", Codec: typed, Namespaced: o.Namespaced, ReadWait: time.Millisecond,
	})
	must(t, err)
	o.Storage = f.store
	f.reg, err = registry.New(o)
	must(t, err)
	f.typed, err = registry.For[*Widget](f.reg, f.ctx.User)
	must(t, err)
	return f
}

// strategy is an option for setup.
func strategy(s registry.Strategy[*Widget]) func(*registry.Options) {
	return func(o *registry.Options) { o.Strategy = registry.Erase(s) }
}

func widget(name string, change ...func(*Widget)) *Widget {
	w := &Widget{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: WidgetSpec{Size: 1}}
	for _, f := range change {
		f(w)
	}
	return w
}

func (f *fixture) create(name string, change ...func(*Widget)) *Widget {
	f.t.Helper()
	w, err := f.typed.Create(f.ctx, "ns", widget(name, change...))
	must(f.t, err)
	return w
}

func (f *fixture) get(name string) *Widget {
	f.t.Helper()
	w, err := f.typed.Get(f.ctx, "ns", name)
	must(f.t, err)
	return w
}

func (f *fixture) put(w *Widget) (*Widget, error) { return f.typed.Update(f.ctx, "ns", w) }

func (f *fixture) decode(rec storage.Record) *Widget {
	f.t.Helper()
	obj, err := f.reg.Decode(rec)
	must(f.t, err)
	return obj.(*Widget)
}

func (f *fixture) revision() int64 {
	f.t.Helper()
	n, err := f.store.Revision(f.ctx)
	must(f.t, err)
	return n
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantStatus checks an error's code, reason and whole message; "..." at the end of message stands for anything.
func wantStatus(t *testing.T, err error, code int32, reason metav1.StatusReason, message string) metav1.Status {
	t.Helper()
	var s apierrors.APIStatus
	if !errors.As(err, &s) {
		t.Fatalf("got %v (%T), want a Status %d %s", err, err, code, message)
	}
	got := s.Status()
	prefix, open := strings.CutSuffix(message, "...")
	if got.Code != code || got.Reason != reason || got.Status != metav1.StatusFailure ||
		got.Message != message && (!open || !strings.HasPrefix(got.Message, prefix)) {
		t.Fatalf("got  %d %s %q\nwant %d %s %q", got.Code, got.Reason, got.Message, code, reason, message)
	}
	return got
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func ptr[T any](v T) *T { return &v }

// kind returns the registry's kind in the scheme.
func (f *fixture) kind(t *testing.T) *runtime.Kind {
	t.Helper()
	scheme := runtime.NewScheme()
	must(t, runtime.Register[*Widget](scheme, widgetKind, runtime.KindOptions[*Widget]{}))
	return scheme.Lookup(widgetKind)
}
