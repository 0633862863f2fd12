package server_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// inProcess calls a server's handler without a connection.
type inProcess struct {
	handler http.Handler
	token   string
}

func (p inProcess) ask(ctx context.Context, t testing.TB, r *http.Request) (w *httptest.ResponseRecorder) {
	t.Helper()
	r.Header.Set("Authorization", "Bearer "+p.token)
	w = httptest.NewRecorder()
	defer func() {
		// An answer that is aborted at the deadline: net/http closes the connection.
		if value := recover(); value != nil && value != http.ErrAbortHandler {
			panic(value)
		}
	}()
	p.handler.ServeHTTP(w, r.WithContext(ctx))
	return w
}

// version returns the revision of the store.
func (p inProcess) version(t testing.TB) string {
	t.Helper()
	w := p.ask(t.Context(), t, httptest.NewRequest("GET", allWidgets+"?limit=1", nil))
	var list metav1.PartialObjectMetadataList
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || list.ResourceVersion == "" {
		t.Fatalf("%d %v: %s", w.Code, err, w.Body)
	}
	return list.ResourceVersion
}

// reset sets the store to a known state.
func (p inProcess) reset(t testing.TB) {
	t.Helper()
	for _, list := range []string{widgetList, planetList, slotList, ledgerList, configMapList} {
		p.ask(t.Context(), t, httptest.NewRequest("DELETE", list, nil))
	}
	for list, body := range map[string]string{
		widgetList:    `{"metadata":{"name":"a","labels":{"l":"1"}},"spec":{"size":1,"tags":["x"]}}`,
		planetList:    `{"metadata":{"name":"mars"}}`,
		configMapList: `{"metadata":{"name":"c"},"data":{"k":"v"}}`,
	} {
		p.ask(t.Context(), t, httptest.NewRequest("POST", list, strings.NewReader(body)))
	}
}

