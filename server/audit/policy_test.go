package audit_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/server/audit"
)

func readPolicy(t *testing.T) *audit.Policy {
	t.Helper()
	text, err := os.ReadFile("testdata/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, err := audit.ParsePolicy(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// decision is a line of testdata/decisions.jsonl: the attributes of a request, the stages that it passes, and how kube-apiserver
// 1.37.1 with the flag --audit-policy-file=testdata/policy.yaml recorded it.
type decision struct {
	Verb, User string
	Groups     []string
	Path       string
	Resource   *struct{ APIGroup, APIVersion, Resource, Subresource, Namespace, Name string }
	Of         []audit.Stage // the stages of the request
	Level      audit.Level
	Stages     []audit.Stage // the stages that were recorded
}

func (d decision) attributes() *authz.Attributes {
	a := &authz.Attributes{Verb: d.Verb, Path: d.Path}
	if d.User != "" {
		a.User = &authn.User{Name: d.User, Groups: d.Groups}
	}
	if r := d.Resource; r != nil {
		a.ResourceRequest = true
		a.APIGroup, a.APIVersion, a.Resource, a.Subresource, a.Namespace, a.Name = r.APIGroup, r.APIVersion, r.Resource, r.Subresource, r.Namespace, r.Name
	}
	return a
}

func TestDecisionsAreThoseOfKubeAPIServer(t *testing.T) {
	t.Parallel()
	p := readPolicy(t)
	file, err := os.Open("testdata/decisions.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	levels := map[audit.Level]int{}
	for d := json.NewDecoder(file); d.More(); {
		var want decision
		if err := d.Decode(&want); err != nil {
			t.Fatal(err)
		}
		got := p.Decide(want.attributes())
		var stages []audit.Stage
		for _, s := range want.Of {
			if got.Records(s) {
				stages = append(stages, s)
			}
		}
		if !slices.Equal(stages, want.Stages) || len(stages) > 0 && got.Level != want.Level {
			t.Errorf("%+v: recorded at %s: %v", want, got.Level, stages)
		}
		levels[want.Level]++
	}
	for _, l := range []audit.Level{audit.None, audit.Metadata, audit.Request, audit.RequestResponse} {
		if levels[l] == 0 {
			t.Errorf("no request is recorded at %s", l)
		}
	}
}

func TestOmittedManagedFields(t *testing.T) {
	t.Parallel()
	p := readPolicy(t)
	for resource, omitted := range map[string]bool{"widgets": false, "gadgets": true} {
		a := &authz.Attributes{ResourceRequest: true, Verb: "patch", APIGroup: "example.com", Resource: resource, User: &authn.User{Name: "me"}}
		if d := p.Decide(a); d.OmitManagedFields != omitted {
			t.Errorf("%s: %t, want %t", resource, d.OmitManagedFields, omitted)
		}
	}
}

func TestPoliciesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: audit.k8s.io/v1\nkind: Policy\n"
	for _, test := range []struct{ name, text, want string }{
		{"nothing", "", `the apiVersion "" and the kind "": use audit.k8s.io/v1 and Policy`},
		{"no text", "\x00", "cannot be read"},
		{"no object", "[]", "cannot be read"},
		{"two documents", head + "rules: [{level: None}]\n---\n" + head, "cannot be read"},
		{"another version", "apiVersion: audit.k8s.io/v1beta1\nkind: Policy\nrules: [{level: None}]", `the apiVersion "audit.k8s.io/v1beta1"`},
		{"another kind", "apiVersion: audit.k8s.io/v1\nkind: PolicyList\n", `the kind "PolicyList"`},
		{"no rules", head, "rules: Required value"},
		{"no level", head + "rules: [{users: [a]}]", "rules[0].level: Required value"},
		{"unknown level", head + "rules: [{level: None}, {level: metadata}]", `rules[1].level: Unsupported value: "metadata": supported values: "None", "Metadata", "Request", "RequestResponse"`},
		{"unknown field", head + "rules: [{level: None, user: [a]}]", `unknown field "rules[0].user"`},
		{"field given twice", head + "rules: [{level: None, level: Metadata}]", `level`},
		{"unknown stage", head + "omitStages: [ResponseReceived]\nrules: [{level: None}]", `omitStages[0]: Unsupported value: "ResponseReceived"`},
		{"unknown stage of a rule", head + "rules: [{level: None, omitStages: [Panic, x]}]", `rules[0].omitStages[1]: Unsupported value: "x"`},
		{"relative path", head + "rules: [{level: None, nonResourceURLs: [healthz]}]", `rules[0].nonResourceURLs[0]: Invalid value: "healthz": must begin with / or be *`},
		{"star in a path", head + "rules: [{level: None, nonResourceURLs: [/a*b]}]", `may have * only at its end`},
		{"both", head + "rules: [{level: None, nonResourceURLs: [/a], namespaces: [b]}]", "make two rules"},
		{"a version", head + "rules: [{level: None, resources: [{group: apps/v1}]}]", `rules[0].resources[0].group: Invalid value: "apps/v1": must be the name of a group without a version`},
		{"no group", head + "rules: [{level: None, resources: [{group: A_b}]}]", `rules[0].resources[0].group: Invalid value: "A_b"`},
		{"names alone", head + "rules: [{level: None, resources: [{resourceNames: [a]}]}]", "rules[0].resources[0].resourceNames: Invalid value: [\"a\"]: need resources"},
		{"all faults", head + "rules: [{level: x, nonResourceURLs: [a]}]", "must begin with /"},
		{"too long", head + "#" + strings.Repeat("x", 1<<20), "at most 1048576 are allowed"},
	} {
		if p, err := audit.ParsePolicy([]byte(test.text)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %+v, %v\nwant %s", test.name, p, err, test.want)
		}
	}
}

func FuzzPolicies(f *testing.F) {
	text, err := os.ReadFile("testdata/policy.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"apiVersion":"audit.k8s.io/v1","kind":"Policy","metadata":{"name":"a"},"rules":[{"level":"None","nonResourceURLs":["*"]},{"level":"Metadata","resources":[{"group":"*","resources":["*/*"]}]}]}`))
	all := []audit.Stage{audit.RequestReceived, audit.ResponseStarted, audit.ResponseComplete, audit.Panic}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := audit.ParsePolicy(text)
		if err != nil {
			return
		}
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		for _, a := range []authz.Attributes{{}, {Path: "/healthz", Verb: "get"}, {ResourceRequest: true, Resource: "pods", Subresource: "log", Verb: "get", User: &authn.User{}}} {
			d := p.Decide(&a)
			if d.Level == audit.None && slices.ContainsFunc(all, d.Records) {
				t.Fatalf("%+v is recorded at no level", a)
			}
		}
		json, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := audit.ParsePolicy(append([]byte(`{"apiVersion":"audit.k8s.io/v1","kind":"Policy",`), json[1:]...)); err != nil {
			t.Fatalf("%s: %v", json, err)
		}
	})
}
