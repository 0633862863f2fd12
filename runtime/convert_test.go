package runtime_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestToVersionThroughTheHub(t *testing.T) {
	s := newScheme(t)
	in := &WidgetV2{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "7", Annotations: map[string]string{"k": "v"}}, Width: 5, Parts: []Part{{"p"}}}
	before := runtime.DeepCopy(in)
	hub, err := s.ToVersion(in, v1)
	must(t, err)
	w := hub.(*Widget)
	if w.Kind != "Widget" || w.APIVersion != "example.com/v1" || w.Name != "a" || w.ResourceVersion != "7" || w.Spec.Size != 5 || w.Spec.Parts[0].Name != "p" {
		t.Errorf("hub is %+v", w)
	}
	w.Annotations["k"], w.Spec.Parts[0].Name = "changed", "changed"
	if !reflect.DeepEqual(in, before) {
		t.Error("the result shares memory with the input")
	}
	spoke, err := s.ToVersion(in, v3)
	must(t, err)
	if o := spoke.(*WidgetV3); o.Girth != 20 || o.APIVersion != "example.com/v3" || o.Annotations["converted"] != "true" {
		t.Errorf("spoke to spoke gives %+v", o)
	}
	if same, err := s.ToVersion(in, v2); err != nil || same != runtime.Object(in) {
		t.Error("an object in the version wanted should be returned as it is")
	}
	if st, err := s.ToVersion(&metav1.Status{Code: 3}, v2); err != nil || st.(*metav1.Status).Code != 3 {
		t.Error("a Status has no versions:", st, err)
	}
}

func TestListsAreConvertedItemByItem(t *testing.T) {
	s := newScheme(t)
	n := int64(4)
	in := &runtime.List[Widget]{ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "c", RemainingItemCount: &n}, Items: []Widget{*widget("a"), *widget("b")}}
	out, err := s.ToVersion(in, v2)
	must(t, err)
	l := out.(*runtime.List[WidgetV2])
	if l.Kind != "WidgetList" || l.APIVersion != "example.com/v2" || l.ResourceVersion != "9" || l.Continue != "c" || *l.RemainingItemCount != 4 {
		t.Errorf("list is %+v", l)
	}
	if len(l.Items) != 2 || l.Items[1].Name != "b" || l.Items[1].Width != 3 || l.Items[1].Kind != "" {
		t.Errorf("items are %+v", l.Items)
	}
	if *in.RemainingItemCount = 5; *l.RemainingItemCount != 4 {
		t.Error("the list shares memory with the input")
	}
	in.Items[1].Spec.Size = -1
	if _, err := s.ToVersion(in, v2); err == nil || !strings.Contains(err.Error(), "no negative width") {
		t.Error("an item that fails fails the list:", err)
	}
	if empty, err := s.ToVersion(&runtime.List[Widget]{}, v2); err != nil || empty.(*runtime.List[WidgetV2]).Items == nil {
		t.Error("empty list:", empty, err)
	}
}

func TestConversionErrors(t *testing.T) {
	s := newScheme(t)
	bad, zero := widget("a"), widget("a")
	bad.Spec.Size, zero.Spec.Size = -1, 0
	v4 := schema.GroupVersion{Group: "example.com", Version: "v4"}
	type V4 = runtime.Resource[struct{ A int }, struct{}]
	must(t, runtime.Register(s, v4.WithKind("Widget"), runtime.KindOptions[*V4]{}))
	for name, c := range map[string]struct {
		obj  runtime.Object
		gv   schema.GroupVersion
		want string
	}{
		"the function's own error": {bad, v2, "converting Widget.example.com from example.com/v1 to example.com/v2: no negative width"},
		"a panic":                  {zero, v3, "the conversion panicked: runtime error: integer divide by zero"},
		"none registered":          {bad, v4, "converting Widget.example.com from example.com/v1 to example.com/v4: no conversion is registered; add one with AddConversion"},
		"none from a spoke":        {&V4{}, v1, "no conversion is registered"},
		"no such version":          {bad, schema.GroupVersion{Group: "example.com", Version: "v9"}, `no kind "Widget" is registered for version "example.com/v9"`},
		"no such type":             {&runtime.Resource[int, int]{}, v1, "no kind is registered for the type"},
	} {
		out, err := s.ToVersion(c.obj, c.gv)
		if err == nil || out != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v; want %q", name, out, err, c.want)
		}
	}
}

