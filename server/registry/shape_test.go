package registry_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type Common struct {
	Addr  netip.Addr        `json:"addr"` // has unexported fields
	Extra map[string]string `json:"extra,omitempty"`
}

// Odd has no spec, an embedded struct, a time and a status behind a pointer.
type Odd struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Common            `json:",inline"`
	When              metav1.Time   `json:"when"`
	Status            *WidgetStatus `json:"status,omitempty"`
	note              string
}

func (o *Odd) DeepCopyObject() runtime.Object { return runtime.DeepCopy(o) }

func TestOddShape(t *testing.T) {
	kind := widgetKind.GroupVersion().WithKind("Odd")
	scheme := runtime.NewScheme()
	must(t, runtime.Register[*Odd](scheme, kind, runtime.KindOptions[*Odd]{}))
	backend := memory.New(memory.Options{})
	defer func() { must(t, backend.Close()) }()
	typed, err := codec.NewTyped(scheme, kind)
	must(t, err)
	store, err := storage.NewStore(backend, storage.StoreOptions{Prefix: "/odds", Codec: typed})
	must(t, err)
	reg, err := registry.New(registry.Options{Scheme: scheme, Kind: kind, Resource: widgetResource, Storage: store})
	must(t, err)
	odds, err := registry.For[*Odd](reg, authn.System())
	must(t, err)

	ctx := t.Context()
	o := &Odd{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: &WidgetStatus{Ready: true}, When: metav1.NewTime(start), note: "n"}
	o.Addr = netip.MustParseAddr("::1")
	got, err := odds.Create(ctx, "", o)
	must(t, err)
	equal(t, "status dropped", got.Status == nil, true)
	got.Status = &WidgetStatus{Ready: true}
	got, err = odds.UpdateStatus(ctx, "", got)
	must(t, err)
	equal(t, "status", got.Status.Ready, true)

	for _, c := range []struct {
		what   string
		change func(*Odd)
		want   int64
	}{
		{"the zone", func(o *Odd) { o.When = metav1.NewTime(o.When.UTC()) }, 1},
		{"an empty map", func(o *Odd) { o.Extra = map[string]string{} }, 1},
		{"an embedded field", func(o *Odd) { o.Extra = map[string]string{"a": "b"} }, 2},
		{"the address", func(o *Odd) { o.Addr = netip.MustParseAddr("::2") }, 3},
		{"the time", func(o *Odd) { o.When = metav1.NewTime(o.When.Add(time.Second)) }, 4},
		{"the status", func(o *Odd) { o.Status = nil }, 4},
	} {
		got, err := odds.Change(ctx, "", "a", func(o *Odd) error { c.change(o); return nil })
		must(t, err)
		equal(t, "generation after "+c.what, got.Generation, c.want)
		equal(t, "status after "+c.what, got.Status != nil && got.Status.Ready, true)
	}
	got.Status = nil
	got, err = odds.UpdateStatus(ctx, "", &Odd{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	must(t, err)
	equal(t, "status cleared", got.Status == nil, true)
	equal(t, "content kept", got.Extra["a"], "b")
}
