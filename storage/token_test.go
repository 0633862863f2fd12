package storage_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	"github.com/keelson-dev/keelson/storage/storagetest"
)

// The tokens that kube-apiserver makes after the last key default/foo: at revision 1234, and at the latest one.
const (
	goldenToken  = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTIzNCwic3RhcnQiOiJkZWZhdWx0L2Zvb1x1MDAwMCJ9"
	goldenLatest = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiZGVmYXVsdC9mb29cdTAwMDAifQ"
)

func TestGoldenTokens(t *testing.T) {
	s, b := gadgets(t)
	create(t, s, "default/foo")
	create(t, s, "default/goo")
	for at, err := s.Revision(t.Context()); at < 1234; at, err = s.Revision(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		commit(t, b, storage.Commit{Key: "other", Expect: storage.AnyRevision})
	}
	p, err := s.List(t.Context(), storage.ListOptions{Limit: 1})
	if err != nil || p.Continue != goldenToken {
		t.Errorf("List: token %q, %v; want %q", p.Continue, err, goldenToken)
	}
	commit(t, b, storage.Commit{Key: "other", Expect: storage.AnyRevision})
	if err := b.Compact(t.Context(), 1235); err != nil {
		t.Fatal(err)
	}
	var expired *storage.ExpiredError
	if _, err = s.List(t.Context(), storage.ListOptions{Limit: 1, Continue: goldenToken}); !errors.As(err, &expired) {
		t.Fatalf("List: %v, want an ExpiredError", err)
	}
	if expired.Continue != goldenLatest || expired.Revision != 1234 || expired.Oldest != 1235 {
		t.Errorf("the error is %+v, want the token %q", expired, goldenLatest)
	}
	if want := "too old resource version: 1234 (1235)"; expired.Error() != want {
		t.Errorf("the error is %q, want %q", expired, want)
	}
}

// Some servers write a slash before the key.
func TestTokenWithLeadingSlash(t *testing.T) {
	s, _ := gadgets(t)
	create(t, s, "a/1")
	create(t, s, "a/2")
	token := base64.RawURLEncoding.EncodeToString([]byte(`{"v":"meta.k8s.io/v1","rv":-1,"start":"/1\u0000"}`))
	p, err := s.List(t.Context(), storage.ListOptions{Selection: storage.Selection{Namespace: "a"}, Continue: token})
	if err != nil || p.Count != 1 {
		t.Errorf("List: %+v, %v; want one record", p, err)
	}
}

func TestTokenErrors(t *testing.T) {
	s, _ := gadgets(t)
	for token, want := range map[string]string{
		"!": "continue key is not valid: illegal base64 data at input byte 0",
		`{"v":"meta.k8s.io/v1","rv":0,"start":"a"}`:  "continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
		`{"v":"meta.k8s.io/v1","rv":1,"start":""}`:   "continue key is not valid: encoded start key empty (version meta.k8s.io/v1)",
		`{"v":"v2","rv":1,"start":"a"}`:              "continue key is not valid: server does not recognize this encoded version v2",
		`{"v":"meta.k8s.io/v1","rv":1,"start":".."}`: "continue key is not valid: ..",
	} {
		if token[0] == '{' {
			token = base64.RawURLEncoding.EncodeToString([]byte(token))
		}
		_, err := s.List(t.Context(), storage.ListOptions{Continue: token})
		if !errors.Is(err, storage.ErrBadContinue) || err.Error() != want {
			t.Errorf("%s: %v, want %q", token, err, want)
		}
	}
}

// FuzzContinue lists with any token. The list must end with one of the expected errors, or with records of the selected
// resource and namespace.
func FuzzContinue(f *testing.F) {
	o, err := storagetest.GadgetOptions()
	if err != nil {
		f.Fatal(err)
	}
	o.ReadWait = time.Millisecond
	b := memory.New(memory.Options{})
	f.Cleanup(func() { b.Close() })
	s, err := storage.NewStore(b, o)
	if err != nil {
		f.Fatal(err)
	}
	for i := range 20 {
		create(f, s, fmt.Sprintf("ns%d/k%d", i%3, i))
	}
	commit(f, b, storage.Commit{Key: "/registry/test.example.com/secrets/ns1/k", Expect: storage.AnyRevision, Value: []byte("secret")})
	f.Add(goldenToken, "", true)
	f.Add(goldenLatest, "ns1", true)
	for _, json := range []string{
		`{"v":"meta.k8s.io/v1","rv":5,"start":"ns1/k1\u0000"}`,
		`{"v":"meta.k8s.io/v1","rv":-1,"start":"../secrets/ns1/"}`,
		`{"v":"meta.k8s.io/v1","rv":9223372036854775807,"start":"/"}`,
		`{"v":"meta.k8s.io/v1","rv":-9223372036854775808,"start":"a"}`,
		`{"v":"meta.k8s.io/v1","rv":1e3,"start":"a"}`,
	} {
		f.Add(json, "ns1", false)
	}
	f.Fuzz(func(t *testing.T, token, namespace string, encoded bool) {
		if !encoded {
			token = base64.RawURLEncoding.EncodeToString([]byte(token))
		}
		if token == "" {
			return
		}
		sel := storage.Selection{Namespace: namespace}
		p, err := s.List(t.Context(), storage.ListOptions{Selection: sel, Limit: 3, Continue: token})
		var expired *storage.ExpiredError
		var future *storage.FutureError
		switch {
		case err == nil:
		case errors.Is(err, storage.ErrBadContinue), errors.As(err, &expired), errors.As(err, &future):
			return
		default:
			t.Fatalf("List: %v", err)
		}
		for r := range p.Records {
			if namespace != "" && !strings.HasPrefix(r.Key, namespace+"/") || !strings.HasPrefix(r.Key, "ns") {
				t.Fatalf("namespace %q: got %q", namespace, r.Key)
			}
		}
	})
}
