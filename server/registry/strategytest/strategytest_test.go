package strategytest_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/registry/strategytest"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// boat returns a valid boat without a warning, changed by change.
func boat(change ...func(*Boat)) *Boat {
	b := &Boat{Spec: BoatSpec{Length: 10, Rig: "sloop", Sails: []Sail{{Name: "main", Area: 30}}}}
	for _, f := range change {
		f(b)
	}
	return b
}

func long(meters int32) func(*Boat)  { return func(b *Boat) { b.Spec.Length = meters } }
func phase(p string) func(*Boat)     { return func(b *Boat) { b.Status.Phase = p } }
func version(rv string) func(*Boat)  { return func(b *Boat) { b.ResourceVersion = rv } }
func generation(n int64) func(*Boat) { return func(b *Boat) { b.Generation = n } }
func sails(list ...Sail) func(*Boat) { return func(b *Boat) { b.Spec.Sails = list } }
func owner(name string) func(*Boat)  { return func(b *Boat) { b.Spec.Owner = name } }
func port(name string) func(*Boat)   { return func(b *Boat) { b.Spec.Port = name } }
func named(name string) func(*Boat)  { return func(b *Boat) { b.Name = name } }
func kept(by ...string) func(*Boat)  { return func(b *Boat) { b.Finalizers = by } }
func dying(seconds int64) func(*Boat) {
	return func(b *Boat) {
		at := metav1.NewTime(strategytest.Now().Add(time.Duration(seconds) * time.Second))
		b.DeletionTimestamp, b.DeletionGracePeriodSeconds = &at, &seconds
	}
}

func ptr[T any](v T) *T { return &v }

