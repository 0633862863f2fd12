package weight

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// BenchmarkJSON weighs a Pod of a usual size, with a Go type and without.
func BenchmarkJSON(b *testing.B) {
	pod := corev1.Pod{}
	pod.Name, pod.Namespace = "web-0", "default"
	pod.Labels = map[string]string{"app": "web", "tier": "front", "pod-template-hash": "5c3419bb"}
	for i := range 3 {
		c := corev1.Container{Name: fmt.Sprintf("c%d", i), Image: "registry.example.com/team/web:v1.2.3", Args: []string{"--port=8080", "--verbose"}}
		for j := range 8 {
			c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", j), Value: "some value of the usual length"})
		}
		pod.Spec.Containers = append(pod.Spec.Containers, c)
	}
	text, err := json.Marshal(pod)
	if err != nil {
		b.Fatal(err)
	}
	var types Types
	for name, weigh := range map[string]func() error{
		"typed": func() error {
			return types.JSON(text, reflect.TypeFor[corev1.Pod](), Limit{Bytes: 8 << 20, Items: 10000})
		},
		"untyped": func() error { return types.Object(text, Limit{Bytes: 8 << 20, Items: 10000}) },
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if err := weigh(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
