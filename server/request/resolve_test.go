package request_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/server/request"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// resource is an Info of widgets in group g, version v, changed by a function.
func resource(verb string, change func(*request.Info)) *request.Info {
	i := &request.Info{ResourceRequest: true, Verb: verb, APIPrefix: "apis", APIGroup: "g", APIVersion: "v", Resource: "widgets", Parts: []string{"widgets"}}
	if change != nil {
		change(i)
	}
	return i
}

func core(verb, ns string, parts ...string) *request.Info {
	i := &request.Info{ResourceRequest: true, Verb: verb, APIPrefix: "api", APIVersion: "v1", Namespace: ns, Resource: parts[0], Parts: parts}
	if len(parts) > 1 {
		i.Name = parts[1]
	}
	if len(parts) > 2 {
		i.Subresource = parts[2]
	}
	return i
}

func plain(verb string) *request.Info { return &request.Info{Verb: verb} }

func TestResolve(t *testing.T) {
	in := func(ns string, parts ...string) func(*request.Info) {
		return func(i *request.Info) {
			i.Namespace, i.Parts = ns, append([]string{"widgets"}, parts...)
			if len(parts) > 0 {
				i.Name = parts[0]
			}
			if len(parts) > 1 {
				i.Subresource = parts[1]
			}
		}
	}
	and := func(fs ...func(*request.Info)) func(*request.Info) {
		return func(i *request.Info) {
			for _, f := range fs {
				f(i)
			}
		}
	}
	fieldsAre := func(s string) func(*request.Info) { return func(i *request.Info) { i.FieldSelector = s } }
	labelsAre := func(s string) func(*request.Info) { return func(i *request.Info) { i.LabelSelector = s } }
	named := func(s string) func(*request.Info) { return func(i *request.Info) { i.Name = s } }
	old := func(i *request.Info) { i.DeprecatedWatch = true }

	for _, tc := range []struct {
		method, target string
		want           *request.Info
	}{
		// Paths that are no resources.
		{"GET", "/", plain("get")},
		{"GET", "/healthz", plain("get")},
		{"HEAD", "/healthz", plain("head")},
		{"OPTIONS", "/healthz/ping", plain("options")},
		{"GET", "/api", plain("get")},
		{"GET", "/api/", plain("get")},
		{"GET", "/api/v1", plain("get")},
		{"GET", "/api/v1/", plain("get")},
		{"GET", "/apis", plain("get")},
		{"GET", "/apis/g", plain("get")},
		{"GET", "/apis/g/", plain("get")},
		{"GET", "/apis/g/v", plain("get")},
		{"GET", "/apis/g/v/", plain("get")},
		{"POST", "/openapi/v3/apis/g/v", plain("post")},
		{"GET", "/apix/g/v/widgets", plain("get")},

		// Methods on collections and objects.
		{"GET", "/apis/g/v/widgets", resource("list", nil)},
		{"HEAD", "/apis/g/v/widgets", resource("list", nil)},
		{"GET", "/apis/g/v/widgets/", resource("list", nil)},
		{"POST", "/apis/g/v/widgets", resource("create", nil)},
		{"DELETE", "/apis/g/v/widgets", resource("deletecollection", nil)},
		{"PUT", "/apis/g/v/widgets", resource("update", nil)},
		{"PATCH", "/apis/g/v/widgets", resource("patch", nil)},
		{"OPTIONS", "/apis/g/v/widgets", resource("", nil)},
		{"GET", "/apis/g/v/namespaces/ns/widgets", resource("list", in("ns"))},
		{"GET", "/apis/g/v/namespaces/ns/widgets/a", resource("get", in("ns", "a"))},
		{"HEAD", "/apis/g/v/namespaces/ns/widgets/a", resource("get", in("ns", "a"))},
		{"PUT", "/apis/g/v/namespaces/ns/widgets/a", resource("update", in("ns", "a"))},
		{"PATCH", "/apis/g/v/namespaces/ns/widgets/a", resource("patch", in("ns", "a"))},
		{"DELETE", "/apis/g/v/namespaces/ns/widgets/a", resource("delete", in("ns", "a"))},
		{"PUT", "/apis/g/v/namespaces/ns/widgets/a/status", resource("update", in("ns", "a", "status"))},
		{"GET", "/apis/g/v/namespaces/ns/widgets/a/proxy/b/c", resource("get", in("ns", "a", "proxy", "b", "c"))},
		{"GET", "/apis/g/v/widgets/a/scale/", resource("get", in("", "a", "scale"))},
		{"GET", "/apis/g/v/namespaces", &request.Info{ResourceRequest: true, Verb: "list", APIPrefix: "apis", APIGroup: "g", APIVersion: "v", Resource: "namespaces", Parts: []string{"namespaces"}}},

		// The core group, and namespaces as resource and as place.
		{"GET", "/api/v1/pods", core("list", "", "pods")},
		{"GET", "/api/v1/namespaces/ns/pods", core("list", "ns", "pods")},
		{"POST", "/api/v1/namespaces/ns/pods/a/binding", core("create", "ns", "pods", "a", "binding")},
		{"GET", "/api/v1/namespaces", core("list", "", "namespaces")},
		{"GET", "/api/v1/namespaces/foo", core("get", "foo", "namespaces", "foo")},
		{"GET", "/api/v1/namespaces/foo/", core("get", "foo", "namespaces", "foo")},
		{"DELETE", "/api/v1/namespaces/foo", core("delete", "foo", "namespaces", "foo")},
		{"PUT", "/api/v1/namespaces/foo/status", core("update", "foo", "namespaces", "foo", "status")},
		{"PUT", "/api/v1/namespaces/foo/finalize", core("update", "foo", "namespaces", "foo", "finalize")},
		{"GET", "/api/v1/namespaces/foo/statuses", core("list", "foo", "statuses")},

		// list or watch.
		{"GET", "/apis/g/v/widgets?watch=true", resource("watch", nil)},
		{"GET", "/apis/g/v/widgets?watch=1", resource("watch", nil)},
		{"GET", "/apis/g/v/widgets?watch", resource("watch", nil)},
		{"GET", "/apis/g/v/widgets?watch=yes", resource("watch", nil)},
		{"GET", "/apis/g/v/widgets?watch=false", resource("list", nil)},
		{"GET", "/apis/g/v/widgets?watch=False", resource("list", nil)},
		{"GET", "/apis/g/v/widgets?watch=0", resource("list", nil)},
		{"GET", "/apis/g/v/widgets?watch=0&watch=1", resource("list", nil)},
		{"GET", "/apis/g/v/widgets/a?watch=true", resource("get", in("", "a"))},
		{"POST", "/apis/g/v/widgets?watch=true", resource("create", nil)},
		// Options that cannot be read.
		{"GET", "/apis/g/v/widgets?limit=abc", resource("list", nil)},
		{"GET", "/apis/g/v/widgets?limit=abc&watch=1", resource("watch", nil)},
		{"GET", "/apis/g/v/widgets?limit=abc&watch=0", resource("list", nil)},
		{"GET", "/apis/g/v/widgets?limit=abc&watch=FALSE", resource("list", nil)},
		{"GET", "/apis/g/v/widgets?limit=abc&watch=", resource("watch", nil)},
		{"GET", "/apis/g/v/widgets?timeoutSeconds=x&fieldSelector=metadata.name%3Da", resource("list", fieldsAre("metadata.name=a"))},
		{"GET", "/apis/g/v/widgets?labelSelector=a+in&watch=1", resource("watch", labelsAre("a in"))},
		{"GET", "/apis/g/v/widgets?fieldSelector=foo", resource("list", fieldsAre("foo"))},

		// Selectors.
		{"GET", "/apis/g/v/widgets?fieldSelector=metadata.name%3Da", resource("list", and(named("a"), fieldsAre("metadata.name=a")))},
		{"GET", "/apis/g/v/widgets?fieldSelector=metadata.name%3D%3Da&watch=1", resource("watch", and(named("a"), fieldsAre("metadata.name==a")))},
		{"GET", "/apis/g/v/widgets?fieldSelector=metadata.name!%3Da", resource("list", fieldsAre("metadata.name!=a"))},
		{"GET", "/apis/g/v/widgets?fieldSelector=metadata.name%3Da%2Fb", resource("list", fieldsAre("metadata.name=a/b"))},
		{"GET", "/apis/g/v/widgets?fieldSelector=metadata.name%3D..", resource("list", fieldsAre("metadata.name=.."))},
		{"GET", "/apis/g/v/widgets?fieldSelector=x%3Dy%2Cmetadata.name%3Da", resource("list", and(named("a"), fieldsAre("x=y,metadata.name=a")))},
		{"GET", "/apis/g/v/widgets?labelSelector=a&labelSelector=b", resource("list", labelsAre("a"))},
		{"DELETE", "/apis/g/v/widgets?labelSelector=a&fieldSelector=metadata.name%3Db", resource("deletecollection", and(labelsAre("a"), fieldsAre("metadata.name=b")))},
		{"DELETE", "/apis/g/v/widgets/a?labelSelector=a", resource("delete", in("", "a"))},
		{"POST", "/apis/g/v/widgets?labelSelector=a", resource("create", nil)},

		// Verbs in the path.
		{"GET", "/apis/g/v/watch/widgets", resource("watch", old)},
		{"GET", "/apis/g/v/watch/widgets?labelSelector=a&fieldSelector=metadata.name%3Da", resource("watch", old)},
		{"GET", "/apis/g/v/watch/widgets/a", resource("watch", and(in("", "a"), old))},
		{"GET", "/apis/g/v/watch/namespaces/ns/widgets/a/", resource("watch", and(in("ns", "a"), old))},
		{"DELETE", "/apis/g/v/watch/widgets", resource("watch", old)},
		{"GET", "/apis/g/v/proxy/widgets/a/b/c", resource("proxy", func(i *request.Info) { i.Name, i.Parts = "a", []string{"widgets", "a", "b", "c"} })},
		{"GET", "/api/v1/watch/namespaces", func() *request.Info { i := core("watch", "", "namespaces"); i.DeprecatedWatch = true; return i }()},

		// Encoding.
		{"GET", "/apis/g/v/widgets/a%2Fb", resource("get", in("", "a/b"))},
		{"GET", "/apis/g/v/widgets/a%2Fstatus", resource("get", in("", "a/status"))},
		{"GET", "/apis/g/v/namespaces/n%2Fs/widgets/a", resource("get", in("n/s", "a"))},
		{"GET", "/apis/g/v/widgets/a%25b", resource("get", in("", "a%b"))},
		{"GET", "/apis/g/v/widgets/%2E%2E", resource("get", in("", ".."))},
		{"GET", "/apis/g/v/widgets/system:a%20b", resource("get", in("", "system:a b"))},
		{"GET", "/apis/g/v/widgets/%2F", resource("get", in("", "/"))},
		{"GET", "/apis/g/v/widgets/a/proxy/x%2Fy", resource("get", in("", "a", "proxy", "x/y"))},
		{"GET", "/apis/g%2Ev/v/widgets", resource("list", func(i *request.Info) { i.APIGroup = "g.v" })},
		{"GET", "/healthz%2Fping", plain("get")},

		// Empty segments are segments.
		{"GET", "/apis/g/v/namespaces//widgets", resource("list", nil)},
		{"GET", "//apis/g/v/widgets", resource("list", nil)},
	} {
		t.Run(tc.method+" "+tc.target, func(t *testing.T) {
			r := newRequest(t, tc.method, tc.target)
			got, err := request.Resolve(r)
			if err != nil {
				t.Fatal(err)
			}
			tc.want.Path = r.URL.Path
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// newRequest makes a request as a server would; httptest.NewRequest would read "//apis" as a host.
func newRequest(t testing.TB, method, target string) *http.Request {
	t.Helper()
	u, err := url.Parse("https://server" + target)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(method, "/", nil)
	r.URL = u
	return r
}

// A selector beyond the limit is treated as one that does not parse.
func TestResolveLimitsSelectors(t *testing.T) {
	many := "metadata.name%3Da" + strings.Repeat(",x%3Dy", 400)
	for _, tc := range []struct {
		by    request.Resolver
		query string
		name  string
		read  bool // the selector is used
	}{
		{request.Resolver{}, "fieldSelector=metadata.name%3Da", "a", true},
		{request.Resolver{}, "fieldSelector=" + many, "", false},
		{request.Resolver{Selectors: 401}, "fieldSelector=" + many, "a", true},
		{request.Resolver{Selectors: -1}, "fieldSelector=" + many, "a", true},
		{request.Resolver{Selectors: 1}, "fieldSelector=metadata.name%3Da,x%3Dy", "", false},
		{request.Resolver{}, "fieldSelector=metadata.name%3Da&labelSelector=a" + strings.Repeat(",a", 400), "", true},
	} {
		info, err := tc.by.Resolve(newRequest(t, "GET", "/apis/g/v/widgets?watch=true&"+tc.query))
		if err != nil {
			t.Fatal(err)
		}
		byFields, byLabels := info.Selectors()
		if info.Verb != "watch" || info.Name != tc.name || (byFields != nil) != tc.read || byLabels != nil {
			t.Errorf("%+v, %.60s: %s of %q, selectors %v and %v", tc.by, tc.query, info.Verb, info.Name, byFields, byLabels)
		}
	}
}

func TestResolveRefuses(t *testing.T) {
	for target, want := range map[string]string{
		"/api/v1/watch":                    "unable to determine kind and namespace from url, https://server/api/v1/watch",
		"/apis/g/v/proxy/":                 "unable to determine kind and namespace from url, https://server/apis/g/v/proxy/",
		"/apis%2Fg/v/widgets":              "has an encoded slash where no name stands",
		"/%2Fapis/g/v/widgets":             "has an encoded slash where no name stands",
		"/%2fapi/v1/pods":                  "has an encoded slash where no name stands",
		"/apis/g%2Fv%2Fwidgets":            "has an encoded slash where no name stands",
		"/apis/g/v%2Fwidgets":              "has an encoded slash where no name stands",
		"/apis/g%2Fh/v/widgets":            "has an encoded slash where no name stands",
		"/apis/g/v/widgets%2Fa":            "has an encoded slash where no name stands",
		"/apis/g/v/widgets/a/status%2Fb":   "has an encoded slash where no name stands",
		"/api/v1%2Fsecrets":                "has an encoded slash where no name stands",
		"/api/v1/namespaces/ns/secrets%2F": "has an encoded slash where no name stands",
	} {
		info, err := request.Resolve(newRequest(t, "GET", target))
		if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: info %+v, error %v; want 400 with %q", target, info, err, want)
		}
	}
}

func TestIsLongRunning(t *testing.T) {
	for target, want := range map[string]bool{
		"/apis/g/v/widgets":              false,
		"/apis/g/v/widgets?watch=1":      true,
		"/apis/g/v/watch/widgets":        true,
		"/apis/g/v/proxy/widgets/a":      true,
		"/api/v1/namespaces/n/pods/a":    false,
		"/api/v1/namespaces/n/pods/log":  false,
		"/api/v1/namespaces/n/x/a/log":   true,
		"/api/v1/namespaces/n/x/a/exec":  true,
		"/api/v1/namespaces/n/x/a/scale": false,
		"/debug/pprof/profile":           true,
		"/debug/pprof":                   false,
		"/watch":                         false,
	} {
		info, err := request.Resolve(newRequest(t, "GET", target))
		if err != nil {
			t.Fatal(err)
		}
		if got := request.IsLongRunning(info); got != want {
			t.Errorf("%s: %v, want %v", target, got, want)
		}
	}
	if request.IsLongRunning(nil) {
		t.Error("nil is long-running")
	}
}

// FuzzResolve looks for panics, and for ways to make a request for a resource look like one for a plain path.
func FuzzResolve(f *testing.F) {
	for _, seed := range []string{"/", "/api/v1/watch", "/apis/g/v/namespaces/ns/widgets/a/status", "/apis/g/v/widgets?watch=1&fieldSelector=metadata.name%3Da", "/apis%2Fg/v/w", "/a%2f//..%2f", "//api///", "/api/v1/%2F?limit=x", "/%", "/apis/g/v/w?%&;=%zz"} {
		f.Add("GET", seed)
		f.Add("DELETE", seed)
	}
	f.Fuzz(func(t *testing.T, method, target string) {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			return
		}
		r := &http.Request{Method: method, URL: u}
		info, err := request.Resolve(r)
		if err != nil {
			if !apierrors.IsBadRequest(err) {
				t.Fatalf("error %v, want a 400", err)
			}
			return
		}
		if info.Path != u.Path {
			t.Fatalf("path %q, want %q", info.Path, u.Path)
		}
		if !info.ResourceRequest {
			// A router that uses the decoded path must come to the same result.
			parts := strings.Split(strings.Trim(u.Path, "/"), "/")
			if (parts[0] == "api" && len(parts) >= 3) || (parts[0] == "apis" && len(parts) >= 4) {
				t.Fatalf("%q is a resource once decoded", target)
			}
			if info.Verb != strings.ToLower(method) || info.Resource != "" || info.Name != "" || info.Parts != nil {
				t.Fatalf("%+v: a plain path with parts of a resource", info)
			}
			return
		}
		if len(info.Parts) == 0 || info.Parts[0] != info.Resource {
			t.Fatalf("%+v: parts do not begin with the resource", info)
		}
		if strings.Contains(info.APIGroup+info.APIVersion+info.Resource+info.Subresource, "/") {
			t.Fatalf("%+v: a slash where no name stands", info)
		}
		if (info.Verb == "list" || info.Verb == "deletecollection") && len(info.Parts) > 1 && info.Parts[1] != "" {
			t.Fatalf("%+v: a collection with a name in the path", info)
		}
	})
}

func BenchmarkResolve(b *testing.B) {
	r := newRequest(b, "GET", "/apis/example.com/v1/namespaces/ns/widgets/a")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := request.Resolve(r); err != nil {
			b.Fatal(err)
		}
	}
}

// A path with an encoded slash that is not encoded as a whole could be split in two ways.
func TestEncodedSlashBesideWhatMustBeEncoded(t *testing.T) {
	for path, refused := range map[string]bool{
		"/apis/g/v/widgets/a%2fstatus<": true, "/apis/g%2Fv/widgets|": true, "/api/v1/namespaces%2fw/pods/c^": true,
		"/apis/g/v/widgets/a<": false, "/apis/g/v/widgets/a%2fstatus": false,
	} {
		r := httptest.NewRequest("GET", "/", nil)
		u, err := url.ParseRequestURI(path)
		if err != nil {
			t.Fatal(err)
		}
		r.URL = u
		if _, err := request.Resolve(r); (err != nil) != refused || err != nil && !apierrors.IsBadRequest(err) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// Errors quote only the beginning of a long path.
func TestErrorsOfLongPaths(t *testing.T) {
	long := strings.Repeat("<", 900_000)
	errs := 0
	for _, path := range []string{"/api/v1/watch?" + long, "/api/v1/a%2f" + long, "/a%2fb^" + long, "/api/v1/%2f" + long} {
		u, err := url.Parse("http://localhost" + path)
		if err != nil {
			t.Fatal(err)
		}
		_, err = request.Resolve(&http.Request{Method: http.MethodGet, URL: u})
		if err != nil {
			errs++
		}
		if err != nil && len(err.Error()) > 20<<10 {
			t.Errorf("%.30s: an error of %d bytes", path, len(err.Error()))
		}
	}
	if errs < 2 {
		t.Errorf("only %d are errors", errs)
	}
}

// A warning that is longer than the bound of all is added, and kept, in part.
func TestLongWarning(t *testing.T) {
	h := http.Header{}
	w := request.NewWarnings(h)
	long := strings.Repeat("é", 1<<20)
	w.Add(long)
	w.Add("another")
	if got := h["Warning"]; len(got) != 2 || len(got[0]) > 1024 || len(w.Texts()[0]) > 16<<10 || !strings.HasPrefix(long, w.Texts()[0]) {
		t.Errorf("%d headers, the first %.300s", len(got), got[0])
	}
}
