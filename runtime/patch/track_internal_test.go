package patch

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// TestPlans checks which parts of these kinds the library must handle: values of any type, and the entries of other objects.
func TestPlans(t *testing.T) {
	s := trackedScheme(t)
	for _, gvk := range trackedKinds {
		f, err := NewFieldManager(FieldManagerOptions{Scheme: s, Kind: gvk})
		if err != nil {
			t.Fatal(err)
		}
		if f.tracker() == nil {
			t.Errorf("%s has no plan", gvk)
			continue
		}
		for _, path := range opaques(nil, gvk.Kind, f.tracker().plan.root, map[*node]bool{}) {
			switch path {
			case "Ship.spec.quoted", "Ship.spec.any[]", "Ship.spec.raw", "Ship.spec.parts[].parts":
			default:
				if !strings.HasSuffix(path, "metadata.managedFields[].fieldsV1") {
					t.Error(path)
				}
			}
		}
	}
	for _, gvk := range []schema.GroupVersionKind{oldShipKind, untypedKind} {
		f, err := NewFieldManager(FieldManagerOptions{Scheme: s, Kind: gvk})
		if err != nil {
			t.Fatal(err)
		}
		if f.tracker() != nil {
			t.Errorf("%s has a plan", gvk)
		}
	}
}

func opaques(paths []string, path string, n *node, seen map[*node]bool) []string {
	if n == nil || seen[n] {
		return paths
	}
	seen[n] = true
	if n.form == opaque {
		paths = append(paths, path)
	}
	for _, f := range n.fields {
		paths = opaques(paths, path+"."+f.name, f.node, seen)
	}
	return opaques(paths, path+"[]", n.item, seen)
}

// trackedPair has a field manager with a tracker and one in which the library does everything.
type trackedPair struct{ fast, slow *FieldManager }

func newPair(t testing.TB, s *runtime.Scheme, models *Models, gvk schema.GroupVersionKind, sub string) trackedPair {
	t.Helper()
	o := FieldManagerOptions{Scheme: s, Models: models, Kind: gvk, Subresource: sub, Reset: func(*runtime.Kind) [][]string {
		if sub == "status" {
			return [][]string{{"spec"}, {"metadata", "labels"}}
		}
		return [][]string{{"status"}}
	}}
	var p trackedPair
	var err error
	if p.fast, err = NewFieldManager(o); err != nil {
		t.Fatal(err)
	}
	if p.slow, err = NewFieldManager(o); err != nil {
		t.Fatal(err)
	}
	known, err := models.of(gvk)
	if err != nil {
		t.Fatal(err)
	}
	p.slow.tracked.Store(&tracker{model: known})
	return p
}

// check makes an update with both. It returns the object of the library, and whether the tracker did the update.
func (p trackedPair) check(t testing.TB, live, obj runtime.Object, manager string) (runtime.Object, bool) {
	t.Helper()
	var wasLive runtime.Object
	if live != nil {
		wasLive = live.DeepCopyObject()
	}
	want, got := obj.DeepCopyObject(), obj.DeepCopyObject()
	wantErr := p.slow.Update(live, want, manager)
	p.fast.begin(got)
	tr := p.fast.tracker()
	handled := tr != nil && tr.update(live, got, manager)
	if !handled {
		if !reflect.DeepEqual(got.(metav1.Object).GetManagedFields(), obj.(metav1.Object).GetManagedFields()) {
			t.Fatal("it has changed what it left to the library")
		}
		return want, false
	}
	settle(got.(metav1.Object))
	if wantErr != nil {
		t.Fatalf("the library has an error: %v", wantErr)
	}
	if live != nil && !reflect.DeepEqual(live, wasLive) {
		t.Fatal("live was changed")
	}
	if g, w := shown(got), shown(want); g != w {
		l, _ := json.Marshal(live)
		o, _ := json.Marshal(obj)
		t.Fatalf("%s by %q\nlive %s\nnew  %s\ngot\n%s\nwant\n%s", p.fast.kind.GVK, manager, l, o, g, w)
	}
	return want, true
}

