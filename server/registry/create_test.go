package registry_test

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestCreateSetsSystemMetadata(t *testing.T) {
	f := setup(t, nil)
	old := metav1.NewTime(time.Unix(1, 0))
	got := f.create("a", func(w *Widget) {
		w.UID, w.CreationTimestamp = "mine", old
		w.SetSelfLink("/mine")
		w.DeletionTimestamp, w.DeletionGracePeriodSeconds = &old, ptr(int64(5))
		w.Generation = 7
		w.ManagedFields = []metav1.ManagedFieldsEntry{{}}
		w.Status.Ready = true
	})
	if !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(string(got.UID)) {
		t.Errorf("uid %q is no random UUID", got.UID)
	}
	if want := time.Date(2026, 5, 4, 2, 2, 1, 0, time.UTC); !got.CreationTimestamp.Time.Equal(want) {
		t.Errorf("creationTimestamp %v, want %v", got.CreationTimestamp, want)
	}
	if got.DeletionTimestamp != nil || got.DeletionGracePeriodSeconds != nil || got.GetSelfLink() != "" || got.ManagedFields != nil {
		t.Errorf("system metadata of the request stayed: %+v", got.ObjectMeta)
	}
	equal(t, "generation", got.Generation, 1)
	equal(t, "namespace", got.Namespace, "ns")
	equal(t, "status", got.Status.Ready, false)
	equal(t, "resourceVersion", got.ResourceVersion != "", true)
}

func TestCreateRefusals(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(*Widget)
		code    int32
		reason  metav1.StatusReason
		message string
	}{
		{"resourceVersion", func(w *Widget) { w.ResourceVersion = "5" }, 400, metav1.StatusReasonBadRequest, "resourceVersion should not be set on objects to be created"},
		{"resourceVersion and bad name", func(w *Widget) { w.Name, w.ResourceVersion = "A_b", "5" }, 422, metav1.StatusReasonInvalid, `Widget.example.com "A_b" is invalid: metadata.name: Invalid value: "A_b": a lowercase RFC 1123 subdomain must consist of...`},
		{"namespace", func(w *Widget) { w.Namespace = "other" }, 400, metav1.StatusReasonBadRequest, "the namespace of the provided object does not match the namespace sent on the request"},
		{"no name", func(w *Widget) { w.Name = "" }, 422, metav1.StatusReasonInvalid, `Widget.example.com "" is invalid: metadata.name: Required value: name or generateName is required`},
		{"bad name", func(w *Widget) { w.Name = "A_b" }, 422, metav1.StatusReasonInvalid, `Widget.example.com "A_b" is invalid: metadata.name: Invalid value: "A_b": a lowercase RFC 1123 subdomain must consist of...`},
		{"bad label", func(w *Widget) { w.Labels = map[string]string{"a": "-"} }, 422, metav1.StatusReasonInvalid, `Widget.example.com "a" is invalid: metadata.labels: Invalid value: "-": ...`},
		{"bad owner", func(w *Widget) {
			w.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p"}}
		}, 422, metav1.StatusReasonInvalid, `Widget.example.com "a" is invalid: metadata.ownerReferences[0].uid: Required value: must not be empty`},
		{"bad finalizers", func(w *Widget) { w.Finalizers = []string{"orphan", "foregroundDeletion"} }, 422, metav1.StatusReasonInvalid, `Widget.example.com "a" is invalid: metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and foregroundDeletion cannot be both set`},
		{"annotations", func(w *Widget) { w.Annotations = map[string]string{"a": strings.Repeat("x", 256<<10)} }, 422, metav1.StatusReasonInvalid, `Widget.example.com "a" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes`},
		{"too large", func(w *Widget) { w.Spec.Color = strings.Repeat("x", 1600<<10) }, 413, metav1.StatusReasonRequestEntityTooLarge, "Request entity too large: ..."},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := setup(t, nil)
			before := f.revision()
			_, err := f.typed.Create(f.ctx, "ns", widget("a", c.change))
			wantStatus(t, err, c.code, c.reason, c.message)
			equal(t, "revision", f.revision(), before)
		})
	}
}

