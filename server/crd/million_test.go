package crd_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// mostPerObject is the maximum memory for a small custom resource, including the storage, its history, the cache and the indices.
// An object with 450 bytes of JSON takes about 1 KiB.
const mostPerObject = 8 << 10

// TestManySmallObjects creates many small objects from many clients, and lists them in pages. Memory must depend on the number of
// objects, and not on that of the clients; the memory of a page must not depend on either. KEELSON_OBJECTS is the number of
// objects: 1000000 takes some minutes. It must not run in parallel with other tests.
func TestManySmallObjects(t *testing.T) {
	const writers, page = 16, 500
	count := 4000
	if text := os.Getenv("KEELSON_OBJECTS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		count = n / writers * writers
	}
	s := newSite(t, nil)
	s.establish(definitionOf("smalls", "Small", func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Versions[0].Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{
			Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
				"size": {Type: "integer"}, "color": {Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"red"`)}},
			}}},
		}
	}))
	heap := func() uint64 {
		var m runtime.MemStats
		for range 3 {
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const path = "/apis/example.com/v1/smalls"
	create := func(i int) {
		body := fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Small","metadata":{"name":"small-%d"},"spec":{"size":%d}}`, i, i)
		var answer string
		if code := s.do("POST", fmt.Sprintf("/apis/example.com/v1/namespaces/ns-%d/smalls", i%10), body, &answer); code != http.StatusCreated {
			t.Errorf("create %d: %d %s", i, code, answer)
		}
	}
	create(-1)
	s.want(http.StatusOK, "GET", path, "")
	before := heap()
	var work sync.WaitGroup
	for w := range writers {
		work.Go(func() {
			for i := range count / writers {
				if create(w*(count/writers) + i); t.Failed() {
					return
				}
			}
		})
	}
	work.Wait()
	if t.Failed() {
		return
	}
	each := (max(heap(), before) - before) / uint64(count)
	if t.Logf("%d objects take %d bytes each", count, each); each > mostPerObject {
		t.Errorf("each of %d objects takes %d bytes, at most %d are expected", count, each, mostPerObject)
	}
	seen, largest := 0, uint64(0)
	for next := ""; ; {
		var list struct {
			Metadata struct{ Continue string }
			Items    []struct {
				Spec struct{ Color string }
			}
		}
		took := allocatedBy(func() {
			if code := s.do("GET", fmt.Sprintf("%s?limit=%d&continue=%s", path, page, url.QueryEscape(next)), "", &list); code != http.StatusOK {
				t.Fatalf("page: %d", code)
			}
		})
		seen, largest = seen+len(list.Items), max(largest, took)
		for _, item := range list.Items {
			if item.Spec.Color != "red" {
				t.Fatalf("an object without its default: %+v", item)
			}
		}
		if next = list.Metadata.Continue; next == "" {
			break
		}
	}
	if seen != count+1 {
		t.Errorf("%d objects on all pages, want %d", seen, count+1)
	}
	if t.Logf("a page of %d takes %d KiB at most", page, largest>>10); largest > 64<<20 {
		t.Errorf("a page of %d takes %d KiB", page, largest>>10)
	}
	if after := heap(); after > before+uint64(count)*mostPerObject {
		t.Errorf("%d KiB after all pages", after>>10)
	}
	runtime.KeepAlive(s)
}

// allocatedBy returns how many bytes the process allocates while f runs.
func allocatedBy(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
