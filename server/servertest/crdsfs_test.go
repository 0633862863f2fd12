package servertest_test

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/crd"
	"github.com/keelson-dev/keelson/server/servertest"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

//go:embed testdata/crds
var embedded embed.FS

// Definitions that a program embeds are installed by one call, and converted by a Go function instead of a webhook.
func ExampleServer_InstallCRDsFS() {
	// //go:embed testdata/crds
	// var embedded embed.FS
	convert := func(in *unstructured.Unstructured, to schema.GroupVersion) (*unstructured.Unstructured, error) {
		from, target := "color", "colour"
		if to.Version == "v1" {
			from, target = target, from
		}
		if spec, ok := in.Object["spec"].(map[string]any); ok {
			spec[target] = spec[from]
			delete(spec, from)
		}
		return in, nil
	}
	srv, err := servertest.Run(server.Options{}, crd.New(crd.Options{Conversions: map[schema.GroupKind]runtime.ConvertUntyped{
		{Group: "sky.example.com", Kind: "Kite"}: convert,
	}}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	if err := srv.InstallCRDsFS(context.Background(), embedded); err != nil { // in a test: servertest.InstallCRDsFS(t, srv, embedded)
		fmt.Println(err)
		return
	}

	const kite = `{"apiVersion": "sky.example.com/v1", "kind": "Kite", "metadata": {"name": "k"}, "spec": {"color": "red"}}`
	resp, err := srv.Client().Post(srv.URL+"/apis/sky.example.com/v1/kites", "application/json", strings.NewReader(kite))
	if err != nil {
		fmt.Println(err)
		return
	}
	resp.Body.Close()
	if resp, err = srv.Client().Get(srv.URL + "/apis/sky.example.com/v2/kites/k"); err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	_, spec, _ := strings.Cut(string(text), `"spec":`)
	fmt.Println(http.StatusText(resp.StatusCode), spec)
	// Output: OK {"colour":"red"}}
}

func TestInstallCRDsFS(t *testing.T) {
	t.Parallel()
	fsys := fstest.MapFS{
		"a/boats.yaml":      {Data: []byte(boatsCRD("boats", "Boat", 3))},
		"a/below/ships.yml": {Data: []byte(boatsCRD("ships", "Ship", 3))},
		"a/README.md":       {Data: []byte("No definition.\n")},
		"b/rafts.yaml":      {Data: []byte("---\n" + boatsCRD("rafts", "Raft", 3))},
	}
	shown := func(srv *servertest.Server) string {
		t.Helper()
		var names []string
		for _, name := range []string{"boats", "rafts", "ships"} {
			if resp, err := srv.Client().Get(srv.URL + "/apis/sea.example.com/v1/" + name); err != nil {
				t.Fatal(err)
			} else if resp.Body.Close(); resp.StatusCode == 200 {
				names = append(names, name)
			}
		}
		return strings.Join(names, " ")
	}
	for _, c := range []struct {
		want  string
		paths []string
	}{
		{"boats rafts ships", nil},
		{"boats rafts ships", []string{"a/below", "a", "b/rafts.yaml"}},
		{"boats", []string{"a"}},
		{"rafts", []string{"b"}},
	} {
		srv := withCRDs(t)
		servertest.InstallCRDsFS(t, srv, fsys, c.paths...)
		if got := shown(srv); got != c.want {
			t.Errorf("%q: there are %s, want %s", c.paths, got, c.want)
		}
	}
	srv := withCRDs(t)
	if err := srv.InstallCRDsFS(t.Context(), fsys, "c"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a path that is not there: %v", err)
	}
	if err := srv.InstallCRDsFS(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "there is no fs.FS") {
		t.Error(err)
	}
	if err := srv.InstallCRDsFS(t.Context(), fstest.MapFS{"x": {}}); err == nil || !strings.Contains(err.Error(), "there is no CustomResourceDefinition") {
		t.Error(err)
	}
	fsys["b/rafts.yaml"].Data = []byte(strings.Replace(boatsCRD("rafts", "Raft", 3), "type: string", "type: text", 1))
	if err := srv.InstallCRDsFS(t.Context(), fsys); err == nil || !strings.Contains(err.Error(), "InstallCRDsFS: b/rafts.yaml:12: POST ") {
		t.Error(err)
	}
}

func TestDefine(t *testing.T) {
	t.Parallel()
	srv := withCRDs(t)
	object := new(apiextensionsv1.CustomResourceDefinition)
	if err := yaml.Unmarshal([]byte(boatsCRD("ships", "Ship", 3)), object); err != nil {
		t.Fatal(err)
	}
	object.APIVersion, object.Kind = "", "" // as Go values often are
	all := servertest.CRDs{
		FS:      fstest.MapFS{"boats.yaml": {Data: []byte("kind: Kustomization\n---\n" + boatsCRD("boats", "Boat", 3))}},
		Paths:   []string{".", "missing"},
		Objects: []*apiextensionsv1.CustomResourceDefinition{object}, SkipMissing: true, SkipOthers: true,
	}
	for range 2 {
		made, err := srv.Define(t.Context(), all)
		if err != nil {
			t.Fatal(err)
		}
		if len(made) != 2 || made[0].Name != "boats.sea.example.com" || made[1].Name != "ships.sea.example.com" {
			t.Fatalf("made are %v", made)
		}
		for _, d := range made {
			if d.Status.AcceptedNames.Plural != d.Spec.Names.Plural || d.UID == "" || d.Generation != 1 {
				t.Errorf("%s is %+v", d.Name, d)
			}
		}
	}
	if object.Kind != "" {
		t.Error("the object is changed")
	}
	if made, err := srv.Define(t.Context(), servertest.CRDs{Paths: []string{t.TempDir() + "/none"}, SkipMissing: true}); err != nil || len(made) != 0 {
		t.Errorf("nothing: %v, %v", made, err)
	}
	for want, c := range map[string]servertest.CRDs{
		"CRDs.Objects[1]: the CustomResourceDefinition ships.sea.example.com is in CRDs.Objects[0] too": {Objects: []*apiextensionsv1.CustomResourceDefinition{object, object}},
		"CRDs.Objects[0] is nil":                                      {Objects: []*apiextensionsv1.CustomResourceDefinition{nil}},
		"CRDs.Objects[0]: this CustomResourceDefinition has no name":  {Objects: []*apiextensionsv1.CustomResourceDefinition{{}}},
		`boats.yaml:1 (document 1): this is a "Kustomization"`:        {FS: all.FS},
		"servertest: Define: there is no CustomResourceDefinition in": {},
	} {
		if _, err := srv.Define(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestDefineAt(t *testing.T) {
	t.Parallel()
	srv := withCRDs(t)
	dir := t.TempDir()
	for letters := 3; letters < 5; letters++ {
		put(t, dir+"/boats.yaml", boatsCRD("boats", "Boat", letters))
		made, err := servertest.DefineAt(t.Context(), srv.URL+"/", srv.Client(), servertest.CRDs{Paths: []string{dir}})
		if err != nil || len(made) != 1 || made[0].Generation != int64(letters-2) || made[0].Status.Conditions == nil {
			t.Fatalf("made are %v, %v", made, err)
		}
	}
	ask(t, srv, "GET", definedBoats, "").want(200)
	put(t, dir+"/boats.yaml", strings.Replace(boatsCRD("boats", "Boat", 3), "maxLength: 3", "maxLength: none", 1))
	if _, err := servertest.DefineAt(t.Context(), srv.URL, srv.Client(), servertest.CRDs{Paths: []string{dir}}); err == nil || !strings.Contains(err.Error(), "boats.yaml:") {
		t.Error(err)
	}
	if _, err := servertest.DefineAt(t.Context(), srv.URL, srv.Anonymous(), servertest.CRDs{FS: embedded}); err == nil || !strings.Contains(err.Error(), "servertest: DefineAt: testdata/crds/kites.yaml:1: GET ") {
		t.Errorf("nobody: %v", err)
	}
}

// An error names the line of a field in the file, also if kube-apiserver has another path for it, or if the file has only a part
// of it.
func TestInstallCRDsNamesTheLine(t *testing.T) {
	t.Parallel()
	const text = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: kites.sky.example.com
spec:
  group: sky.example.com
  scope: Cluster
  names: {plural: kites, kind: Kite}
  conversion:
    strategy: None
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns:
    - name: A
      type: string
      jsonPath: .a
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec.a:
            type: object
            properties:
              b: {type: string}
`
	for _, c := range []struct {
		old, with string
		line      int
	}{
		{"b: {type: string}", "b: {type: text}", 26},
		{"b: {type: string}", "b: {}", 26},
		{"type: object\n            properties:\n              b", "nullable: yes please\n            properties:\n              b", 0}, // not decoded by the test
		{"type: object\n            properties:\n              b", "type: array\n            properties:\n              b", 23},
		{"jsonPath: .a", "jsonPath: a", 18},
		{"strategy: None", "strategy: Some", 10},
		{"strategy: None", "strategy: None\n    webhook: {conversionReviewVersions: [v1]}", 11},
		{"kind: Kite}", "kind: kite_}", 8},
		{"storage: true", "storage: false", 11},
		{"name: kites.sky", "name: kite.sky", 4},
	} {
		changed := strings.Replace(text, c.old, c.with, 1)
		err := withCRDs(t).InstallCRDs(t.Context(), put(t, t.TempDir()+"/kites.yaml", changed))
		if err == nil || changed == text || c.line > 0 && !strings.Contains(err.Error(), fmt.Sprintf("kites.yaml:%d: ", c.line)) {
			t.Errorf("%q: %v, want line %d", c.with, err, c.line)
		}
	}
	for name, text := range map[string]string{
		"json": "\n{\"kind\": 1}\n", "two": "\n{\"apiVersion\": \"v1\",\"kind\": \"List\"}\n\n {}",
	} {
		err := withCRDs(t).InstallCRDs(t.Context(), put(t, t.TempDir()+"/kites.json", text))
		if err == nil || !strings.Contains(err.Error(), "kites.json:2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