// passing are cases that pass, one or more for each rule.
func passing() []strategytest.Case {
	launched := []string{"spec.launched"}
	return []strategytest.Case{
		{Name: "accepted, whatever it becomes", Create: boat()},
		{Name: "defaults, and what the strategy adds", Create: boat(func(b *Boat) { b.Spec.Rig = "" }), Want: boat(owner("admin"), generation(1)), Ignore: launched},
		{Name: "a user", Create: boat(), User: &authn.User{Name: "ahab"}, Want: boat(owner("ahab")), Ignore: launched},
		{Name: "a status is dropped", Create: boat(phase("sunk")), Want: boat(owner("admin")), Ignore: launched},
		{Name: "the normal form", Create: boat(sails(Sail{Name: "main"}, Sail{Name: "jib"})), Want: boat(owner("admin"), sails(Sail{Name: "jib"}, Sail{Name: "main"})), Ignore: launched},
		{Name: "struct tags", Create: boat(long(0), sails(Sail{Name: "main"}), func(b *Boat) { b.Spec.Rig = "brig" }), Errors: []string{
			`spec.rig: Unsupported value: "brig"`, "spec.length: Invalid value: 0: spec.length in body should be greater than or equal to 1",
		}},
		{Name: "errors of the strategy", Create: boat(long(1), sails(Sail{Area: 11}, Sail{Name: "jib", Area: 12})), Errors: []string{
			"spec.sails[1].area: Invalid value: 12: too much for the boat: it would capsize", "spec.sails[0].area", "spec.sails[0].name: Required value",
		}},
		{Name: "the longer text chooses first", Create: boat(sails(Sail{Name: "main", Area: 501})), Errors: []string{
			"spec.sails[0].area", "spec.sails[0].area: Invalid value",
		}},
		{Name: "names", Create: boat(named("ghost-1")), Errors: []string{`metadata.name: Invalid value: "ghost-1": brings bad luck`}},
		{Name: "names that are made", Create: boat(func(b *Boat) { b.GenerateName = "ghost-" }), Errors: []string{"metadata.generateName", "metadata.name"}},
		{Name: "a name is made", Create: boat(func(b *Boat) { b.GenerateName = "x-" }), Want: boat(owner("admin"), func(b *Boat) { b.GenerateName = "x-" }), Ignore: launched},
		{Name: "metadata", Create: boat(func(b *Boat) { b.Labels = map[string]string{"a b": ""} }), Errors: []string{`metadata.labels: Invalid value: "a b"`}},
		{Name: "warnings", Create: boat(sails()), Warnings: []string{"spec.sails: the boat has none"}},
		{Name: "warnings by their beginning", Create: boat(sails()), Warnings: []string{"spec.sails"}},

		{Name: "an update", Old: boat(owner("ahab"), phase("sailing")), Update: boat(long(12)), Want: boat(long(12), owner("ahab"), phase("sailing"), generation(2))},
		{Name: "an update of nothing new", Old: boat(), Update: boat(), Want: boat(generation(1))},
		{Name: "ignored in every item", Old: boat(), Update: boat(sails(Sail{Name: "a", Area: 1}, Sail{Name: "b", Area: 2})),
			Want: boat(sails(Sail{Name: "a", Area: 3}, Sail{Name: "b"})), Ignore: []string{"spec.sails.area"}},
		{Name: "ignored in one item", Old: boat(), Update: boat(sails(Sail{Name: "a", Area: 1}, Sail{Name: "b", Area: 2})),
			Want: boat(sails(Sail{Name: "a", Area: 1}, Sail{Name: "b"})), Ignore: []string{"spec.sails[1].area"}},
		{Name: "an item that is ignored", Old: boat(), Update: boat(sails(Sail{Name: "a", Area: 1}, Sail{Name: "b", Area: 2})),
			Want: boat(sails(Sail{Name: "x"}, Sail{Name: "b", Area: 2})), Ignore: []string{"spec.sails[0]"}},
		{Name: "an update of metadata", Old: boat(generation(7)), Update: boat(kept("example.com/f")), Want: boat(kept("example.com/f"), generation(7))},
		{Name: "no update of a status", Old: boat(), Update: boat(phase("sunk")), Want: boat()},
		{Name: "an immutable field", Old: boat(port("Kiel")), Update: boat(port("Bremen")), Errors: []string{"spec.port: Invalid value: \"Bremen\": field is immutable"}},
		{Name: "an error that was there before", Old: boat(sails(Sail{Name: "main", Area: 499})), Update: boat(func(b *Boat) {
			b.Spec.Sails, b.Labels = []Sail{{Name: "main", Area: 499}}, map[string]string{"a": "b"}
		})},
		{Name: "an error that is new", Old: boat(sails(Sail{Name: "main", Area: 498})), Update: boat(sails(Sail{Name: "main", Area: 499})), Errors: []string{"spec.sails[0].area"}},
		{Name: "an update of nothing", Update: boat(), Errors: []string{`NotFound: boats.example.com "example" not found`}},
		{Name: "an update of the state that is", Old: boat(version("77")), Update: boat(version("77"), long(11)), Want: boat(long(11))},
		{Name: "an update of an older state", Old: boat(version("77")), Update: boat(version("76"), long(11)), Errors: []string{"Conflict"}},
		{Name: "an update of a state that is older by chance", Old: boat(), Update: boat(version("2"), long(11)), Errors: []string{"Conflict"}},
		{Name: "an update of another object", Old: boat(func(b *Boat) { b.UID = "a" }), Update: boat(func(b *Boat) { b.UID = "b" }), Errors: []string{"Conflict"}},

		{Name: "a status", Old: boat(), Status: boat(phase("SAILING"), long(99), func(b *Boat) { b.Labels = map[string]string{"a": "b"} }), Want: boat(phase("sailing"), generation(1))},
		{Name: "a status that is refused", Old: boat(phase("sunk")), Status: boat(phase("moored")), Errors: []string{"status.phase: Forbidden: what has sunk stays down"}},
		{Name: "a scale", Old: boat(), Scale: &runtime.Scale{Spec: runtime.ScaleSpec{Replicas: 4}}, Want: boat(func(b *Boat) { b.Spec.Berths = 4 }, generation(2))},
		{Name: "a scale as it is shown", Old: boat(func(b *Boat) { b.Status.Berths = 2 }), Scale: &runtime.Scale{Spec: runtime.ScaleSpec{Replicas: 4}}, Want: &runtime.Scale{
			Spec: runtime.ScaleSpec{Replicas: 4}, Status: runtime.ScaleStatus{Replicas: 2},
		}},
		{Name: "a scale below zero", Old: boat(), Scale: &runtime.Scale{Spec: runtime.ScaleSpec{Replicas: -4}}, Errors: []string{"spec.replicas: Invalid value: -4"}},
		{Name: "a scale of the state that is", Old: boat(version("77")), Scale: &runtime.Scale{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "77"}}},
		{Name: "a scale of an older state", Old: boat(), Scale: &runtime.Scale{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}}, Errors: []string{"Conflict"}},

		{Name: "a deletion", Old: boat(), Delete: &metav1.DeleteOptions{}, Gone: true},
		{Name: "a deletion of what is kept", Old: boat(kept("example.com/f")), Delete: &metav1.DeleteOptions{}, Want: boat(kept("example.com/f"), dying(0), generation(2))},
		{Name: "a graceful deletion", Old: boat(phase("sailing")), Delete: &metav1.DeleteOptions{}, Want: boat(phase("sailing"), dying(30))},
		{Name: "a graceful deletion that is not", Old: boat(phase("sailing")), Delete: &metav1.DeleteOptions{GracePeriodSeconds: ptr(int64(0))}, Gone: true, Want: boat(phase("sailing"))},
		{Name: "the last finalizer", Old: boat(kept("example.com/f"), dying(0)), Update: boat(long(11)), Gone: true, Want: boat(long(11))},
		{Name: "one of two finalizers", Old: boat(kept("example.com/f", "example.com/g"), dying(0)), Update: boat(kept("example.com/g")), Want: boat(kept("example.com/g"), dying(0))},
		{Name: "a deletion of an older state", Old: boat(version("7")), Delete: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: ptr("6")}}, Errors: []string{"Conflict"}},
		{Name: "a deletion of the state that is", Old: boat(version("7")), Delete: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: ptr("7")}}, Gone: true},
		{Name: "options that make no sense", Old: boat(), Delete: &metav1.DeleteOptions{PropagationPolicy: ptr(metav1.DeletionPropagation("Whatever"))}, Errors: []string{"propagationPolicy: Unsupported value"}},
		{Name: "admission", Old: boat(), Delete: &metav1.DeleteOptions{}, User: &authn.User{Name: "sailor"}, Errors: []string{`Forbidden: boats.example.com "example" is forbidden: a sailor deletes no boat`}},

		{Name: "another version", Create: &BoatV1beta1{Spec: BoatSpecV1beta1{Size: "7m"}}, Want: &BoatV1beta1{Spec: BoatSpecV1beta1{Size: "7m", Rig: "sloop"}},
			Ignore: []string{"metadata.annotations[example.com/rest]"}, Warnings: []string{"spec.sails"}},
		{Name: "from one version to the other", Old: boat(port("Kiel")), Update: &BoatV1beta1{Spec: BoatSpecV1beta1{Size: "7m", Rig: "yawl"}}, Errors: []string{"spec.port"}},
		{Name: "seen in the other version", Old: &BoatV1beta1{Spec: BoatSpecV1beta1{Size: "7m"}}, Update: &BoatV1beta1{Spec: BoatSpecV1beta1{Size: "8m"}},
			Want: &Boat{Spec: BoatSpec{Length: 8, Rig: "sloop"}}},
		{Name: "rules of the other version", Create: &BoatV1beta1{Spec: BoatSpecV1beta1{Size: "200m"}}, Errors: []string{
			"spec.length: Invalid value: 200: spec.length in body should be less than or equal to 100 (in version v1)",
		}},
		{Name: "a conversion that fails", Create: &BoatV1beta1{Spec: BoatSpecV1beta1{Size: "much"}}, Errors: []string{"BadRequest: Boat in version \"v1beta1\" cannot be handled as a Boat"}},

		{Name: "another kind, in no namespace", Old: &Buoy{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}, Spec: BuoySpec{Color: "red"}},
			Update: &Buoy{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}, Spec: BuoySpec{Color: "green"}}, Want: &Buoy{Spec: BuoySpec{Color: "green"}}},
		{Name: "an update that creates", Update: &Buoy{Spec: BuoySpec{Color: "red"}}, Want: &Buoy{Spec: BuoySpec{Color: "red"}}},
		{Name: "an update that has to know", Old: &Buoy{}, Update: &Buoy{}, Errors: []string{"metadata.resourceVersion: Invalid value: 0: must be specified for an update"}},
	}
}

