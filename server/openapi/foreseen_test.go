package openapi_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/keelson-dev/keelson/runtime/schema/testdata/shop"
	"github.com/keelson-dev/keelson/server/openapi"
)

// digested is an object with a digest. It counts how often it is described.
type digested struct {
	description string
	calls       *atomic.Int64
}

func (d *digested) MergeSchema(meta spec.Schema) *spec.Schema { return &meta }

func (d *digested) OpenAPI() *spec.Schema {
	d.calls.Add(1)
	return &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Description: d.description}}
}

func (d *digested) Digest() [sha256.Size]byte { return sha256.Sum256([]byte(d.description)) }

// digestedGroups are the groups of crowd, with digested objects.
func digestedGroups(t testing.TB, groups int, calls *atomic.Int64) []openapi.GroupVersion {
	t.Helper()
	out := crowd(t, groups)
	for g := range out {
		out[g].Resources[0].Object = &digested{fmt.Sprint("object ", g), calls}
	}
	return out
}

// The list of documents has their hashes before the documents are made.
func TestListWithoutDocuments(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	s := openapi.New(openapi.Options{})
	s.Set(digestedGroups(t, 20, &calls))
	addresses := index(t, s)
	if len(addresses) != 2+2*20 || calls.Load() != 0 {
		t.Errorf("%d documents are listed, and for that %d objects were asked", len(addresses), calls.Load())
	}
	hashes := map[string]bool{}
	for name, address := range addresses {
		r := get(t, s, address)
		if r.StatusCode != http.StatusOK || r.Header.Get("Cache-Control") != "public, immutable" {
			t.Errorf("%s: %d, %v", name, r.StatusCode, r.Header)
		}
		_, hash, _ := strings.Cut(address, "?hash=")
		if etag := r.Header.Get("Etag"); hash == "" || etag != `"`+hash+`"` || hashes[hash] {
			t.Errorf("%s: ETag %s, listed as %s", name, etag, address)
		}
		hashes[hash] = true
		if r := get(t, s, "/openapi/v3/"+name+"?hash=00"); r.StatusCode != http.StatusMovedPermanently || r.Header.Get("Location") != "?hash="+hash {
			t.Errorf("%s with another hash: %d to %s", name, r.StatusCode, r.Header.Get("Location"))
		}
	}
	if calls.Load() == 0 {
		t.Error("nobody was asked for the documents")
	}
	other := openapi.New(openapi.Options{})
	other.Set(digestedGroups(t, 20, &calls))
	if !reflect.DeepEqual(index(t, other), addresses) {
		t.Error("another server lists others")
	}
}

// Whatever changes a document changes its hash.
func TestForeseenHashesTellDocumentsApart(t *testing.T) {
	t.Parallel()
	const name = "apis/g1.example.com/v1"
	var calls atomic.Int64
	show := func(o openapi.Options, change func(gv *openapi.GroupVersion)) (address string, text []byte) {
		groups := digestedGroups(t, 2, &calls)
		change(&groups[1])
		s := openapi.New(o)
		s.Set(groups)
		address = index(t, s)[name]
		return address, body(t, get(t, s, address))
	}
	seen := map[string]string{}
	first, text := show(openapi.Options{}, func(*openapi.GroupVersion) {})
	seen[first] = "the first one"
	for what, change := range map[string]func(r *openapi.Resource){
		"plural":      func(r *openapi.Resource) { r.Plural = "others" },
		"kind":        func(r *openapi.Resource) { r.Kind.Kind = "Other" },
		"list kind":   func(r *openapi.Resource) { r.ListKind = "OtherList" },
		"scope":       func(r *openapi.Resource) { r.Namespaced = !r.Namespaced },
		"verbs":       func(r *openapi.Resource) { r.Verbs = []string{"get"} },
		"object":      func(r *openapi.Resource) { r.Object = &digested{"another", &calls} },
		"fields":      func(r *openapi.Resource) { r.SelectableFields = []string{"spec.x"} },
		"media types": func(r *openapi.Resource) { r.MediaTypes = []string{"application/x"} },
		"patches":     func(r *openapi.Resource) { r.PatchTypes = []string{"application/merge-patch+json"} },
		"deletes":     func(r *openapi.Resource) { r.ReturnsDeleted = !r.ReturnsDeleted },
		"no sub":      func(r *openapi.Resource) { r.Subresources = nil },
		"sub verbs": func(r *openapi.Resource) {
			r.Subresources = slices.Clone(r.Subresources)
			r.Subresources[0].Verbs = []string{"get"}
		},
		"a Go type": func(r *openapi.Resource) { r.Object, r.Type = nil, reflect.TypeFor[shop.Crate]() },
	} {
		address, changed := show(openapi.Options{}, func(gv *openapi.GroupVersion) {
			r := gv.Resources[0]
			change(&r)
			gv.Resources = []openapi.Resource{r}
		})
		if bytes.Equal(text, changed) {
			t.Errorf("%s: the document is the same", what)
		}
		if other, ok := seen[address]; ok {
			t.Errorf("%s: the document has the address of %s", what, other)
		}
		seen[address] = what
	}
	for what, o := range map[string]openapi.Options{"title": {Title: "x"}, "version": {Version: "x"}, "media": {MediaTypes: []string{"a/b"}}, "stream": {StreamTypes: []string{"a/b"}}} {
		address, _ := show(o, func(*openapi.GroupVersion) {})
		if other, ok := seen[address]; ok {
			t.Errorf("%s: the document has the address of %s", what, other)
		}
		seen[address] = what
	}
	again, same := show(openapi.Options{}, func(*openapi.GroupVersion) {})
	if again != first || !bytes.Equal(same, text) {
		t.Error("the same is described otherwise")
	}
}