// A resourceVersion that is no number counts as none. The answer of a dry run has the number.
func TestCreateWithResourceVersion(t *testing.T) {
	f := setup(t, nil)
	for _, sent := range []string{"x", "-1", "0", "99999999999999999999"} {
		got, err := f.typed.Create(f.ctx, "ns", widget("a"+strings.Trim(sent, "-"), func(w *Widget) { w.ResourceVersion = sent }))
		if err != nil || got.ResourceVersion == sent || got.ResourceVersion == "" {
			t.Errorf("%s: %+v, %v", sent, got, err)
		}
	}
	rec, err := f.reg.CreateRecord(f.ctx, widget("b", func(w *Widget) { w.ResourceVersion = "5" }), &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil || rec.Revision != 5 {
		t.Errorf("dry run: %d, %v", rec.Revision, err)
	}
}

func TestCreateInvalidCauses(t *testing.T) {
	f := setup(t, strategy(registry.Strategy[*Widget]{
		Validate: func(_ *registry.Call, w *Widget) field.ErrorList {
			return field.ErrorList{field.Invalid(field.NewPath("spec", "size"), w.Spec.Size, "must be even")}
		},
	}))
	_, err := f.typed.Create(f.ctx, "ns", widget("A"))
	s := wantStatus(t, err, 422, metav1.StatusReasonInvalid, `Widget.example.com "A" is invalid: [metadata.name: ...`)
	if d := s.Details; d.Group != "example.com" || d.Kind != "Widget" || d.Name != "A" || len(d.Causes) != 2 ||
		d.Causes[1] != (metav1.StatusCause{Type: "FieldValueInvalid", Field: "spec.size", Message: "Invalid value: 1: must be even"}) {
		t.Errorf("details %+v", d)
	}
}

func TestCreateNamespaceOfRequest(t *testing.T) {
	f := setup(t, nil)
	_, err := f.typed.Create(f.ctx, "", widget("a"))
	wantStatus(t, err, 400, metav1.StatusReasonBadRequest, "Namespace parameter required.")
	_, err = f.typed.Create(f.ctx, "Not_A_Label", widget("a"))
	wantStatus(t, err, 422, metav1.StatusReasonInvalid, `Widget.example.com "a" is invalid: metadata.namespace: Invalid value: "Not_A_Label": ...`)
	_, err = f.typed.Get(f.ctx, "ns", "a/b")
	wantStatus(t, err, 400, metav1.StatusReasonBadRequest, `Name parameter invalid: "a/b": may not contain '/'`)

	cluster := setup(t, func(o *registry.Options) { o.Namespaced = false })
	got, err := cluster.typed.Create(cluster.ctx, "", widget("a", func(w *Widget) { w.Namespace = "body" }))
	must(t, err)
	equal(t, "namespace", got.Namespace, "")
}

func TestCreateExisting(t *testing.T) {
	f := setup(t, nil)
	f.create("a", func(w *Widget) { w.Finalizers = []string{"example.com/f"} })
	_, err := f.typed.Create(f.ctx, "ns", widget("a"))
	s := wantStatus(t, err, 409, metav1.StatusReasonAlreadyExists, `widgets.example.com "a" already exists`)
	if d := s.Details; d.Group != "example.com" || d.Kind != "widgets" || d.Name != "a" {
		t.Errorf("details %+v", d)
	}
	_, _, err = f.typed.Delete(f.ctx, "ns", "a", nil)
	must(t, err)
	_, err = f.typed.Create(f.ctx, "ns", widget("a"))
	wantStatus(t, err, 409, metav1.StatusReasonAlreadyExists, `object is being deleted: widgets.example.com "a" already exists`)
	_, err = f.reg.CreateRecord(f.ctx, widget("a"), &metav1.CreateOptions{DryRun: []string{"All"}})
	wantStatus(t, err, 409, metav1.StatusReasonAlreadyExists, `object is being deleted: widgets.example.com "a" already exists`)
}

func TestGenerateName(t *testing.T) {
	f := setup(t, nil)
	name := regexp.MustCompile(`^x-[bcdfghjklmnpqrstvwxz2456789]{5}$`)
	for range 50 {
		if got := f.create("", func(w *Widget) { w.GenerateName = "x-" }); !name.MatchString(got.Name) || got.GenerateName != "x-" {
			t.Fatalf("name %q, generateName %q", got.Name, got.GenerateName)
		}
	}
	long := f.create("", func(w *Widget) { w.GenerateName = strings.Repeat("y", 80) })
	if len(long.Name) != 63 || !strings.HasPrefix(long.Name, strings.Repeat("y", 58)) {
		t.Errorf("name %q", long.Name)
	}
	if got := f.create("named", func(w *Widget) { w.GenerateName = "x-" }); got.Name != "named" {
		t.Errorf("name %q", got.Name)
	}
	_, err := f.typed.Create(f.ctx, "ns", widget("", func(w *Widget) { w.GenerateName = "X_" }))
	wantStatus(t, err, 422, metav1.StatusReasonInvalid, `Widget.example.com "X_...`)
}

// taken is a store in which the first names exist already.
type taken struct {
	storage.Interface
	left  int
	names []string
}

func (s *taken) Create(ctx context.Context, key string, obj runtime.Object, opts storage.WriteOptions) (storage.Record, error) {
	s.names = append(s.names, key)
	if s.left--; s.left >= 0 {
		return storage.Record{}, storage.ErrExists
	}
	return s.Interface.Create(ctx, key, obj, opts)
}

func TestGenerateNameAttempts(t *testing.T) {
	for left, ok := range map[int]bool{7: true, 8: false} {
		f := setup(t, nil)
		s := &taken{Interface: f.store, left: left}
		scheme := runtime.NewScheme()
		must(t, runtime.Register[*Widget](scheme, widgetKind, runtime.KindOptions[*Widget]{}))
		reg, err := registry.New(registry.Options{Scheme: scheme, Kind: widgetKind, Resource: widgetResource, Namespaced: true, Storage: s})
		must(t, err)
		_, err = reg.CreateRecord(f.ctx, widget("", func(w *Widget) { w.GenerateName = "x-" }), nil)
		equal(t, "attempts", len(s.names), 8)
		slices.Sort(s.names)
		equal(t, "distinct names", len(slices.Compact(s.names)) > 1, true)
		if ok {
			must(t, err)
			continue
		}
		got := wantStatus(t, err, 409, metav1.StatusReasonAlreadyExists, `widgets.example.com "x-...`)
		if !strings.HasSuffix(got.Message, "already exists, the server was not able to generate a unique name for the object") || got.Details.RetryAfterSeconds != 1 {
			t.Errorf("status %+v", got)
		}
	}
}

func TestCreateDryRun(t *testing.T) {
	f := setup(t, nil)
	before := f.revision()
	rec, err := f.reg.CreateRecord(f.ctx, widget("", func(w *Widget) { w.GenerateName = "x-" }), &metav1.CreateOptions{DryRun: []string{"All"}})
	must(t, err)
	got := f.decode(rec)
	if got.UID == "" || got.CreationTimestamp.IsZero() || got.ResourceVersion != "" || len(got.Name) != 7 {
		t.Errorf("metadata %+v", got.ObjectMeta)
	}
	equal(t, "revision", f.revision(), before)
	_, err = f.typed.Get(f.ctx, "ns", got.Name)
	wantStatus(t, err, 404, metav1.StatusReasonNotFound, `widgets.example.com "`+got.Name+`" not found`)
}

func TestOwnerReferencesAreDeduplicated(t *testing.T) {
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "u1"}
	other := owner
	other.Name = "q"
	f := setup(t, nil)
	got := f.create("a", func(w *Widget) { w.OwnerReferences = []metav1.OwnerReference{owner, other, owner} })
	equal(t, "owners", len(got.OwnerReferences), 2)
	const text = ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: u1"
	if texts := f.warned.Texts(); !slices.Contains(texts, text) {
		t.Errorf("warnings %q", texts)
	}
}

