package condition_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/authz/webhook"
	"github.com/keelson-dev/keelson/authz/webhook/condition"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func compile(t testing.TB, expressions ...string) *condition.Conditions {
	t.Helper()
	c, err := condition.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	all, errs := c.Compile(expressions, field.NewPath("matchConditions"))
	if errs != nil {
		t.Fatal(errs)
	}
	return all
}

// TestRecorded compares with a kube-apiserver that had a webhook for each list of conditions, and was asked by SubjectAccessReviews.
func TestRecorded(t *testing.T) {
	text, err := os.ReadFile("testdata/conditions.json")
	if err != nil {
		t.Fatal(err)
	}
	var in struct {
		Conditions [][]string
		Requests   []struct {
			Spec   webhook.Spec
			Asked  string // 1 for each of Conditions whose webhook got a review, else 0
			Errors string // of all webhooks
		}
	}
	if err := json.Unmarshal(text, &in); err != nil {
		t.Fatal(err)
	}
	c, err := condition.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	for i, expressions := range in.Conditions {
		all, errs := c.Compile(expressions, field.NewPath("matchConditions"))
		if errs != nil {
			t.Fatal(errs)
		}
		for _, r := range in.Requests {
			spec := r.Spec
			if a := spec.ResourceAttributes; a != nil {
				copied := *a
				if copied.Version == "" { // as the server that gets a SubjectAccessReview does
					copied.Version = "*"
				}
				if copied.FieldSelector != nil && copied.FieldSelector.Requirements == nil { // a raw selector
					copied.FieldSelector = &webhook.Selector{Requirements: []webhook.Requirement{{Key: "spec.nodeName", Operator: "In", Values: []string{"n1"}}}}
				}
				spec.ResourceAttributes = &copied
			}
			asked, err := all.Match(t.Context(), &spec)
			if asked != (r.Asked[i] == '1') {
				t.Errorf("%q, %s: asked is %t, %v", expressions, encodeJSON(spec), asked, err)
			}
			if err != nil && !strings.Contains(r.Errors, err.Error()) {
				t.Errorf("%q, %s: the error is %v, want one of %s", expressions, encodeJSON(spec), err, r.Errors)
			}
			if first := expressions[0]; err == nil && r.Asked[i] == '0' && strings.Contains(r.Errors, "expression '"+first+"'") && len(expressions) == 1 {
				t.Errorf("%q, %s: there is no error", expressions, encodeJSON(spec))
			}
		}
	}
}

func encodeJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// An expression that costs too much fails, so that the failure policy of the webhook decides.
func TestExpensive(t *testing.T) {
	all := compile(t, "request.groups.all(a, request.groups.all(b, request.groups.all(c, a + b + c != 'x')))")
	spec := &webhook.Spec{}
	for i := range 1000 {
		spec.Groups = append(spec.Groups, fmt.Sprint("group ", i))
	}
	if asked, err := all.Match(t.Context(), spec); asked || err == nil || !strings.Contains(err.Error(), "cost limit exceeded") {
		t.Errorf("%t, %v", asked, err)
	}
}

func Example() {
	compiler, err := condition.NewCompiler()
	if err != nil {
		fmt.Println(err)
		return
	}
	_, errs := compiler.Compile([]string{"request.usr == 'ann'"}, field.NewPath("matchConditions"))
	fmt.Println(errs.ToAggregate())
	conditions, errs := compiler.Compile([]string{"request.user != 'ann'", "has(request.nonResourceAttributes)"}, field.NewPath("matchConditions"))
	fmt.Println(len(errs))
	for _, user := range []string{"ann", "bob"} {
		asked, err := conditions.Match(context.Background(), &webhook.Spec{User: user, NonResourceAttributes: &webhook.NonResourceAttributes{Path: "/x", Verb: "get"}})
		fmt.Println(user, asked, err)
	}
	// Output:
	// matchConditions[0].expression: Invalid value: "request.usr == 'ann'": compilation failed: ERROR: <input>:1:8: undefined field 'usr'
	//  | request.usr == 'ann'
	//  | .......^
	// 0
	// ann false <nil>
	// bob true <nil>
}
