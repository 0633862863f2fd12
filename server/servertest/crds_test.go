package servertest_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/keelson-dev/keelson/server/crd"
	"github.com/keelson-dev/keelson/server/servertest"
)

// boatsCRD returns a definition whose objects have a name of at most this number of letters.
func boatsCRD(plural, kind string, letters int) string {
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.sea.example.com}
spec:
  group: sea.example.com
  scope: Namespaced
  names: {plural: %[1]s, kind: %[2]s}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {name: {type: string, maxLength: %[3]d}}}}}}
  - {name: v2, served: false, storage: false, schema: {openAPIV3Schema: {type: object}}}
`, plural, kind, letters)
}

func withCRDs(t *testing.T) *servertest.Server {
	t.Helper()
	return servertest.New(t, crd.New(crd.Options{}))
}

func put(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

const definedBoats = "/apis/sea.example.com/v1/namespaces/default/boats"

func TestInstallCRDs(t *testing.T) {
	t.Parallel()
	srv := withCRDs(t)
	dir := t.TempDir()
	put(t, dir+"/many.yaml", "# Boats and ships.\n---\n"+boatsCRD("boats", "Boat", 3)+"---\n"+boatsCRD("ships", "Ship", 3)+"---\n# The end.\n")
	put(t, dir+"/one.json", `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "rafts.sea.example.com"},
		"spec": {"group": "sea.example.com", "scope": "Cluster", "names": {"plural": "rafts", "kind": "Raft"},
			"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}`)
	put(t, dir+"/below/odd.yaml", "kind: Odd\n")
	put(t, dir+"/README.txt", "No definition.\n")
	servertest.InstallCRDs(t, srv, dir, put(t, t.TempDir()+"/file", boatsCRD("oars", "Oar", 3)))
	ask(t, srv, "POST", definedBoats, `{"metadata": {"name": "a"}, "apiVersion": "sea.example.com/v1", "kind": "Boat", "spec": {"name": "abc"}}`).want(201)
	ask(t, srv, "POST", definedBoats, `{"metadata": {"name": "b"}, "apiVersion": "sea.example.com/v1", "kind": "Boat", "spec": {"name": "abcd"}}`).want(422, "spec.name: Too long")
	ask(t, srv, "GET", "/apis/sea.example.com/v1", "").want(200, `"name":"boats"`, `"name":"ships"`, `"name":"rafts"`, `"name":"oars"`)
}

// After each InstallCRDs, requests reach the new API at once.
func TestInstallCRDsAgain(t *testing.T) {
	t.Parallel()
	srv := withCRDs(t)
	path := t.TempDir() + "/boats.yaml"
	for i := range 20 {
		servertest.InstallCRDs(t, srv, put(t, path, boatsCRD("boats", "Boat", 3+i%2)))
		code := 422 + (201-422)*(i%2)
		ask(t, srv, "POST", definedBoats, fmt.Sprintf(`{"metadata": {"name": "a%d"}, "apiVersion": "sea.example.com/v1", "kind": "Boat", "spec": {"name": "abcd"}}`, i)).want(code)
	}
	servertest.InstallCRDs(t, srv, path) // unchanged
	servertest.InstallCRDs(t, srv, put(t, path, strings.Replace(boatsCRD("boats", "Boat", 3), "served: false", "served: true", 1)))
	ask(t, srv, "GET", strings.Replace(definedBoats, "v1", "v2", 1), "").want(200)
	servertest.InstallCRDs(t, srv, put(t, path, boatsCRD("boats", "Boat", 3)))
	ask(t, srv, "GET", strings.Replace(definedBoats, "v1", "v2", 1), "").want(404)
}

