package openapi_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/server/openapi"
)

const shopDocument = "/openapi/v3/apis/shop.example.com/v1"

func TestAddressWithItsHashNeverChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shopService(t)
		address := index(t, s)["apis/shop.example.com/v1"]
		r := get(t, s, address)
		expires, err := http.ParseTime(r.Header.Get("Expires"))
		if err != nil || !expires.Equal(time.Now().AddDate(1, 0, 0)) {
			t.Errorf("Expires %q, %v", r.Header.Get("Expires"), err)
		}
		if got := r.Header.Get("Vary"); got != "Accept" {
			t.Errorf("Vary %q", got)
		}
	})
}

func TestWrongHashLeadsToTheRightOne(t *testing.T) {
	s := shopService(t)
	r := get(t, s, shopDocument+"?hash=00")
	_, query, _ := strings.Cut(index(t, s)["apis/shop.example.com/v1"], "?")
	want := "?" + query // right below any prefix
	if r.StatusCode != http.StatusMovedPermanently || r.Header.Get("Location") != want {
		t.Errorf("%d to %s, want 301 to %s", r.StatusCode, r.Header.Get("Location"), want)
	}
	if r.Header.Get("Etag") == "" || r.Header.Get("Cache-Control") != "" {
		t.Errorf("headers %v", r.Header)
	}
}

func TestDocumentWithoutHashIsNotCachedForEver(t *testing.T) {
	r := get(t, shopService(t), shopDocument)
	if r.StatusCode != http.StatusOK || r.Header.Get("Cache-Control") != "" || r.Header.Get("Expires") != "" {
		t.Errorf("%d, headers %v", r.StatusCode, r.Header)
	}
}

func TestNegotiation(t *testing.T) {
	const json, v2, v3 = "application/json", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf", "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
	s := shopService(t)
	for _, tc := range []struct{ path, accept, want string }{
		{shopDocument, "", json},
		{shopDocument, "*/*", json},
		{shopDocument, "application/*", json},
		{shopDocument, "text/html, application/json;q=0.5", json},
		{shopDocument, v3 + ", application/json", v3},
		{shopDocument, v3 + ";q=0.1, application/json", json},
		{shopDocument, strings.Replace(v3, ".v1.0", "@v1.0", 1), v3},
		{shopDocument, v2, ""},
		{shopDocument, "text/html", ""},
		{"/openapi/v2", "", json},
		{"/openapi/v2", v2, v2},
		{"/openapi/v2", strings.Replace(v2, ".v1.0", "@v1.0", 1), v2},
		{"/openapi/v2", v3, ""},
		{"/openapi/v3", "text/html", json}, // the list is JSON for every Accept header
	} {
		var header []string
		if tc.accept != "" {
			header = []string{"Accept", tc.accept}
		}
		r := get(t, s, tc.path, header...)
		switch {
		case tc.want == "" && r.StatusCode != http.StatusNotAcceptable:
			t.Errorf("%s for %q: %d, want 406", tc.path, tc.accept, r.StatusCode)
		case tc.want != "" && (r.StatusCode != http.StatusOK || r.Header.Get("Content-Type") != tc.want):
			t.Errorf("%s for %q: %d %s, want %s", tc.path, tc.accept, r.StatusCode, r.Header.Get("Content-Type"), tc.want)
		}
		if got := r.Header.Get("Vary"); tc.path != "/openapi/v3" && got != "Accept" {
			t.Errorf("%s for %q: Vary %q", tc.path, tc.accept, got)
		}
	}
}

func TestClientThatHasTheDocumentGets304(t *testing.T) {
	s := shopService(t)
	for _, path := range []string{"/openapi/v2", "/openapi/v3", shopDocument} {
		first := get(t, s, path)
		again := get(t, s, path, "If-None-Match", first.Header.Get("Etag"))
		if again.StatusCode != http.StatusNotModified || len(body(t, again)) != 0 {
			t.Errorf("%s: %d, want 304", path, again.StatusCode)
		}
		if other := get(t, s, path, "If-None-Match", `"00"`); other.StatusCode != http.StatusOK {
			t.Errorf("%s with another ETag: %d, want 200", path, other.StatusCode)
		}
		if first.Header.Get("Last-Modified") == "" {
			t.Errorf("%s has no Last-Modified", path)
		}
	}
}

