package abac_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/authz/abac"
)

// recorded are decisions of a kube-apiserver with --authorization-mode=ABAC, which was asked by SubjectAccessReviews.
type recorded struct {
	Requests []struct {
		ResourceAttributes    *resourceRequest
		NonResourceAttributes struct{ Path, Verb string }
	}
	Worlds []struct {
		Name     string
		Policies []string // lines of the file
		Cases    []struct {
			User    string
			Groups  []string
			Allowed string // 1 or 0 for each of Requests
		}
	}
}

type resourceRequest struct {
	Namespace, Verb, Group, Version, Resource, Subresource, Name string
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestDecisions(t *testing.T) {
	var in recorded
	readJSON(t, "testdata/decisions.json", &in)
	decisions := 0
	for _, w := range in.Worlds {
		p, err := abac.Parse([]byte("# a comment\n\n"+strings.Join(w.Policies, "\n")), "policy.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range w.Cases {
			for i, r := range in.Requests {
				a := authz.Attributes{User: &authn.User{Name: c.User, Groups: c.Groups}, Verb: r.NonResourceAttributes.Verb, Path: r.NonResourceAttributes.Path}
				if x := r.ResourceAttributes; x != nil {
					a = authz.Attributes{
						User: a.User, Verb: x.Verb, ResourceRequest: true, APIGroup: x.Group, APIVersion: x.Version,
						Resource: x.Resource, Subresource: x.Subresource, Namespace: x.Namespace, Name: x.Name,
					}
				}
				verdict, reason, err := authz.Union(authz.Masters(), p).Authorize(t.Context(), a)
				want, why := authz.NoOpinion, "No policy matched."
				if c.Allowed[i] == '1' {
					want, why = authz.Allow, ""
				}
				if verdict != want || reason != why || err != nil {
					t.Errorf("%s: user %q of %q: %+v: %v %q %v, want %v", w.Name, c.User, c.Groups, a, verdict, reason, err, want)
				}
				decisions++
			}
		}
	}
	if decisions < 4000 {
		t.Errorf("there are only %d decisions", decisions)
	}
}

// TestFiles compares the errors of files with those of kube-apiserver, which was started with each of them.
func TestFiles(t *testing.T) {
	differs := map[string]string{"internal": "the version __internal is not one of a file"}
	var all []struct{ Name, File, Error string }
	readJSON(t, "testdata/files.json", &all)
	for _, c := range all {
		got := ""
		if _, err := abac.Parse([]byte(c.File), "FILE"); err != nil {
			got = "invalid authorization config: " + err.Error()
		}
		if same, why := got == c.Error, differs[c.Name]; same != (why == "") {
			t.Errorf("%s: %s\n got %s\nwant %s", c.Name, why, got, c.Error)
		}
	}
}

func TestRulesFor(t *testing.T) {
	p, err := abac.Parse([]byte(`{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"ann","resource":"pods","namespace":"ns","apiGroup":"","nonResourcePath":"/x","readonly":true}}
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"ann","resource":"nodes","namespace":"other"}}
{"group":"g"}
{"user":"bob"}
{"user":"ann","group":"h","resource":"secrets"}
`), "policy.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	got, err := authz.RulesOf(t.Context(), p, &authn.User{Name: "ann", Groups: []string{"g", "g"}}, "ns")
	read := []string{"get", "list", "watch"}
	want := authz.Rules{
		Resources: []authz.ResourceRule{
			{Verbs: read, APIGroups: []string{""}, Resources: []string{"pods"}}, {Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
		},
		Paths: []authz.PathRule{{Verbs: read, NonResourceURLs: []string{"/x"}}, {Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if !p.Unversioned() {
		t.Error("the file has lines without a version")
	}
}

func TestBounds(t *testing.T) {
	big := []byte(strings.Repeat("#\n", abac.MaxFile/2))
	path := t.TempDir() + "/policy.jsonl"
	if err := os.WriteFile(path, big, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := abac.ReadFile(path); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(path, append(big, '#'), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := abac.ReadFile(path); err == nil || !strings.Contains(err.Error(), "more than 3145728 bytes") {
		t.Error(err)
	}
	if _, err := abac.ReadFile(path + "x"); err == nil || !strings.Contains(err.Error(), path+"x") {
		t.Error(err)
	}
	line := func(length int) []byte { return []byte("# " + strings.Repeat("x", length-2) + "\n{}") }
	if _, err := abac.Parse(line(abac.MaxLine), "f"); err != nil {
		t.Error(err)
	}
	if _, err := abac.Parse(line(abac.MaxLine+1), "f"); err == nil || err.Error() != "error reading policy file f: bufio.Scanner: token too long" {
		t.Error(err)
	}
	if _, err := abac.Parse([]byte(`{"user":`+strings.Repeat("a", 60_000)), "f"); err == nil || len(err.Error()) > 8000 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
}

// FuzzParse checks that no file does harm, and that a policy is for nobody who is not authenticated unless it names a user or a group.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"# x\n{}", "user: a", `{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"*","resource":"*"}}`, "[", "--- a\n", "\x00"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		p, err := abac.Parse(content, "policy.jsonl")
		if err != nil {
			if !strings.HasPrefix(err.Error(), "error reading policy file policy.jsonl") {
				t.Error(err)
			}
			return
		}
		user := &authn.User{Name: "nobody of these", Groups: []string{"none of these"}}
		if v, _, err := p.Authorize(t.Context(), authz.Attributes{User: user, Verb: "get", Path: "/"}); v != authz.NoOpinion && !strings.Contains(string(content), "of these") || err != nil {
			t.Error(v, err)
		}
		if _, err := p.RulesFor(t.Context(), user, "ns"); err != nil {
			t.Error(err)
		}
	})
}
