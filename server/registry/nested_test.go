package registry_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var allDry = []string{metav1.DryRunAll}

// Strategies, update functions and plug-ins may write other objects during a dry run. These writes are dry runs, too, with the
// call of the request and with a context that is derived from it. The call itself does not change, and can be used again.
func TestADryRunIsOneForAllThatIsDoneInIt(t *testing.T) {
	var f *fixture
	var failed error
	write := func(ctx context.Context, name string) {
		derived, cancel := context.WithCancel(ctx)
		defer cancel()
		for i, in := range []context.Context{ctx, derived, context.WithoutCancel(derived)} {
			if _, err := f.typed.Create(in, "ns", widget(fmt.Sprintf("%s-%d", name, i))); err != nil {
				failed = errors.Join(failed, err)
			}
		}
	}
	f = setup(t, func(o *registry.Options) {
		o.Strategy = registry.Erase(registry.Strategy[*Widget]{
			PrepareForCreate: func(call *registry.Call, w *Widget) {
				if w.Spec.Color == "writes" {
					write(call, "by-strategy")
				}
			},
			PrepareForUpdate: func(call *registry.Call, w, _ *Widget) {
				if w.Spec.Color == "writes" {
					write(call, "by-update")
				}
			},
		})
		o.Policy = admission.Chain{{Mutator: admission.MutatorFunc(func(ctx context.Context, r *admission.Request) error {
			if r.Operation == admission.Delete {
				write(ctx, "by-plug-in")
			}
			return nil
		})}}
	})
	names := func() string {
		all, err := f.typed.List(t.Context(), "ns", registry.ListOptions{})
		must(t, err)
		var out []string
		for _, w := range all {
			out = append(out, w.Name)
		}
		slices.Sort(out)
		return strings.Join(out, " ")
	}
	call := registry.NewCall(t.Context(), authn.System(), "ns")
	writes := func(w *Widget) { w.Spec.Color = "writes" }
	steps := []struct {
		do    func(dry []string) error
		wants string
	}{
		{func(dry []string) error {
			_, err := f.reg.CreateRecord(call, widget("a", writes), &metav1.CreateOptions{DryRun: dry})
			return err
		}, "a by-strategy-0 by-strategy-1 by-strategy-2"},
		{func(dry []string) error {
			_, _, err := f.reg.UpdateRecord(call, "a", func(call *registry.Call, obj runtime.Object) (runtime.Object, error) {
				write(call, "by-function")
				writes(obj.(*Widget))
				return obj, nil
			}, &metav1.UpdateOptions{DryRun: dry})
			return err
		}, "a by-function-0 by-function-1 by-function-2 by-strategy-0 by-strategy-1 by-strategy-2 by-update-0 by-update-1 by-update-2"},
		{func(dry []string) error {
			_, _, err := f.reg.DeleteRecord(call, "a", &metav1.DeleteOptions{DryRun: dry})
			return err
		}, "by-function-0 by-function-1 by-function-2 by-plug-in-0 by-plug-in-1 by-plug-in-2 by-strategy-0 by-strategy-1 by-strategy-2 by-update-0 by-update-1 by-update-2"},
	}
	before := ""
	for i, step := range steps {
		must(t, step.do(allDry))
		must(t, failed)
		equal(t, fmt.Sprintf("after dry run %d", i), names(), before)
		if call.DryRun || call.Policy != nil {
			t.Errorf("dry run %d has changed the call: %+v", i, call)
		}
		must(t, step.do(nil))
		must(t, failed)
		equal(t, fmt.Sprintf("after %d", i), names(), step.wants)
		before = step.wants
	}
	// A call with DryRun stores nothing, even if the options have no dryRun.
	call.DryRun = true
	_, err := f.reg.CreateRecord(call, widget("b"), nil)
	must(t, err)
	_, err = f.reg.DeleteRecords(call, nil, storage.ListOptions{})
	must(t, err)
	equal(t, "after a call that is a dry run", names(), before)
	call.DryRun = false
	_, err = f.reg.DeleteRecords(call, &metav1.DeleteOptions{DryRun: allDry}, storage.ListOptions{})
	must(t, err)
	equal(t, "after a dry run of a collection", names(), before)
}

// counting is a Source that returns a new policy for each request.
type counting struct{ asked int }

func (c *counting) Policy(context.Context) *admission.Policy {
	c.asked++
	return &admission.Policy{Installed: int64(c.asked)}
}