func TestAddConversionRefuses(t *testing.T) {
	s := newScheme(t)
	type Gadget = runtime.Resource[struct{ G int }, struct{}]
	must(t, runtime.Register(s, v1.WithKind("Gadget"), runtime.KindOptions[*Gadget]{}))
	type unknown = runtime.Resource[struct{ U int }, struct{}]
	for want, err := range map[string]error{
		"register both types first":         runtime.AddConversion(s, func(*unknown, *Widget) error { return nil }, func(*Widget, *unknown) error { return nil }),
		"they are not versions of one kind": runtime.AddConversion(s, func(*Gadget, *Widget) error { return nil }, func(*Widget, *Gadget) error { return nil }),
		"the two functions are the wrong way round: the hub is example.com/v1, Kind=Widget; the first function must convert runtime_test.WidgetV2 to runtime.Resource[runtime_test.WidgetSpec,runtime_test.WidgetStatus], and the second the reverse": runtime.AddConversion(s,
			func(*Widget, *WidgetV2) error { return nil }, func(*WidgetV2, *Widget) error { return nil }),
		"the hub is example.com/v1, Kind=Widget; convert to it, whose Go type is runtime.Resource[runtime_test.WidgetSpec,runtime_test.WidgetStatus],": runtime.AddConversion(s, func(*WidgetV2, *WidgetV3) error { return nil }, func(*WidgetV3, *WidgetV2) error { return nil }),
		"a version needs none to itself": runtime.AddConversion(s, func(*Widget, *Widget) error { return nil }, func(*Widget, *Widget) error { return nil }),
		"register the hub before them": runtime.Register(s, schema.GroupVersion{Group: "example.com", Version: "v5"}.WithKind("Widget"),
			runtime.KindOptions[*unknown]{Hub: true}),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}

func TestHubMayBeALaterVersion(t *testing.T) {
	s := runtime.NewScheme()
	must(t, runtime.Register(s, v1.WithKind("Widget"), runtime.KindOptions[*Widget]{}))
	must(t, runtime.Register(s, v2.WithKind("Widget"), runtime.KindOptions[*WidgetV2]{Hub: true}))
	if hub, ok := s.Hub(v1.WithKind("Widget").GroupKind()); !ok || hub != v2.WithKind("Widget") {
		t.Error("hub is", hub)
	}
	if _, ok := s.Hub(schema.GroupKind{Kind: "None"}); ok {
		t.Error("an unknown kind has a hub")
	}
}

func TestObjectConvertor(t *testing.T) {
	s := newScheme(t)
	in := widget("a")
	same, err := s.ConvertToVersion(in, v1)
	must(t, err)
	if same == runtime.Object(in) || same.(*Widget).APIVersion != "example.com/v1" || in.APIVersion != "" {
		t.Error("ConvertToVersion should copy and set the version")
	}
	other, err := s.ConvertToVersion(in, schema.GroupVersions{v3, v2})
	must(t, err)
	if _, ok := other.(*WidgetV3); !ok {
		t.Errorf("the first version of a preference list should win, not %T", other)
	}
	if _, err := s.ConvertToVersion(in, schema.GroupVersion{Group: "other", Version: "v1"}); err == nil {
		t.Error("conversion to another group succeeded")
	}
	if _, err := s.ConvertToVersion(in, apiruntime.InternalGroupVersioner); err == nil {
		t.Error("conversion to an internal version succeeded")
	}
	if st, err := s.ConvertToVersion(&metav1.Status{Code: 3}, v2); err != nil || st.(*metav1.Status).APIVersion != "v1" {
		t.Error("a Status is v1 everywhere:", st, err)
	}
	var out WidgetV2
	must(t, s.Convert(in, &out, nil))
	if out.Width != 3 || out.Name != "a" {
		t.Errorf("Convert gives %+v", out)
	}
	for _, err := range []error{s.Convert(1, &out, nil), s.Convert(in, &metav1.Status{}, nil), s.Convert(in, &runtime.List[WidgetV2]{}, nil), s.Convert(nil, nil, nil)} {
		if err == nil || !strings.Contains(err.Error(), "converting (") {
			t.Error("impossible conversion:", err)
		}
	}
}