func TestInstallCRDsRefused(t *testing.T) {
	t.Parallel()
	srv := withCRDs(t)
	good := boatsCRD("boats", "Boat", 3)
	for _, c := range []struct{ text, want string }{
		{strings.Replace(good, "/v1\n", "/v1beta1\n", 1), "odd.yaml:1: this CustomResourceDefinition is of apiextensions.k8s.io/v1beta1, which no server of Kubernetes 1.22 or later has"},
		{good + "---\napiVersion: v1\nkind: ConfigMap\n", `odd.yaml:15 (document 2): this is a "ConfigMap" of "v1"; only CustomResourceDefinitions can be installed`},
		{good + "---\n" + good, "odd.yaml:15 (document 2): the CustomResourceDefinition boats.sea.example.com is in /"},
		{"# nothing\n", "there is no CustomResourceDefinition in"},
		{"a: [\n", "odd.yaml: "},
		{"[]\n", "odd.yaml:1: this is no object"},
		{`{"kind": `, "odd.yaml: unexpected EOF"},
		{good + "kind: Twice\n", `line 14: key "kind" already set in map`},
		{good + "---\n---\n# A comment.\n" + good + "kind: Twice\n", `line 30: key "kind" already set in map`},
		{strings.Replace(good, "{name: boats.sea.example.com}", "{}", 1), "this CustomResourceDefinition has no name"},
		{good + "  colour: red\n", "odd.yaml:14: POST " + definitionsPath},
		{good + "  colour: red\n", `unknown field "spec.colour"`},
		{"# One.\n---\n\n" + good + "---\n" + strings.ReplaceAll(good, "boats", "arks") + "  colour: red\n", "odd.yaml:31 (document 2): POST "},
		{strings.Replace(good, "type: string", "type: text", 1), "odd.yaml:12: POST "},
		{strings.Replace(good, "type: string", "type: text", 1), `spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[name].type: Unsupported value: "text"`},
	} {
		err := srv.InstallCRDs(t.Context(), put(t, t.TempDir()+"/odd.yaml", c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q...: %v, want %s", c.text, err, c.want)
		}
	}
	if err := srv.InstallCRDs(t.Context(), t.TempDir()+"/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a path that is not there: %v", err)
	}
	two := strings.NewReplacer("type: string", "type: text", "scope: Namespaced", "scope: Everywhere").Replace(good)
	err := srv.InstallCRDs(t.Context(), put(t, t.TempDir()+"/odd.yaml", two))
	for _, want := range []string{
		"odd.yaml:1: the CustomResourceDefinition boats.sea.example.com is invalid:\n\t",
		`odd.yaml:6: spec.scope: Unsupported value: "Everywhere"`, "odd.yaml:12: spec.versions[0].schema.openAPIV3Schema.",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("two mistakes: %v, want %s", err, want)
		}
	}
	ask(t, srv, "GET", definitionsPath, "").want(200, `"items":[]`)
}

// If a name is taken, the error has the condition that says so.
func TestInstallCRDsConflict(t *testing.T) {
	t.Parallel()
	srv := withCRDs(t)
	dir := t.TempDir()
	servertest.InstallCRDs(t, srv, put(t, dir+"/boats.yaml", boatsCRD("boats", "Boat", 3)))
	err := srv.InstallCRDs(t.Context(), put(t, dir+"/ships.yaml", boatsCRD("ships", "Boat", 3)))
	const want = `ships.yaml:1: the CustomResourceDefinition ships.sea.example.com is not accepted: its condition NamesAccepted is False: ListKindConflict: "BoatList" is already in use`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// A definition that is being deleted cannot be installed.
func TestInstallCRDsOfOneThatGoes(t *testing.T) {
	t.Parallel()
	srv := withCRDs(t)
	path := put(t, t.TempDir()+"/boats.yaml", boatsCRD("boats", "Boat", 3))
	servertest.InstallCRDs(t, srv, path)
	ask(t, srv, "POST", definedBoats, `{"metadata": {"name": "a", "finalizers": ["example.com/hold"]}, "apiVersion": "sea.example.com/v1", "kind": "Boat"}`).want(201)
	ask(t, srv, "DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/boats.sea.example.com", "").want(200)
	if err := srv.InstallCRDs(t.Context(), path); err == nil || !strings.Contains(err.Error(), "boats.sea.example.com is being deleted") {
		t.Error(err)
	}
}

// In a bubble, the waits take no time.
func TestInstallCRDsInABubble(t *testing.T) {
	t.Parallel()
	path := put(t, t.TempDir()+"/boats.yaml", boatsCRD("boats", "Boat", 3))
	synctest.Test(t, func(t *testing.T) {
		srv := withCRDs(t)
		servertest.InstallCRDs(t, srv, path)
		servertest.InstallCRDs(t, srv, put(t, path, boatsCRD("boats", "Boat", 4)))
		ask(t, srv, "POST", definedBoats, `{"metadata": {"name": "a"}, "apiVersion": "sea.example.com/v1", "kind": "Boat", "spec": {"name": "abcd"}}`).want(201)
	})
}

func TestInstallCRDsWithoutTheExtension(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t)
	err := srv.InstallCRDs(t.Context(), put(t, t.TempDir()+"/boats.yaml", boatsCRD("boats", "Boat", 3)))
	if err == nil || !strings.Contains(err.Error(), "give it the extension of package server/crd") {
		t.Error(err)
	}
}
