package crd_test

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// stormDefinition returns the i-th state of one of the definitions of TestUpdateStorm. Each state has another long description.
func stormDefinition(which, i int) *apiextensionsv1.CustomResourceDefinition {
	return definitionOf(fmt.Sprint("storms", which), fmt.Sprint("Storm", which), func(d *apiextensionsv1.CustomResourceDefinition) {
		fields := map[string]apiextensionsv1.JSONSchemaProps{}
		for f := range 200 {
			fields[fmt.Sprint("field", f)] = apiextensionsv1.JSONSchemaProps{Type: "string", Description: fmt.Sprint("the field ", f, " in state ", i)}
		}
		d.Spec.Versions[0].Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{
			Type: "object", Description: fmt.Sprint("state ", i), Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Type: "object", Properties: fields,
				XValidations: apiextensionsv1.ValidationRules{{Rule: fmt.Sprintf("!has(self.field0) || self.field0 != 'state %d'", i)}},
			}},
		}
	})
}

// TestUpdateStorm changes some definitions as fast as it can, while their objects are written and watched. At the end the last
// state is served, and everything for the earlier states is gone: the goroutines of their caches, and their schemas, also the
// compiled ones. It must not run in parallel with other tests.
func TestUpdateStorm(t *testing.T) {
	const count, updates = 4, 60
	s := newSite(t, nil)
	for which := range count {
		s.establish(stormDefinition(which, 0))
	}
	write := func(which int, name string) int {
		return s.do("POST", fmt.Sprintf("/apis/example.com/v1/namespaces/default/storms%d", which), object(fmt.Sprint("Storm", which), name), nil)
	}
	for which := range count {
		write(which, "before")
	}
	heap := func() uint64 {
		var m runtime.MemStats
		for range 3 {
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	goroutines, before := runtime.NumGoroutine(), heap()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var work, crowd sync.WaitGroup
	for which := range count {
		crowd.Go(func() { // an informer
			for ctx.Err() == nil {
				req, err := http.NewRequestWithContext(ctx, "GET", fmt.Sprintf("%s/apis/example.com/v1/storms%d?watch=true", s.srv.URL, which), nil)
				if err != nil {
					t.Error(err)
					return
				}
				resp, err := s.c.Do(req)
				if err != nil {
					continue
				}
				for buf := make([]byte, 4096); err == nil; {
					_, err = resp.Body.Read(buf)
				}
				_ = resp.Body.Close()
			}
		})
		work.Go(func() {
			for i := 1; i <= updates; i++ {
				next := stormDefinition(which, i)
				for range 100 {
					next.ResourceVersion = s.get(next.Name).ResourceVersion
					if code := s.do("PUT", crdsPath+"/"+next.Name, text(t, next), nil); code == http.StatusOK {
						break
					} else if code != http.StatusConflict {
						t.Errorf("update %d of %d: %d", i, which, code)
						return
					}
				}
				if code := write(which, fmt.Sprint("object-", i)); code != http.StatusCreated {
					t.Errorf("an object after update %d of %d: %d", i, which, code)
					return
				}
			}
		})
	}
	work.Wait()
	for which := range count {
		last := fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Storm%d","metadata":{"name":"last"},"spec":{"field0":"state %d"}}`, which, updates)
		eventually(t, func() bool {
			return s.do("POST", fmt.Sprintf("/apis/example.com/v1/namespaces/default/storms%d?dryRun=All", which), last, nil) == http.StatusUnprocessableEntity
		}, func() string { return fmt.Sprintf("the last state of %d is served", which) })
	}
	stop()
	crowd.Wait()
	eventually(t, func() bool { return runtime.NumGoroutine() <= goroutines+2*count }, func() string {
		return fmt.Sprintf("%d goroutines are left, and there were %d", runtime.NumGoroutine(), goroutines)
	})
	// The storage and the cache of definitions keep a history, about 25 KB for each update. The compiled schemas of the states
	// would be five times that.
	const most = 2 * count * updates * 25 << 10
	eventually(t, func() bool { return heap() < before+most }, func() string {
		return fmt.Sprintf("the heap has %d KiB, and had %d KiB", heap()>>10, before>>10)
	})
	t.Logf("%d goroutines after %d; %d KiB after %d KiB", runtime.NumGoroutine(), goroutines, heap()>>10, before>>10)
	runtime.KeepAlive(s)
}