func TestCreateOrder(t *testing.T) {
	var calls []string
	did := func(name string) { calls = append(calls, name) }
	f := setup(t, func(o *registry.Options) {
		o.Strategy = registry.Erase(registry.Strategy[*Widget]{
			PrepareForCreate: func(_ *registry.Call, w *Widget) {
				did("prepare")
				if w.Generation != 1 || w.UID == "" || w.Status.Ready {
					t.Errorf("prepare sees %+v", w)
				}
				w.Spec.Size = 2
			},
			Validate: func(_ *registry.Call, w *Widget) field.ErrorList {
				did("validate")
				equal(t, "size in validate", w.Spec.Size, 2)
				return nil
			},
			WarnOnCreate: func(*registry.Call, *Widget) []string { did("warn"); return []string{"careful"} },
			Canonicalize: func(w *Widget) { did("canonicalize"); w.Spec.Color = strings.ToLower(w.Spec.Color) },
		})
		o.Policy = admission.Chain{
			{Mutator: admission.MutatorFunc(func(_ context.Context, r *admission.Request) error {
				did("mutate")
				if r.Operation != admission.Create || r.Kind != widgetKind || r.Resource != widgetResource.WithVersion("v1") ||
					r.Namespace != "ns" || r.Name != "a" || r.Old() != nil || r.User.Name != "alice" || r.Options == nil || r.DryRun {
					t.Errorf("request %+v", r)
				}
				r.Object().(*Widget).Spec.Color = "RED"
				r.Object().(*Widget).Status.Ready = true
				return nil
			}),
				Validator: admission.ValidatorFunc(func(_ context.Context, r *admission.Request) error {
					did("admit")
					w := r.Object().(*Widget)
					equal(t, "color in admission", w.Spec.Color, "red")
					w.Spec.Color = "changed too late"
					return nil
				})},
		}
	})
	var err error
	f.typed, err = registry.For[*Widget](f.reg, &authn.User{Name: "alice"})
	must(t, err)
	got := f.create("a")
	equal(t, "calls", strings.Join(calls, " "), "mutate prepare validate warn canonicalize admit")
	equal(t, "color", got.Spec.Color, "red")
	equal(t, "size", got.Spec.Size, 2)
	equal(t, "ready", got.Status.Ready, false)
	equal(t, "warnings", strings.Join(f.warned.Texts(), "|"), "careful")
}

