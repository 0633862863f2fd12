//go:build unix

package patch_test

import (
	"syscall"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/patch"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func used() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e6
}

func BenchmarkCostlyFields(b *testing.B) {
	s := runtime.NewScheme()
	if err := runtime.Register(s, rowKind, runtime.KindOptions[*unstructured.Unstructured]{}); err != nil {
		b.Fatal(err)
	}
	f, err := patch.NewFieldManager(patch.FieldManagerOptions{Scheme: s, Kind: rowKind})
	if err != nil {
		b.Fatal(err)
	}
	for name, spec := range fieldShapes() {
		text := `{"apiVersion":"example.com/v1","kind":"Row","metadata":{"name":"a"},"spec":` + spec + `}`
		config := func() map[string]any {
			config, err := patch.Configuration([]byte(text))
			if err != nil {
				b.Fatal(err)
			}
			return config
		}
		live, err := f.Apply(nil, config(), "one", true)
		var changed, next runtime.Object
		if err == nil {
			live.(metav1.Object).SetUID("u")
			changed = live.DeepCopyObject()
			changed.(*unstructured.Unstructured).SetLabels(map[string]string{"a": "b"})
		}
		measure := func(way string, step func() error) {
			b.Run(name+"/"+way, func(b *testing.B) {
				b.ReportAllocs()
				before := used()
				var err error
				for b.Loop() {
					err = step()
				}
				b.ReportMetric((used()-before)/float64(b.N), "cpu-ms")
				b.ReportMetric(float64(len(text)), "text-B")
				if err != nil {
					b.ReportMetric(1, "failed")
					b.Logf("%.200s", err)
				}
			})
		}
		measure("create", func() error {
			next := &unstructured.Unstructured{Object: config()}
			return f.Update(nil, next, "two")
		})
		measure("apply", func() error { _, err := f.Apply(nil, config(), "one", true); return err })
		if live != nil {
			measure("again", func() error { _, err := f.Apply(live, config(), "one", true); return err })
			measure("update", func() error {
				next = changed.DeepCopyObject()
				return f.Update(live, next, "two")
			})
		}
		lastApplied := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Row", "spec": map[string]any{"zz": int64(2)}}}
		lastApplied.SetName("a")
		lastApplied.SetUID("u")
		lastApplied.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": text})
		measure("last applied", func() error {
			c, err := patch.Configuration([]byte(`{"apiVersion":"example.com/v1","kind":"Row","metadata":{"name":"a"},"spec":{"zz":1}}`))
			if err != nil {
				return err
			}
			_, err = f.Apply(lastApplied, c, "kubectl", false)
			return err
		})
	}
}
