package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/server/crd"
	"github.com/keelson-dev/keelson/server/servertest"
)

// serve starts a server of the kinds that the program needs.
func serve(t *testing.T) *endpoint {
	t.Helper()
	srv := servertest.Start(t, server.Options{}, builtin.New(builtin.Options{NoControllers: true}), crd.New(crd.Options{}))
	return &endpoint{url: srv.URL, client: srv.Client()}
}

func compareInTest(t *testing.T, left, right *endpoint, requests int) *report {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	r, err := compareServers(ctx, [2]*endpoint{left, right}, options{seed: 7, requests: requests, workers: 4, only: -1, limit: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if r.requests < requests || r.cases < requests/40 {
		t.Errorf("%d requests in %d cases, want %d", r.requests, r.cases, requests)
	}
	return r
}

func TestEqualServers(t *testing.T) {
	t.Parallel()
	r := compareInTest(t, serve(t), serve(t), 300)
	if r.equal != r.requests {
		t.Errorf("two servers of one program differ:\n%s", r.markdown(time.Now()))
	}
	for _, code := range []string{"POST 201", "POST 422", "GET 200", "LIST 200", "PATCH 200", "PATCH 404", "PUT 200", "DELETE 200"} {
		if r.codes[code] == 0 {
			t.Errorf("no request with the answer %s: %v", code, r.codes)
		}
	}
}

// broken changes the answers of a server.
type broken struct {
	next   http.RoundTripper
	change func(r *http.Request, answer *http.Response, body string) string
}

func (b broken) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(bytes.NewReader([]byte(b.change(r, answer, string(body)))))
	answer.ContentLength = -1
	answer.Header.Del("Content-Length")
	return answer, nil
}

func TestBrokenServers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(r *http.Request, answer *http.Response, body string) string
		want   string // part of a signature
	}{
		"a field": {func(_ *http.Request, _ *http.Response, body string) string {
			return strings.Replace(body, `"type":"Opaque"`, `"type":"Other"`, 1)
		}, `.type: Opaque | Other`},
		"a code": {func(r *http.Request, answer *http.Response, body string) string {
			if answer.StatusCode == http.StatusCreated && !strings.Contains(body, `"CustomResourceDefinition"`) && r.URL.Path != "/api/v1/namespaces" {
				answer.StatusCode = http.StatusOK
			}
			return body
		}, "201/200: kind"},
		"a header": {func(_ *http.Request, answer *http.Response, body string) string {
			answer.Header.Del("Warning")
			return body
		}, "at header Warning"},
		"a missing member": {func(_ *http.Request, _ *http.Response, body string) string {
			return strings.Replace(body, `"generation":1,`, "", 1)
		}, ".generation: N | none"},
		"a message": {func(_ *http.Request, _ *http.Response, body string) string {
			return strings.Replace(body, "already exists", "exists already", 1)
		}, "exists already"},
		"a wrong resourceVersion": {func(r *http.Request, _ *http.Response, body string) string {
			if r.Method == "GET" && !strings.Contains(body, `"items"`) {
				return strings.Replace(body, `"resourceVersion":"`, `"resourceVersion":"9`, 1)
			}
			return body
		}, ".metadata.resourceVersion: <as before> | <new>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			right := serve(t)
			right.client = &http.Client{Transport: broken{right.client.Transport, c.change}}
			r := compareInTest(t, serve(t), right, 300)
			if text := r.markdown(time.Now()); len(r.unexplained) == 0 || !strings.Contains(text, c.want) {
				t.Errorf("the change is not reported as %q:\n%s", c.want, text)
			}
		})
	}
}

func TestSeed(t *testing.T) {
	t.Parallel()
	kinds := append(typedKinds(), customKinds("x.example.com")...)
	made := func(seed uint64) (all []string) {
		for number := range 30 {
			g := newGrammar(seed, number, kinds)
			for range caseLength(g, 100) {
				r := g.next()
				all = append(all, r.method+" "+r.target()+"\n"+r.body)
			}
		}
		return all
	}
	one, again, other := made(1), made(1), made(2)
	if strings.Join(one, "\n") != strings.Join(again, "\n") {
		t.Error("equal seeds make different requests")
	}
	if strings.Join(one, "\n") == strings.Join(other, "\n") {
		t.Error("different seeds make equal requests")
	}
	s := newState("space")
	for _, text := range one {
		if left := s.expand(text); strings.Contains(left, "${") {
			t.Errorf("a variable is left in %s", left)
		}
	}
}
