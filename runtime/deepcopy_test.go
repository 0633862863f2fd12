package runtime_test

import (
	"fmt"
	"math/rand"
	"reflect"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/runtime"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"
)

// filler fills objects with random values that survive an encoding.
func filler(seed int64) *randfill.Filler {
	return randfill.New().NilChance(0.3).NumElements(0, 3).MaxDepth(12).RandSource(rand.NewSource(seed)).Funcs(
		func(t *metav1.Time, c randfill.Continue) { *t = metav1.Unix(c.Int63n(1<<32), 0) },
		func(t *metav1.MicroTime, c randfill.Continue) {
			*t = metav1.NewMicroTime(time.Unix(c.Int63n(1<<32), 0))
		},
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewQuantity(c.Int63n(1e6), resource.DecimalSI)
		},
		func(i *intstr.IntOrString, c randfill.Continue) { *i = intstr.FromInt32(c.Int31()) },
		func(f *metav1.FieldsV1, c randfill.Continue) { f.SetRawBytes([]byte(`{"f:spec":{}}`)) },
		func(e *apiruntime.RawExtension, c randfill.Continue) { e.Raw = []byte(`{"a":1}`) },
	)
}

// samples returns empty objects of different types.
func samples() []runtime.Object {
	return []runtime.Object{
		&corev1.Pod{}, &corev1.Service{}, &corev1.Node{}, &corev1.ConfigMap{}, &corev1.Secret{}, &corev1.Event{}, &corev1.PodList{},
		&appsv1.Deployment{}, &appsv1.StatefulSet{}, &appsv1.ControllerRevision{}, &batchv1.CronJob{}, &networkingv1.Ingress{},
		&rbacv1.ClusterRole{}, &admissionv1.ValidatingWebhookConfiguration{},
		&runtime.Resource[corev1.PodSpec, corev1.PodStatus]{}, &runtime.List[runtime.Resource[appsv1.DeploymentSpec, struct{}]]{},
		&runtime.Resource[map[string]any, []any]{},
	}
}

func TestDeepCopyEqualsAndSharesNothing(t *testing.T) {
	for seed := range int64(20) {
		for _, obj := range samples() {
			f := filler(seed)
			if _, untyped := obj.(*runtime.Resource[map[string]any, []any]); untyped {
				obj = untypedSample(seed)
			} else {
				f.Fill(obj)
			}
			checkCopy(t, obj)
		}
	}
}

func untypedSample(seed int64) runtime.Object {
	return &runtime.Resource[map[string]any, []any]{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(seed), Labels: map[string]string{}},
		Spec: map[string]any{"a": []any{int64(1), 2.5, "x", nil, true}, "b": map[string]any{"c": &metav1.Time{Time: time.Now()}},
			"o": runtime.Object(&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}})},
		Status: []any{},
	}
}

func checkCopy[T any](t *testing.T, in T) {
	t.Helper()
	out := runtime.DeepCopy(in)
	if !reflect.DeepEqual(in, out) {
		t.Fatalf("copy of %T differs:\n%s", in, cmp.Diff(in, out))
	}
	seen := map[unsafe.Pointer]string{}
	memory(reflect.ValueOf(in), "", func(p unsafe.Pointer, path string) { seen[p] = path })
	memory(reflect.ValueOf(out), "", func(p unsafe.Pointer, path string) {
		if from, ok := seen[p]; ok {
			t.Errorf("copy of %T shares memory: %s is %s of the original", in, path, from)
		}
	})
}

// memory calls f for every piece of memory that can be reached from v through exported fields.
func memory(v reflect.Value, path string, f func(unsafe.Pointer, string)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			if v.Type().Elem().Size() > 0 {
				f(v.UnsafePointer(), path)
			}
			memory(v.Elem(), path, f)
		}
	case reflect.Interface:
		if !v.IsNil() {
			memory(v.Elem(), path, f)
		}
	case reflect.Slice:
		if v.Cap() > 0 && v.Type().Elem().Size() > 0 {
			f(v.UnsafePointer(), path)
		}
		for i := range v.Len() {
			memory(v.Index(i), fmt.Sprintf("%s[%d]", path, i), f)
		}
	case reflect.Map:
		if !v.IsNil() {
			f(v.UnsafePointer(), path)
		}
		for it := v.MapRange(); it.Next(); {
			memory(it.Value(), fmt.Sprintf("%s[%v]", path, it.Key()), f)
		}
	case reflect.Array:
		for i := range v.Len() {
			memory(v.Index(i), fmt.Sprintf("%s[%d]", path, i), f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if sf := v.Type().Field(i); sf.IsExported() || sf.Anonymous {
				memory(v.Field(i), path+"."+sf.Name, f)
			}
		}
	}
}

type tree struct {
	Name     string
	Left     *tree
	Children []tree
	ByName   map[string]*tree
	Any      any
	Grid     [2][]int
	Nested   map[string]map[string][]string
	Pair     [2]*int
	Func     func()
	hidden   []int
	base
}

type base struct{ Inherited []string }

