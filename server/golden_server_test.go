package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// goldenServer is a server whose answers are compared with the files.
type goldenServer struct {
	url    string
	client *http.Client // sends no credentials of its own
	token  string
	is     map[string]bool
	only   string // if not "", files that name it are compared, and no others
}

// run sends the requests of a file in their order, in a separate namespace.
func (s *goldenServer) run(t *testing.T, name string, file *scenario) {
	ns := fmt.Sprintf("wire-%08x", rand.Uint32())
	s.makeNamespace(t, ns)
	c := &comparison{values: map[string]string{"ns": ns}}
	for i, st := range file.steps {
		st.auditID = auditIDOf(name, i)
		got, err := s.ask(t.Context(), st, c)
		if err != nil {
			t.Fatalf("%s: %v", st.title, err)
		}
		if len(c.wrong) == 0 {
			continue
		}
		if *updateGolden {
			st.rewrite(c, got)
			continue
		}
		t.Errorf("%s: %s %s\n  %s\nthe answer is %d %v\n%.6000s",
			st.title, st.method, st.target, strings.Join(c.wrong, "\n  "), got.code, got.header, shown(got.body))
	}
}

// ask sends a request, repeatedly if its step says so, and compares the last answer in c.
func (s *goldenServer) ask(ctx context.Context, st *step, c *comparison) (answer, error) {
	const pause = 50 * time.Millisecond
	deadline := time.Now().Add(st.within)
	for {
		got, err := s.exchange(ctx, st, c.values)
		if err != nil {
			return answer{}, err
		}
		try := &comparison{values: maps.Clone(c.values)}
		st.compare(try, got)
		unwritten := *updateGolden && st.wantBody == "" && got.code == st.code
		if len(try.wrong) == 0 || unwritten || !time.Now().Before(deadline) {
			*c = *try
			return got, nil
		}
		time.Sleep(pause)
	}
}

