package server_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/servertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// witness is an admission plug-in that records what its validator gets.
type witness struct {
	mu   sync.Mutex // guards seen
	seen []string
}

func (w *witness) chain() admission.Chain {
	return admission.Chain{{Validator: admission.ValidatorFunc(func(_ context.Context, r *admission.Request) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		options, manager := "none", ""
		switch o := r.Options.(type) {
		case *metav1.CreateOptions:
			options, manager = o.APIVersion+" "+o.Kind, o.FieldManager
		case *metav1.UpdateOptions:
			options, manager = o.APIVersion+" "+o.Kind, o.FieldManager
		case *metav1.DeleteOptions:
			options = o.APIVersion + " " + o.Kind
		}
		w.seen = append(w.seen, strings.TrimSpace(fmt.Sprintf("%s %s/%s %s old=%t dry=%t %s %s",
			r.Operation, r.Resource.Resource, r.Subresource, r.Kind.Kind, r.Old() != nil, r.DryRun, options, manager)))
		return nil
	})}}
}

func (w *witness) taken() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.seen
	w.seen = nil
	return out
}

func witnessed(t *testing.T) (rigWriter, *witness) {
	t.Helper()
	w := &witness{}
	// With a cache a change begins with the object of the cache, and is repeated if that was old: admission is then called again.
	o := contendedRigs(server.KindOptions[*rig]{NoCache: true})
	o.Policy.Admission = w.chain()
	srv := servertest.Start(t, o)
	return rigWriter{t, srv.Client(), srv.URL + rigList + "/r", "m"}, w
}

const rigConfig = `{"apiVersion":"rig.example.com/v1","kind":"Rig","metadata":{"name":"r"%s},"spec":{"name":"n"}}`

// Every kind of change can remove the last finalizer of an object that is being deleted. Then the object is gone, and the answer
// is its last state. A dry run of this changes nothing, and admission is called for it.
func TestLastFinalizer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ method, contentType, body string }{
		"apply":     {"PATCH", applyPatch, fmt.Sprintf(rigConfig, ``)},
		"merge":     {"PATCH", mergePatch, `{"metadata":{"finalizers":null}}`},
		"strategic": {"PATCH", strategicPatch, `{"metadata":{"$deleteFromPrimitiveList/finalizers":["x.io/y"]}}`},
		"json":      {"PATCH", jsonPatch, `[{"op":"remove","path":"/metadata/finalizers/0"}]`},
		"put":       {"PUT", "application/json", fmt.Sprintf(rigConfig, ``)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, seen := witnessed(t)
			w.want(http.StatusCreated, "PATCH", "v1", "", applyPatch, fmt.Sprintf(rigConfig, `,"finalizers":["x.io/y"]`))
			marked := w.want(http.StatusOK, "DELETE", "v1", "", "", "")
			// A change of the status cannot remove finalizers.
			w.want(http.StatusOK, "PATCH", "v1", "/status", mergePatch, `{"metadata":{"finalizers":null},"status":{"replicas":1}}`)
			seen.taken()

			dry, obj := w.sendQuery(c.method, "dryRun=All", c.contentType, c.body)
			if dry != http.StatusOK || obj.GetUID() != marked.GetUID() || len(obj.GetFinalizers()) > 0 {
				t.Errorf("dry run: %d %v", dry, obj.Object)
			}
			if got, want := seen.taken(), []string{"UPDATE rigs/ Rig old=true dry=true meta.k8s.io/v1 UpdateOptions m"}; !slices.Equal(got, want) {
				t.Errorf("admission: %q", got)
			}
			if still := w.want(http.StatusOK, "GET", "v1", "", "", ""); len(still.GetFinalizers()) != 1 {
				t.Errorf("after a dry run: %v", still.Object)
			}

			last := w.want(http.StatusOK, c.method, "v1", "", c.contentType, c.body)
			if last.GetUID() != marked.GetUID() || last.GetDeletionTimestamp() == nil || len(last.GetFinalizers()) > 0 {
				t.Errorf("last: %v", last.Object)
			}
			if code, gone := w.send("GET", "v1", "", "", ""); code != http.StatusNotFound {
				t.Errorf("%d %v", code, gone.Object)
			}
		})
	}
}

