package serving

import (
	"fmt"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/authn"
	celrules "github.com/keelson-dev/keelson/runtime/cel/rules"
	"github.com/keelson-dev/keelson/server/registry"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// manyRules is a schema with 500 rules.
func manyRules() string {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{"spec":{"type":"object","properties":{"size":{"type":"integer"}},"x-kubernetes-validations":[`)
	for i := range 500 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"rule":"self.size != %d"}`, i)
	}
	b.WriteString(`]}}}`)
	return b.String()
}

// Rules are compiled at the first validation of an object. They are compiled once for all versions and states of a definition
// with the same schema, also by concurrent validations.
func TestRulesAreCompiledOnce(t *testing.T) {
	t.Parallel()
	l := libraryOf(t)
	d := defined(t, manyRules(), manyRules())
	if _, err := groupOf(d, converter{}, l, RowLimits{}); err != nil {
		t.Fatal(err)
	}
	if len(l.compiled) != 0 {
		t.Fatalf("%d schemas are compiled already", len(l.compiled))
	}
	var (
		mu    sync.Mutex
		found = map[*celrules.Rules]bool{}
		kept  []map[string]*objectSchema
	)
	judge := func() {
		versions, err := l.schemasOf(d)
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, versions)
		r := &rules{resource: schema.GroupResource{Group: "example.com", Resource: "things"}, hub: "v1", versions: map[string]versionRules{}}
		for name, s := range versions {
			r.versions[name] = versionRules{schema: s}
		}
		var all sync.WaitGroup
		for _, version := range []string{"v1", "v2", "v1", "v2"} {
			all.Go(func() {
				call := registry.NewCall(t.Context(), authn.System(), "")
				call.APIGroup, call.APIVersion, call.Resource = "example.com", version, "things"
				r := *r
				r.hub = version // no conversion is necessary
				errs := r.validate(call, &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a"}, "spec": map[string]any{"size": int64(499)}}})
				if len(errs) != 1 || errs[0].Error() != `spec: Invalid value: failed rule: self.size != 499` {
					t.Errorf("%v", errs)
				}
				compiled, err := versions[version].compileRules()
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				found[compiled] = true
			})
		}
		all.Wait()
	}
	judge()
	d.Spec.Versions = append(d.Spec.Versions, defined(t, manyRules(), manyRules(), manyRules()).Spec.Versions[2])
	judge()
	if len(found) != 1 || len(l.compiled) != 1 {
		t.Errorf("they are compiled %d times, for %d schemas", len(found), len(l.compiled))
	}
	goruntime.KeepAlive(kept)
}
