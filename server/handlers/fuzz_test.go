package handlers_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// asked sends a request whose context is canceled. It fails if the answer is an error of the server.
func asked(t *testing.T, h *house, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	cancel() // a watch ends as soon as it has begun, and a read does not wait
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r.WithContext(ctx))
	if w.Code >= 500 && w.Code != http.StatusGatewayTimeout {
		t.Errorf("%s %s: %d %s", r.Method, r.URL, w.Code, w.Body)
	}
}

func FuzzQuery(f *testing.F) {
	for _, q := range []string{
		"watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1", "limit=1&continue=x", "limit=abc", "timeoutSeconds=-1",
		"resourceVersion=18446744073709551615", "resourceVersion=1&resourceVersionMatch=Exact", "watch=1&resourceVersion=9223372036854775807",
		"labelSelector=a in (b,c),!d,e>1", "fieldSelector=metadata.name%3D..%2Fx", "fieldSelector=a%5C%2C%3Db", "pretty=1&includeObject=Object", "timeoutSeconds=9223372036854775807&watch=1",
		"continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIuLi9mb29cdTAwMDAifQ&limit=1", "dryRun=All&fieldManager=%00", "export=x",
	} {
		for _, accept := range []string{"", asTable} {
			f.Add(q, strings.TrimPrefix(accept, "Accept: "))
		}
	}
	h := newHouse(f, tune{})
	h.make(f, "a", "b")
	f.Fuzz(func(t *testing.T, query, accept string) {
		for _, path := range []string{base, base + "/a", "/apis/example.com/v1/watch/widgets"} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.URL.RawQuery = query
			r.Header.Set("Accept", accept)
			asked(t, h, r)
		}
		r := httptest.NewRequest(http.MethodDelete, base, nil)
		r.URL.RawQuery = query + "&dryRun=All"
		asked(t, h, r)
	})
}

func FuzzSelectors(f *testing.F) {
	for _, s := range []string{"a", "!a", "a=b", "a==b,c!=d", "a in (b)", "a notin (b,)", "a>1", "metadata.name=a", `metadata.name=a\,b`, "metadata.name!=a,metadata.namespace=default", "=", ",", "a in"} {
		f.Add(s)
	}
	h := newHouse(f, tune{})
	h.make(f, "a", "b")
	f.Fuzz(func(t *testing.T, selector string) {
		for _, path := range []string{base, all} {
			for _, option := range []string{"labelSelector", "fieldSelector"} {
				query := url.Values{option: {selector}}
				asked(t, h, httptest.NewRequest(http.MethodGet, path+"?"+query.Encode(), nil))
				query.Set("watch", "1")
				asked(t, h, httptest.NewRequest(http.MethodGet, path+"?"+query.Encode(), nil))
			}
		}
	})
}

func FuzzBody(f *testing.F) {
	for _, body := range []string{
		`{"metadata":{"name":"z"}}`, `{"metadata":{"name":"z","labels":{"a":1}}}`, `{"metadata":null}`, `null`, `[]`, `{"kind":"Widget","apiVersion":"a/b/c"}`,
		`{"metadata":{"generateName":"z-","finalizers":["x/y"],"ownerReferences":[{}]},"spec":{"size":1e9}}`, `{"metadata":{"creationTimestamp":"x"}}`,
		"metadata:\n  name: z\n", "a: &a [*a]", "---\n---\n", `{"spec":{"size":1,"size":2}}`, `{"metadata":{"name":"a","managedFields":[{}]}}`,
		`[{"op":"add","path":"/spec","value":null}]`, `[{"op":"copy","from":"","path":"/spec/x"}]`, `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"x"}}`,
	} {
		for _, contentType := range []string{"application/json", "application/yaml", "application/merge-patch+json", "application/json-patch+json"} {
			f.Add(body, contentType)
		}
	}
	h := newHouse(f, tune{})
	h.make(f, "a")
	f.Fuzz(func(t *testing.T, body, contentType string) {
		for method, target := range map[string]string{"POST": base, "PUT": base + "/a", "PATCH": base + "/a", "DELETE": base + "/a"} {
			r := httptest.NewRequest(method, target+"?dryRun=All", strings.NewReader(body))
			r.Header.Set("Content-Type", contentType)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code >= 500 {
				t.Errorf("%s %q: %d %s", method, body, w.Code, w.Body)
			}
		}
	})
}