// Preconditions of writes are ignored: an answer with 412 and no body must not have the length of a body.
func TestPreconditionsWithGzip(t *testing.T) {
	srv := httptest.NewServer(shopService(t))
	defer srv.Close()
	for name, value := range map[string]string{"If-Match": `"00"`, "If-Unmodified-Since": time.Unix(0, 0).UTC().Format(http.TimeFormat)} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+shopDocument, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(name, value)
		r.Header.Set("Accept-Encoding", "gzip")
		resp, err := srv.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || n == 0 {
			t.Errorf("%s: %d, %d bytes, %v", name, resp.StatusCode, n, err)
		}
	}
}

func TestWhatIsNotServed(t *testing.T) {
	s := openapi.New(openapi.Options{})
	for _, tc := range []struct {
		method, path string
		code         int
		body         string // the end of the answer
	}{
		{"GET", "/openapi/v3/apis/none.example.com/v1", 404, `"code":404}`},
		{"GET", "/openapi/v3/api/v1", 404, `"code":404}`},
		{"GET", "/openapi/v3//", 404, `"code":404}`},
		{"GET", "/openapi", 404, "404 page not found\n"},
		{"GET", "/openapi/v1", 404, "404 page not found\n"},
		{"GET", "/elsewhere", 404, "404 page not found\n"},
		{"POST", "/openapi/v1", 404, "404 page not found\n"},
	} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(tc.method, tc.path, nil))
		if body := w.Body.String(); w.Code != tc.code || !strings.HasSuffix(strings.TrimSuffix(body, "\n"), strings.TrimSuffix(tc.body, "\n")) {
			t.Errorf("%s %s: %d %q, want %d %q", tc.method, tc.path, w.Code, body, tc.code, tc.body)
		}
	}
}

func TestHeadAnswersWithoutABody(t *testing.T) {
	s, w := shopService(t), httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodHead, "/openapi/v2", nil))
	if w.Code != http.StatusOK || w.Body.Len() != 0 || w.Header().Get("Content-Length") == "" {
		t.Errorf("%d, %d bytes, headers %v", w.Code, w.Body.Len(), w.Header())
	}
}

func TestTheSameDescriptionGivesTheSameHashes(t *testing.T) {
	first := index(t, shopService(t))
	for range 5 {
		for name, address := range index(t, shopService(t)) {
			if first[name] != address {
				t.Errorf("%s has the address %s, before it was %s", name, address, first[name])
			}
		}
	}
}

func TestSetKeepsWhatHasNotChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a new document would have a new Last-Modified
		s, groups := shopService(t), shopGroups(t)
		groups[0].Resources[0].Docs, groups[0].Resources[1].Docs = nil, nil
		s.Set(groups)
		modified := func(path string) string { return get(t, s, path).Header.Get("Last-Modified") }
		before, core := modified(shopDocument), modified("/openapi/v3/api/v1")
		old := index(t, s)

		time.Sleep(time.Hour)
		fresh := shopGroups(t)
		fresh[0].Resources[0].Docs, fresh[0].Resources[1].Docs = nil, nil
		fresh[1].Resources[0].Verbs = []string{"get", "patch"}
		s.Set(fresh)
		if got := modified(shopDocument); got != before {
			t.Errorf("the unchanged document was made again: %s, before %s", got, before)
		}
		if got := modified("/openapi/v3/api/v1"); got == core {
			t.Error("the changed document was kept")
		}
		now := index(t, s)
		for name := range old {
			if changed := old[name] != now[name]; changed != (name == "api/v1") {
				t.Errorf("%s changed: %v", name, changed)
			}
		}
		s.Set(nil)
		if r := get(t, s, shopDocument); r.StatusCode != http.StatusNotFound {
			t.Errorf("a document that is gone: %d", r.StatusCode)
		}
	})
}

