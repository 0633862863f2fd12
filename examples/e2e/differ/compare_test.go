package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// sideOf returns an answer as compare wants it.
func sideOf(r *request, code int, body string, header ...string) side {
	h := http.Header{"Content-Type": {"application/json"}}
	for i := 0; i+1 < len(header); i += 2 {
		h.Add(header[i], header[i+1])
	}
	s := side{answer: answer{code: code, header: h, body: []byte(body)}}
	s.decoded = decode(s.answer, r.watch)
	s.normal = normalizer{newState("space"), r}.body(s.decoded)
	return s
}

func TestCompare(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC().Format(time.RFC3339)
	const uid, uid2 = "8a2e0b9c-4f0d-4c3c-9a53-0a3bb7c0f9aa", "1a2e0b9c-4f0d-4c3c-9a53-0a3bb7c0f9ab"
	for _, c := range []struct {
		left, right string
		want        string // the places of the differences
	}{
		{`{"a": 1, "b": [1, 2]}`, `{"b":[1,2],"a":1}`, ""},
		{`{"a": 1}`, `{"a": 1.0}`, ".a"},
		{`{"a": 1}`, `{"a": "1"}`, ".a"},
		{`{"a": 1}`, `{"a": 1, "b": null}`, ".b"},
		{`{"a": {}}`, `{"a": []}`, ".a"},
		{`{"a": [1, 2]}`, `{"a": [2, 1]}`, ".a[*] .a[*]"},
		{`{"a": [1]}`, `{"a": [1, 2]}`, ".a length"},
		{`{"metadata": {"resourceVersion": "5", "uid": "` + uid + `"}}`, `{"metadata": {"resourceVersion": "7", "uid": "` + uid2 + `"}}`, ""},
		{`{"metadata": {"resourceVersion": "5"}}`, `{"metadata": {"resourceVersion": "0"}}`, ".metadata.resourceVersion"},
		{`{"metadata": {"resourceVersion": "5"}}`, `{"metadata": {}}`, ".metadata.resourceVersion"},
		{`{"metadata": {"creationTimestamp": "` + now + `"}}`, `{"metadata": {"creationTimestamp": "2020-01-01T00:00:00Z"}}`, ".metadata.creationTimestamp"},
		{`{"t": "` + now + `"}`, `{"t": "` + strings.TrimSuffix(now, "Z") + `.000000Z"}`, ".t"},
		{`{"managedFields": [{"manager": "a"}, {"manager": "b"}]}`, `{"managedFields": [{"manager": "b"}, {"manager": "a"}]}`, ""},
		{`{"managedFields": [{"fieldsV1": {"f:a": {}}}]}`, `{"managedFields": [{"fieldsV1": {"f:b": {}}}]}`, ".managedFields[*].fieldsV1.<fields> .managedFields[*].fieldsV1.<fields>"},
		{`{"kind": "Status", "message": "the object has been modified"}`, `{"kind": "Status", "code": 1, "message": "other"}`, ".message .code"},
		{`{"message": "x is invalid: [b: no, c, a: no]", "details": {"causes": [{"field": "a", "message": "no"}, {"field": "b", "message": "no, c"}]}}`,
			`{"message": "x is invalid: [a: no, b: no, c]", "details": {"causes": [{"field": "b", "message": "no, c"}, {"field": "a", "message": "no"}]}}`, ""},
		{`{"message": "x is invalid: [a: no, a: no, c]", "details": {"causes": [{"field": "a", "message": "no"}, {"field": "a", "message": "no, c"}]}}`,
			`{"message": "x is invalid: [a: no, c, a: no]", "details": {"causes": [{"field": "a", "message": "no"}, {"field": "a", "message": "no, c"}]}}`, ""},
		{`{"message": "x is invalid: [a: no, b: no]", "details": {"causes": [{"field": "a", "message": "no"}, {"field": "b", "message": "no"}]}}`,
			`{"message": "x is invalid: [a: no, c: no]", "details": {"causes": [{"field": "a", "message": "no"}, {"field": "b", "message": "no"}]}}`, ".message"},
		{`{"rows": [{"cells": ["a", "3s"]}]}`, `{"rows": [{"cells": ["a", "5s"]}]}`, ""},
		{`{"rows": [{"cells": ["a", "3s"]}]}`, `{"rows": [{"cells": ["a", "<none>"]}]}`, ".rows[*].cells[*]"},
		{`text`, `{"a": 1}`, "body"},
	} {
		r := &request{method: "GET"}
		var found []string
		for _, d := range compare(r, sideOf(r, 200, c.left), sideOf(r, 200, c.right)) {
			found = append(found, d.at)
		}
		if got := strings.Join(found, " "); got != c.want {
			t.Errorf("%s, %s: %q, want %q", c.left, c.right, got, c.want)
		}
	}
}

