package runtime_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	_ apiruntime.ObjectTyper     = (*runtime.Scheme)(nil)
	_ apiruntime.ObjectCreater   = (*runtime.Scheme)(nil)
	_ apiruntime.ObjectDefaulter = (*runtime.Scheme)(nil)
	_ apiruntime.ObjectConvertor = (*runtime.Scheme)(nil)
)

type WidgetSpec struct {
	Size  int32  `json:"size,omitempty"`
	Color string `json:"color,omitempty"`
	Parts []Part `json:"parts,omitempty"`
	On    *bool  `json:"on,omitempty"`
}

type Part struct {
	Name string `json:"name"`
}

type WidgetStatus struct {
	Ready bool `json:"ready,omitempty"`
}

type Widget = runtime.Resource[WidgetSpec, WidgetStatus]

// WidgetV2 has the name width for the size.
type WidgetV2 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Width             int32  `json:"width,omitempty"`
	Parts             []Part `json:"parts,omitempty"`
}

func (w *WidgetV2) DeepCopyObject() runtime.Object { return runtime.DeepCopy(w) }

// WidgetV3 is one more spoke.
type WidgetV3 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Girth             int32 `json:"girth,omitempty"`
}

func (w *WidgetV3) DeepCopyObject() runtime.Object { return runtime.DeepCopy(w) }

var (
	v1 = schema.GroupVersion{Group: "example.com", Version: "v1"}
	v2 = schema.GroupVersion{Group: "example.com", Version: "v2"}
	v3 = schema.GroupVersion{Group: "example.com", Version: "v3"}
)

func widget(name string) *Widget {
	return &Widget{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}}, Spec: WidgetSpec{Size: 3, Parts: []Part{{"p"}}}}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newScheme returns a scheme with three versions of Widget; v1 is the hub.
func newScheme(t testing.TB) *runtime.Scheme {
	s := runtime.NewScheme()
	must(t, runtime.Register(s, v1.WithKind("Widget"), runtime.KindOptions[*Widget]{
		SelectableFields: []string{"spec.color"},
		Default: func(w *Widget) {
			if w.Spec.Color == "" {
				w.Spec.Color = "grey"
			}
		},
	}))
	must(t, runtime.Register(s, v2.WithKind("Widget"), runtime.KindOptions[*WidgetV2]{}))
	must(t, runtime.Register(s, v3.WithKind("Widget"), runtime.KindOptions[*WidgetV3]{}))
	must(t, runtime.AddConversion(s,
		func(in *WidgetV2, out *Widget) error { out.Spec.Size, out.Spec.Parts = in.Width, in.Parts; return nil },
		func(in *Widget, out *WidgetV2) error {
			if in.Spec.Size < 0 {
				return errors.New("no negative width")
			}
			out.Width, out.Parts = in.Spec.Size, in.Spec.Parts
			return nil
		}))
	must(t, runtime.AddConversion(s,
		func(in *WidgetV3, out *Widget) error { out.Spec.Size = in.Girth; return nil },
		func(in *Widget, out *WidgetV3) error {
			out.Girth = 100 / in.Spec.Size // panics for 0
			out.Annotations = map[string]string{"converted": "true"}
			return nil
		}))
	return s
}

