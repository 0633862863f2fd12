package runtime_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	appsv1beta2 "k8s.io/api/apps/v1beta2"
	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

func TestImportKnownGroups(t *testing.T) {
	s := runtime.NewScheme()
	kinds := func(add func(*apiruntime.Scheme) error) []string {
		added, err := s.Import(add)
		must(t, err)
		var names []string
		for _, k := range added {
			names = append(names, k.GVK.Kind)
			if k.ListType != nil && k.ListGVK.Kind != k.GVK.Kind+"List" {
				t.Errorf("list of %s is %s", k.GVK, k.ListGVK)
			}
		}
		return names
	}
	if got, want := kinds(appsv1.AddToScheme), []string{"ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"}; !slices.Equal(got, want) {
		t.Errorf("apps/v1 gives %v", got)
	}
	core := kinds(corev1.AddToScheme)
	for _, want := range []string{"Pod", "Namespace", "Secret", "Event", "Binding"} {
		if !slices.Contains(core, want) {
			t.Errorf("v1 lacks %s: %v", want, core)
		}
	}
	for _, no := range []string{"List", "PodList", "Status", "DeleteOptions", "WatchEvent", "PodLogOptions", "PodExecOptions"} {
		if slices.Contains(core, no) {
			t.Errorf("%s is no kind", no)
		}
	}
	for _, add := range []func(*apiruntime.Scheme) error{admissionv1.AddToScheme, authenticationv1.AddToScheme, autoscalingv1.AddToScheme,
		autoscalingv2.AddToScheme, batchv1.AddToScheme, coordinationv1.AddToScheme, flowcontrolv1.AddToScheme, networkingv1.AddToScheme,
		policyv1.AddToScheme, rbacv1.AddToScheme, storagev1.AddToScheme, appsv1beta2.AddToScheme} {
		kinds(add)
	}
	pods := s.Lookup(corev1.SchemeGroupVersion.WithKind("Pod"))
	if _, ok := pods.NewList().(*corev1.PodList); !ok {
		t.Errorf("list of Pod is %T", pods.NewList())
	}
	review := s.Lookup(authenticationv1.SchemeGroupVersion.WithKind("TokenReview"))
	if review.NewList() != nil || s.Recognizes(review.ListGVK) {
		t.Error("TokenReview has no list type")
	}
	if _, err := s.ToVersion(&appsv1beta2.Deployment{}, appsv1.SchemeGroupVersion); err == nil || !strings.Contains(err.Error(), "no conversion is registered") {
		t.Error("k8s.io/api brings no conversions:", err)
	}
	if _, err := s.Import(appsv1.AddToScheme); err == nil || !strings.Contains(err.Error(), "registered already") {
		t.Error("second import:", err)
	}
}

// Old and its list are what an existing program registers with apimachinery.
type Old struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Text              string   `json:"text,omitempty"`
	Parts             []string `json:"parts,omitempty"`
}

type OldList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Old `json:"items"`
}

type New Old

// Internal is the internal version, through which the other two are converted.
type Internal Old

func (o *Old) DeepCopyObject() apiruntime.Object      { return runtime.DeepCopy(o) }
func (o *OldList) DeepCopyObject() apiruntime.Object  { return runtime.DeepCopy(o) }
func (o *New) DeepCopyObject() apiruntime.Object      { return runtime.DeepCopy(o) }
func (o *Internal) DeepCopyObject() apiruntime.Object { return runtime.DeepCopy(o) }

func addOld(s *apiruntime.Scheme) error {
	s.AddKnownTypeWithName(v1.WithKind("Old"), &Old{})
	s.AddKnownTypeWithName(v1.WithKind("OldList"), &OldList{})
	s.AddTypeDefaultingFunc(&Old{}, func(o any) { o.(*Old).Text += "defaulted" })
	metav1.AddToGroupVersion(s, v1)
	return nil
}

func addNew(s *apiruntime.Scheme) error {
	s.AddKnownTypeWithName(v2.WithKind("Old"), &New{})
	metav1.AddToGroupVersion(s, v2)
	return errors.Join(addOld(s), s.SetVersionPriority(v1, v2))
}

// through adds a conversion function for each pair of types, From to To.
func through[From, To any](s *apiruntime.Scheme, f func(From, To)) error {
	var from From
	var to To
	return s.AddConversionFunc(from, to, func(a, b any, _ conversion.Scope) error { f(a.(From), b.(To)); return nil })
}

