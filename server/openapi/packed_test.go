package openapi_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"strings"
	"testing"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/spec3"

	"github.com/keelson-dev/keelson/runtime/schema/testdata/shop"
	"github.com/keelson-dev/keelson/server/openapi"
)

// manyGroups are groups of five kinds each.
func manyGroups(groups int) []openapi.GroupVersion {
	var out []openapi.GroupVersion
	for g := range groups {
		gv := apischema.GroupVersion{Group: fmt.Sprintf("g%d.example.com", g), Version: "v1"}
		v := openapi.GroupVersion{Group: gv.Group, Version: gv.Version}
		for k := range 5 {
			kind := gv.WithKind(fmt.Sprintf("Kind%d", k))
			v.Resources = append(v.Resources, openapi.Resource{
				Plural: strings.ToLower(kind.Kind) + "s", Kind: kind, Namespaced: true, Verbs: allVerbs, PatchTypes: patchTypes,
				Type: reflect.TypeFor[shop.Widget](), Subresources: []openapi.Subresource{{Name: "status", Verbs: partVerbs, PatchTypes: patchTypes}},
			})
		}
		out = append(out, v)
	}
	return out
}

// everything requests every form of every document, and returns the size of the JSON.
func everything(t testing.TB, s *openapi.Service) int {
	t.Helper()
	total := 0
	for name := range index(t, s) {
		total += len(body(t, get(t, s, "/openapi/v3/"+name)))
		get(t, s, "/openapi/v3/"+name, "Accept", "application/com.github.proto-openapi.spec.v3@v1.0+protobuf")
	}
	return total + len(body(t, get(t, s, "/openapi/v2")))
}

// Measures the memory of fifty kinds after all documents were requested.
func TestDocumentsHoldLittle(t *testing.T) {
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	everything(t, shopService(t)) // so that values that are made once for all services are not measured
	before := heap()
	s := openapi.New(openapi.Options{})
	s.Set(manyGroups(10))
	size := everything(t, s)
	held := int(heap() - before)
	runtime.KeepAlive(s)
	t.Logf("50 kinds: documents of %d KiB as JSON hold %d KiB", size>>10, held>>10)
	if held > size/4 {
		t.Errorf("50 kinds hold %d KiB, want at most a quarter of the %d KiB that their documents are as JSON alone", held>>10, size>>10)
	}
}

func TestGzip(t *testing.T) {
	s := shopService(t)
	for _, path := range []string{"/openapi/v2", "/openapi/v3", shopDocument} {
		for _, accept := range []string{"application/json", "application/com.github.proto-openapi.spec.v3.v1.0+protobuf;q=0.9, application/com.github.proto-openapi.spec.v2.v1.0+protobuf"} {
			plain := get(t, s, path, "Accept", accept)
			r := get(t, s, path, "Accept", accept, "Accept-Encoding", "deflate, gzip", "Range", "bytes=0-9")
			if plain.StatusCode != http.StatusOK || r.StatusCode != http.StatusOK || r.Header.Get("Content-Encoding") != "gzip" || plain.Header.Get("Content-Encoding") != "" {
				t.Fatalf("%s: %d, headers %v", path, r.StatusCode, r.Header)
			}
			for _, name := range []string{"Etag", "Content-Type", "Vary", "Last-Modified"} {
				if fmt.Sprint(r.Header.Values(name)) != fmt.Sprint(plain.Header.Values(name)) {
					t.Errorf("%s: %s is %q, and %q without gzip", path, name, r.Header.Values(name), plain.Header.Values(name))
				}
			}
			sent := body(t, r)
			if got := r.Header.Get("Content-Length"); got != fmt.Sprint(len(sent)) {
				t.Errorf("%s: Content-Length %s of %d bytes", path, got, len(sent))
			}
			z, err := gzip.NewReader(bytes.NewReader(sent))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, body(t, plain)) {
				t.Errorf("%s: another text with gzip: %v", path, err)
			}
		}
		first := get(t, s, path, "Accept-Encoding", "gzip")
		again := get(t, s, path, "Accept-Encoding", "gzip", "If-None-Match", first.Header.Get("Etag"))
		if again.StatusCode != http.StatusNotModified || len(body(t, again)) != 0 || again.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s: %d, headers %v", path, again.StatusCode, again.Header)
		}
		if r := get(t, s, path, "Accept-Encoding", "gzip;q=0"); r.Header.Get("Content-Encoding") != "" || !json.Valid(body(t, r)) {
			t.Errorf("%s: gzip for a client that refuses it", path)
		}
		if r := get(t, s, path, "Range", "bytes=0-9"); r.StatusCode != http.StatusPartialContent || len(body(t, r)) != 10 {
			t.Errorf("%s: a part of the text: %d", path, r.StatusCode)
		}
	}
}

