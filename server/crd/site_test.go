package crd_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/crd"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sharedStorage is a storage that several servers use, at once or one after the other. None of them closes it, and each must read
// its revision from it.
type sharedStorage struct{ storage.Backend }

func (sharedStorage) Close() error { return nil }

func newSharedStorage(t *testing.T) storage.Backend {
	t.Helper()
	b := memory.New(memory.Options{})
	t.Cleanup(func() { _ = b.Close() })
	return sharedStorage{b}
}

// site is a server with the extension, over HTTP.
type site struct {
	t   *testing.T
	srv *servertest.Server
	c   *http.Client
}

// newSite starts a server; b nil is a storage of its own.
func newSite(t *testing.T, b storage.Backend, parts ...server.Extension) *site {
	t.Helper()
	var o server.Options
	if b != nil {
		o.Storage = func(context.Context) (storage.Backend, error) { return b, nil }
	}
	return startSite(t, o, append(parts, crd.New(crd.Options{}))...)
}

func startSite(t *testing.T, o server.Options, parts ...server.Extension) *site {
	t.Helper()
	srv := servertest.Start(t, o, parts...)
	return &site{t, srv, srv.Client()}
}

const crdsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// do makes a request and decodes the answer into out, which may be nil.
func (s *site) do(method, path, body string, out any, headers ...string) int {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.srv.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := s.c.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if out != nil {
		if raw, ok := out.(*string); ok {
			*raw = string(text)
		} else if err := json.Unmarshal(text, out); err != nil {
			s.t.Fatalf("%s %s: %v in %s", method, path, err, text)
		}
	}
	return resp.StatusCode
}

// want is do, and fails the test if the answer has another code.
func (s *site) want(code int, method, path, body string, headers ...string) string {
	s.t.Helper()
	var text string
	if got := s.do(method, path, body, &text, headers...); got != code {
		s.t.Fatalf("%s %s: %d, want %d: %s", method, path, got, code, text)
	}
	return text
}

// definitionOf makes a definition of one version that keeps all fields, in group example.com unless change says otherwise.
func definitionOf(plural, kind string, change ...func(*apiextensionsv1.CustomResourceDefinition)) *apiextensionsv1.CustomResourceDefinition {
	preserve := true
	d := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: plural + ".example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &preserve}},
			}},
		},
	}
	for _, f := range change {
		f(d)
	}
	return d
}

func text(t *testing.T, v any) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.NewEncoder(&out).Encode(v); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// define creates a definition.
func (s *site) define(d *apiextensionsv1.CustomResourceDefinition) {
	s.t.Helper()
	s.want(http.StatusCreated, "POST", crdsPath, text(s.t, d))
}

// establish creates a definition and waits until it is established.
func (s *site) establish(d *apiextensionsv1.CustomResourceDefinition) {
	s.t.Helper()
	s.define(d)
	s.await(d.Name, isTrue(apiextensionsv1.Established))
}

// get reads a definition; nil: there is none.
func (s *site) get(name string) *apiextensionsv1.CustomResourceDefinition {
	s.t.Helper()
	var body string
	switch code := s.do("GET", crdsPath+"/"+name, "", &body); code {
	case http.StatusOK:
		out := &apiextensionsv1.CustomResourceDefinition{}
		if err := json.Unmarshal([]byte(body), out); err != nil {
			s.t.Fatal(err)
		}
		return out
	case http.StatusNotFound:
		return nil
	default:
		s.t.Fatalf("GET of %s: %d: %s", name, code, body)
		return nil
	}
}

// await waits until ok returns true for a definition; ok is never called with nil.
func (s *site) await(name string, ok func(*apiextensionsv1.CustomResourceDefinition) bool) *apiextensionsv1.CustomResourceDefinition {
	s.t.Helper()
	var last *apiextensionsv1.CustomResourceDefinition
	eventually(s.t, func() bool {
		last = s.get(name)
		return last != nil && ok(last)
	}, func() string { return "definition " + name + " is " + text(s.t, last) })
	return last
}

// awaitGone waits until there is neither the definition nor what it defined.
func (s *site) awaitGone(name string) {
	s.t.Helper()
	plural, group, _ := strings.Cut(name, ".")
	eventually(s.t, func() bool { return s.get(name) == nil }, func() string { return "definition is " + text(s.t, s.get(name)) })
	eventually(s.t, func() bool {
		return s.do("GET", "/apis/"+group+"/v1/"+plural, "", nil) == http.StatusNotFound
	}, func() string { return "the resource is served" })
}

// eventually waits until ok returns true, and fails after a timeout.
func eventually(t *testing.T, ok func() bool, what func() string) {
	t.Helper()
	for range 3000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("it does not come: " + what())
}

func condition(d *apiextensionsv1.CustomResourceDefinition, t apiextensionsv1.CustomResourceDefinitionConditionType) apiextensionsv1.CustomResourceDefinitionCondition {
	for _, c := range d.Status.Conditions {
		if c.Type == t {
			return c
		}
	}
	return apiextensionsv1.CustomResourceDefinitionCondition{}
}

func isTrue(t apiextensionsv1.CustomResourceDefinitionConditionType) func(*apiextensionsv1.CustomResourceDefinition) bool {
	return func(d *apiextensionsv1.CustomResourceDefinition) bool {
		return condition(d, t).Status == apiextensionsv1.ConditionTrue
	}
}

func hasReason(t apiextensionsv1.CustomResourceDefinitionConditionType, reason string) func(*apiextensionsv1.CustomResourceDefinition) bool {
	return func(d *apiextensionsv1.CustomResourceDefinition) bool { return condition(d, t).Reason == reason }
}

// conditionText returns the status, reason and message of a condition.
func conditionText(d *apiextensionsv1.CustomResourceDefinition, t apiextensionsv1.CustomResourceDefinitionConditionType) string {
	c := condition(d, t)
	return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
}

// object is an object of the group example.com, of version v1.
func object(kind, name string, finalizers ...string) string {
	m := map[string]any{"name": name}
	if len(finalizers) > 0 {
		m["finalizers"] = finalizers
	}
	out, _ := json.Marshal(map[string]any{"apiVersion": "example.com/v1", "kind": kind, "metadata": m})
	return string(out)
}
