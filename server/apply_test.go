package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const applyType = "application/apply-patch+yaml"

// applying is a client that applies.
type applying struct {
	t   *testing.T
	srv *servertest.Server
}

// apply applies a configuration and returns the object's metadata, or the Status.
func (a applying) apply(path, query, config string, want int) (string, metav1.ObjectMeta, metav1.Status) {
	a.t.Helper()
	code, body := call(a.t, a.srv.Client(), "PATCH", a.srv.URL+path+"?"+query, config, "Content-Type", applyType)
	if code != want {
		a.t.Fatalf("apply: %d, want %d: %s", code, want, body)
	}
	var obj struct{ Metadata metav1.ObjectMeta }
	var status metav1.Status
	if code < 300 {
		if err := json.Unmarshal([]byte(body), &obj); err != nil {
			a.t.Fatal(err)
		}
	} else if err := json.Unmarshal([]byte(body), &status); err != nil {
		a.t.Fatal(err)
	}
	return body, obj.Metadata, status
}

// owners writes managedFields as "manager operation version[/subresource] fields", one a line.
func owners(m metav1.ObjectMeta) string {
	var lines []string
	for _, e := range m.ManagedFields {
		version := e.APIVersion[strings.LastIndex(e.APIVersion, "/")+1:]
		if e.Subresource != "" {
			version += "/" + e.Subresource
		}
		lines = append(lines, fmt.Sprintf("%s %s %s %s", e.Manager, e.Operation, version, e.FieldsV1.String()))
	}
	return strings.Join(lines, "\n")
}

func TestApplyInEveryVersion(t *testing.T) {
	t.Parallel()
	a := applying{t, servertest.Start(t, server.Options{Groups: []server.Group{sails()}})}
	v1, beta, alpha := sailsPath("v1")+"/s", sailsPath("v1beta1")+"/s", sailsPath("v1alpha1")+"/s"
	config := func(version, rest string) string {
		return "apiVersion: sea.example.com/" + version + "\nkind: Sail\nmetadata: {name: s}\n" + rest
	}
	_, m, _ := a.apply(beta, "fieldManager=a", config("v1beta1", "spec: {area: 12m2, hue: red}"), http.StatusCreated)
	if got, want := owners(m), `a Apply v1beta1 {"f:spec":{"f:area":{},"f:hue":{}}}`; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	body, same, _ := a.apply(beta, "fieldManager=a", config("v1beta1", "spec: {area: 12m2, hue: red}"), http.StatusOK)
	if same.ResourceVersion != m.ResourceVersion {
		t.Errorf("the same applied again is a change: %s", body)
	}

	// In another version the owner is shown with the field name of that version.
	_, _, s := a.apply(v1, "fieldManager=b", config("v1", "spec: {area: 13}"), http.StatusConflict)
	if want := `Apply failed with 1 conflict: conflict with "a": .spec.area`; s.Message != want || len(s.Details.Causes) != 1 || s.Details.Causes[0].Field != ".spec.area" {
		t.Errorf("%+v", s)
	}
	_, _, s = a.apply(v1, "fieldManager=b", config("v1", "spec: {area: 12, color: blue}"), http.StatusConflict)
	if want := `Apply failed with 1 conflict: conflict with "a": .spec.hue`; s.Message != want { // the name of the field in the version of the owner
		t.Errorf("%+v", s)
	}
	body, m, _ = a.apply(v1, "fieldManager=b&force=true", config("v1", "spec: {area: 12, color: blue}"), http.StatusOK)
	if got, want := owners(m), "a Apply v1beta1 {\"f:spec\":{\"f:area\":{}}}\nb Apply v1 {\"f:spec\":{\"f:area\":{},\"f:color\":{}}}"; got != want {
		t.Errorf("got %s\nwant %s\n%s", got, want, body)
	}

	// A manager that continues in another version keeps one entry, and fields that it leaves out are removed.
	body, m, _ = a.apply(v1, "fieldManager=a", config("v1", "spec: {area: 12}"), http.StatusOK)
	if got, want := owners(m), "a Apply v1 {\"f:spec\":{\"f:area\":{}}}\nb Apply v1 {\"f:spec\":{\"f:area\":{},\"f:color\":{}}}"; got != want {
		t.Errorf("got %s\nwant %s\n%s", got, want, body)
	}
	body, m, _ = a.apply(v1, "fieldManager=b", config("v1", "spec: {area: 12}"), http.StatusOK)
	if strings.Contains(body, "color") || owners(m) != "a Apply v1 {\"f:spec\":{\"f:area\":{}}}\nb Apply v1 {\"f:spec\":{\"f:area\":{}}}" {
		t.Errorf("%s", body)
	}

	// An update in a third version has an entry of its own and takes from the others what it changes.
	code, text := call(t, a.srv.Client(), "PATCH", a.srv.URL+alpha+"?fieldManager=c", `{"area":14}`, "Content-Type", mergePatchType)
	wantCode(t, http.StatusOK, code, text)
	_, m, _ = a.apply(v1, "fieldManager=b", config("v1", "{}"), http.StatusBadRequest)
	_ = m
	code, text = call(t, a.srv.Client(), "GET", a.srv.URL+v1, "")
	wantCode(t, http.StatusOK, code, text)
	var sail Sail
	if err := json.Unmarshal([]byte(text), &sail); err != nil {
		t.Fatal(err)
	}
	if got, want := owners(sail.ObjectMeta), `c Update v1alpha1 {"f:area":{}}`; got != want || sail.Spec.Area != 14 {
		t.Errorf("got %s\nwant %s\n%s", got, want, text)
	}
}

func TestApplyThatCannotBeConverted(t *testing.T) {
	t.Parallel()
	a := applying{t, servertest.Start(t, server.Options{Groups: []server.Group{sails()}})}
	const head = "kind: Sail\nmetadata: {name: s}\n"
	beta, alpha := sailsPath("v1beta1")+"/s", sailsPath("v1alpha1")+"/s"
	_, _, s := a.apply(beta, "fieldManager=a", "apiVersion: sea.example.com/v1beta1\n"+head+"spec: {area: many}", http.StatusBadRequest)
	if !strings.Contains(s.Message, `area "many": want a number and m2`) {
		t.Errorf("%+v", s)
	}
	a.apply(beta, "fieldManager=a", "apiVersion: sea.example.com/v1beta1\n"+head+"spec: {area: 200m2}", http.StatusCreated)
	_, _, s = a.apply(alpha, "fieldManager=a", "apiVersion: sea.example.com/v1alpha1\n"+head+"area: 3", http.StatusInternalServerError)
	if !strings.Contains(s.Message, "too large") {
		t.Errorf("%+v", s)
	}
	a.apply(beta, "fieldManager=a", "apiVersion: sea.example.com/v1beta1\n"+head+"spec: {area: 20m2}", http.StatusOK)
	_, _, s = a.apply(beta, "fieldManager=a", "apiVersion: sea.example.com/v1\n"+head+"spec: {area: 20}", http.StatusBadRequest)
	if s.Message != "invalid object type: sea.example.com/v1, Kind=Sail" {
		t.Errorf("%+v", s)
	}
}
