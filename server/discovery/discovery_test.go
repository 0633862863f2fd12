package discovery_test

import (
	"bytes"
	"crypto/sha512"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apidiscovery "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/keelson-dev/keelson/server/discovery"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

const (
	// What client-go sends.
	acceptAggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
	aggregatedType   = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
)

var (
	widget = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	scale  = schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}
)

func groups() []discovery.Group {
	widgets := discovery.Resource{
		Plural: "widgets", Singular: "widget", Namespaced: true, Kind: "Widget", StorageKind: widget,
		ShortNames: []string{"wd", "wid"}, Categories: []string{"all"},
		Verbs: []string{"watch", "list", "get", "create", "update", "patch", "deletecollection", "delete"},
		Subresources: []discovery.Subresource{
			{Name: "status", Kind: widget, Verbs: []string{"update", "patch", "get"}},
			{Name: "scale", Kind: scale, Verbs: []string{"get", "patch", "update"}},
		},
	}
	inBeta := widgets
	inBeta.Subresources = nil
	return []discovery.Group{
		{Name: "example.com", Versions: []discovery.Version{
			{Name: "v1beta2", Resources: []discovery.Resource{inBeta}},
			{Name: "v1", Resources: []discovery.Resource{
				widgets,
				{Plural: "crates", Singular: "crate", Kind: "Crate", Verbs: []string{"list", "get"}},
				{Plural: "anchors", Namespaced: true, Subresources: []discovery.Subresource{{Name: "drop", Kind: widget, Verbs: []string{"create"}}}},
				{Plural: "reviews", Singular: "review", Kind: "Review", KindVersion: schema.GroupVersion{Group: "reviews.example.com", Version: "v2"}, Verbs: []string{"create"}},
				{Plural: "ghosts", Singular: "ghost", Kind: "Ghost"},
			}},
			{Name: "v2alpha1"}, {Name: "v10"}, {Name: "v2"}, {Name: "v1beta10"}, {Name: "zebra"},
		}},
		{Name: "apps.example.org", Versions: []discovery.Version{{Name: "v1"}}},
	}
}

func withCore() []discovery.Group {
	return append(groups(), discovery.Group{Versions: []discovery.Version{{Name: "v1", Resources: []discovery.Resource{{
		Plural: "configmaps", Singular: "configmap", Namespaced: true, Kind: "ConfigMap", Verbs: []string{"get"},
		StorageKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
	}}}}})
}

func service(groups []discovery.Group) *discovery.Service {
	s := discovery.New(discovery.Options{ServerAddress: "10.0.0.1:6443"})
	s.Set(groups)
	return s
}

func get(t testing.TB, s http.Handler, path string, header ...string) (*http.Response, []byte) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result(), w.Body.Bytes()
}

func TestLegacyDocuments(t *testing.T) {
	s := service(withCore())
	for path, file := range map[string]string{
		"/api": "api.json", "/api/v1": "api_v1.json", "/apis": "apis.json", "/apis/example.com": "apis_group.json",
		"/apis/example.com/v1": "apis_group_v1.json", "/apis/example.com/v1beta2": "apis_group_v1beta2.json",
		"/apis/apps.example.org/v1": "apis_empty_v1.json",
	} {
		for _, slash := range []string{"", "/"} {
			r, body := get(t, s, path+slash)
			if r.StatusCode != http.StatusOK || r.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s%s: %d %s", path, slash, r.StatusCode, r.Header.Get("Content-Type"))
			}
			golden(t, "legacy_"+file, body)
		}
	}
}

func TestAggregatedDocuments(t *testing.T) {
	s := service(withCore())
	for path, file := range map[string]string{"/api": "aggregated_api.json", "/apis": "aggregated_apis.json"} {
		r, body := get(t, s, path, "Accept", acceptAggregated)
		golden(t, file, body)
		etag := fmt.Sprintf(`"%X"`, sha512.Sum512(bytes.TrimSuffix(body, []byte("\n"))))
		want := map[string]string{"Content-Type": aggregatedType, "Etag": etag, "Vary": "Accept", "Cache-Control": "public"}
		for name, value := range want {
			if got := r.Header.Values(name); len(got) != 1 || got[0] != value {
				t.Errorf("%s: %s is %q, want %q", path, name, got, value)
			}
		}
	}
}

