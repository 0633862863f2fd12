package rbac_test

import (
	"fmt"
	"testing"

	"github.com/keelson-dev/keelson/authz/rbac"
)

// BenchmarkCrowdedGroup has one group with all bindings, the maximum for a subject. A changed binding costs the same as
// elsewhere, and a decision that nothing allows reads every binding.
func BenchmarkCrowdedGroup(b *testing.B) {
	for _, n := range sizes {
		w := newWorld()
		w.put(clusterRole("role", rule("get", "core", "pods", "")))
		for i := range n {
			w.put(clusterBinding(fmt.Sprint("binding-", i), "role", "Group/all"))
		}
		a := follow(b, w, rbac.Options{})
		a.Pin(b.Context())
		w.forget()
		b.Run(fmt.Sprint("change/bindings=", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				w.put(clusterBinding("binding-1", "role", fmt.Sprint("Group/all User/", i%2)))
				a.Pin(b.Context())
				w.forget()
			}
		})
		b.Run(fmt.Sprint("refused/bindings=", n), func(b *testing.B) {
			asked := request("u", "all", "delete core/pods ns")
			b.ReportAllocs()
			for b.Loop() {
				_, _, _ = a.Authorize(b.Context(), asked)
			}
		})
	}
}
