package patch_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/patch"
	apischema "github.com/keelson-dev/keelson/runtime/schema"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// oddSpec has types that structured-merge-diff cannot handle by reflection.
type oddSpec struct {
	Huge  uint64           `json:"huge,omitempty"`
	Text  int64            `json:"text,string,omitempty"`
	Any   map[string]any   `json:"any,omitempty"`
	Parts []oddPart        `json:"parts,omitempty" listType:"map" listMapKey:"id"`
	Raw   map[string][]int `json:"raw,omitempty"`
}

type oddPart struct {
	ID   string     `json:"id"`
	Next []*oddPart `json:"next,omitempty" listType:"map" listMapKey:"id"`
}

type odd = runtime.Resource[oddSpec, struct{}]

var oddKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Odd"}

func TestModelsSeeWhatIsSent(t *testing.T) {
	s := boats(t)
	if err := runtime.Register[*odd](s, oddKind, runtime.KindOptions[*odd]{}); err != nil {
		t.Fatal(err)
	}
	models := patch.NewModels(s)
	typedBoat, untypedBoat := stored(boatSpec{Size: 1, Crew: []boatSailor{{1, "mate"}}}), &unstructured.Unstructured{}
	typedBoat.SetGroupVersionKind(boatKind)
	typedOdd := &odd{Spec: oddSpec{Huge: 5, Text: 6, Any: map[string]any{"a": []any{int64(1), nil}}, Parts: []oddPart{{ID: "x", Next: []*oddPart{{ID: "y"}}}}, Raw: map[string][]int{"a": {1}}}}
	typedOdd.SetGroupVersionKind(oddKind)
	for _, c := range []struct {
		typed runtime.Object
		text  string
	}{
		{typedBoat, `{"apiVersion":"example.com/v1","kind":"Boat","metadata":{"name":"b","namespace":"default","uid":"u"},"spec":{"size":1,"crew":[{"id":1,"rank":"mate"}]},"status":{}}`},
		{typedOdd, `{"apiVersion":"example.com/v1","kind":"Odd","metadata":{},"spec":{"huge":5,"text":"6","any":{"a":[1,null]},"parts":[{"id":"x","next":[{"id":"y"}]}],"raw":{"a":[1]}}}`},
	} {
		a, err := models.ObjectToTyped(c.typed)
		if err != nil {
			t.Fatal(err)
		}
		untypedBoat.Object = configuration(t, c.text)
		b, err := models.ObjectToTyped(untypedBoat)
		if err != nil {
			t.Fatal(err)
		}
		if difference, err := a.Compare(b); err != nil || !difference.IsSame() {
			t.Errorf("%v %v", err, difference)
		}
		back, err := models.TypedToObject(a)
		if err != nil {
			t.Fatal(err)
		}
		text, err := back.(*unstructured.Unstructured).MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		same(t, text, c.text)
	}
}

func TestModelsRefuse(t *testing.T) {
	models := patch.NewModels(boats(t))
	for _, gvk := range []schema.GroupVersionKind{{}, {Group: "example.com", Version: "v9", Kind: "Boat"}, {Version: "v1", Kind: "Boat"}} {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(gvk)
		if _, err := models.ObjectToTyped(u); !apiruntime.IsNotRegisteredError(err) {
			t.Errorf("%v: %v", gvk, err)
		}
	}
	u := &unstructured.Unstructured{Object: configuration(t, `{"apiVersion":"example.com/v1","kind":"Boat","spec":{"flags":["a","a"]}}`)}
	if _, err := models.ObjectToTyped(u); err == nil {
		t.Error("a set with an item twice")
	}
	if _, err := models.ObjectToTyped(u, typed.AllowDuplicates); err != nil {
		t.Error(err)
	}
	value, err := typed.DeducedParseableType.FromUnstructured([]any{"x"})
	if err != nil {
		t.Fatal(err)
	}
	if obj, err := models.TypedToObject(value); err == nil || obj != nil {
		t.Error(obj, err)
	}
}

