package rbac_test

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/runtime"
)

// 5,000 random requests are decided as by kube-apiserver, by 50 random policies. The reasons are valid: if several bindings allow a
// request, kube-apiserver may name another one.
func TestPairsOfKubernetes(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/pairs.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded struct {
		Policies []struct {
			Objects           []json.RawMessage
			Reasons, Requests []string
		}
	}
	if err := json.Unmarshal(text, &recorded); err != nil {
		t.Fatal(err)
	}
	requests, allowed, missing := 0, 0, 0
	for i, p := range recorded.Policies {
		var objects []runtime.Object
		for _, one := range p.Objects {
			objects = append(objects, parse(t, one))
		}
		policy := static(t, objects...)
		for _, line := range p.Requests {
			index, asked := recordedRequest(t, line)
			want, theirs := authz.NoOpinion, p.Reasons[index]
			if reason, ok := strings.CutPrefix(theirs, "+"); ok {
				want, theirs = authz.Allow, reason
				allowed++
			} else if theirs = strings.TrimPrefix(theirs, "-"); theirs != "" {
				missing++
			}
			requests++
			verdict, reason, err := policy.Authorize(t.Context(), asked)
			if why := wrong(objects, asked, verdict, reason, err); why != "" || verdict != want {
				t.Errorf("policy %d: %s: %v, want %v: %s", i, describe(asked), verdict, want, why)
			}
			if why := wrong(objects, asked, want, theirs, nil); why != "" {
				t.Errorf("policy %d: %s: kube-apiserver says %q: %s", i, describe(asked), theirs, why)
			}
		}
	}
	if requests != 5000 || allowed < 1000 || missing < 500 {
		t.Errorf("%d requests, of which %d are allowed, and %d name missing roles", requests, allowed, missing)
	}
}

// recordedRequest parses a request in the form that the file says, and the index of the answer before it.
func recordedRequest(t *testing.T, line string) (index int, a authz.Attributes) {
	t.Helper()
	f := strings.Fields(line)
	for i := range f {
		f[i] = strings.TrimPrefix(f[i], "-")
	}
	index, err := strconv.Atoi(f[0])
	if err != nil || len(f) != 5 && len(f) != 9 {
		t.Fatalf("%q: %v", line, err)
	}
	a.User, a.Verb = &authn.User{Name: f[1]}, f[3]
	if f[2] != "" {
		a.User.Groups = strings.Split(f[2], ",")
	}
	if len(f) == 5 {
		a.Path = f[4]
		return index, a
	}
	a.ResourceRequest = true
	a.APIGroup, a.Resource, a.Subresource, a.Namespace, a.Name = f[4], f[5], f[6], f[7], f[8]
	return index, a
}
