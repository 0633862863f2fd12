package patch_test

import (
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/runtime/patch"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// measuredSpec and measuredStatus are the spec and status of the widgets in the benchmark of the server.
type (
	measuredSpec struct {
		Size     int32  `json:"size,omitempty"`
		Color    string `json:"color,omitempty"`
		Data     string `json:"data,omitempty"`
		Replicas int32  `json:"replicas,omitempty"`
	}
	measuredStatus struct {
		Ready    bool   `json:"ready,omitempty"`
		Replicas int32  `json:"replicas,omitempty"`
		Selector string `json:"selector,omitempty"`
	}
	measured = runtime.Resource[measuredSpec, measuredStatus]
)

var measuredKind = schema.GroupVersionKind{Group: "bench.example.com", Version: "v1", Kind: "Widget"}

const measuredDeployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"default","labels":{"app":"web"},"annotations":{"a":"b"}},
	"spec":{"replicas":3,"selector":{"matchLabels":{"app":"web"}},"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":"25%","maxUnavailable":1}},
	"template":{"metadata":{"labels":{"app":"web"}},"spec":{"serviceAccountName":"web","volumes":[{"name":"c","configMap":{"name":"c"}},{"name":"e","emptyDir":{}}],"containers":[
	{"name":"a","image":"a:1","args":["x","y"],"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}],"ports":[{"containerPort":80,"protocol":"TCP"},{"containerPort":443,"protocol":"TCP"}],
	"resources":{"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"100m","memory":"64Mi"}},"volumeMounts":[{"name":"c","mountPath":"/c"}],
	"livenessProbe":{"httpGet":{"path":"/healthz","port":80}}},{"name":"b","image":"b:1"}]}}}}`

// BenchmarkUpdate tracks writes of one manager to objects that the same manager has written before.
func BenchmarkUpdate(b *testing.B) {
	s := runtime.NewScheme()
	if err := runtime.Register[*measured](s, measuredKind, runtime.KindOptions[*measured]{}); err != nil {
		b.Fatal(err)
	}
	if _, err := s.Import(appsv1.AddToScheme); err != nil {
		b.Fatal(err)
	}
	widget := &measured{Spec: measuredSpec{Size: 5, Color: "red", Data: strings.Repeat("some data, ", 80), Replicas: 2}}
	widget.Name, widget.Namespace = "w", "default"
	widget.Labels = map[string]string{"app": "bench", "group": "g-01", "tier": "backend"}
	widget.Annotations = map[string]string{"example.com/owner": "team-1@example.com"}
	deployment := &appsv1.Deployment{}
	if _, err := codec.Unmarshal([]byte(measuredDeployment), deployment, codec.Strict); err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name          string
		kind          schema.GroupVersionKind
		obj           runtime.Object
		scalar, field func(obj runtime.Object)
	}{
		{"widget", measuredKind, widget,
			func(obj runtime.Object) { obj.(*measured).Spec.Size++ },
			func(obj runtime.Object) { obj.(*measured).Annotations["new"] = "x" }},
		{"deployment", appsv1.SchemeGroupVersion.WithKind("Deployment"), deployment,
			func(obj runtime.Object) { *obj.(*appsv1.Deployment).Spec.Replicas++ },
			func(obj runtime.Object) { obj.(*appsv1.Deployment).Annotations["new"] = "x" }},
	} {
		f, err := patch.NewFieldManager(patch.FieldManagerOptions{Scheme: s, Kind: c.kind})
		if err != nil {
			b.Fatal(err)
		}
		live := c.obj.DeepCopyObject()
		if err := f.Update(nil, live, "bench"); err != nil {
			b.Fatal(err)
		}
		live.(metav1.Object).SetUID(types.UID("u"))
		for _, way := range []struct {
			name   string
			live   runtime.Object
			change func(obj runtime.Object)
		}{
			{"create", nil, func(runtime.Object) {}},
			{"nothing", live, func(runtime.Object) {}},
			{"scalar", live, c.scalar},
			{"field", live, c.field},
		} {
			obj := c.obj.DeepCopyObject()
			if way.live != nil {
				obj = way.live.DeepCopyObject()
			}
			way.change(obj)
			given := obj.(metav1.Object).GetManagedFields()
			b.Run(c.name+"/"+way.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					obj.(metav1.Object).SetManagedFields(given)
					if err := f.Update(way.live, obj, "bench"); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkJSONPatch compares this package with the library that kube-apiserver uses: three operations on a small and on a large
// object, and one at the bottom of a deep object, each level of which the library decodes and encodes again.
func BenchmarkJSONPatch(b *testing.B) {
	const three = `[{"op":"test","path":"/metadata/name","value":"w"},{"op":"replace","path":"/spec/size","value":6},{"op":"add","path":"/metadata/labels/new","value":"x"}]`
	const depth = 100
	item := `{"name":"an item of the list","count":12,"ratio":0.25,"on":true,"note":"as long as a text of a specification may be"},`
	wide := func(size int) string {
		return `{"apiVersion":"bench.example.com/v1","kind":"Widget","metadata":{"name":"w","labels":{"app":"bench"}},"spec":{"size":5,"items":[` +
			strings.TrimSuffix(strings.Repeat(item, size/len(item)), ",") + `]}}`
	}
	for _, c := range []struct{ name, doc, operations string }{
		{"2KiB", wide(2 << 10), three},
		{"100KiB", wide(100 << 10), three},
		{"100KiB-deep", strings.Repeat(`{"a":`, depth) + `"` + strings.Repeat("x", 100<<10) + `"` + strings.Repeat("}", depth),
			`[{"op":"add","path":"` + strings.Repeat("/a", depth-1) + `/b","value":1}]`},
	} {
		for _, way := range []struct {
			name  string
			apply func(doc, operations []byte) ([]byte, error)
		}{
			{"here", patch.JSONPatch},
			{"library", func(doc, operations []byte) ([]byte, error) {
				p, err := jsonpatch.DecodePatch(operations)
				if err != nil {
					return nil, err
				}
				return p.Apply(doc)
			}},
		} {
			b.Run(c.name+"/"+way.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := way.apply([]byte(c.doc), []byte(c.operations)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