// golden compares one line of JSON with an indented file in testdata. The order of keys and a missing newline at the end matter.
func golden(t *testing.T, file string, body []byte) {
	t.Helper()
	var got bytes.Buffer
	if err := json.Indent(&got, body, "", "  "); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s (-want +got), go test -update rewrites it:\n%s", path, diff)
	}
}

// TestCustomResourcesComeWithTheirSubresources has a name that sorts between another name and its subresources: "-" is less than
// "/". Each resource is followed by its subresources, in whatever order the resources are given.
func TestCustomResourcesComeWithTheirSubresources(t *testing.T) {
	t.Parallel()
	named := func(plural string) discovery.Resource {
		return discovery.Resource{
			Plural: plural, Kind: "Rope", Verbs: []string{"update", "get"}, Custom: true,
			Subresources: []discovery.Subresource{{Name: "scale"}, {Name: "status"}},
		}
	}
	for _, plurals := range [][]string{{"ropes-long", "ropes", "ropes-thin"}, {"ropes", "ropes-thin", "ropes-long"}, {"ropes-thin", "ropes-long", "ropes"}} {
		var resources []discovery.Resource
		for _, plural := range plurals {
			resources = append(resources, named(plural))
		}
		s := service([]discovery.Group{{Name: "sea.example.com", Versions: []discovery.Version{{Name: "v1", Resources: resources}}}})
		_, body := get(t, s, "/apis/sea.example.com/v1")
		var list metav1.APIResourceList
		if err := json.Unmarshal(body, &list); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range list.APIResources {
			got = append(got, r.Name)
		}
		want := []string{"ropes", "ropes/status", "ropes/scale", "ropes-long", "ropes-long/status", "ropes-long/scale", "ropes-thin", "ropes-thin/status", "ropes-thin/scale"}
		if !slices.Equal(got, want) {
			t.Errorf("added as %v, shown as %v", plurals, got)
		}
		if verbs := fmt.Sprint(list.APIResources[0].Verbs); verbs != "[get update]" {
			t.Errorf("verbs %s", verbs)
		}
	}
}

func TestClientThatHasTheDocumentGets304(t *testing.T) {
	s := service(groups())
	first, _ := get(t, s, "/apis", "Accept", acceptAggregated)
	etag := first.Header.Get("Etag")
	for _, header := range []string{etag, "W/" + etag, `"other", ` + etag, "*"} {
		r, body := get(t, s, "/apis", "Accept", acceptAggregated, "If-None-Match", header)
		if r.StatusCode != http.StatusNotModified || len(body) != 0 || r.Header.Get("Etag") != etag {
			t.Errorf("If-None-Match %.20s: %d with %d bytes", header, r.StatusCode, len(body))
		}
	}
	if r, _ := get(t, s, "/apis", "Accept", acceptAggregated, "If-None-Match", `"other"`); r.StatusCode != http.StatusOK {
		t.Errorf("another ETag: %d", r.StatusCode)
	}
	s.Set(groups()[:1])
	r, _ := get(t, s, "/apis", "Accept", acceptAggregated, "If-None-Match", etag)
	if r.StatusCode != http.StatusOK || r.Header.Get("Etag") == etag {
		t.Errorf("after a change: %d", r.StatusCode)
	}
}

func TestNegotiation(t *testing.T) {
	s := service(withCore())
	for _, tc := range []struct{ path, accept, want string }{
		{"/apis", acceptAggregated, aggregatedType},
		{"/apis/", acceptAggregated, aggregatedType},
		{"/api", acceptAggregated, aggregatedType},
		{"/apis", "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io", aggregatedType},
		{"/apis", "application/json;v=v2;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList;profile=nopeer," + acceptAggregated, aggregatedType},
		{"/apis", "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json", "application/json"},
		{"/apis", "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList", ""},
		{"/apis", "application/json", "application/json"},
		{"/apis", "application/yaml", "application/yaml"},
		{"/apis", "application/cbor", ""},
		{"/apis", "text/html", ""},
		{"/apis/example.com/v1", acceptAggregated, "application/json"},
		{"/apis/example.com/v1", aggregatedType, ""},
		{"/apis/example.com/v1", "application/json, */*", "application/json"},
	} {
		r, body := get(t, s, tc.path, "Accept", tc.accept)
		switch {
		case tc.want == "" && r.StatusCode != http.StatusNotAcceptable:
			t.Errorf("%s for %s: %d, want 406", tc.path, tc.accept, r.StatusCode)
		case tc.want != "" && (r.StatusCode != http.StatusOK || r.Header.Get("Content-Type") != tc.want):
			t.Errorf("%s for %s: %d %s, want %s", tc.path, tc.accept, r.StatusCode, r.Header.Get("Content-Type"), tc.want)
		case tc.want == "application/json" && !json.Valid(body), tc.want != "" && !bytes.HasSuffix(body, []byte("\n")):
			t.Errorf("%s for %s: body %.40q", tc.path, tc.accept, body)
		}
		if r.Header.Get("Vary") != "Accept" {
			t.Errorf("%s for %s: Vary %q", tc.path, tc.accept, r.Header.Get("Vary"))
		}
	}
}