func TestSchemeKnowsKindsAndLists(t *testing.T) {
	s := newScheme(t)
	k := s.Lookup(v1.WithKind("Widget"))
	if k == nil || s.KindOf(&Widget{}) != k || s.KindOf(&runtime.List[Widget]{}) != k {
		t.Fatal("Widget is not known by kind, type and list type")
	}
	for gvk, want := range map[schema.GroupVersionKind]runtime.Object{
		v1.WithKind("Widget"):                                        &Widget{},
		v1.WithKind("WidgetList"):                                    &runtime.List[Widget]{},
		v2.WithKind("Widget"):                                        &WidgetV2{},
		v2.WithKind("WidgetList"):                                    &runtime.List[WidgetV2]{},
		v1.WithKind("DeleteOptions"):                                 &metav1.DeleteOptions{},
		v1.WithKind("WatchEvent"):                                    &metav1.WatchEvent{},
		{Version: "v1", Kind: "Status"}:                              &metav1.Status{},
		{Group: "meta.k8s.io", Version: "v1", Kind: "Table"}:         &metav1.Table{},
		{Group: "meta.k8s.io", Version: "v1", Kind: "CreateOptions"}: &metav1.CreateOptions{},
	} {
		obj, err := s.New(gvk)
		if err != nil || !reflect.DeepEqual(obj, want) {
			t.Errorf("New(%s) = %T, %v", gvk, obj, err)
		}
		if !s.Recognizes(gvk) {
			t.Errorf("%s is not recognized", gvk)
		}
		if gvk.Kind == "DeleteOptions" || gvk.Kind == "WatchEvent" {
			continue // in every version
		}
		if kinds, _, err := s.ObjectKinds(want); err != nil || len(kinds) != 1 || kinds[0] != gvk {
			t.Errorf("ObjectKinds(%T) = %v, %v; want %s", want, kinds, err, gvk)
		}
	}
	for _, gvk := range []schema.GroupVersionKind{v1.WithKind("Gadget"), v1.WithKind("List"), v1.WithKind("GadgetList"), v1.WithKind("Status"),
		{Group: "other.com", Version: "v1", Kind: "DeleteOptions"}} {
		if _, err := s.New(gvk); !apiruntime.IsNotRegisteredError(err) {
			t.Errorf("New(%s): %v", gvk, err)
		}
	}
	if _, _, err := s.ObjectKinds(&runtime.Resource[int, int]{}); !apiruntime.IsNotRegisteredError(err) {
		t.Error("ObjectKinds of an unknown type:", err)
	}
	if kinds, _, err := s.ObjectKinds(&unstructured.Unstructured{Object: map[string]any{"kind": "X", "apiVersion": "y/v1"}}); err != nil || kinds[0].Kind != "X" {
		t.Error("ObjectKinds of an unstructured object:", kinds, err)
	}
	if _, _, err := s.ObjectKinds(&unstructured.Unstructured{}); !apiruntime.IsMissingKind(err) {
		t.Error("ObjectKinds of an unstructured object without kind:", err)
	}
	w := &Widget{}
	s.Default(w)
	s.Default(&runtime.List[Widget]{})
	s.Default(&WidgetV2{})
	s.Default(&metav1.Status{})
	if w.Spec.Color != "grey" {
		t.Error("defaults were not set")
	}
}

type (
	plainStruct struct{ A string }
	noTypeMeta  struct {
		metav1.ObjectMeta `json:"metadata"`
	}
	noObjectMeta struct {
		metav1.TypeMeta `json:",inline"`
	}
	untagged struct {
		metav1.TypeMeta `json:",inline"`
		metav1.ObjectMeta
	}
	metaFirst struct {
		metav1.ObjectMeta `json:"metadata"`
		metav1.TypeMeta   `json:",inline"`
	}
	embeds     struct{ Widget }
	embedsMore struct{ embeds }
	embedsPtr  struct{ *Widget }
	embedsOwn  struct{ Widget }
	unwritable struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		C                 chan int
	}
	panics struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
	}
)

func (p *plainStruct) DeepCopyObject() runtime.Object   { return runtime.DeepCopy(p) }
func (p *plainStruct) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }
func (p *noTypeMeta) DeepCopyObject() runtime.Object    { return runtime.DeepCopy(p) }
func (p *noTypeMeta) GetObjectKind() schema.ObjectKind  { return schema.EmptyObjectKind }
func (p *noObjectMeta) DeepCopyObject() runtime.Object  { return runtime.DeepCopy(p) }
func (p *untagged) DeepCopyObject() runtime.Object      { return runtime.DeepCopy(p) }
func (p *metaFirst) DeepCopyObject() runtime.Object     { return runtime.DeepCopy(p) }
func (p *embedsOwn) DeepCopyObject() runtime.Object     { return runtime.DeepCopy(p) }
func (p *unwritable) DeepCopyObject() runtime.Object    { return runtime.DeepCopy(p) }
func (p *panics) DeepCopyObject() runtime.Object        { panic("no copy") }

func register[P runtime.Pointer[T], T any](kind string, fields ...string) func(*runtime.Scheme) error {
	return func(s *runtime.Scheme) error {
		return runtime.Register(s, v1.WithKind(kind), runtime.KindOptions[P]{SelectableFields: fields})
	}
}