// An object that is being deleted can be changed by an apply, but cannot get new finalizers.
func TestApplyToWhatIsBeingDeleted(t *testing.T) {
	t.Parallel()
	w, _ := witnessed(t)
	w.want(http.StatusCreated, "PATCH", "v1", "", applyPatch, fmt.Sprintf(rigConfig, `,"finalizers":["x.io/y"]`))
	w.want(http.StatusOK, "DELETE", "v1", "", "", "")
	_, refused := w.send("PATCH", "v1", "", applyPatch, fmt.Sprintf(rigConfig, `,"finalizers":["x.io/y","x.io/z"]`))
	if got, _, _ := unstructured.NestedString(refused.Object, "message"); !strings.Contains(got, "no new finalizers can be added if the object is being deleted") {
		t.Errorf("%v", refused.Object)
	}
	w.manager = "other"
	obj := w.want(http.StatusOK, "PATCH", "v1", "", applyPatch, fmt.Sprintf(rigConfig, `,"labels":{"a":"b"}`))
	if obj.GetLabels()["a"] != "b" || obj.GetDeletionTimestamp() == nil || len(obj.GetFinalizers()) != 1 {
		t.Errorf("%v", obj.Object)
	}
}

// Admission gets an apply as the operation that it is, create or update, with the options of that operation, and a dry run as a
// dry run.
func TestAdmissionSeesApplies(t *testing.T) {
	t.Parallel()
	w, seen := witnessed(t)
	wantSeen := func(want string) {
		t.Helper()
		if got := seen.taken(); !slices.Equal(got, []string{want}) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	config := fmt.Sprintf(rigConfig, ``)
	if code, obj := w.sendQuery("PATCH", "dryRun=All", applyPatch, config); code != http.StatusCreated || obj.GetUID() == "" || obj.GetResourceVersion() != "" {
		t.Errorf("%d %v", code, obj.Object)
	}
	wantSeen("CREATE rigs/ Rig old=false dry=true meta.k8s.io/v1 CreateOptions m")
	if code, _ := w.send("GET", "v1", "", "", ""); code != http.StatusNotFound {
		t.Errorf("a dry run stored: %d", code)
	}
	w.want(http.StatusCreated, "PATCH", "v1", "", applyPatch, config)
	wantSeen("CREATE rigs/ Rig old=false dry=false meta.k8s.io/v1 CreateOptions m")
	w.want(http.StatusOK, "PATCH", "v1", "", applyPatch, config)
	wantSeen("UPDATE rigs/ Rig old=true dry=false meta.k8s.io/v1 UpdateOptions m")
	w.want(http.StatusOK, "PATCH", "v1", "/status", applyPatch, `{"apiVersion":"rig.example.com/v1","kind":"Rig","metadata":{"name":"r"},"status":{"replicas":2}}`)
	wantSeen("UPDATE rigs/status Rig old=true dry=false meta.k8s.io/v1 UpdateOptions m")
	w.want(http.StatusOK, "PATCH", "v1", "/scale", applyPatch, `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"r"},"spec":{"replicas":2}}`)
	wantSeen("UPDATE rigs/scale Scale old=true dry=false meta.k8s.io/v1 UpdateOptions m")
	code, obj := w.sendQuery("DELETE", "dryRun=All", "", "")
	if code != http.StatusOK {
		t.Errorf("%d %v", code, obj.Object)
	}
	wantSeen("DELETE rigs/ Rig old=true dry=true meta.k8s.io/v1 DeleteOptions")
}

// A user who may patch but not create cannot create an object by an apply, and may change an existing one.
func TestApplyNeedsCreate(t *testing.T) {
	t.Parallel()
	mayCreate := &sync.Map{}
	o := contendedRigs(server.KindOptions[*rig]{})
	o.Policy.Authorizer = authz.Func(func(_ context.Context, a authz.Attributes) (authz.Verdict, string, error) {
		if _, ok := mayCreate.Load("yes"); a.Verb == "create" && !ok {
			return authz.Deny, "no more rigs", nil
		}
		return authz.Allow, "", nil
	})
	srv := servertest.Start(t, o)
	w := rigWriter{t, srv.Client(), srv.URL + rigList + "/r", "m"}
	config := fmt.Sprintf(rigConfig, ``)
	for _, query := range []string{"", "dryRun=All"} {
		code, refused := w.sendQuery("PATCH", query, applyPatch, config)
		if got, _, _ := unstructured.NestedString(refused.Object, "message"); code != http.StatusForbidden || !strings.Contains(got, `cannot create resource "rigs"`) {
			t.Errorf("%d %v", code, refused.Object)
		}
	}
	mayCreate.Store("yes", true)
	w.want(http.StatusCreated, "PATCH", "v1", "", applyPatch, config)
	mayCreate.Delete("yes")
	w.want(http.StatusOK, "PATCH", "v1", "", applyPatch, fmt.Sprintf(rigConfig, `,"labels":{"a":"b"}`))
}

// An object that is too large only because of its managedFields is stored without them. An apply that would make one is refused,
// and so is an object that is too large without managedFields. Mutators see the creation of an object once.
func TestTooLargeWithManagedFields(t *testing.T) {
	t.Parallel()
	o := contendedRigs(server.KindOptions[*rig]{})
	o.Limits.MaxObjectBytes = 4000
	srv := servertest.Start(t, o)
	var mutated atomic.Int32
	if err := host(t, srv).Admit(admission.Plugin{Name: "counts", Mutator: admission.MutatorFunc(func(_ context.Context, r *admission.Request) error {
		if r.Operation == admission.Create {
			mutated.Add(1)
		}
		return nil
	})}); err != nil {
		t.Fatal(err)
	}
	w := rigWriter{t, srv.Client(), srv.URL + rigList + "/r", "m"}
	labels := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"label%d":"v"`, i))
		}
		return `"labels":{` + strings.Join(all, ",") + `}`
	}
	body := func(n int) string { return `{"metadata":{` + labels(n) + `}}` }
	const fits, tooMany = 150, 500
	list := rigWriter{t, srv.Client(), srv.URL + rigList, "m"}
	for _, name := range []string{`"name":"created"`, `"generateName":"made-"`} {
		made := list.want(http.StatusCreated, "POST", "v1", "", "application/json", `{"kind":"Rig","apiVersion":"rig.example.com/v1","metadata":{`+name+`,`+labels(fits)+`}}`)
		if n := mutated.Swap(0); n != 1 || len(made.GetManagedFields()) > 0 || len(made.GetLabels()) != fits {
			t.Errorf("mutated %d times, %d labels, %v", n, len(made.GetLabels()), made.GetManagedFields())
		}
	}
	w.want(http.StatusRequestEntityTooLarge, "PATCH", "v1", "", applyPatch, fmt.Sprintf(rigConfig, ","+labels(fits)))
	w.want(http.StatusCreated, "PATCH", "v1", "", applyPatch, fmt.Sprintf(rigConfig, ``))
	for _, kind := range []string{mergePatch, strategicPatch} {
		if code, dry := w.sendQuery("PATCH", "dryRun=All", kind, body(fits)); code != http.StatusOK || len(dry.GetManagedFields()) > 0 {
			t.Errorf("%s: %d, %d entries", kind, code, len(dry.GetManagedFields()))
		}
	}
	if before := w.want(http.StatusOK, "GET", "v1", "", "", ""); len(before.GetManagedFields()) != 1 {
		t.Errorf("a dry run changed %v", before.GetManagedFields())
	}
	obj := w.want(http.StatusOK, "PATCH", "v1", "", mergePatch, body(fits))
	if len(obj.GetManagedFields()) > 0 || len(obj.GetLabels()) != fits {
		t.Errorf("%d labels, %v", len(obj.GetLabels()), obj.GetManagedFields())
	}
	obj = w.want(http.StatusRequestEntityTooLarge, "PATCH", "v1", "", mergePatch, body(tooMany))
	if got, _, _ := unstructured.NestedString(obj.Object, "message"); !strings.Contains(got, "at most 4000 are stored") {
		t.Errorf("%v", obj.Object)
	}
	w.want(http.StatusRequestEntityTooLarge, "PATCH", "v1", "", applyPatch,
		fmt.Sprintf(rigConfig, ","+labels(fits+1)))
	after := w.want(http.StatusOK, "GET", "v1", "", "", "")
	if len(after.GetLabels()) != fits || len(after.GetManagedFields()) > 0 {
		t.Errorf("%d labels, %v", len(after.GetLabels()), after.GetManagedFields())
	}
}

// shelf is a storage of rigs without a registry. If obliges is set, it creates an object that an apply does not find.
type shelf struct {
	obliges bool

	mu   sync.Mutex // guards rigs
	rigs map[string]*rig
}

func (s *shelf) Get(_ *registry.Call, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.rigs[name]; ok {
		return r.DeepCopyObject(), nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: "rig.example.com", Resource: "rigs"}, name)
}

func (s *shelf) Update(call *registry.Call, name string, update registry.ObjectUpdate, opts *metav1.UpdateOptions) (runtime.Object, bool, error) {
	current, err := s.Get(call, name, nil)
	missing := apierrors.IsNotFound(err)
	if err != nil && !(missing && s.obliges && call.CreateOnUpdate) {
		return nil, false, err
	}
	obj, err := update(call, current)
	if err != nil {
		return nil, false, err
	}
	if len(opts.DryRun) == 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.rigs[name] = obj.DeepCopyObject().(*rig)
	}
	return obj, missing, nil
}

// Objects without a registry can be applied, too. Their managers are like those of other objects, and their storage decides
// whether an apply creates an object. Other patches never create one.
func TestApplyToAStorageOfOnesOwn(t *testing.T) {
	t.Parallel()
	for _, obliges := range []bool{true, false} {
		seen := &witness{}
		srv := servertest.Start(t, server.Options{Policy: server.Policy{Admission: seen.chain()}, Groups: []server.Group{{Name: "rig.example.com", Versions: []server.Version{{
			Name: "v1", Resources: []server.Resource{server.Kind("Rig", server.KindOptions[*rig]{Storage: &shelf{obliges: obliges, rigs: map[string]*rig{}}})},
		}}}}})
		w := rigWriter{t, srv.Client(), srv.URL + rigList + "/r", "m"}
		w.want(http.StatusNotFound, "PATCH", "v1", "", mergePatch, `{"spec":{"name":"n"}}`)
		config := fmt.Sprintf(rigConfig, ``)
		if !obliges {
			w.want(http.StatusNotFound, "PATCH", "v1", "", applyPatch, config)
			continue
		}
		w.want(http.StatusCreated, "PATCH", "v1", "", applyPatch, config)
		if got, want := seen.taken(), []string{"CREATE rigs/ Rig old=false dry=false meta.k8s.io/v1 CreateOptions m"}; !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
		w.manager = "other"
		w.want(http.StatusConflict, "PATCH", "v1", "", applyPatch, strings.Replace(config, `"n"`, `"o"`, 1))
		obj := w.want(http.StatusOK, "PATCH", "v1", "", mergePatch, `{"spec":{"name":"o"}}`)
		if entries := obj.GetManagedFields(); len(entries) != 1 || entries[0].Manager != "other" {
			t.Errorf("%v", entries)
		}
	}
}

// A change whose managers cannot be computed is made, and the reason is logged, whatever it contains. The client learns nothing.
func TestUntrackedChangesAreLogged(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zapcore.InfoLevel)
	srv := servertest.Start(t, server.Options{Observe: server.Observe{Logger: zap.New(core)}, Groups: []server.Group{{Name: "rig.example.com", Versions: []server.Version{{
		Name: "v1", Resources: []server.Resource{server.Kind("Tally", server.KindOptions[*runtime.Resource[map[string]uint64, struct{}]]{})},
	}}}}})
	list := srv.URL + "/apis/rig.example.com/v1/namespaces/default/tallies"
	for spec, want := range map[string]int{`{"a":1}`: 0, `{"a":9223372036854776833}`: 1, `{"a\n\u0001b":9223372036854776833}`: 1} {
		a := roundTrip(t, srv.Client(), "POST", list, `{"metadata":{"generateName":"k"},"spec":`+spec+`}`)
		a.want(t, http.StatusCreated)
		lines := logs.FilterMessage("metadata.managedFields could not be brought up to date").TakeAll()
		logs.TakeAll()
		if len(lines) != want || len(a.header.Values("Warning")) > 0 {
			t.Errorf("%s: %d lines, %q", spec, len(lines), a.header.Values("Warning"))
		}
	}
}