func TestYAMLSaysTheSame(t *testing.T) {
	s := service(groups())
	_, asJSON := get(t, s, "/apis/example.com/v1")
	_, asYAML := get(t, s, "/apis/example.com/v1", "Accept", "application/yaml")
	var want, got metav1.APIResourceList
	if err := json.Unmarshal(asJSON, &want); err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(asYAML, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-json +yaml):\n%s", diff)
	}
}

// TestProtobufSaysTheSame checks that the protobuf of each document decodes to the objects of its JSON.
func TestProtobufSaysTheSame(t *testing.T) {
	s := service(withCore())
	for _, c := range []struct {
		path, params string
		into         func() apiruntime.Object
	}{
		{"/api", "", func() apiruntime.Object { return &metav1.APIVersions{} }},
		{"/apis", "", func() apiruntime.Object { return &metav1.APIGroupList{} }},
		{"/apis/example.com", "", func() apiruntime.Object { return &metav1.APIGroup{} }},
		{"/apis/example.com/v1", "", func() apiruntime.Object { return &metav1.APIResourceList{} }},
		{"/api/v1", "", func() apiruntime.Object { return &metav1.APIResourceList{} }},
		{"/api", ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", func() apiruntime.Object { return &apidiscovery.APIGroupDiscoveryList{} }},
		{"/apis", ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", func() apiruntime.Object { return &apidiscovery.APIGroupDiscoveryList{} }},
	} {
		name := c.path + c.params
		_, text := get(t, s, c.path, "Accept", "application/json"+c.params)
		want, got := c.into(), c.into()
		if err := json.Unmarshal(text, want); err != nil {
			t.Fatal(err)
		}
		want.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		resp, body := get(t, s, c.path, "Accept", "application/vnd.kubernetes.protobuf"+c.params)
		if media := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || media != "application/vnd.kubernetes.protobuf"+c.params {
			t.Errorf("%s: %s as %q", name, resp.Status, media)
		}
		var envelope apiruntime.Unknown
		if err := envelope.Unmarshal(bytes.TrimPrefix(body, []byte("k8s\x00"))); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := got.(interface{ Unmarshal([]byte) error }).Unmarshal(envelope.Raw); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !equality.Semantic.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
		var meta metav1.TypeMeta
		if err := json.Unmarshal(text, &meta); err != nil || envelope.Kind != meta.Kind || envelope.APIVersion != meta.APIVersion {
			t.Errorf("%s: the envelope is of %s %s, want %s %s", name, envelope.APIVersion, envelope.Kind, meta.APIVersion, meta.Kind)
		}
	}
}

func TestPrettyIsIndented(t *testing.T) {
	s := service(groups())
	for path, header := range map[string][]string{"/apis?pretty=true": nil, "/apis": {"User-Agent", "curl/8"}} {
		if _, body := get(t, s, path, header...); !bytes.HasPrefix(body, []byte("{\n  \"kind\"")) {
			t.Errorf("%s %v: %.40q", path, header, body)
		}
	}
	if _, body := get(t, s, "/apis?pretty=0", "User-Agent", "curl/8"); bytes.Contains(body, []byte("\n  ")) {
		t.Errorf("pretty=0: %.40q", body)
	}
}

// Vectors made with k8s.io/apiserver v0.37.2.
func TestStorageVersionHash(t *testing.T) {
	for hash, kind := range map[string]schema.GroupVersionKind{
		"xPOwRZ+Yhw8=": {Version: "v1", Kind: "Pod"},
		"8aSe+NMegvE=": {Group: "apps", Version: "v1", Kind: "Deployment"},
		"gIwvi5rymmg=": widget,
	} {
		s := service([]discovery.Group{{Name: "x", Versions: []discovery.Version{{Name: "v1", Resources: []discovery.Resource{
			{Plural: "things", Kind: "Thing", Verbs: []string{"get"}, StorageKind: kind},
		}}}}})
		_, body := get(t, s, "/apis/x/v1")
		if !bytes.Contains(body, []byte(`"storageVersionHash":"`+hash+`"`)) {
			t.Errorf("%v: no hash %s in %s", kind, hash, body)
		}
	}
}

// A server without core resources has no /api, in either form; client-go takes that for an empty group.
func TestWithoutACoreGroupThereIsNoAPI(t *testing.T) {
	s := service(groups())
	for _, accept := range []string{"", "application/json", acceptAggregated} {
		for _, path := range []string{"/api", "/api/", "/api/v1"} {
			if r, _ := get(t, s, path, "Accept", accept); r.StatusCode != http.StatusNotFound {
				t.Errorf("%s for %q: %d, want 404", path, accept, r.StatusCode)
			}
		}
	}
	if r, _ := get(t, service(nil), "/apis", "Accept", acceptAggregated); r.StatusCode != http.StatusOK {
		t.Errorf("/apis without groups: %d", r.StatusCode)
	}
	if _, body := get(t, service(nil), "/apis"); !strings.Contains(string(body), `"groups":[]`) {
		t.Errorf("/apis without groups: %s", body)
	}
}

func TestWhatIsNotServed(t *testing.T) {
	s := service(groups())
	for _, tc := range []struct {
		method, path, accept string
		code                 int
	}{
		{"GET", "/apis/none.example.com", "", 404},
		{"GET", "/apis/example.com/v9", "", 404},
		{"GET", "/apis/example.com/v1/widgets", "", 404},
		{"GET", "/apis//", "", 404},
		{"GET", "/", "", 404},
		{"DELETE", "/apis/example.com/v1", "", 405},
		{"HEAD", "/apis/example.com/v1", "", 405},
		{"GET", "/apis/example.com/v1", "application/*", 406},
		{"POST", "/apis/example.com/v9", "", 404},
		{"GET", "/apis", "text/html", 406},
	} {
		r := httptest.NewRequest(tc.method, tc.path, nil)
		r.Header.Set("Accept", tc.accept)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		var status metav1.Status
		if err := json.Unmarshal(w.Body.Bytes(), &status); err != nil || w.Code != tc.code || int(status.Code) != tc.code {
			t.Errorf("%s %s: %d %+v, %v, want %d", tc.method, tc.path, w.Code, status, err, tc.code)
		}
	}
}

func TestAddressOfTheServerIsTheOneAskedFor(t *testing.T) {
	s := discovery.New(discovery.Options{})
	s.Set(withCore())
	_, body := get(t, s, "http://api.example.com:8443/api")
	if !strings.Contains(string(body), `"serverAddressByClientCIDRs":[{"clientCIDR":"0.0.0.0/0","serverAddress":"api.example.com:8443"}]`) {
		t.Errorf("%s", body)
	}
}

// Every answer is made from one of two descriptions, and never from a mixture. No answer changes the groups that were given.
func TestServingWhileSetting(t *testing.T) {
	s, all := discovery.New(discovery.Options{}), groups()
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			for j := range 100 {
				s.Set(all[:(i+j)%2*len(all)])
			}
		})
		wg.Go(func() {
			for range 100 {
				r, body := get(t, s, "/apis", "Accept", acceptAggregated)
				var list apidiscovery.APIGroupDiscoveryList
				if err := json.Unmarshal(body, &list); err != nil || r.StatusCode != http.StatusOK {
					t.Errorf("%d, %v", r.StatusCode, err)
				}
				if n := len(list.Items); n != 0 && n != len(all) {
					t.Errorf("%d groups", n)
				}
			}
		})
	}
	wg.Wait()
	if diff := cmp.Diff(groups(), all); diff != "" {
		t.Errorf("the groups given were changed (-before +after):\n%s", diff)
	}
}

func TestWhatWasGivenMayChangeAfterwards(t *testing.T) {
	all := groups()
	s := service(all)
	all[0].Versions[1].Resources[0].ShortNames[0] = "changed"
	all[0].Versions[1].Resources[0].Verbs[0] = "changed"
	all[0].Name = "changed"
	for _, accept := range []string{acceptAggregated, "application/json"} {
		for _, path := range []string{"/apis", "/apis/example.com/v1"} {
			if _, body := get(t, s, path, "Accept", accept); strings.Contains(string(body), "changed") {
				t.Errorf("%s shows a later change", path)
			}
		}
	}
}