// shown returns the entries as text. Times within the last hour are "now".
func shown(obj runtime.Object) string {
	entries := obj.(metav1.Object).GetManagedFields()
	if entries == nil {
		return "nil"
	}
	var b strings.Builder
	for _, e := range entries {
		at := "no time"
		if e.Time != nil && time.Since(e.Time.Time) < time.Hour {
			at = "now"
		} else if e.Time != nil {
			at = e.Time.UTC().String()
		}
		fields := "nil"
		if e.FieldsV1 != nil {
			fields = e.FieldsV1.GetRawString()
		}
		fmt.Fprintf(&b, "%q %q %s %s %q %s %s\n", e.Manager, e.Operation, e.APIVersion, e.FieldsType, e.Subresource, at, fields)
	}
	return b.String()
}

// sequence makes a create and updates. It returns their number, and how many of them the tracker handled.
func sequence(t testing.TB, s *runtime.Scheme, models *Models, gvk schema.GroupVersionKind, seed uint64, odd bool, pairs map[string]trackedPair) (all, handled int) {
	t.Helper()
	g := newGenerator(seed, odd)
	kind := s.Lookup(gvk)
	managers := []string{"a", "b", "", "c<&>d"}
	if odd && g.r.IntN(4) == 0 {
		for i := range 14 {
			managers = append(managers, fmt.Sprint("m", i))
		}
		managers = append(managers, "\xff", "unknown")
	}
	subs := []string{"", "", "", "status"}
	var live runtime.Object
	obj := g.object(kind)
	obj.(metav1.Object).SetUID("")
	steps := 6
	if len(managers) > 10 {
		steps = 30
	}
	for i := range steps {
		sub := subs[g.r.IntN(len(subs))]
		p, ok := pairs[gvk.String()+sub]
		if !ok {
			p = newPair(t, s, models, gvk, sub)
			pairs[gvk.String()+sub] = p
		}
		result, ok := p.check(t, live, obj, managers[g.r.IntN(len(managers))])
		if all++; ok {
			handled++
		}
		m := result.(metav1.Object)
		if m.GetUID() == "" {
			m.SetUID(types.UID("u"))
		}
		entries := m.GetManagedFields()
		for j := range entries { // older times, so that new times are recognized
			at := metav1.Unix(1e9+int64(g.r.IntN(4)), 0)
			entries[j].Time = &at
			if odd && g.r.IntN(10) == 0 {
				entries[j].Time = nil
			}
			if odd && g.r.IntN(10) == 0 {
				entries[j].Operation = metav1.ManagedFieldsOperationApply
			}
			if odd && g.r.IntN(30) == 0 && gvk == shipKind {
				entries[j].APIVersion = []string{"example.com/v1beta1", "example.com/v9"}[g.r.IntN(2)]
			}
			if odd && g.r.IntN(20) == 0 {
				entries[j].FieldsV1 = []*metav1.FieldsV1{
					nil, metav1.NewFieldsV1(`{}`), metav1.NewFieldsV1(`{"f:spec":{"f:paint":{"f:x":{}},"f:name":{"f:y":{}},"q:z":{}}, "f:metadata":{".":{},"f:managedFields":{}}}`),
					metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{}}}`), metav1.NewFieldsV1(`{"x":{}}`), metav1.NewFieldsV1(`{`), metav1.NewFieldsV1(``),
					metav1.NewFieldsV1(`{"f:spec":{"f:size":12345678901234567890}}`), metav1.NewFieldsV1(`{"f:spec":{"f:flags":{"f:x":{},"v:1.0":{},"i:5":{}}}}`),
				}[g.r.IntN(9)]
			}
		}
		live = result
		obj = live.DeepCopyObject()
		for range g.r.IntN(3) {
			g.change(reflect.ValueOf(obj).Elem(), reflect.ValueOf(g.object(kind)).Elem())
		}
		obj.GetObjectKind().SetGroupVersionKind(gvk)
		if obj = obj.DeepCopyObject(); i%2 == 0 { // either decoded from JSON or as made by a program
			text, err := codec.Encode(obj)
			if err == nil {
				fresh := kind.New()
				if _, err := codec.Unmarshal(text, fresh, codec.Ignore); err == nil {
					obj = fresh
				}
			}
		}
		om := obj.(metav1.Object)
		switch n := g.r.IntN(8); {
		case n < 3:
			om.SetManagedFields(nil)
		case n == 3 && odd:
			om.SetManagedFields([]metav1.ManagedFieldsEntry{})
		case n == 4 && odd:
			om.SetManagedFields([]metav1.ManagedFieldsEntry{{}})
		case n == 5 && odd && len(om.GetManagedFields()) > 0:
			om.SetManagedFields(om.GetManagedFields()[1:])
		default:
			om.SetManagedFields(live.(metav1.Object).GetManagedFields())
		}
		obj = obj.DeepCopyObject()
	}
	return all, handled
}

// TestTrackerDoesWhatTheLibraryDoes makes objects and updates by several managers. The tracker must handle most of the usual
// ones; there are unusual ones too.
func TestTrackerDoesWhatTheLibraryDoes(t *testing.T) {
	s := trackedScheme(t)
	models := NewModels(s)
	rounds := uint64(12)
	if testing.Short() {
		rounds = 4
	}
	for _, odd := range []bool{false, true} {
		for _, gvk := range trackedKinds {
			pairs := map[string]trackedPair{}
			all, handled := 0, 0
			for seed := range rounds {
				a, h := sequence(t, s, models, gvk, seed, odd, pairs)
				all, handled = all+a, handled+h
			}
			if least := all * 4 / 5; !odd && gvk != shipKind && handled < least || handled < all/10 {
				t.Errorf("%s, odd %v: only %d of %d were done without the library", gvk.Kind, odd, handled, all)
			}
		}
	}
}

func FuzzTracker(f *testing.F) {
	s := trackedScheme(f)
	models := NewModels(s)
	for i := range trackedKinds {
		f.Add(uint8(i), uint64(i), i%2 == 0)
	}
	pairs := map[string]trackedPair{}
	f.Fuzz(func(t *testing.T, kind uint8, seed uint64, odd bool) {
		sequence(t, s, models, trackedKinds[int(kind)%len(trackedKinds)], seed, odd, pairs)
	})
}

// TestTrackerLeavesToTheLibrary has updates that a tracker must not handle.
func TestTrackerLeavesToTheLibrary(t *testing.T) {
	s := trackedScheme(t)
	p := newPair(t, s, NewModels(s), shipKind, "")
	entry := func(manager, version, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: version, FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	const v1, name = "example.com/v1", `{"f:spec":{"f:name":{}}}`
	var ten []metav1.ManagedFieldsEntry
	for i := range 10 {
		ten = append(ten, entry(fmt.Sprint("m", i), v1, name))
	}
	for what, c := range map[string]struct {
		change  func(s *shipSpec)
		entries []metav1.ManagedFieldsEntry
		manager string
		left    bool
	}{
		"a change":             {func(s *shipSpec) { s.Load = 1 }, ten[:1], "m", false},
		"the tenth manager":    {func(s *shipSpec) { s.Load = 1 }, ten[:9], "m", false},
		"the eleventh":         {func(s *shipSpec) { s.Load = 1 }, ten, "m", true},
		"one of ten":           {func(s *shipSpec) { s.Load = 1 }, ten, "m3", false},
		"a manager twice":      {func(s *shipSpec) { s.Load = 1 }, []metav1.ManagedFieldsEntry{entry("a", v1, name), entry("a", v1, `{"f:spec":{"f:size":{}}}`)}, "m", true},
		"another version":      {func(s *shipSpec) { s.Load = 1 }, []metav1.ManagedFieldsEntry{entry("a", "example.com/v1beta1", name)}, "m", true},
		"a version gone":       {func(s *shipSpec) { s.Load = 1 }, []metav1.ManagedFieldsEntry{entry("a", "example.com/v9", name)}, "m", true},
		"entries owned":        {func(s *shipSpec) { s.Load = 1 }, []metav1.ManagedFieldsEntry{entry("a", v1, `{"f:metadata":{"f:labels":{},"f:managedFields":{}}}`)}, "m", false},
		"no fields":            {func(s *shipSpec) { s.Load = 1 }, []metav1.ManagedFieldsEntry{entry("a", v1, `{"x":{}}`)}, "m", true},
		"a large number":       {func(s *shipSpec) { s.Load = 1 << 63 }, nil, "m", true},
		"no number":            {func(s *shipSpec) { s.Depth = math.NaN() }, nil, "m", true},
		"an impossible port":   {func(s *shipSpec) { s.Port.Type = 7 }, nil, "m", true},
		"items twice":          {func(s *shipSpec) { s.Flags = []string{"a", "b", "a"} }, nil, "m", true},
		"key items twice":      {func(s *shipSpec) { s.Posts = []post{{Deck: 1}, {Deck: 1, Side: "port"}} }, nil, "m", true},
		"keys that differ":     {func(s *shipSpec) { s.Posts = []post{{Deck: 1}, {Deck: 1, Side: "starboard"}} }, nil, "m", false},
		"any type":             {func(s *shipSpec) { s.Any = map[string]any{"a": 1} }, nil, "m", true},
		"a raw value":          {func(s *shipSpec) { s.Raw = &apiruntime.RawExtension{Raw: []byte(`{}`)} }, nil, "m", true},
		"a text that is none":  {func(s *shipSpec) { s.Notes = map[string]string{"\xff": ""} }, nil, "m", true},
		"too many":             {func(s *shipSpec) { s.Numbers = make([]int32, MaxMembers+1) }, nil, "m", true},
		"a manager that is no": {func(s *shipSpec) { s.Load = 1 }, nil, "\xff", true},
	} {
		live := &ship{Spec: shipSpec{Name: "n"}}
		live.SetGroupVersionKind(shipKind)
		live.UID, live.ManagedFields = "u", c.entries
		if c.entries == nil {
			live.ManagedFields = ten[:1]
		}
		obj := live.DeepCopyObject().(*ship)
		if c.change(&obj.Spec); what == "too many" {
			for i := range obj.Spec.Numbers {
				obj.Spec.Numbers[i] = int32(i) //nolint:gosec // few
			}
		}
		if _, handled := p.check(t, live, obj, c.manager); handled == c.left {
			t.Errorf("%s: done without the library: %v", what, handled)
		}
	}
}

// TestTrackerForgets checks that the memory of a tracker is bounded, and that it uses the current model of its kind.
func TestTrackerForgets(t *testing.T) {
	s := trackedScheme(t)
	models := NewModels(s)
	p := newPair(t, s, models, gadgetKind, "")
	for i := range 3000 {
		obj := &gadget{}
		obj.SetLabels(map[string]string{fmt.Sprint("l", i): "x"})
		obj.SetManagedFields([]metav1.ManagedFieldsEntry{{
			Manager: "m", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "bench.example.com/v1", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(fmt.Sprintf(`{"f:spec":{"f:size":{},"f:x%d":{}}}`, i)),
		}})
		if _, handled := p.check(t, nil, obj, "m"); !handled {
			t.Fatal(i)
		}
	}
	tr := p.fast.tracked.Load()
	if n := len(tr.entries); tr.size > maxKept || n > 2000 || n == 0 || len(tr.changes) > n+1 || len(tr.results) > n+1 {
		t.Errorf("%d bytes; %d, %d and %d", tr.size, n, len(tr.changes), len(tr.results))
	}
	models.Forget(gadgetKind)
	if again := p.fast.tracker(); again == tr || again.model == tr.model || p.fast.tracker() != again {
		t.Error("the model was forgotten, and not what was made of it")
	}
}

// TestTrackersAtOnce makes concurrent updates of one object while the model is removed.
func TestTrackersAtOnce(t *testing.T) {
	s := trackedScheme(t)
	models := NewModels(s)
	p := newPair(t, s, models, gadgetKind, "")
	live := &gadget{Spec: gadgetSpec{Size: 1}}
	if err := p.fast.Update(nil, live, "m"); err != nil {
		t.Fatal(err)
	}
	live.UID = "u"
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range 50 {
				obj := live.DeepCopyObject().(*gadget)
				obj.Spec.Size, obj.Labels = int32(n+2), map[string]string{fmt.Sprint("l", n%7): "x"}
				if err := p.fast.Update(live, obj, fmt.Sprint("m", i)); err != nil {
					t.Error(err)
				}
				want := fmt.Sprintf(`{"f:metadata":{"f:labels":{".":{},"f:l%d":{}}},"f:spec":{"f:size":{}}}`, n%7)
				if e := obj.ManagedFields; len(e) != 1 || e[0].FieldsV1.GetRawString() != want {
					t.Errorf("%v", e)
				}
				if n%10 == i {
					models.Forget(gadgetKind)
				}
			}
		})
	}
	wg.Wait()
}