func TestCasesThatHold(t *testing.T) {
	t.Parallel()
	strategytest.Run(t, options(), passing())
}

// TestNothingIsShared: cases may be checked concurrently, do not change their objects, and pass again.
func TestNothingIsShared(t *testing.T) {
	t.Parallel()
	c, err := strategytest.New(options())
	if err != nil {
		t.Fatal(err)
	}
	cases := passing()
	for range 4 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			for _, one := range cases {
				if err := c.Check(one); err != nil {
					t.Errorf("%s: %v", one.Name, err)
				}
			}
		})
	}
}

// TestOptionsThatAreWrong: options that a server would refuse have the errors of server.New.
func TestOptionsThatAreWrong(t *testing.T) {
	o := options()
	o.Groups[0].Conversions = nil
	const want = "strategytest: server: resource example.com/v1beta1, Resource=boats: nothing converts it to the hub example.com/v1, Kind=Boat and back; add a server.Convert to Group.Conversions"
	if _, err := strategytest.New(o); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// TestKindsOfAScheme: a Scheme in the Options is used, with the defaults and rules of its types.
func TestKindsOfAScheme(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	kinds, err := scheme.Import(corev1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(kinds, func(k *runtime.Kind) bool { return k.GVK.Kind == "ConfigMap" })
	strategytest.Run(t, server.Options{Scheme: scheme, Groups: []server.Group{{Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
		server.ImportedKind(kinds[at], server.KindOptions[runtime.Object]{Strategy: registry.Strategy[runtime.Object]{
			Validate: func(_ *registry.Call, obj runtime.Object) field.ErrorList {
				if len(obj.(*corev1.ConfigMap).Data) > 1 {
					return field.ErrorList{field.TooMany(field.NewPath("data"), 2, 1)}
				}
				return nil
			},
			ValidateUpdate: func(_ *registry.Call, _, old runtime.Object) field.ErrorList {
				if m := old.(*corev1.ConfigMap); m.UID == "" || m.Generation != 1 || !m.CreationTimestamp.Time.Equal(strategytest.Now()) {
					return field.ErrorList{field.Required(field.NewPath("metadata"), "the metadata of a stored object")}
				}
				return nil
			},
		}}),
	}}}}}}, []strategytest.Case{
		{Name: "stored as any other", Old: &corev1.ConfigMap{}, Update: &corev1.ConfigMap{}},
		{Name: "enough", Create: &corev1.ConfigMap{Data: map[string]string{"a": "b"}}, Want: &corev1.ConfigMap{Data: map[string]string{"a": "b"}}},
		{Name: "too much", Create: &corev1.ConfigMap{Data: map[string]string{"a": "b", "c": "d"}}, Errors: []string{"data: Too many: 2"}},
	})
}