// A call that is made for a request has the policy of the request, also through a derived context. One policy is used for all
// deletions of a collection.
func TestPolicyOfARequestIsTakenOnce(t *testing.T) {
	source := &counting{}
	var f *fixture
	var seen []int64
	f = setup(t, func(o *registry.Options) {
		o.Policy = source
		o.Strategy = registry.Erase(registry.Strategy[*Widget]{
			Validate: func(call *registry.Call, w *Widget) field.ErrorList {
				seen = append(seen, call.Policy.Installed)
				if w.Name == "outer" {
					ctx, cancel := context.WithCancel(context.WithValue(call, &seen, 1))
					defer cancel()
					if _, err := f.typed.Create(ctx, "ns", widget("inner")); err != nil {
						return field.ErrorList{field.InternalError(nil, err)}
					}
				}
				return nil
			},
		})
	})
	_, err := f.typed.Create(t.Context(), "ns", widget("outer"))
	must(t, err)
	equal(t, "policies that were seen", fmt.Sprint(seen), "[1 1]")
	_, err = f.reg.DeleteRecords(registry.NewCall(t.Context(), authn.System(), "ns"), nil, storage.ListOptions{})
	must(t, err)
	equal(t, "policies that were taken", source.asked, 2)
	// The values of the context are found, and no Call is found in a context without one.
	type key struct{}
	call := registry.NewCall(context.WithValue(t.Context(), key{}, "v"), authn.System(), "")
	equal(t, "a value", call.Value(key{}), any("v"))
	if inner := registry.NewCall(call.Context, authn.System(), ""); inner.Policy != nil || inner.DryRun {
		t.Errorf("made of no call: %+v", inner)
	}
}

// If the storage was not called, the charges of a change are undone after every error.
func TestChargesOfWhatTheStorageWasNotAskedFor(t *testing.T) {
	charged := 0
	charge := func(r *admission.Request) {
		charged++
		r.OnFailure(func(context.Context) { charged-- })
	}
	var mutator, validator, strategy func() error
	f := setup(t, func(o *registry.Options) {
		o.Policy = admission.Chain{
			{Name: "a", Mutator: admission.MutatorFunc(func(_ context.Context, r *admission.Request) error { charge(r); return mutator() })},
			{Name: "b", Validator: admission.ValidatorFunc(func(_ context.Context, r *admission.Request) error { charge(r); return validator() })},
		}
		o.Strategy = registry.Erase(registry.Strategy[*Widget]{Validate: func(*registry.Call, *Widget) field.ErrorList {
			if err := strategy(); err != nil {
				return field.ErrorList{field.InternalError(field.NewPath("spec"), err)}
			}
			return nil
		}})
	})
	fine := func() error { return nil }
	mutator, validator, strategy = fine, fine, fine
	f.create("a")
	scale := scaleOf(t, f)
	status, err := f.reg.Status()
	must(t, err)
	gate := registry.Gate{Admission: admission.Chain{
		{Name: "a", Mutator: admission.MutatorFunc(func(_ context.Context, r *admission.Request) error { charge(r); return mutator() })},
		{Name: "b", Validator: admission.ValidatorFunc(func(_ context.Context, r *admission.Request) error { charge(r); return validator() })},
	}}
	stored := &shelf{}
	verbs := map[string]func(*registry.Call) error{
		"create": func(c *registry.Call) error { _, err := f.reg.CreateRecord(c, widget("b"), nil); return err },
		"create by generateName": func(c *registry.Call) error {
			_, err := f.reg.CreateRecord(c, widget("", func(w *Widget) { w.GenerateName = "g-" }), nil)
			return err
		},
		"create by update": func(c *registry.Call) error {
			c.CreateOnUpdate = true
			_, _, err := f.reg.UpdateRecord(c, "c", putOf(widget("c")), nil)
			return err
		},
		"update": func(c *registry.Call) error {
			_, _, err := f.reg.UpdateRecord(c, "a", putOf(widget("a")), nil)
			return err
		},
		"status": func(c *registry.Call) error {
			_, _, err := status.UpdateRecord(c, "a", putOf(widget("a")), nil)
			return err
		},
		"scale": func(c *registry.Call) error {
			_, _, err := scale.Update(c, "a", putOf(&runtime.Scale{Spec: runtime.ScaleSpec{Replicas: 3}}), nil)
			return err
		},
		"delete":       func(c *registry.Call) error { _, _, err := f.reg.DeleteRecord(c, "a", nil); return err },
		"gate: create": func(c *registry.Call) error { _, err := gate.Creater(stored).Create(c, widget("b"), nil); return err },
		"gate: update": func(c *registry.Call) error {
			_, _, err := gate.Updater(stored).Update(c, "a", putOf(widget("a")), nil)
			return err
		},
		"gate: delete":  func(c *registry.Call) error { _, _, err := gate.Deleter(stored).Delete(c, "a", nil); return err },
		"gate: connect": func(c *registry.Call) error { _, err := gate.Connecter(stored).Connect(c, "a", "", nil); return err },
	}
	for verb, do := range verbs {
		for what, err := range map[string]error{
			"a StatusError of the server": apierrors.NewInternalError(errors.New("out of order")),
			"an end of the context":       context.Canceled,
			"a plain error":               errors.New("no"),
		} {
			for who, set := range map[string]*func() error{"mutator": &mutator, "validator": &validator, "strategy": &strategy} {
				if who == "strategy" && (verb == "delete" || verb == "status" || strings.HasPrefix(verb, "gate")) {
					continue // this plug-in is not called
				}
				charged = 0
				*set = func() error { return err }
				got := do(registry.NewCall(t.Context(), authn.System(), "ns"))
				*set = fine
				if got == nil || charged != 0 || stored.asked != 0 {
					t.Errorf("%s, %s of the %s: %v; %d charges are left, and the storage was asked %d times", verb, what, who, got, charged, stored.asked)
				}
			}
		}
	}
	// The storage was called, and its error leaves open what was stored.
	stored.err = apierrors.NewInternalError(errors.New("no answer"))
	for verb, do := range verbs {
		if strings.HasPrefix(verb, "gate") {
			charged = 0
			if err := do(registry.NewCall(t.Context(), authn.System(), "ns")); err == nil || charged != 2 {
				t.Errorf("%s: %v; %d charges are left, want 2", verb, err, charged)
			}
		}
	}
}