// FuzzRequest sends whole requests. None may be answered with an error of the server or a panic, and a refused request changes
// nothing.
func FuzzRequest(f *testing.F) {
	o := wireOptions()
	o.CBOR = true
	srv, err := server.New(o)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = srv.Close() })
	p := inProcess{srv.Handler(), srv.Credentials().Token}
	const merge, ops = "Content-Type: " + mergePatch, "Content-Type: " + jsonPatch
	for _, seed := range []struct{ method, target, header, body string }{
		{"GET", widgetList + "?limit=1&labelSelector=l%3D1&fieldSelector=metadata.name%3Da&resourceVersion=1&resourceVersionMatch=Exact", "Accept: application/yaml", ""},
		{"GET", widgetList + "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1", "", ""},
		{"GET", widgetList + "?continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhXHUwMDAwIn0", "Accept: application/json;as=Table;v=v1;g=meta.k8s.io", ""},
		{"GET", widgetList + "/a?includeObject=Object&pretty=1", "Accept: application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", ""},
		{"POST", widgetList + "?fieldValidation=Strict&fieldManager=m&dryRun=All", "", `{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"generateName":"x-","finalizers":["a/b"]},"spec":{"size":1,"x":2}}`},
		{"POST", widgetList, "Content-Type: application/yaml", "metadata:\n  name: y1\nspec: {size: 1, tags: [a, b]}\n"},
		{"POST", planetList, "", `{"metadata":{"name":"venus","ownerReferences":[{"apiVersion":"v1","kind":"P","name":"p","uid":"1"}]}}`},
		{"PUT", widgetList + "/a", "", `{"metadata":{"name":"a","resourceVersion":"1","uid":"x","managedFields":[{}]},"spec":{"size":2},"status":{"ready":true}}`},
		{"PUT", widgetList + "/a/status", "", `{"metadata":{"name":"a"},"status":{"ready":true,"selector":"a=b"}}`},
		{"PUT", widgetList + "/a/scale", "", `{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"a"},"spec":{"replicas":-1}}`},
		{"PUT", slotList + "/s", "", `{"metadata":{"name":"s"},"spec":{"holder":"h"}}`},
		{"PUT", ledgerList + "/l", "", `{"metadata":{"name":"l"}}`},
		{"PATCH", widgetList + "/a", merge, `{"metadata":{"labels":null,"finalizers":["x/y"]},"spec":{"size":null}}`},
		{"PATCH", widgetList + "/a", ops, `[{"op":"add","path":"/spec/tags/-","value":"z"},{"op":"copy","from":"/spec","path":"/metadata/annotations"},{"op":"test","path":"/spec/size","value":1},{"op":"move","from":"/spec/tags","path":"/spec/x"},{"op":"remove","path":"/spec/tags/0"}]`},
		{"PATCH", widgetList + "/a/status?force=true", merge, `{"status":{"replicas":-1}}`},
		{"PATCH", widgetList + "/a/scale", ops, `[{"op":"replace","path":"/spec/replicas","value":3}]`},
		{"DELETE", widgetList + "/a?gracePeriodSeconds=-1&propagationPolicy=Foreground", "", `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"x","resourceVersion":"1"},"dryRun":["All"]}`},
		{"DELETE", configMapList + "?labelSelector=a+in+(b)", "", ""},
		{"GET", "/apis/example.com/v1/watch/namespaces/default/widgets/a?timeoutSeconds=1", "", ""},
		{"GET", "/apis/example.com/v1/namespaces/..%2Fx//widgets/%2e%2e/status/", "X: \x01", "\xff"},
		{"OPTIONS", "/apis?x=%zz;&y", "Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList\r\nIf-None-Match: \"x\"", ""},
		{"HEAD", "/openapi/v3/apis/example.com/v1?hash=1", "Accept: application/com.github.proto-openapi.spec.v3@v1.0+protobuf\r\nAccept-Encoding: gzip", ""},
		{"GET", "/openapi/v2", "Range: bytes=1-", ""},
		{"POST", widgetList, "Content-Type: application/cbor\r\nAccept: application/cbor", "\xd9\xd9\xf7\xa2\x48metadata\xa1\x44name\x42c1\x44spec\xa1\x44size\x03"},
		{"PATCH", widgetList + "/c2?fieldManager=m", "Content-Type: application/apply-patch+cbor", "\xd9\xd9\xf7\xa3\x44kind\x46Widget\x48metadata\xa1\x44name\x42c2\x4aapiVersion\x4eexample.com/v1"},
		{"DELETE", widgetList + "/a", "Content-Type: application/cbor", "\xa1\x44kind\x4dDeleteOptions"},
		{"GET", widgetList + "?watch=1&timeoutSeconds=1", "Accept: application/cbor", ""},
		{"GET", "/readyz/ping?verbose&exclude=x&timeout=1ns", "Audit-ID: \x7f", ""},
	} {
		f.Add(seed.method, seed.target, seed.header, []byte(seed.body))
	}
	f.Fuzz(func(t *testing.T, method, target, header string, body []byte) {
		text := method + " " + target + " HTTP/1.1\r\nHost: x\r\n" + strings.TrimSpace(header) + "\r\n\r\n"
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
		if err != nil {
			return // net/http refuses the request before the handler
		}
		r.Header.Del("Upgrade") // a recorder cannot be hijacked
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		p.reset(t)
		before := p.version(t)
		ctx, cancel := context.WithCancel(t.Context())
		if method == "GET" || method == "HEAD" { // other methods never wait; these may wait for events or a later state
			ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
		}
		defer cancel()
		w := p.ask(ctx, t, r)
		deadline := w.Code == http.StatusGatewayTimeout // ended by the client or ?timeout: the change may be made or not
		if w.Code >= 500 && !deadline {
			t.Fatalf("%d: %s", w.Code, w.Body)
		}
		if w.Code >= 400 && w.Body.Len() == 0 {
			t.Fatalf("%d without a word", w.Code)
		}
		several := method == "DELETE" && w.Code == http.StatusConflict // some objects of a collection may be deleted before one fails
		if after := p.version(t); after != before && (w.Code < 200 || w.Code > 299) && !deadline && !several {
			t.Fatalf("%d, and the store went from %s to %s: %s", w.Code, before, after, w.Body)
		}
	})
}
