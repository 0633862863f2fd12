package registry_test

import (
	"context"
	"testing"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Ledger counts how often it is copied.
type Ledger struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Data              map[string]string `json:"data,omitempty"`
	copies            *int
}

func (l *Ledger) DeepCopyObject() runtime.Object {
	if l.copies != nil {
		*l.copies++
	}
	out := *runtime.DeepCopy(&Ledger{TypeMeta: l.TypeMeta, ObjectMeta: l.ObjectMeta, Data: l.Data})
	out.copies = l.copies
	return &out
}

// book is a Storage of a program, with one Ledger.
type book struct{ ledger *Ledger }

func (b book) Update(call *registry.Call, _ string, update registry.ObjectUpdate, _ *metav1.UpdateOptions) (runtime.Object, bool, error) {
	obj, err := update(call, b.ledger)
	return obj, false, err
}

// A write with plug-ins that do not handle it copies no more than a write without plug-ins. The same is true for a write to a
// Registry with plug-ins that do not read the objects.
func TestPluginsThatDoNotLookCostNoCopies(t *testing.T) {
	var copies int
	kind := widgetKind.GroupVersion().WithKind("Ledger")
	ledgers := schema.GroupResource{Group: kind.Group, Resource: "ledgers"}
	ledger := func(name string) *Ledger {
		return &Ledger{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"a": "1"}, copies: &copies}
	}
	scheme := runtime.NewScheme()
	must(t, runtime.Register[*Ledger](scheme, kind, runtime.KindOptions[*Ledger]{Default: func(l *Ledger) { l.copies = &copies }}))
	backend := memory.New(memory.Options{})
	defer func() { must(t, backend.Close()) }()
	typed, err := codec.NewTyped(scheme, kind)
	must(t, err)
	store, err := storage.NewStore(backend, storage.StoreOptions{Prefix: "/registry/example.com/ledgers", Codec: typed})
	must(t, err)

	change := func(_ *registry.Call, obj runtime.Object) (runtime.Object, error) {
		obj.(*Ledger).Data["a"] += "1"
		return obj, nil
	}
	// writes calls each verb with plug-ins, and counts the copies.
	writes := func(plugins admission.Chain) map[string]int {
		reg, err := registry.New(registry.Options{Scheme: scheme, Kind: kind, Resource: ledgers, Storage: store, Policy: plugins})
		must(t, err)
		own := registry.Gate{Admission: plugins, Kind: kind, Resource: ledgers.WithVersion(kind.Version)}.Updater(book{ledger("a")})
		call := registry.NewCall(t.Context(), authn.System(), "")
		counts := map[string]int{}
		for _, verb := range []struct {
			name string
			do   func() error
		}{
			{"create", func() error { _, err := reg.CreateRecord(call, ledger("a"), nil); return err }},
			{"update", func() error { _, _, err := reg.UpdateRecord(call, "a", change, nil); return err }},
			{"delete", func() error { _, _, err := reg.DeleteRecord(call, "a", nil); return err }},
			{"update through a Gate", func() error { _, _, err := own.Update(call, "a", change, nil); return err }},
		} {
			copies = 0
			must(t, verb.do())
			counts[verb.name] = copies
		}
		return counts
	}

	asked := 0
	idle := admission.ValidatorFunc(func(context.Context, *admission.Request) error { asked++; return nil })
	looks := admission.ValidatorFunc(func(_ context.Context, r *admission.Request) error {
		asked++
		if old, ok := r.Old().(*Ledger); ok && r.Object() != nil && old.Data["a"] == r.Object().(*Ledger).Data["a"] {
			t.Errorf("the old object of %s %q has what is new", r.Operation, r.Name)
		}
		_, _ = r.Object(), r.Old()
		return nil
	})
	of := func(operations []admission.Operation, resources ...schema.GroupResource) admission.Handles {
		return admission.Handles{Operations: operations, Resources: resources}
	}
	connects := []admission.Operation{admission.Connect}
	mutator := admission.MutatorFunc(func(context.Context, *admission.Request) error { asked++; return nil })

	none := writes(nil)
	for _, c := range []struct {
		name    string
		plugins admission.Chain
		asked   int
		more    map[string]int // more copies than without plug-ins
	}{
		{"of another kind", admission.Chain{{Validator: looks, Handles: of(nil, widgetResource)}, {Mutator: mutator, Handles: of(nil, widgetResource)}}, 0, nil},
		{"of another operation", admission.Chain{{Validator: looks, Handles: of(connects)}, {Mutator: mutator, Handles: of(connects)}}, 0, nil},
		{"of a subresource", admission.Chain{{Validator: looks, Handles: of(nil, schema.GroupResource{Group: kind.Group, Resource: "ledgers/status"})}}, 0, nil},
		// A Gate does not know in advance if a plug-in reads the objects, and the update function may change the current object.
		{"that does not look", admission.Chain{{Validator: idle}, {Mutator: mutator}}, 8, map[string]int{"update through a Gate": 1}},
		{"that looks", admission.Chain{{Validator: looks}, {Validator: looks}}, 8, map[string]int{"create": 1, "update": 2, "delete": 1, "update through a Gate": 3}},
	} {
		asked = 0
		for verb, n := range writes(c.plugins) {
			equal(t, verb+" beside a plug-in "+c.name+": copies more than without", n-none[verb], c.more[verb])
		}
		equal(t, "plug-ins "+c.name+" asked", asked, c.asked)
	}
}