// TestModelsOfKindsThatCannotBe checks that every method returns an error for a kind without a model, each time.
func TestModelsOfKindsThatCannotBe(t *testing.T) {
	type bad = runtime.Resource[struct {
		Items []oddPart `json:"items,omitempty" listType:"map" listMapKey:"nothing"`
	}, struct{}]
	gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Bad"}
	s := runtime.NewScheme()
	if err := runtime.Register[*bad](s, gvk, runtime.KindOptions[*bad]{}); err != nil {
		t.Fatal(err)
	}
	f := fieldManager(t, patch.FieldManagerOptions{Scheme: s, Kind: gvk})
	for range 2 {
		obj := &bad{}
		obj.Spec.Items = []oddPart{{ID: "a"}, {ID: "b"}}
		err := f.Update(nil, obj, "m")
		_, failed := f.Apply(nil, configuration(t, `{"apiVersion":"example.com/v1","kind":"Bad","spec":{"items":[{"id":"a"}]}}`), "m", true)
		if err == nil || failed == nil || !strings.Contains(err.Error(), "nothing") || !strings.Contains(failed.Error(), "nothing") {
			t.Errorf("%v; %v", err, failed)
		}
	}
}

// TestModelsOfKubernetes checks that the markers in k8s.io/api have the same effect as in kube-apiserver.
func TestModelsOfKubernetes(t *testing.T) {
	s := runtime.NewScheme()
	for _, add := range []func(*apiruntime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, autoscalingv1.AddToScheme} {
		if _, err := s.Import(add); err != nil {
			t.Fatal(err)
		}
	}
	gvk := appsv1.SchemeGroupVersion.WithKind("Deployment")
	f := fieldManager(t, patch.FieldManagerOptions{Scheme: s, Kind: gvk})
	obj, err := f.Apply(nil, configuration(t, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","finalizers":["a/b"],"ownerReferences":[{"apiVersion":"v1","kind":"P","name":"p","uid":"1"}]},
		"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"spec":{"containers":[{"name":"a","ports":[{"containerPort":80}],"args":["x","y"],"resources":{"limits":{"cpu":"1"}}}],"tolerations":[{"key":"k"}]}}}}`), "m", false)
	if err != nil {
		t.Fatal(err)
	}
	wantOwners(t, obj, `m Apply apps/v1 {"f:metadata":{"f:finalizers":{"v:\"a/b\"":{}},"f:ownerReferences":{"k:{\"uid\":\"1\"}":{}}},`+
		`"f:spec":{"f:selector":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:args":{},"f:name":{},"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}},"f:resources":{"f:limits":{"f:cpu":{}}}}},"f:tolerations":{}}}}}`)
	d := obj.(*appsv1.Deployment)
	if cpu := d.Spec.Template.Spec.Containers[0].Resources.Limits[corev1.ResourceCPU]; cpu.Cmp(resource.MustParse("1")) != 0 {
		t.Error(cpu)
	}
	d.UID = "u"
	again, err := f.Apply(d, configuration(t, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"template":{"spec":{"containers":[{"name":"b"}]}}}}`), "other", false)
	if err != nil || len(again.(*appsv1.Deployment).Spec.Template.Spec.Containers) != 2 {
		t.Errorf("%v %v", again, err)
	}
	for _, kind := range s.Versions(schema.GroupKind{Kind: "Pod"}) {
		if _, err := patch.NewModels(s).ObjectToTyped(kinded(kind)); err != nil {
			t.Error(err)
		}
	}
}

func kinded(k *runtime.Kind) runtime.Object {
	obj := k.New()
	obj.GetObjectKind().SetGroupVersionKind(k.GVK)
	return obj
}

// TestModelsFirstUse has many goroutines that use all kinds for the first time, while docs are set.
func TestModelsFirstUse(t *testing.T) {
	s := runtime.NewScheme()
	if _, err := s.Import(corev1.AddToScheme); err != nil {
		t.Fatal(err)
	}
	models := patch.NewModels(s)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			models.SetDocs(schema.GroupVersionKind{Version: "v1", Kind: fmt.Sprint(i)}, &apischema.Docs{})
			for _, name := range []string{"Pod", "Service", "ConfigMap", "Secret", "Node"} {
				kind := s.Lookup(schema.GroupVersionKind{Version: "v1", Kind: name})
				obj := kinded(kind)
				obj.(metav1.Object).SetLabels(map[string]string{"a": "b"})
				v, err := models.ObjectToTyped(obj)
				if err != nil {
					t.Error(err)
					continue
				}
				if set, err := v.ToFieldSet(); err != nil || set.Empty() {
					t.Error(set, err)
				}
			}
		})
	}
	wg.Wait()
}