func TestDeepCopyOfRecursiveTypes(t *testing.T) {
	n := 3
	leaf := tree{Name: "leaf", hidden: []int{1}, base: base{Inherited: []string{"x"}}}
	in := &tree{
		Left: &leaf, Children: []tree{leaf, {Left: &tree{Children: []tree{}}}}, ByName: map[string]*tree{"a": &leaf, "nil": nil},
		Any: []any{&leaf, map[string]any{"k": []string{"v"}}}, Grid: [2][]int{{1}, nil}, Pair: [2]*int{&n, nil},
		Nested: map[string]map[string][]string{"a": {"b": {"c"}, "nil": nil}, "nil": nil},
	}
	checkCopy(t, in)
	checkCopy(t, *in)
	checkCopy(t, []*tree{in, nil})
	if out := runtime.DeepCopy(in); &out.Left.hidden[0] != &leaf.hidden[0] {
		t.Error("unexported fields should be copied as an assignment does")
	}
}

func TestDeepCopyKeepsNilAndEmptyApart(t *testing.T) {
	if out := runtime.DeepCopy((*corev1.Pod)(nil)); out != nil {
		t.Error("nil pointer became", out)
	}
	if out := runtime.DeepCopy[any](nil); out != nil {
		t.Error("nil interface became", out)
	}
	if out := runtime.DeepCopy([]string(nil)); out != nil {
		t.Error("nil slice became empty")
	}
	if out := runtime.DeepCopy([]string{}); out == nil {
		t.Error("empty slice became nil")
	}
	if out := runtime.DeepCopy(map[string][]int(nil)); out != nil {
		t.Error("nil map became empty")
	}
	if out := runtime.DeepCopy(42); out != 42 {
		t.Error("42 became", out)
	}
	var obj runtime.Object = &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}}
	checkCopy(t, obj)
}

// counted records how it was copied.
type counted struct {
	By   string
	data []int
}

func (c *counted) DeepCopyInto(out *counted) {
	*out = counted{By: "method", data: append([]int(nil), c.data...)}
}

// valued is copied by a method with a value receiver, as resource.Quantity is.
type valued struct {
	By   string
	data []int
}

func (v valued) DeepCopy() valued { return valued{By: "method", data: append([]int(nil), v.data...)} }

// called has methods which are calls of DeepCopy.
type called struct{ Names []string }

func (c *called) DeepCopyInto(out *called) { *out = *runtime.DeepCopy(c) }
func (c *called) DeepCopy() *called        { return runtime.DeepCopy(c) }

func TestDeepCopyUsesMethods(t *testing.T) {
	type holder struct {
		One   counted
		Ptr   *counted
		Many  []counted
		ByKey map[string]counted
		Any   any
		Value valued
		Calls []called
	}
	c := counted{data: []int{1}}
	out := runtime.DeepCopy(holder{One: c, Ptr: &c, Many: []counted{c}, ByKey: map[string]counted{"a": c}, Any: c, Value: valued{data: []int{1}}, Calls: []called{{Names: []string{"a"}}}})
	for i, got := range []string{out.One.By, out.Ptr.By, out.Many[0].By, out.ByKey["a"].By, out.Any.(counted).By, out.Value.By} {
		if got != "method" {
			t.Errorf("value %d was not copied by its method", i)
		}
	}
	if out := runtime.DeepCopy(&c); out.By != "method" || &out.data[0] == &c.data[0] {
		t.Error("only its method can copy an outermost value with unexported slices")
	}
	in := &called{Names: []string{"a"}}
	if out := in.DeepCopy(); !reflect.DeepEqual(in, out) || &in.Names[0] == &out.Names[0] {
		t.Error("a DeepCopy method written as a call of DeepCopy made", out)
	}
	checkCopy(t, &unstructured.Unstructured{Object: map[string]any{"kind": "X", "a": []any{map[string]any{"b": int64(1)}}}})
}

func TestDeepCopyConcurrently(t *testing.T) {
	type fresh struct {
		Next *fresh
		Pods map[string]corev1.Pod
	}
	in := &fresh{Next: &fresh{Pods: map[string]corev1.Pod{"a": {Spec: corev1.PodSpec{NodeName: "n"}}}}}
	done := make(chan *fresh)
	for range 8 {
		go func() { done <- runtime.DeepCopy(in) }()
	}
	for range 8 {
		if out := <-done; !reflect.DeepEqual(in, out) {
			t.Error("copies differ")
		}
	}
}

func BenchmarkDeepCopy(b *testing.B) {
	pod := &corev1.Pod{}
	filler(1).NilChance(0.2).Fill(pod)
	res := &runtime.Resource[corev1.PodSpec, corev1.PodStatus]{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec, Status: pod.Status}
	small := widget("a")
	b.Run("generated", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			pod.DeepCopyObject()
		}
	})
	b.Run("resource", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			res.DeepCopyObject()
		}
	})
	b.Run("reflection", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			runtime.DeepCopy(&pod.Spec)
		}
	})
	b.Run("widget", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			small.DeepCopyObject()
		}
	})
}
