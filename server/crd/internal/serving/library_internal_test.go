package serving

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime/structural"
	"github.com/keelson-dev/keelson/server/registry"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// sizedSchema returns a different schema for each number.
func sizedSchema(n int) string {
	return fmt.Sprintf(`{"type":"object","properties":{"spec":{"type":"object","properties":{"size":{"type":"integer","maximum":%d}},"x-kubernetes-validations":[{"rule":"self.size != %d"}]}}}`, n, n-1)
}

// held returns the numbers of schemas and their size, after the removal of unreferenced ones.
func (l *library) held() (schemas, compiled int, bytes int64) {
	runtime.GC()
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.schemas), len(l.compiled), l.bytes
}

// Equal schemas of several versions, of several definitions, or of a definition before and after a change are one value, so that
// everything derived from it, for example an OpenAPI document, remains valid. Unreferenced schemas are removed.
func TestSchemasAreShared(t *testing.T) {
	t.Parallel()
	l := libraryOf(t)
	compiled := shareSchemas(t, l)
	eventuallyHeld(t, l, 0, 0)
	if compiled.Properties["a"] == nil {
		t.Error("who has it lost it")
	}
}

// shareSchemas makes schemas of several definitions, and returns one of them, compiled.
func shareSchemas(t *testing.T, l *library) *structural.Schema {
	t.Helper()
	const one, described = `{"type":"object","properties":{"a":{"type":"string"}}}`, `{"type":"object","properties":{"a":{"type":"string","description":"d"}}}`
	schemasOf := func(d *apiextensionsv1.CustomResourceDefinition) map[string]*objectSchema {
		all, err := l.schemasOf(d)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	first := schemasOf(defined(t, one, one, described))
	if first["v1"] != first["v2"] || first["v1"] == first["v3"] {
		t.Errorf("versions: %v", first)
	}
	other := defined(t, described, `{"type":"object"}`)
	other.Name, other.Spec.Group = "boats.example.org", "example.org"
	second := schemasOf(other)
	if second["v1"] != first["v3"] || second["v2"] == first["v1"] {
		t.Errorf("another definition: %v, and %v", second, first)
	}
	kept := defined(t, described)
	kept.Spec.PreserveUnknownFields = true
	if third := schemasOf(kept); third["v1"] == first["v3"] {
		t.Errorf("%v: preserveUnknownFields makes another schema", third)
	}
	if schemas, _, _ := l.held(); schemas < 3 {
		t.Errorf("%d schemas are there of 3 that are had", schemas)
	}
	if again := schemasOf(defined(t, one)); again["v1"] != first["v1"] {
		t.Errorf("while somebody has it it is the same: %v", again)
	}
	compiled := first["v1"].structure()
	runtime.KeepAlive([]map[string]*objectSchema{first, second})
	return compiled
}

// eventuallyHeld waits for the cleanups of the runtime.
func eventuallyHeld(t *testing.T, l *library, schemas, compiled int) {
	t.Helper()
	var s, c int
	var b int64
	for range 3000 {
		if s, c, b = l.held(); s == schemas && c == compiled && (compiled > 0 || b == 0) {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("%d schemas, %d of them compiled, of %d bytes; want %d and %d", s, c, b, schemas, compiled)
}

// judged compiles a schema with its rules, by validating an object, and reports whether the object is valid.
func judged(t *testing.T, s *objectSchema, size int) bool {
	t.Helper()
	r := &rules{hub: "v1", versions: map[string]versionRules{"v1": {schema: s}}}
	object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a"}, "spec": map[string]any{"size": int64(size)}}}
	return len(r.validate(registry.NewCall(context.Background(), authn.System(), ""), object)) == 0
}

// Compiled schemas are dropped when they were not used for a while, and compiled again when they are needed. Callers that have
// one keep it.
func TestIdleSchemasAreDropped(t *testing.T) {
	t.Parallel()
	l := libraryOf(t)
	const count = 20
	var all []*objectSchema
	for i := range count {
		s, err := l.schema([]byte(sizedSchema(100+i)), false)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	if _, compiled, bytes := l.held(); compiled != 0 || bytes != 0 {
		t.Fatalf("%d are compiled, of %d bytes, and none was used", compiled, bytes)
	}
	for _, s := range all {
		judged(t, s, 1)
	}
	if _, compiled, bytes := l.held(); compiled != count || bytes < count*compiledPerRule {
		t.Fatalf("%d are compiled, of %d bytes; %d were used", compiled, bytes, count)
	}
	inUse := all[0].compiled()
	if !l.sweep() {
		t.Fatal("the first sweep left nothing, and all were used since the one before")
	}
	judged(t, all[1], 1)
	if !l.sweep() {
		t.Fatal("the second sweep left nothing, and one was used")
	}
	if _, compiled, _ := l.held(); compiled != 1 || all[1].now.Load() == nil || all[0].now.Load() != nil {
		t.Errorf("%d are compiled, and one was used between the sweeps", compiled)
	}
	l.sweep()
	if l.sweep() {
		t.Error("something is left of what nobody uses")
	}
	if _, compiled, bytes := l.held(); compiled != 0 || bytes != 0 {
		t.Errorf("%d are compiled, of %d bytes", compiled, bytes)
	}
	if rules, err := inUse.rules(); err != nil || rules == nil || inUse.structure == nil {
		t.Errorf("who was using it lost it: %v, %v", rules, err)
	}
	for i, s := range all {
		for size, want := range map[int]bool{1: true, 99 + i: false, 100 + i: true, 101 + i: false} {
			if got := judged(t, s, size); got != want {
				t.Errorf("compiled again, schema %d says %v of %d", i, got, size)
			}
		}
	}
	runtime.KeepAlive(all)
}

// The size of compiled schemas is bounded, and the most recently used ones are kept.
func TestCompiledSchemasAreBounded(t *testing.T) {
	t.Parallel()
	l := libraryOf(t)
	const count, fit = 40, 10
	var all []*objectSchema
	for i := range count {
		s, err := l.schema([]byte(sizedSchema(100+i)), false)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	l.most = fit * (all[0].size + all[0].ruleSize)
	for i, s := range all {
		l.tick.Add(1)
		judged(t, s, 1)
		if _, compiled, bytes := l.held(); bytes > l.most || compiled > fit {
			t.Fatalf("after %d: %d are compiled, of %d bytes; at most %d bytes", i, compiled, bytes, l.most)
		}
		if s.now.Load() == nil || i > 0 && all[i-1].now.Load() == nil {
			t.Fatalf("after %d: what was used last is gone", i)
		}
	}
	var crowd sync.WaitGroup
	for w := range 4 {
		crowd.Go(func() {
			for i := range 200 {
				n := (i*7 + w) % count
				if judged(t, all[n], 99+n) || !judged(t, all[n], 1) {
					t.Errorf("schema %d says something else", n)
				}
				if i%50 == 0 {
					l.sweep()
				}
			}
		})
	}
	crowd.Wait()
	if _, compiled, bytes := l.held(); bytes > l.most+all[0].size+all[0].ruleSize || compiled > fit+1 {
		t.Errorf("%d are compiled, of %d bytes; at most %d bytes", compiled, bytes, l.most)
	}
	runtime.KeepAlive(all)
}

// One goroutine sweeps for all schemas, only while there are compiled ones, and ends with the server.
func TestSweeps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := libraryOf(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); l.run(ctx) }()
		s, err := l.schema([]byte(sizedSchema(100)), false)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			judged(t, s, 1)
			began := time.Now()
			for range 100 {
				time.Sleep(restAfter / 10)
				if s.now.Load() == nil {
					break
				}
			}
			if took := time.Since(began); took < restAfter || took > 2*restAfter+restAfter/5 {
				t.Errorf("dropped after %v without use", took)
			}
		}
		cancel()
		<-done
		runtime.KeepAlive(s)
	})
}