// shelf is a Storage of a program that records its calls.
type shelf struct {
	asked int
	dry   []bool // the dry runs by the options, and by the call
	err   error
}

func (s *shelf) note(call *registry.Call, dry []string) error {
	s.asked++
	s.dry = append(s.dry, len(dry) > 0, call.DryRun)
	return s.err
}

func (s *shelf) Create(call *registry.Call, obj runtime.Object, o *metav1.CreateOptions) (runtime.Object, error) {
	return obj, s.note(call, o.DryRun)
}

func (s *shelf) Update(call *registry.Call, name string, update registry.ObjectUpdate, o *metav1.UpdateOptions) (runtime.Object, bool, error) {
	obj, err := update(call, widget(name))
	if err != nil {
		return nil, false, err
	}
	return obj, false, s.note(call, o.DryRun)
}

func (s *shelf) Delete(call *registry.Call, _ string, o *metav1.DeleteOptions) (runtime.Object, bool, error) {
	return nil, true, s.note(call, o.DryRun)
}

func (s *shelf) DeleteCollection(call *registry.Call, o *metav1.DeleteOptions, _ *metav1.ListOptions) (runtime.Object, error) {
	return nil, s.note(call, o.DryRun)
}

func (s *shelf) ConnectMethods() []string { return []string{"GET"} }

func (s *shelf) Connect(call *registry.Call, _, _ string, _ *http.Request) (http.Handler, error) {
	return http.NotFoundHandler(), s.note(call, nil)
}

// A Gate sets the kinds and resources of admission requests for calls of the program itself. It tells the Storage of a dry run by the
// call and by the options, and accepts nil options.
func TestGateOfAProgramsOwnCall(t *testing.T) {
	var seen []string
	judge := admission.Chain{{Validator: admission.ValidatorFunc(func(_ context.Context, r *admission.Request) error {
		seen = append(seen, fmt.Sprintf("%s %s %s sent as %s %s dry=%t object=%t", r.Operation, r.Kind, r.Resource.Resource, r.SentKind, r.SentResource.Version, r.DryRun, r.Object() != nil))
		return nil
	})}}
	beta := schema.GroupVersion{Group: "example.com", Version: "v1beta1"}
	own := registry.Gate{Admission: judge, Kind: widgetKind, Resource: widgetResource.WithVersion("v1")}
	sent := own
	sent.SentKind, sent.SentResource = beta.WithKind("Widget"), beta.WithResource("widgets")
	s := &shelf{}
	for _, step := range []struct {
		gate registry.Gate
		want string
	}{
		{own, "example.com/v1, Kind=Widget widgets sent as example.com/v1, Kind=Widget v1"},
		{sent, "example.com/v1, Kind=Widget widgets sent as example.com/v1beta1, Kind=Widget v1beta1"},
	} {
		for _, dry := range []bool{false, true} {
			seen, s.dry = nil, nil
			call := registry.NewCall(t.Context(), authn.System(), "ns")
			call.DryRun = dry
			_, err := step.gate.Creater(s).Create(call, widget("a"), nil)
			must(t, err)
			_, _, err = step.gate.Updater(s).Update(call, "a", putOf(widget("a")), nil)
			must(t, err)
			_, _, err = step.gate.Deleter(s).Delete(call, "a", nil)
			must(t, err)
			_, err = step.gate.CollectionDeleter(s).DeleteCollection(call, nil, nil)
			must(t, err)
			want := ""
			for _, op := range []string{"CREATE", "UPDATE", "DELETE", "DELETE"} {
				want += fmt.Sprintf("%s %s dry=%t object=%t\n", op, step.want, dry, op != "DELETE")
			}
			equal(t, "seen", strings.Join(seen, "\n")+"\n", want)
			equal(t, "the storage of a dry run", fmt.Sprint(s.dry), fmt.Sprint(slices.Repeat([]bool{dry}, 8)))
		}
		seen = nil
		_, err := step.gate.Connecter(s).Connect(registry.NewCall(t.Context(), authn.System(), "ns"), "a", "", nil)
		must(t, err)
		equal(t, "a connection", strings.Join(seen, "\n"), "CONNECT "+step.want+" dry=false object=false")
	}
}