func TestCompareAnswers(t *testing.T) {
	t.Parallel()
	r, watch := &request{verb: "GET", method: "GET"}, &request{verb: "WATCH", method: "GET", watch: true}
	const mark = `{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "5"}}}`
	const end = `{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "5", "annotations": {"k8s.io/initial-events-end": "true"}}}}`
	const added = `{"type": "ADDED", "object": {"metadata": {"name": "a"}}}`
	for _, c := range []struct {
		request     *request
		left, right side
		want        string
	}{
		{r, sideOf(r, 200, `{}`), sideOf(r, 201, `{"kind": "Status", "message": "no"}`), "code: kind <nil> | no"},
		{r, sideOf(r, 200, `{}`, "Warning", "299 - a"), sideOf(r, 200, `{}`), "header Warning: 299 - a | none"},
		{r, sideOf(r, 200, `{}`, "Warning", "b", "Warning", "a"), sideOf(r, 200, `{}`, "Warning", "a", "Warning", "b"), ""},
		{r, sideOf(r, 200, `{}`, "Date", "x"), sideOf(r, 200, `{}`, "Audit-Id", "y"), ""},
		{watch, sideOf(watch, 200, added+mark), sideOf(watch, 200, added), "bookmarks: 1 | 0"},
		{watch, sideOf(watch, 200, added+end), sideOf(watch, 200, added), " length: 2:"},
		{watch, sideOf(watch, 200, ""), sideOf(watch, 200, ""), ""},
	} {
		var found []string
		for _, d := range compare(c.request, c.left, c.right) {
			found = append(found, fmt.Sprintf("%s: %s | %s", d.at, d.left, d.right))
		}
		if got := strings.Join(found, "; "); !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	failed := side{answer: answer{failed: "timeout"}}
	if d := compare(r, failed, sideOf(r, 200, "{}")); len(d) != 1 || d[0].at != "connection" {
		t.Errorf("no answer: %v", d)
	}
}

// One cause has one signature, and other causes have others.
func TestSignature(t *testing.T) {
	t.Parallel()
	base := difference{verb: "PUT", path: "typed object", codes: "422/422", at: ".message", left: `"configmaps \"a\" has 7 mistakes"`, right: `"none"`}
	same, other := base, base
	same.left = `"secrets \"b\" has 12 mistakes"`
	other.left = `"configmaps \"a\" is not there"`
	if base.signature() != same.signature() {
		t.Errorf("%s, %s: want one signature", base.signature(), same.signature())
	}
	if base.signature() == other.signature() {
		t.Errorf("%s: want two signatures", base.signature())
	}
}

// The accepted differences accept nothing else.
func TestAccepted(t *testing.T) {
	t.Parallel()
	is := func(d difference) bool { return reasonFor(d) != nil }
	message := func(left, right string) difference {
		return difference{verb: "LIST", path: "typed collection", codes: "406/406", at: ".metadata.message", left: left, right: right}
	}
	if d := message(`"is a list (*core.SecretList)"`, `"is a list (*v1.SecretList)"`); !is(d) {
		t.Errorf("%v is not accepted", d)
	}
	for _, d := range []difference{
		message(`"is a list (*core.SecretList)"`, `"is no list (*v1.SecretList)"`),
		{verb: "PUT", path: "typed object", codes: "200/400", at: "code", left: "kind ConfigMap", right: "no"},
		{verb: "PATCH apply", path: "typed object", codes: "200/400", at: "code", left: "kind ConfigMap", right: "failed to create typed patch object"},
		{verb: "GET", path: "typed object", codes: "200/200", at: ".data.k", left: `"1"`, right: `"2"`},
	} {
		if is(d) {
			t.Errorf("%v is accepted", d)
		}
	}
	quote := func(patch, why string) string {
		return fmt.Sprintf(`" \"\" is invalid: patch: Invalid value: \"map[%s]\": %s"`, patch, why)
	}
	patch := difference{verb: "PATCH strategic", path: "typed object", codes: "422/422", at: ".message", left: quote("a:map[]", "no"), right: quote("a:map[b:<nil>]", "no")}
	if !is(patch) {
		t.Errorf("%v is not accepted", patch)
	}
	if patch.right = quote("a:map[b:<nil>]", "yes"); is(patch) {
		t.Errorf("%v is accepted", patch)
	}
}

// A reason for the message of a Status is one for its details, and for no other answer.
func TestExplain(t *testing.T) {
	t.Parallel()
	number := difference{verb: "PATCH strategic", path: "typed object", codes: "422/422", at: ".message", left: "below 0", right: "cannot unmarshal number"}
	details := number
	details.at, details.left, details.right = ".details.kind", "Lease", "none"
	if reasons, left := explain([]difference{number, details}); len(reasons) != 1 || len(left) != 0 {
		t.Errorf("%v is left, for %v", left, reasons)
	}
	number.right = "no"
	if _, left := explain([]difference{number, details}); len(left) != 2 {
		t.Errorf("%v is left, want both", left)
	}
	key := difference{verb: "PUT", path: "typed object", codes: "409/409", at: ".message", left: "Key: /leases", right: "Key: /registry/leases"}
	details.codes = key.codes
	if _, left := explain([]difference{key, details}); len(left) != 1 {
		t.Errorf("%v is left, want the details", left)
	}
}

// TestDifferencesAreListed checks that the list of differences for users of the library, and the package docs that the reasons of
// accepted differences name, exist.
func TestDifferencesAreListed(t *testing.T) {
	t.Parallel()
	list, err := os.ReadFile("../../../server/DIFFERENCES.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(string(list), -1) {
		if _, err := os.Stat(filepath.Join("../../../server", link[1])); err != nil {
			t.Errorf("a link of the list: %v", err)
		}
	}
	place := regexp.MustCompile(`\(([a-z0-9-]+/[a-z0-9-]+(?:[.]go)?)(?:, [^)]*)?\)`)
	for _, a := range accepted {
		for _, named := range place.FindAllStringSubmatch(a.reason, -1) {
			found := false
			for _, root := range []string{"../../../server/", "../../../", "../../../server/testdata/wire/"} {
				for _, end := range []string{"", ".txt"} {
					_, err := os.Stat(root + named[1] + end)
					found = found || err == nil
				}
			}
			if !found {
				t.Errorf("%q names %s, which does not exist", a.reason, named[1])
			}
		}
	}
}