// nothing is a type without fields, which clients refuse as a kind.
type nothing struct{}

// odd describes a list without items, which OpenAPI v2 cannot describe.
type odd []string

func (odd) OpenAPISchemaType() []string { return []string{"array"} }

type oddWidget struct {
	shop.Widget `json:",inline"`
	Odd         odd `json:"odd"`
}

// A group version that OpenAPI v2 cannot describe is left out of the OpenAPI v2 document.
func TestWrongInV2Only(t *testing.T) {
	groups := manyGroups(2)
	groups[1].Resources[0].Type = reflect.TypeFor[oddWidget]()
	s := openapi.New(openapi.Options{})
	s.Set(groups)
	if r := get(t, s, index(t, s)["apis/g1.example.com/v1"]); r.StatusCode != http.StatusOK {
		t.Errorf("the document: %d", r.StatusCode)
	}
	r := get(t, s, "/openapi/v2")
	if text := string(body(t, r)); r.StatusCode != http.StatusOK || !strings.Contains(text, "/apis/g0.example.com/v1") || strings.Contains(text, "/apis/g1.example.com/v1") {
		t.Errorf("v2: %d, %d bytes", r.StatusCode, len(text))
	}
}

// A document that the parsers of clients cannot read is an error. The other documents are not affected.
func TestWrongDocumentIsAnErrorOfItsOwn(t *testing.T) {
	groups := manyGroups(2)
	groups[1].Resources[0].Type = reflect.TypeFor[nothing]()
	s := openapi.New(openapi.Options{})
	s.Set(groups)
	const wrong, right = "apis/g1.example.com/v1", "apis/g0.example.com/v1"
	addresses := index(t, s)
	if got := addresses[wrong]; got != "/openapi/v3/"+wrong {
		t.Errorf("the wrong document has the address %q", got)
	}
	for _, path := range []string{addresses[wrong], addresses[wrong] + "?hash=00"} {
		r := get(t, s, path)
		if text := string(body(t, r)); r.StatusCode != http.StatusInternalServerError || !strings.Contains(text, wrong) || !strings.Contains(text, "Kind0") {
			t.Errorf("%s: %d %.300s", path, r.StatusCode, text)
		}
	}
	if r := get(t, s, addresses[right]); r.StatusCode != http.StatusOK || r.Header.Get("Cache-Control") != "public, immutable" {
		t.Errorf("another document: %d", r.StatusCode)
	}
	r := get(t, s, "/openapi/v2")
	if text := string(body(t, r)); r.StatusCode != http.StatusOK || !strings.Contains(text, "/"+right) || strings.Contains(text, "/"+wrong) {
		t.Errorf("v2: %d, %d bytes", r.StatusCode, len(text))
	}
	s.Set(manyGroups(2))
	if r := get(t, s, index(t, s)[wrong]); r.StatusCode != http.StatusOK || !strings.Contains(index(t, s)[wrong], "?hash=") {
		t.Errorf("after it was put right: %d", r.StatusCode)
	}
}

// If a group is added or removed, the documents of all others keep their bytes.
func TestGroupsComeAndGo(t *testing.T) {
	s, groups := openapi.New(openapi.Options{}), manyGroups(4)
	s.Set(groups[:2])
	before, texts := index(t, s), map[string][]byte{}
	for name, address := range before {
		texts[name] = body(t, get(t, s, address))
	}
	for _, now := range [][]openapi.GroupVersion{groups[:3], groups, groups[1:], {groups[3], groups[1], groups[0]}, groups[:2]} {
		s.Set(now)
		addresses := index(t, s)
		if want := 2 + 2*len(now); len(addresses) != want {
			t.Errorf("%d documents, want %d", len(addresses), want)
		}
		for name, address := range before {
			if _, ok := addresses[name]; !ok {
				continue
			}
			if addresses[name] != address || !bytes.Equal(body(t, get(t, s, address)), texts[name]) {
				t.Errorf("%s changed, with %d groups", name, len(now))
			}
		}
	}
}