// TestKindsWithoutAGoType: the kind of an untyped object is that of its apiVersion and kind.
func TestKindsWithoutAGoType(t *testing.T) {
	t.Parallel()
	kite := func(spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Kite", "spec": spec}}
	}
	known := func(spec map[string]any) *unstructured.Unstructured { // an update of a custom resource needs a resourceVersion
		k := kite(spec)
		k.SetResourceVersion("7")
		return k
	}
	strategytest.Run(t, server.Options{Groups: []server.Group{{Name: "example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
		server.Kind("Kite", server.KindOptions[*unstructured.Unstructured]{Strategy: registry.Strategy[*unstructured.Unstructured]{
			Validate: func(_ *registry.Call, obj *unstructured.Unstructured) field.ErrorList {
				if _, ok, err := unstructured.NestedString(obj.Object, "spec", "tail"); err != nil || !ok {
					return field.ErrorList{field.Required(field.NewPath("spec", "tail"), "")}
				}
				return nil
			},
		}}),
	}}}}}}, []strategytest.Case{
		{Name: "as it is", Create: kite(map[string]any{"tail": "long", "colors": int64(3)}), Want: kite(map[string]any{"tail": "long", "colors": int64(3)})},
		{Name: "an error", Old: known(nil), Update: known(map[string]any{"colors": int64(3)}), Errors: []string{"spec.tail: Required value"}},
		{Name: "an update", Old: known(nil), Update: known(map[string]any{"tail": "long"}), Want: kite(map[string]any{"tail": "long"})},
		{Name: "a deletion", Old: kite(nil), Delete: &metav1.DeleteOptions{}, Gone: true},
	})
}

// TestRegistriesLeaveNothing: a list does not start a cache that would have to be closed.
func TestRegistriesLeaveNothing(t *testing.T) {
	before := goleak.IgnoreCurrent()
	kinds, err := server.NewRegistries(options())
	if err != nil {
		t.Fatal(err)
	}
	backend := memory.New(memory.Options{})
	kind, err := kinds.Open(backend, schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Boat"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kind.Registry.ListRecords(registry.NewCall(t.Context(), authn.System(), ""), storage.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(goleak.Find(before), backend.Close()); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkCheck(b *testing.B) {
	c, err := strategytest.New(options())
	if err != nil {
		b.Fatal(err)
	}
	one := strategytest.Case{Name: "an update", Old: boat(), Update: boat(long(12)), Want: boat(long(12))}
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Check(one); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := strategytest.New(options()); err != nil {
			b.Fatal(err)
		}
	}
}

// TestMain fails if a case leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
