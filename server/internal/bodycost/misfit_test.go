package bodycost_test

import (
	"net/http"
	"strings"
	"testing"
)

// An applied configuration with many values of types that do not match the schema is refused like one with few such values.
func TestMisfitsAreRefused(t *testing.T) {
	r := newRig(t)
	for _, n := range []int{1, 10, 5000} {
		body := `{"apiVersion":"e.example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":{"strings":[` + strings.TrimSuffix(strings.Repeat("1,", n), ",") + `]}}`
		for _, q := range []request{
			{method: "PATCH", path: things + "/a?fieldManager=b", contentType: "application/apply-patch+yaml", body: body},
			{method: "PATCH", path: things + "/a", contentType: mergePatch, body: body},
			{method: "POST", path: things, contentType: jsonType, body: strings.Replace(body, `"a"`, `"b"`, 1)},
		} {
			got := r.send(q)
			want, says := http.StatusUnprocessableEntity, "spec.strings[0] in body must be of type string"
			if q.contentType == "application/apply-patch+yaml" {
				if want, says = http.StatusBadRequest, ".spec.strings[0]: expected string"; n > 1000 {
					says = "more than 1000 values are not of the type that the schema of Thing says"
				}
			}
			if got.code != want || !strings.Contains(string(got.head), says) {
				t.Errorf("%s %s of %d values: %d %s", q.method, q.contentType, n, got.code, got.head)
			}
		}
	}
}
