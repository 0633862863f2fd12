package openapi_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/keelson-dev/keelson/server/openapi"
)

// busy is a Describer that records how many of its calls run at the same time.
type busy struct{ now, most, all *atomic.Int64 }

func (b busy) OpenAPI() *spec.Schema {
	b.all.Add(1)
	n := b.now.Add(1)
	defer b.now.Add(-1)
	for most := b.most.Load(); n > most && !b.most.CompareAndSwap(most, n); most = b.most.Load() {
	}
	for range 100 {
		runtime.Gosched() // let other requests begin
	}
	return &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}}}
}

func (b busy) MergeSchema(meta spec.Schema) *spec.Schema { return &meta }

// TestDocumentsAreMadeOneAtATime requests many documents at once.
func TestDocumentsAreMadeOneAtATime(t *testing.T) {
	t.Parallel()
	c := busy{new(atomic.Int64), new(atomic.Int64), new(atomic.Int64)}
	var groups []openapi.GroupVersion
	for i := range 8 {
		gv := apischema.GroupVersion{Group: fmt.Sprintf("g%d.example.com", i), Version: "v1"}
		groups = append(groups, openapi.GroupVersion{Group: gv.Group, Version: gv.Version, Resources: []openapi.Resource{{
			Plural: "things", Kind: gv.WithKind("Thing"), Verbs: []string{"get"}, Object: c,
		}}})
	}
	s := openapi.New(openapi.Options{})
	s.Set(groups)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() { get(t, s, "/openapi/v2") })
		for i := range groups {
			all.Go(func() { get(t, s, fmt.Sprintf("/openapi/v3/apis/g%d.example.com/v1", i)) })
		}
	}
	all.Wait()
	if most := c.most.Load(); most != 1 {
		t.Errorf("%d documents were made at the same time", most)
	}
	if n := c.all.Load(); n > 2*8 {
		t.Errorf("%d descriptions were made of 8 kinds in two forms", n)
	}
}