// exchange makes a request.
func (s *goldenServer) exchange(ctx context.Context, st *step, values map[string]string) (answer, error) {
	target, err := expand(st.target, values)
	if err != nil {
		return answer{}, err
	}
	body, err := expand(st.body, values)
	if err != nil {
		return answer{}, err
	}
	if contentType := headerOf(st.header, "Content-Type"); strings.Contains(contentType, "cbor") && body != "" {
		if body, err = cborBody(body); err != nil {
			return answer{}, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute) // ends a watch with too few events
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, st.method, s.url+target, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	req.Header.Set("User-Agent", "wire/1")
	if st.auditID != "" {
		req.Header.Set("Audit-Id", st.auditID)
	}
	if body != "" && st.method != http.MethodPatch {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range st.header {
		value, err := expand(h[1], values)
		if err != nil {
			return answer{}, err
		}
		if h[0] == "Wait" {
			pause, err := time.ParseDuration(value)
			if err != nil {
				return answer{}, err
			}
			time.Sleep(pause)
			continue
		}
		req.Header[h[0]] = []string{value}
		if value == "" && h[0] != "User-Agent" { // net/http sends its own value if there is none
			req.Header.Del(h[0])
		}
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	var in io.Reader = resp.Body
	if (req.URL.Query().Has("watch") || strings.Contains(req.URL.Path, "/watch/")) && resp.StatusCode == http.StatusOK && !st.ends && st.method != http.MethodHead {
		events, err := decodeAll(st.wantBody)
		if err != nil {
			return answer{}, fmt.Errorf("the events of a watch: %w", err)
		}
		var text strings.Builder
		d := eventReader(resp)
		for range events {
			var event json.RawMessage
			if err := d.Decode(&event); err != nil {
				return answer{}, fmt.Errorf("the watch ended after %q: %w", text.String(), err)
			}
			text.Write(event)
			text.WriteByte('\n')
		}
		in = strings.NewReader(text.String())
	}
	out, err := io.ReadAll(in)
	if form := resp.Header.Get("Content-Type"); err == nil && strings.HasPrefix(form, "application/cbor") && form != "application/cbor-seq" {
		out, err = readCBOR(out)
	}
	if at, err := resp.Location(); err == nil && at.Host == resp.Request.URL.Host {
		resp.Header.Set("Location", at.RequestURI())
	}
	return answer{resp.StatusCode, resp.Header, string(out)}, err
}

// makeNamespace makes a namespace if the server has namespaces, and deletes its contents at the end of the test.
func (s *goldenServer) makeNamespace(t *testing.T, ns string) {
	ask := func(ctx context.Context, method, path, body string, header ...[2]string) answer {
		t.Helper()
		a, err := s.exchange(ctx, &step{method: method, target: path, body: body, header: header}, nil)
		if err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
		return a
	}
	const namespaces = "/api/v1/namespaces"
	made := ask(t.Context(), "POST", namespaces, `{"metadata":{"name":"`+ns+`"}}`)
	if made.code != http.StatusCreated && made.code != http.StatusNotFound && made.code != http.StatusMethodNotAllowed {
		t.Fatalf("namespace %s: %d %s", ns, made.code, made.body)
	}
	t.Cleanup(func() {
		ctx := context.Background() // the context of the test has ended
		core := namespaces + "/" + ns
		for _, list := range []string{
			"/apis/example.com/v1/namespaces/" + ns + "/widgets", "/apis/untyped.example.com/v1/namespaces/" + ns + "/gadgets",
			"/apis/untyped.example.com/v1/namespaces/" + ns + "/bolts", "/apis/coordination.k8s.io/v1/namespaces/" + ns + "/leases",
			"/apis/rbac.authorization.k8s.io/v1/namespaces/" + ns + "/roles", "/apis/rbac.authorization.k8s.io/v1/namespaces/" + ns + "/rolebindings",
			"/apis/apps/v1/namespaces/" + ns + "/deployments", core + "/pods", core + "/services", core + "/configmaps", core + "/secrets", core + "/serviceaccounts", core + "/events",
		} {
			var left metav1.PartialObjectMetadataList
			a := ask(ctx, "DELETE", list, "")
			if err := json.Unmarshal([]byte(a.body), &left); err != nil || a.code != http.StatusOK {
				t.Errorf("DELETE %s: %d %s", list, a.code, a.body)
				continue
			}
			for _, item := range left.Items {
				if len(item.Finalizers) > 0 {
					ask(ctx, "PATCH", list+"/"+item.Name, `{"metadata":{"finalizers":null}}`, [2]string{"Content-Type", mergePatch})
				}
			}
		}
		if s.is[withCRDs] {
			s.deleteDefinitions(ctx, t, ns)
		}
		if made.code == http.StatusCreated {
			ask(ctx, "DELETE", core, "")
		}
	})
}

// deleteDefinitions deletes the CustomResourceDefinitions that a file has made, and removes the finalizers of their objects.
func (s *goldenServer) deleteDefinitions(ctx context.Context, t *testing.T, ns string) {
	const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	ask := func(method, path, body string, into any, header ...[2]string) {
		a, err := s.exchange(ctx, &step{method: method, target: path, body: body, header: header}, nil)
		if err == nil && into != nil && a.code == http.StatusOK {
			err = json.Unmarshal([]byte(a.body), into)
		}
		if err != nil {
			t.Errorf("%s %s: %v", method, path, err)
		}
	}
	release := func(path string) {
		ask("PATCH", path, `{"metadata":{"finalizers":null}}`, nil, [2]string{"Content-Type", mergePatch})
	}
	var all struct {
		Items []struct {
			Metadata metav1.ObjectMeta
			Spec     struct {
				Group    string
				Names    struct{ Plural string }
				Versions []struct {
					Name   string
					Served bool
				}
			}
		}
	}
	ask("GET", definitions, "", &all)
	for _, d := range all.Items {
		if !strings.Contains(d.Metadata.Name, ns) {
			continue
		}
		ask("DELETE", definitions+"/"+d.Metadata.Name, "", nil)
		for _, v := range d.Spec.Versions {
			var left metav1.PartialObjectMetadataList
			resource := "/apis/" + d.Spec.Group + "/" + v.Name
			if v.Served {
				ask("GET", resource+"/"+d.Spec.Names.Plural, "", &left)
			}
			for _, object := range left.Items {
				in := resource
				if object.Namespace != "" {
					in += "/namespaces/" + object.Namespace
				}
				if len(object.Finalizers) > 0 {
					release(in + "/" + d.Spec.Names.Plural + "/" + object.Name)
				}
			}
		}
		if slices.ContainsFunc(d.Metadata.Finalizers, func(f string) bool { return strings.HasPrefix(f, "example.com/") }) {
			release(definitions + "/" + d.Metadata.Name)
		}
	}
}

// TestGoldenWithin checks that a request is repeated until its answer matches or the time is over. Variables of answers that do
// not match are dropped.
func TestGoldenWithin(t *testing.T) {
	t.Parallel()
	asked := 0 // requests come one after the other
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"name": "try-%d", "done": %t}`, asked, asked > 2)
	}))
	defer srv.Close()
	s := &goldenServer{url: srv.URL, client: srv.Client()}
	for _, c := range []struct {
		within time.Duration
		asked  int
		name   string
	}{{time.Minute, 3, "try-3"}, {0, 1, "try-1"}} {
		asked = 0
		got := &comparison{values: map[string]string{}}
		st := &step{method: "GET", target: "/", within: c.within, code: 200, wantBody: `{"name": "${name1}", "done": true}`}
		if _, err := s.ask(t.Context(), st, got); err != nil {
			t.Fatal(err)
		}
		if asked != c.asked || got.values["name1"] != c.name || (len(got.wrong) == 0) != (c.within > 0) {
			t.Errorf("within %s: %d requests, %v, wrong %q; want %d, %s", c.within, asked, got.values, got.wrong, c.asked, c.name)
		}
	}
}
