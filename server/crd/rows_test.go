package crd_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/keelson-dev/keelson/server/crd"
	"github.com/keelson-dev/keelson/server/servertest"
)

// The bounds of rows are those of Options, and a cell that is cut short shows it.
func TestRowLimits(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, crd.New(crd.Options{Rows: crd.RowLimits{Steps: 1000, CellBytes: 5}}))
	servertest.InstallCRDsFS(t, srv, fstest.MapFS{"crd.yaml": {Data: []byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: rows.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: rows, kind: Row}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
    additionalPrinterColumns:
    - {name: Text, type: string, jsonPath: .spec.text}
    - {name: Long, type: string, jsonPath: .spec.long}
    - {name: Spec, type: string, jsonPath: .spec}
    - {name: Below, type: integer, jsonPath: .spec..none}
    - {name: Small, type: string, jsonPath: .spec.text}
`)}})
	do := func(method, path, body string, header ...string) string {
		req, err := http.NewRequestWithContext(t.Context(), method, srv.URL+"/apis/example.com/v1/rows"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		resp, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode >= 300 {
			t.Fatalf("%s: %s %s, %v", method, resp.Status, text, err)
		}
		return string(text)
	}
	do("POST", "", `{"apiVersion":"example.com/v1","kind":"Row","metadata":{"name":"a"},"spec":{"text":"fits!","long":"fits no","more":[`+
		strings.Repeat(`{"a":1},`, 1000)+`{}]}}`, "Content-Type", "application/json")
	const want = `"cells":["a","fits!","fits ...","{\"lon...","...","fits!"]`
	if got := do("GET", "/a", "", "Accept", asTable); !strings.Contains(got, want) {
		t.Errorf("%s\nwant %s", got, want)
	}
}
