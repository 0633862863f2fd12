package cacher

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	"github.com/keelson-dev/keelson/storage/storagetest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// powerless hides the optional abilities of a backend, such as that it holds the values itself.
type powerless struct{ storage.Backend }

func overGadgets(t *testing.T, b storage.Backend) (*Cacher, *storage.Store) {
	t.Helper()
	o, err := storagetest.GadgetOptions()
	if err != nil {
		t.Fatal(err)
	}
	store, err := storage.NewStore(b, o)
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(store, Options{Namespaced: true, IndexFields: []string{"spec.color"}, IndexLabels: []string{"app"}, WindowBytes: 20_000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, store
}

// managed gives a gadget random managedFields: few kinds, many times.
func managed(r *rand.Rand, g *storagetest.Gadget) {
	var entries []metav1.ManagedFieldsEntry
	for range r.IntN(3) {
		at := metav1.Unix(r.Int64N(1<<31), 0)
		e := metav1.ManagedFieldsEntry{Manager: fmt.Sprint("manager-", r.IntN(2)), Operation: "Update", APIVersion: "test.example.com/v1", Time: &at, FieldsType: "FieldsV1"}
		if r.IntN(9) == 0 {
			e.Time = nil
		}
		fields := fmt.Sprintf(`{"f:spec":{"f:color":{},"f:size":{},"f:%d":{}}}`, r.IntN(2))
		if r.IntN(7) == 0 {
			fields = fmt.Sprintf(`{"f:metadata":{"f:annotations":{"f:%d":{}}}}`, r.Int64())
		}
		e.FieldsV1 = metav1.NewFieldsV1(fields)
		entries = append(entries, e)
	}
	g.ManagedFields = entries
	g.Labels = map[string]string{"app": fmt.Sprint(r.IntN(3))}
	g.Spec.Color = fmt.Sprint("color-", r.IntN(4))
}

// Bodies that share parts are equal to the stored ones, and the parts are kept for as long as entries have them.
func TestBodiesShareWhatTheyHaveInCommon(t *testing.T) {
	b := memory.New(memory.Options{})
	defer b.Close()
	c, store := overGadgets(t, powerless{b})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r := rand.New(rand.NewPCG(1, 2))
	for step := range 1500 {
		key := fmt.Sprintf("ns/%d", r.IntN(60))
		var err error
		switch r.IntN(5) {
		case 0, 1:
			g := &storagetest.Gadget{ObjectMeta: metav1.ObjectMeta{Name: key[3:], Namespace: "ns"}}
			managed(r, g)
			_, err = c.Create(ctx, key, g, storage.WriteOptions{})
		default:
			gone := r.IntN(10) == 0
			_, err = c.Update(ctx, key, storage.WriteOptions{}, func(_ context.Context, obj runtime.Object, was storage.Record) (storage.Outcome, error) {
				if d, err := codec.ParseDocument(was.Body.Bytes()); err != nil || d.Field("spec.color") != obj.(*storagetest.Gadget).Spec.Color {
					t.Errorf("the object of %s has the color %q: %v", was.Body.Bytes(), obj.(*storagetest.Gadget).Spec.Color, err)
				}
				managed(r, obj.(*storagetest.Gadget))
				return storage.Outcome{Object: obj, Delete: gone}, nil
			})
		}
		if err != nil && !errors.Is(err, storage.ErrExists) && !errors.Is(err, storage.ErrNotFound) {
			t.Fatal(err)
		}
		if step%100 == 99 {
			sameLists(ctx, t, c, store)
			checkCommons(t, c)
		}
	}
}

func sameLists(ctx context.Context, t *testing.T, c *Cacher, store *storage.Store) {
	t.Helper()
	lists := [2][]storage.Record{}
	for i, s := range []storage.Interface{c, store} {
		page, err := s.List(ctx, storage.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for r := range page.Records {
			lists[i] = append(lists[i], r)
		}
	}
	if len(lists[0]) != len(lists[1]) {
		t.Fatalf("%d records, not %d", len(lists[0]), len(lists[1]))
	}
	for i, want := range lists[1] {
		got := lists[0][i]
		if got.Key != want.Key || got.Revision != want.Revision || string(got.Body.Bytes()) != string(want.Body.Bytes()) ||
			string(got.Body.AppendItem(nil, got.Revision)) != string(want.Body.AppendItem(nil, want.Revision)) {
			t.Errorf("%s at %d is %s, not %s at %d: %s", got.Key, got.Revision, got.Body.Bytes(), want.Key, want.Revision, want.Body.Bytes())
		}
		for _, field := range []string{"metadata.name", "metadata.namespace", "spec.color", "spec.size"} {
			if got.Fields.Get(field) != want.Fields.Get(field) || got.Fields.Has(field) != want.Fields.Has(field) {
				t.Errorf("%s of %s is %q, not %q", field, got.Key, got.Fields.Get(field), want.Fields.Get(field))
			}
		}
		if got.Labels.Get("app") != want.Labels.Get("app") {
			t.Errorf("the label of %s is %q, not %q", got.Key, got.Labels.Get("app"), want.Labels.Get("app"))
		}
	}
}

// checkCommons counts the entries that share each part.
func checkCommons(t *testing.T, c *Cacher) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	uses, shared := map[*codec.Common]int{}, 0
	count := func(e *entry) bool {
		if e != nil && e.Body.Common() != nil {
			uses[e.Body.Common()]++
			shared++
		}
		return true
	}
	c.state.records.walk(0, c.state.records.len(), count)
	for _, s := range c.log.segments {
		for _, ch := range s.changes {
			count(ch.was)
		}
	}
	known := c.entries.commons.byParts
	if shared == 0 || len(known) != len(uses) {
		t.Errorf("%d entries have %d parts in common, and %d are known", shared, len(uses), len(known))
	}
	for parts, k := range known {
		if k.uses != uses[k.Common] || k.Parts() != parts {
			t.Errorf("%d entries have %q in common, and %d are counted", uses[k.Common], parts, k.uses)
		}
	}
}

// A cache over a cache receives bodies that share parts already: it does not count those.
func TestBodiesThatComeSharedAreNotCounted(t *testing.T) {
	d, err := codec.ParseDocument([]byte(`{"kind":"K","apiVersion":"v1","metadata":{"name":"a","labels":{},"managedFields":[{"manager":"somebody",` +
		`"time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{}}}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	var below, above entries
	keys := 0
	made := func(m *entries, body codec.Document) *entry {
		keys++
		return m.entry(storage.Entry{Record: storage.Record{Key: fmt.Sprint(keys), Revision: 1, Body: body}})
	}
	first, shared := made(&below, d), made(&below, d)
	if first.Body.Common() != nil || shared.Body.Common() == nil {
		t.Fatal("the second of two records with the same parts is not the first to share them")
	}
	above.release(made(&above, shared.Body))
	made(&above, d)
	own := made(&above, d)
	above.release(made(&above, shared.Body))
	if k := above.commons.byParts[own.Body.Common().Parts()]; k == nil || k.uses != 1 {
		t.Errorf("%+v is known of what one entry has in common", k)
	}
	above.release(own)
	if n := len(above.commons.byParts); n != 0 {
		t.Errorf("%d parts are known of no entry", n)
	}
}

// Parts that only the states of one object have are not shared: they would take more memory as soon as only one state is
// kept.
func TestStatesOfOneObjectShareNothing(t *testing.T) {
	var m entries
	made := func(key string) *entry {
		d, err := codec.ParseDocument([]byte(`{"kind":"K","apiVersion":"v1","metadata":{"name":"` + key + `","labels":{},"managedFields":[{"manager":"somebody",` +
			`"time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{}}}]}}`))
		if err != nil {
			t.Fatal(err)
		}
		return m.entry(storage.Entry{Record: storage.Record{Key: key, Revision: 1, Body: d}})
	}
	for range 3 {
		if made("a").Body.Common() != nil {
			t.Fatal("two states of an object share a part of their own")
		}
	}
	other, third := made("b"), made("a")
	if c := other.Body.Common(); c == nil || third.Body.Common() != c {
		t.Errorf("two objects with the same parts share %p and %p", other.Body.Common(), third.Body.Common())
	}
}

// The memory backend has the values: copies of the bodies would take more memory, not less.
func TestBodiesThatAreHeldAreLeftAsTheyAre(t *testing.T) {
	b := memory.New(memory.Options{})
	defer b.Close()
	c, store := overGadgets(t, b)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 20 {
		g := &storagetest.Gadget{}
		managed(r, g)
		key := fmt.Sprintf("ns/%02d", i)
		if _, err := c.Create(t.Context(), key, g, storage.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
		got, err := c.Get(t.Context(), key, storage.Read{})
		if err != nil {
			t.Fatal(err)
		}
		want, err := store.Get(t.Context(), key, storage.Read{})
		if err != nil {
			t.Fatal(err)
		}
		if a, b := got.Body.Bytes(), want.Body.Bytes(); &a[0] != &b[0] || !got.Held {
			t.Errorf("%s has bytes of its own", key)
		}
	}
}
