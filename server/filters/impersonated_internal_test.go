package filters

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestImpersonatedIsBounded(t *testing.T) {
	h := http.Header{"Impersonate-User": {"x"}}
	for range maxImpersonated {
		h.Add("Impersonate-Group", "g")
	}
	if u, err := impersonated(h); err != nil || len(u.Groups) != maxImpersonated {
		t.Error(err)
	}
	h.Add("Impersonate-Extra-K", "v")
	if _, err := impersonated(h); !apierrors.IsBadRequest(err) {
		t.Errorf("too many values: %v", err)
	}
}

func FuzzImpersonated(f *testing.F) {
	f.Add("Impersonate-User: x\nImpersonate-Extra-Example.com%2fS: v\nimpersonate-uid: 1\nAccept: a")
	f.Fuzz(func(t *testing.T, text string) {
		h := http.Header{}
		for line := range strings.SplitSeq(text, "\n") {
			if name, value, ok := strings.Cut(line, ": "); ok {
				h[http.CanonicalHeaderKey(name)] = append(h[http.CanonicalHeaderKey(name)], value)
			}
		}
		before := h.Clone()
		user, err := impersonated(h)
		left := withoutImpersonation(h)
		if diff := cmp.Diff(before, h); diff != "" {
			t.Errorf("the headers were changed: %s", diff)
		}
		if user != nil && (user.Name == "" || err != nil) {
			t.Errorf("%+v, %v", user, err)
		}
		if again, err := impersonated(left); again != nil || err != nil {
			t.Errorf("after withoutImpersonation: %+v, %v", again, err)
		}
		for name, values := range left {
			if diff := cmp.Diff(before[name], values); diff != "" || strings.HasPrefix(strings.ToLower(name), "impersonate-extra-") {
				t.Errorf("after withoutImpersonation: %s %s", name, diff)
			}
		}
	})
}