func TestAdmissionRefuses(t *testing.T) {
	refusal := errors.New("not today")
	refuse := admission.ValidatorFunc(func(context.Context, *admission.Request) error { return refusal })
	f := setup(t, func(o *registry.Options) { o.Policy = admission.Chain{{Validator: refuse}} })
	_, err := f.typed.Create(f.ctx, "ns", widget("a"))
	wantStatus(t, err, 403, metav1.StatusReasonForbidden, `widgets.example.com "a" is forbidden: not today`)
	refusal = apierrors.NewBadRequest("no")
	_, err = f.typed.Create(f.ctx, "ns", widget("a"))
	wantStatus(t, err, 400, metav1.StatusReasonBadRequest, "no")
	refusal = nil
	f.create("a")
	refusal = errors.New("keep it")
	_, _, err = f.typed.Delete(f.ctx, "ns", "a", nil)
	wantStatus(t, err, 403, metav1.StatusReasonForbidden, `widgets.example.com "a" is forbidden: keep it`)
	_, err = f.put(widget("a", func(w *Widget) { w.Spec.Size = 2 }))
	wantStatus(t, err, 403, metav1.StatusReasonForbidden, `widgets.example.com "a" is forbidden: keep it`)
	equal(t, "size", f.get("a").Spec.Size, 1)
}

func TestOptionsAreChecked(t *testing.T) {
	f := setup(t, nil)
	scheme := runtime.NewScheme()
	must(t, runtime.Register[*Widget](scheme, widgetKind, runtime.KindOptions[*Widget]{}))
	good := registry.Options{Scheme: scheme, Kind: widgetKind, Resource: widgetResource, Storage: f.store}
	for want, change := range map[string]func(*registry.Options){
		"a Scheme is required":   func(o *registry.Options) { o.Scheme = nil },
		"a Storage is required":  func(o *registry.Options) { o.Storage = nil },
		"a Resource is required": func(o *registry.Options) { o.Resource.Resource = "" },
		"of another group":       func(o *registry.Options) { o.Resource.Group = "x" },
		"not registered":         func(o *registry.Options) { o.Kind.Kind = "Gadget" },
		"the strategy is for": func(o *registry.Options) {
			o.Strategy = registry.Erase(registry.Strategy[*metav1.PartialObjectMetadata]{})
		},
	} {
		o := good
		change(&o)
		if _, err := registry.New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, err := registry.For[*metav1.PartialObjectMetadata](f.reg, authn.System()); err == nil {
		t.Error("For took another type")
	}
	_, err := f.reg.CreateRecord(f.ctx, &metav1.PartialObjectMetadata{}, nil)
	wantStatus(t, err, 500, metav1.StatusReasonInternalError, "Internal error occurred: got a *v1.PartialObjectMetadata for ...")
	equal(t, "singular", f.reg.Singular(), "widget")
}
