package crd_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/server/servertest"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The rules are those of the version in the request, and both the new and the old object are evaluated in that version. If the
// old object cannot be converted, rules about changes are not skipped.
func TestRulesOfVersions(t *testing.T) {
	t.Parallel()
	d := definitionText(t, boxes)
	spec := d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	spec.XValidations = apiextensionsv1.ValidationRules{
		{Rule: "self.copies >= oldSelf.copies", Message: "copies do not go"},
		{Rule: "!has(self.size) || self.size != 4", Message: "no boxes of size 4"},
	}
	d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = spec
	group, err := groupOf(d, func(in *unstructured.Unstructured, to schema.GroupVersion) (*unstructured.Unstructured, error) {
		if height, _, _ := unstructured.NestedInt64(in.Object, "spec", "box", "height"); to.Version == "v1" && height == 13 {
			return nil, errors.New("13 is not converted")
		}
		return convertBox(in, to)
	})
	if err != nil {
		t.Fatal(err)
	}
	s := servertest.New(t, group)
	for _, c := range []struct {
		what string
		step step
		code int
		says string
	}{
		{"another version has no rules", step{method: "POST", path: boxesIn("v2"), body: box("v2", "a", `{"box":{"width":4},"copies":5}`)}, 201, ""},
		{"a rule of this one", step{method: "POST", path: boxesIn("v1"), body: box("v1", "b", `{"size":4}`)}, 422, "spec: Invalid value: no boxes of size 4"},
		{"what does not change is tolerated", step{method: "PATCH", path: boxesIn("v1") + "/a", contentType: merge, body: `{"metadata":{"annotations":{"a":"b"}}}`}, 200, "spec: Invalid value: no boxes of size 4"},
		{"a change", step{method: "PATCH", path: boxesIn("v1") + "/a", contentType: merge, body: `{"spec":{"size":3,"copies":4}}`}, 422, "spec: Invalid value: copies do not go"},
		{"a change of the status, beside which the rules of the whole object are judged", step{method: "PATCH", path: boxesIn("v1") + "/a/status", contentType: merge, body: `{"status":{"copies":1}}`}, 200, "no boxes of size 4"},
		{"the same change in the other version", step{method: "PATCH", path: boxesIn("v2") + "/a", contentType: merge, body: `{"spec":{"copies":4}}`}, 200, ""},
		{"one that this version cannot show", step{method: "POST", path: boxesIn("v2"), body: box("v2", "c", `{"box":{"width":1,"height":13},"copies":5}`)}, 201, ""},
	} {
		a := c.step.do(t, s.Client(), s.URL)
		if a.code != c.code || !strings.Contains(a.text+strings.Join(a.warnings, "\n"), c.says) {
			t.Errorf("%s: %d %s %q", c.what, a.code, a.text, a.warnings)
		}
	}
	stored := step{method: "GET", path: boxesIn("v2") + "/c"}.do(t, s.Client(), s.URL).object(t)
	version := stored["metadata"].(map[string]any)["resourceVersion"].(string)
	body := strings.Replace(box("v1", "c", `{"size":1,"copies":4}`), `"name":`, `"resourceVersion":"`+version+`","name":`, 1)
	if a := (step{method: "PUT", path: boxesIn("v1") + "/c", body: body}).do(t, s.Client(), s.URL); a.code != http.StatusUnprocessableEntity || !strings.Contains(a.text, "rules about changes cannot be evaluated") {
		t.Errorf("a rule about changes was passed over: %d %s", a.code, a.text)
	}
}