const hashesOnly = "KEELSON_PRINT_OPENAPI_HASHES"

// Another process makes the same documents.
func TestHashesAreStableAcrossProcesses(t *testing.T) {
	hashes, err := json.Marshal(index(t, shopService(t)))
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv(hashesOnly) != "" {
		fmt.Printf("hashes: %s\n", hashes)
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), hashesOnly+"=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("hashes: %s\n", hashes); !strings.Contains(string(out), want) {
		t.Errorf("another process says\n%s\nwant\n%s", out, want)
	}
}

func TestMediaTypesOfOneResource(t *testing.T) {
	s, groups := openapi.New(openapi.Options{}), manyGroups(1)
	groups[0].Resources[1].MediaTypes = []string{"application/json", "application/vnd.kubernetes.protobuf"}
	s.Set(groups)
	paths := document(t, s, "apis/g0.example.com/v1").Paths.Paths
	for plural, want := range map[string]string{"kind0s": "application/yaml", "kind1s": "application/vnd.kubernetes.protobuf"} {
		item := "/apis/g0.example.com/v1/namespaces/{namespace}/" + plural
		for _, op := range []*spec3.Operation{paths[item].Get, paths[item].Delete, paths[item+"/{name}"].Get, paths[item+"/{name}/status"].Put} {
			if answers := op.Responses.StatusCodeResponses[http.StatusOK].Content; answers[want] == nil || answers["application/json"] == nil {
				t.Errorf("%s answers in %v, want %s among them", op.OperationId, answers, want)
			}
		}
	}
}

func TestDeletedObjectsThatAreReturned(t *testing.T) {
	s, groups := openapi.New(openapi.Options{}), manyGroups(1)
	groups[0].Resources[1].ReturnsDeleted, groups[0].Resources[1].Type = true, reflect.TypeFor[shop.Crate]()
	s.Set(groups)
	paths := document(t, s, "apis/g0.example.com/v1").Paths.Paths
	for plural, want := range map[string]string{"kind0s": "io.k8s.apimachinery.pkg.apis.meta.v1.Status", "kind1s": "com.example.g0.v1.Kind1"} {
		for _, code := range []int{http.StatusOK, http.StatusAccepted} {
			answer := paths["/apis/g0.example.com/v1/namespaces/{namespace}/"+plural+"/{name}"].Delete.Responses.StatusCodeResponses[code]
			if got := answer.Content["application/json"].Schema.Ref.String(); got != "#/components/schemas/"+want {
				t.Errorf("DELETE of %s answers %d with %s, want %s", plural, code, got, want)
			}
		}
	}
	was := index(t, s)["apis/g0.example.com/v1"]
	groups = manyGroups(1)
	groups[0].Resources[1].Type = reflect.TypeFor[shop.Crate]()
	s.Set(groups)
	if index(t, s)["apis/g0.example.com/v1"] == was {
		t.Error("the document was kept although DELETE answers otherwise")
	}
}

func BenchmarkFiftyKinds(b *testing.B) {
	for name, path := range map[string]string{"list": "/openapi/v3", "v2": "/openapi/v2", "one": "/openapi/v3/apis/g0.example.com/v1"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s := openapi.New(openapi.Options{})
				s.Set(manyGroups(10))
				if r := get(b, s, path); r.StatusCode != http.StatusOK {
					b.Fatal(r.StatusCode)
				}
			}
		})
	}
	b.Run("again", func(b *testing.B) {
		s := openapi.New(openapi.Options{})
		s.Set(manyGroups(10))
		for b.Loop() {
			r := httptest.NewRequest(http.MethodGet, "/openapi/v2", nil)
			r.Header.Set("Accept-Encoding", "gzip")
			s.ServeHTTP(httptest.NewRecorder(), r)
		}
	})
}