// Every answer is made from one description, never from two.
func TestServingWhileSetting(t *testing.T) {
	s, groups := openapi.New(openapi.Options{}), shopGroups(t)
	var setters, readers sync.WaitGroup
	for i := range 2 {
		setters.Go(func() {
			for j := range 20 {
				s.Set(groups[:(i+j)%2*len(groups)])
			}
		})
		readers.Go(func() {
			for range 20 {
				if r := get(t, s, shopDocument); r.StatusCode != http.StatusOK && r.StatusCode != http.StatusNotFound {
					t.Errorf("document: %d", r.StatusCode)
				}
				if n := len(index(t, s)); n != 2 && n != 6 {
					t.Errorf("%d documents, want 2 or 6", n)
				}
			}
		})
	}
	setters.Wait()
	readers.Wait()
}

func TestKindWithoutAGoTypeIsAnyObject(t *testing.T) {
	s := openapi.New(openapi.Options{})
	s.Set([]openapi.GroupVersion{{Group: "shop.example.com", Version: "v1", Resources: []openapi.Resource{
		{Plural: "widgets", Kind: widgetKind, Verbs: []string{"get", "list"}},
	}}})
	d := document(t, s, "apis/shop.example.com/v1")
	widget := d.Components.Schemas["com.example.shop.v1.Widget"]
	if widget == nil || widget.Extensions["x-kubernetes-preserve-unknown-fields"] != true || d.Components.Schemas["com.example.shop.v1.WidgetList"] == nil {
		t.Errorf("widget is %+v", widget)
	}
}

func TestSubresourcesWithoutAGoType(t *testing.T) {
	s, review := openapi.New(openapi.Options{}), widgetKind.GroupVersion().WithKind("Review")
	s.Set([]openapi.GroupVersion{{Group: "shop.example.com", Version: "v1", Resources: []openapi.Resource{{
		Plural: "widgets", Kind: widgetKind, Subresources: []openapi.Subresource{
			{Name: "scale", Kind: scaleKind, Verbs: []string{"get"}}, {Name: "status", Verbs: []string{"get"}},
			{Name: "review", Kind: review, Verbs: []string{"create"}},
		},
	}}}})
	d := document(t, s, "apis/shop.example.com/v1")
	for path, want := range map[string]string{
		"scale": "io.k8s.api.autoscaling.v1.Scale", "status": "com.example.shop.v1.Widget", "review": "com.example.shop.v1.Review",
	} {
		for _, m := range methods(d.Paths.Paths["/apis/shop.example.com/v1/widgets/{name}/"+path]) {
			got := m.op.Responses.StatusCodeResponses[http.StatusOK].Content["application/json"].Schema.Ref.String()
			if got != "#/components/schemas/"+want || d.Components.Schemas[want] == nil {
				t.Errorf("%s answers with %s, want %s", path, got, want)
			}
		}
	}
	if d.Components.Schemas["io.k8s.api.autoscaling.v1.Scale"].Properties["spec"].Default == nil {
		t.Error("Scale is not described")
	}
}

// The hash of the OpenAPI v2 document changes with every group, and is the same again when the description is.
func TestHashOfV2(t *testing.T) {
	t.Parallel()
	s, groups := openapi.New(openapi.Options{}), manyGroups(3)
	show := func() (etag string, text []byte) {
		s.Set(groups)
		r := get(t, s, "/openapi/v2")
		return r.Header.Get("Etag"), body(t, r)
	}
	first, text := show()
	for g := range groups {
		was := groups[g]
		changed := was
		changed.Resources = slices.Clone(was.Resources)
		changed.Resources[2].Description = "Something else."
		changed.Resources[2].Type = reflect.TypeFor[struct {
			Other string `json:"other"`
		}]()
		groups = slices.Clone(groups)
		groups[g] = changed
		if etag, other := show(); etag == first || bytes.Equal(other, text) {
			t.Errorf("group %d is another, and the document has the ETag %s", g, etag)
		}
		groups[g] = was
		if etag, same := show(); etag != first || !bytes.Equal(same, text) {
			t.Errorf("group %d is as before, and the document has the ETag %s, not %s", g, etag, first)
		}
	}
}