func TestImportBringsDefaultsAndConversions(t *testing.T) {
	direct := func(s *apiruntime.Scheme) error {
		return errors.Join(addNew(s),
			through(s, func(in *Old, out *New) { *out = New(*in); out.Text = "new" }),
			through(s, func(in *New, out *Old) { *out = Old(*in); out.Text = "old" }))
	}
	internal := func(s *apiruntime.Scheme) error {
		s.AddKnownTypeWithName(schema.GroupVersionKind{Group: v1.Group, Version: apiruntime.APIVersionInternal, Kind: "Old"}, &Internal{})
		return errors.Join(addNew(s),
			through(s, func(in *Old, out *Internal) { *out = Internal(*in) }),
			through(s, func(in *Internal, out *New) { *out = New(*in); out.Text = "new" }),
			through(s, func(in *New, out *Internal) { *out = Internal(*in) }),
			through(s, func(in *Internal, out *Old) { *out = Old(*in); out.Text = "old" }))
	}
	for name, add := range map[string]func(*apiruntime.Scheme) error{"direct": direct, "through an internal version": internal} {
		t.Run(name, func(t *testing.T) {
			s := runtime.NewScheme()
			kinds, err := s.Import(add)
			must(t, err)
			if len(kinds) != 2 || kinds[0].GVK != v1.WithKind("Old") || kinds[1].GVK != v2.WithKind("Old") {
				t.Fatal("kinds are", kinds)
			}
			if hub, _ := s.Hub(kinds[0].GVK.GroupKind()); hub.Version != "v1" {
				t.Error("the hub should be the version of highest priority, not", hub)
			}
			in := &Old{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Parts: []string{"x"}}
			out, err := s.ToVersion(in, v2)
			must(t, err)
			if n := out.(*New); n.Text != "new" || n.Name != "a" || n.APIVersion != "example.com/v2" || &n.Parts[0] == &in.Parts[0] {
				t.Errorf("conversion gives %+v", n)
			}
			back, err := s.ToVersion(out, v1)
			must(t, err)
			if back.(*Old).Text != "old" {
				t.Errorf("conversion back gives %+v", back)
			}
			o := &Old{}
			s.Default(o)
			if o.Text != "defaulted" {
				t.Error("defaults were not imported")
			}
		})
	}
}

func TestImportReportsErrors(t *testing.T) {
	for want, add := range map[string]func(*apiruntime.Scheme) error{
		"import: own error":   func(*apiruntime.Scheme) error { return errors.New("own error") },
		"import: own panic":   func(*apiruntime.Scheme) error { panic("own panic") },
		"stands for":          func(s *apiruntime.Scheme) error { s.AddKnownTypeWithName(v2.WithKind("Old"), &Old{}); return addOld(s) },
		"import: register ex": func(s *apiruntime.Scheme) error { s.AddKnownTypes(v1, &embeds{}); return nil },
	} {
		if _, err := runtime.NewScheme().Import(add); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}

func TestImportFromRefusesWhatIsNoKind(t *testing.T) {
	src := apiruntime.NewScheme()
	if err := errors.Join(addOld(src), metav1.AddMetaToScheme(src)); err != nil {
		t.Fatal(err)
	}
	internal := schema.GroupVersion{Group: v1.Group, Version: apiruntime.APIVersionInternal}
	src.AddKnownTypeWithName(internal.WithKind("Old"), &Old{})
	for want, gvk := range map[string]schema.GroupVersionKind{
		"is no kind":           internal.WithKind("Old"),
		"of type v1.Partial":   metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"),
		"of type runtime_test": v1.WithKind("OldList"),
		"no kind \"Young\"":    v1.WithKind("Young"),
	} {
		s := runtime.NewScheme()
		if kinds, err := s.ImportFrom(src, gvk); err == nil || !strings.Contains(err.Error(), want) || len(kinds) > 0 || s.Lookup(gvk) != nil {
			t.Errorf("%s: %v, %v; want %q", gvk, kinds, err, want)
		}
	}
	if kinds, err := runtime.NewScheme().ImportFrom(src, runtime.Importable(src)...); err != nil || len(kinds) != 1 {
		t.Errorf("all that is importable: %v, %v", kinds, err)
	}
}

func TestAddToServesATypedClient(t *testing.T) {
	s := newScheme(t)
	dst := apiruntime.NewScheme()
	must(t, s.AddTo(dst))
	obj, err := apiruntime.Decode(serializer.NewCodecFactory(dst).UniversalDeserializer(),
		[]byte(`{"kind":"WidgetList","apiVersion":"example.com/v1","items":[{"metadata":{"name":"a"},"spec":{"size":3}}]}`))
	must(t, err)
	if l := obj.(*runtime.List[Widget]); l.Items[0].Spec.Size != 3 {
		t.Errorf("decoded %+v", l)
	}
	for _, gvk := range []schema.GroupVersionKind{v2.WithKind("Widget"), v3.WithKind("WidgetList"), v1.WithKind("WatchEvent"), v1.WithKind("DeleteOptions")} {
		if !dst.Recognizes(gvk) {
			t.Errorf("%s is missing", gvk)
		}
	}
	must(t, s.AddTo(dst)) // a second call is not an error
	other := apiruntime.NewScheme()
	other.AddKnownTypeWithName(v1.WithKind("Widget"), &Old{})
	if err := s.AddTo(other); err == nil || !strings.Contains(err.Error(), "Double registration") {
		t.Error("a scheme with another Go type:", err)
	}
}

func TestExportOfAnImportKnowsTheSameKinds(t *testing.T) {
	s, dst := runtime.NewScheme(), apiruntime.NewScheme()
	kinds, err := s.Import(corev1.AddToScheme)
	must(t, err)
	must(t, s.AddTo(dst))
	for _, k := range kinds {
		if got, err := dst.New(k.GVK); err != nil || fmt.Sprintf("%T", got) != "*"+k.Type.String() {
			t.Errorf("%s is %T, %v", k.GVK, got, err)
		}
	}
}
