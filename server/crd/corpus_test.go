package crd_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/server/crd"
	"github.com/keelson-dev/keelson/server/servertest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// corpusCase is an object of a definition of the corpus, with the answer of kube-apiserver to its creation: the object with its
// defaults, or the reason for the refusal.
type corpusCase struct {
	Path    string         `json:"path"`
	Object  map[string]any `json:"object"`
	Code    int            `json:"code"`
	Answer  map[string]any `json:"answer"` // without apiVersion, kind and metadata
	Causes  []metav1.StatusCause
	Message string
}

// TestCorpus compares the definitions of well-known projects with kube-apiserver: each must be accepted and established, and its
// objects must be created with the same defaults, or refused for the same causes. See testdata/corpus/README.md for their
// sources.
func TestCorpus(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/corpus/*.yaml.gz")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		project := strings.TrimSuffix(file, ".yaml.gz")
		t.Run(filepath.Base(project), func(t *testing.T) {
			t.Parallel()
			srv := servertest.New(t, crd.New(crd.Options{}))
			definitions := filepath.Join(t.TempDir(), "definitions.yaml")
			if err := os.WriteFile(definitions, unzipped(t, file), 0o600); err != nil {
				t.Fatal(err)
			}
			servertest.InstallCRDs(t, srv, definitions)
			var cases []corpusCase
			if err := json.Unmarshal(unzipped(t, project+".answers.json.gz"), &cases); err != nil {
				t.Fatal(err)
			}
			codes := map[int]int{}
			for i, c := range cases {
				codes[c.Code]++
				if why := c.differs(t, srv); why != "" {
					text, _ := json.Marshal(c.Object)
					t.Errorf("case %d, POST %s %.2000s: %s", i, c.Path, text, why)
				}
			}
			if codes[http.StatusCreated] == 0 || codes[http.StatusUnprocessableEntity] == 0 {
				t.Errorf("the cases are %v: want some that are created and some that are refused", codes)
			}
		})
	}
}

// differs describes the difference from the answer of kube-apiserver, or returns "".
func (c corpusCase) differs(t *testing.T, srv *servertest.Server) string {
	t.Helper()
	code, body := create(t, srv, c.Path+"?fieldValidation=Strict", c.Object)
	if code != c.Code {
		return http.StatusText(code) + ", want " + http.StatusText(c.Code) + ": " + string(body)
	}
	if code == http.StatusCreated {
		var got map[string]any
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"apiVersion", "kind", "metadata"} {
			delete(got, name)
		}
		if len(got) == 0 && len(c.Answer) == 0 || reflect.DeepEqual(got, c.Answer) {
			return ""
		}
		want, _ := json.Marshal(c.Answer)
		return "it is " + string(body) + ", want " + string(want)
	}
	var got metav1.Status
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	if code != http.StatusUnprocessableEntity {
		if got.Message != c.Message {
			return "refused with " + got.Message + ", want " + c.Message
		}
		return ""
	}
	var causes []metav1.StatusCause
	if got.Details != nil {
		causes = got.Details.Causes
	}
	byField := func(a, b metav1.StatusCause) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message))
	}
	slices.SortFunc(causes, byField)
	slices.SortFunc(c.Causes, byField)
	if !slices.Equal(causes, c.Causes) {
		want, _ := json.Marshal(c.Causes)
		encoded, _ := json.Marshal(causes)
		return "the causes are " + string(encoded) + ", want " + string(want)
	}
	return ""
}

func create(t *testing.T, srv *servertest.Server, path string, object any) (int, []byte) {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, body
}

// unzipped returns the content of a compressed file.
func unzipped(t *testing.T, path string) []byte {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	r, err := gzip.NewReader(file)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return text
}
