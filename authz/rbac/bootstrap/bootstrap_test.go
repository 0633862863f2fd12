package bootstrap_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/authz/rbac"
	"github.com/keelson-dev/keelson/authz/rbac/bootstrap"
	"github.com/keelson-dev/keelson/runtime"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// read reads a file of objects or of pairs.
func read[T any](t *testing.T, path string) []T {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Items []T }
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) < 20 {
		t.Fatalf("%s has %d items", path, len(list.Items))
	}
	return list.Items
}

// decode returns the object of a JSON text, nil for null.
func decode(t *testing.T, text []byte) runtime.Object {
	t.Helper()
	var kind struct{ Kind string }
	if err := json.Unmarshal(text, &kind); err != nil {
		t.Fatal(err)
	}
	var obj runtime.Object
	switch kind.Kind {
	case "":
		return nil
	case "ClusterRole":
		obj = &rbacv1.ClusterRole{}
	case "Role":
		obj = &rbacv1.Role{}
	case "ClusterRoleBinding":
		obj = &rbacv1.ClusterRoleBinding{}
	case "RoleBinding":
		obj = &rbacv1.RoleBinding{}
	default:
		t.Fatal(kind.Kind)
	}
	if err := json.Unmarshal(text, obj); err != nil {
		t.Fatal(err)
	}
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return obj
}

func key(obj runtime.Object) string {
	m, err := meta.Accessor(obj)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("%T %s/%s", obj, m.GetNamespace(), m.GetName())
}

// index returns objects by their kinds and names.
func index(t *testing.T, objects []runtime.Object) map[string]runtime.Object {
	t.Helper()
	all := map[string]runtime.Object{}
	for _, obj := range objects {
		if all[key(obj)] != nil {
			t.Errorf("%s is there twice", key(obj))
		}
		all[key(obj)] = obj
	}
	return all
}

// A new server has the roles and bindings of a new kube-apiserver, rule by rule.
func TestKubernetes(t *testing.T) {
	t.Parallel()
	var recorded []runtime.Object
	for _, text := range read[json.RawMessage](t, "testdata/kube-apiserver.json") {
		recorded = append(recorded, decode(t, text))
	}
	want, got := index(t, recorded), index(t, bootstrap.Kubernetes())
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if d := cmp.Diff(want[key], got[key], cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s (-kube-apiserver +keelson):\n%s", key, d)
		}
		delete(got, key)
	}
	for key := range got {
		t.Errorf("%s is not in kube-apiserver", key)
	}
}

// A stored object becomes what it becomes at the start of kube-apiserver.
func TestReconcile(t *testing.T) {
	t.Parallel()
	wanted := index(t, bootstrap.Kubernetes())
	for _, c := range read[struct {
		Written, Replaced bool
		Before, After     json.RawMessage
	}](t, "testdata/reconciled.json") {
		before, after := decode(t, c.Before), decode(t, c.After)
		what := key(after)
		if before == nil { // it was created
			if d := cmp.Diff(after, wanted[what], cmpopts.EquateEmpty()); d != "" {
				t.Errorf("%s:\n%s", what, d)
			}
			continue
		}
		intact, want := before.DeepCopyObject(), bootstrap.Keep
		switch {
		case c.Replaced:
			want = bootstrap.Replace
		case c.Written:
			want = bootstrap.Update
		}
		got, action, err := bootstrap.Reconcile(before, wanted[what])
		if err != nil || action != want || (got == nil) != (want == bootstrap.Keep) {
			t.Errorf("%s: action %d, %v; want %d", what, action, err, want)
			continue
		}
		if got != nil {
			if d := cmp.Diff(after, got, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("%s (-kube-apiserver +keelson):\n%s", what, d)
			}
		}
		if d := cmp.Diff(intact, before); d != "" {
			t.Errorf("%s was changed:\n%s", what, d)
		}
		if got == nil {
			continue
		}
		if _, action, err := bootstrap.Reconcile(got, wanted[what]); action != bootstrap.Keep || err != nil {
			t.Errorf("%s again: action %d, %v", what, action, err)
		}
	}
	if !cmp.Equal(index(t, bootstrap.Kubernetes()), wanted) {
		t.Error("the wanted objects were changed")
	}
	if _, _, err := bootstrap.Reconcile(&rbacv1.Role{}, &rbacv1.ClusterRole{}); err == nil {
		t.Error("objects of different kinds were compared")
	}
}

// Minimal is a part of Kubernetes, its bindings have their roles, and it names no kind that a program need not serve.
func TestMinimal(t *testing.T) {
	t.Parallel()
	all := index(t, bootstrap.Kubernetes())
	for _, obj := range bootstrap.Minimal() {
		if d := cmp.Diff(all[key(obj)], obj); d != "" {
			t.Errorf("%s:\n%s", key(obj), d)
		}
	}
	for _, set := range [][]runtime.Object{bootstrap.Minimal(), bootstrap.Kubernetes()} {
		p, err := rbac.Static(set...)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			user authn.User
			path string
			want authz.Verdict
		}{
			{authn.User{Name: "a", Groups: []string{authn.AuthenticatedAll}}, "/apis/a/b", authz.Allow},
			{authn.User{Name: "a", Groups: []string{authn.UnauthenticatedAll}}, "/apis", authz.NoOpinion},
			{authn.User{Name: "a", Groups: []string{authn.UnauthenticatedAll}}, "/healthz", authz.Allow},
			{authn.User{Name: "a", Groups: []string{"system:masters"}}, "/x", authz.Allow},
			{authn.User{Name: "a"}, "/healthz", authz.NoOpinion},
		} {
			verdict, reason, err := p.Authorize(t.Context(), authz.Attributes{User: &c.user, Verb: "get", Path: c.path})
			if verdict != c.want || err != nil || verdict != authz.Allow && reason != "" {
				t.Errorf("%v %s: %v %q %v, want %v", c.user, c.path, verdict, reason, err, c.want)
			}
		}
	}
}
