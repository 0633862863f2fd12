package condition_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/authz/webhook"
	"github.com/keelson-dev/keelson/authz/webhook/condition"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
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
			if want := errorsOf(expressions, r.Errors); asked && err != nil || r.Asked[i] == '0' && encodeJSON(texts(err)) != encodeJSON(want) {
				t.Errorf("%q, %s: the errors are %q, want %q", expressions, encodeJSON(spec), texts(err), want)
			}
		}
	}
}

// errorsOf returns the errors that webhooks with a list of expressions have in a text with those of all. An expression that fails is in one
// list only, except for lists that end with no error because of another one that is false.
func errorsOf(expressions []string, all string) []string {
	var found []string
	for _, e := range expressions {
		if _, after, ok := strings.Cut(all, "cel evaluation error: expression '"+e+"' "); ok && !slices.Contains(expressions, "false") {
			reason, _, _ := strings.Cut(strings.TrimSuffix(after, "]"), ", cel evaluation error")
			found = append(found, "cel evaluation error: expression '"+e+"' "+reason)
		}
	}
	return found
}

// texts returns the texts of the errors in an error.
func texts(err error) []string {
	var all []string
	if many := (utilerrors.Aggregate)(nil); errors.As(err, &many) {
		for _, one := range many.Errors() {
			all = append(all, one.Error())
		}
	}
	return all
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
	var many []string
	for i := range 20 {
		many = append(many, fmt.Sprintf("request.groups.all(a, request.groups.all(b, request.groups.all(c, a + b + c != 'x%d')))", i))
	}
	asked, err := compile(t, append(many, "false")...).Match(t.Context(), spec)
	if last := err.Error(); asked || !strings.Contains(last, "out of budget") || strings.Count(last, "cel evaluation error") > 12 {
		t.Errorf("all together: %t, %v", asked, err)
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