func TestRegisterRefusesAndNamesTheCure(t *testing.T) {
	for name, c := range map[string]struct {
		register func(*runtime.Scheme) error
		want     []string
	}{
		"no kind":              {register[*embedsOwn](""), []string{"needs a version and a name"}},
		"reserved":             {register[*embedsOwn]("DeleteOptions"), []string{"reserved"}},
		"registered already":   {register[*embedsOwn]("Widget"), []string{"registered already"}},
		"type used twice":      {register[*Widget]("Gadget"), []string{"stands for example.com/v1, Kind=Widget already", "type WidgetSpecV2 WidgetSpec"}},
		"list of another":      {register[*embedsOwn]("WidgetList"), []string{"taken", "choose another name"}},
		"no metadata at all":   {register[*plainStruct]("X"), []string{"has no TypeMeta", "embed metav1.TypeMeta", "`json:\",inline\"`"}},
		"no TypeMeta":          {register[*noTypeMeta]("X"), []string{"has no TypeMeta", "embed metav1.TypeMeta"}},
		"no ObjectMeta":        {register[*noObjectMeta]("X"), []string{"has no ObjectMeta", "embed metav1.ObjectMeta", "`json:\"metadata,omitempty\"`"}},
		"ObjectMeta, no tag":   {register[*untagged]("X"), []string{"has no metadata", "`json:\"metadata,omitempty\"`"}},
		"metadata first":       {register[*metaFirst]("X"), []string{"does not begin with kind", "first field"}},
		"embeds a Resource":    {register[*embeds]("X"), []string{"func (x *embeds) DeepCopyObject() runtime.Object { return runtime.DeepCopy(x) }"}},
		"embeds it deeper":     {register[*embedsMore]("X"), []string{"func (x *embedsMore) DeepCopyObject()"}},
		"embeds a pointer":     {register[*embedsPtr]("X"), []string{"embeds the pointer", "embed the struct itself"}},
		"cannot be written":    {register[*unwritable]("X"), []string{"cannot be written as JSON"}},
		"panics":               {register[*panics]("X"), []string{"no copy"}},
		"field unknown":        {register[*embedsOwn]("X", "spec.colour"), []string{`"spec.colour"`, `no JSON field "colour"`, `"spec.color"`}},
		"field by its Go name": {register[*embedsOwn]("X", "spec.Color"), []string{`no JSON field "Color"`}},
		"field no scalar":      {register[*embedsOwn]("X", "spec.parts"), []string{"only strings, booleans and integers"}},
		"field in a list":      {register[*embedsOwn]("X", "spec.parts.name"), []string{"no JSON field"}},
		"field always there":   {register[*embedsOwn]("X", "metadata.name"), []string{"always selectable"}},
		"resourceVersion":      {register[*embedsOwn]("X", "metadata.resourceVersion"), []string{"not stored"}},
		"field empty":          {register[*embedsOwn]("X", ""), []string{"no JSON field"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.register(newScheme(t))
			if err == nil {
				t.Fatal("was accepted")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error does not say %q: %v", want, err)
				}
			}
		})
	}
	if err := register[*embedsOwn]("X", "spec.color", "spec.on", "spec.size", "metadata.generation", "status.ready")(newScheme(t)); err != nil {
		t.Error("a type that embeds a Resource and has its own DeepCopyObject:", err)
	}
}

func TestConvertFieldLabel(t *testing.T) {
	s := newScheme(t)
	for _, c := range []struct {
		kind       schema.GroupVersionKind
		label, err string
	}{
		{v1.WithKind("Widget"), "metadata.name", ""},
		{v1.WithKind("Widget"), "metadata.namespace", ""},
		{v1.WithKind("Widget"), "spec.color", ""},
		{v1.WithKind("Widget"), "spec.x", "field label not supported: spec.x"},
		{v2.WithKind("Widget"), "metadata.name", ""},
		{v2.WithKind("Widget"), "spec.x", `"spec.x" is not a known field selector: only "metadata.name", "metadata.namespace"`},
		{v1.WithKind("Gadget"), "spec.x", `"spec.x" is not a known field selector: only "metadata.name", "metadata.namespace"`},
	} {
		label, value, err := s.ConvertFieldLabel(c.kind, c.label, "v")
		switch {
		case c.err == "" && (err != nil || label != c.label || value != "v"):
			t.Errorf("%s %s: %s=%s, %v", c.kind, c.label, label, value, err)
		case c.err != "" && (err == nil || err.Error() != c.err):
			t.Errorf("%s %s: %v; want %s", c.kind, c.label, err, c.err)
		}
	}
}

func TestSchemeMayGrowWhileItIsRead(t *testing.T) {
	s := newScheme(t)
	done := make(chan error)
	go func() {
		done <- runtime.Register(s, v1.WithKind("Gadget"), runtime.KindOptions[*embedsOwn]{})
	}()
	for range 100 {
		if k := s.Lookup(v1.WithKind("Gadget")); k != nil && s.KindOf(&embedsOwn{}) != k {
			t.Error("half a kind was seen")
		}
		if _, err := s.ToVersion(widget("a"), v2); err != nil {
			t.Error(err)
		}
	}
	must(t, <-done)
}
