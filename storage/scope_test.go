package storage_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/fields"
)

func TestScope(t *testing.T) {
	field := func(s string) storage.Selection {
		return storage.Selection{Fields: fields.ParseSelectorOrDie(s)}
	}
	for _, test := range []struct {
		sel        storage.Selection
		namespaced bool
		from, to   string
		single     string
		whole      bool
	}{
		{storage.Selection{}, true, "", "", "", true},
		{storage.Selection{}, false, "", "", "", true},
		{storage.Selection{Namespace: "ns"}, true, "ns/", "ns0", "", true},
		{field("metadata.namespace=ns"), true, "ns/", "ns0", "", true},
		{storage.Selection{Name: "x"}, true, "", "", "", false},
		{field("metadata.name=x,spec.color=red"), true, "", "", "", false},
		{storage.Selection{Namespace: "ns", Name: "x"}, true, "ns/x", "ns/x\x00", "ns/x", true},
		{field("metadata.namespace=ns,metadata.name=x"), true, "ns/x", "ns/x\x00", "ns/x", true},
		{storage.Selection{Name: "x"}, false, "x", "x\x00", "x", true},
		{field("metadata.name=x"), false, "x", "x\x00", "x", true},
		{storage.Selection{Namespace: "ns"}, false, "\x00", "\x00", "", true},
		{field("metadata.name="), true, "", "", "", true}, // Matches refuses all
		{field("metadata.name=a/b"), true, "\x00", "\x00", "", true},
		{storage.Selection{Name: "x", Fields: fields.ParseSelectorOrDie("metadata.name=y")}, true, "\x00", "\x00", "", true},
		{storage.Selection{Namespace: ".."}, true, "\x00", "\x00", "", true},
		{field("metadata.name!=x"), true, "", "", "", true},
	} {
		sc := test.sel.Scope(test.namespaced)
		single, ok := sc.Single()
		if sc.From != test.from || sc.To != test.to || single != test.single || ok != (single != "") || sc.Whole() != test.whole {
			t.Errorf("%+v, namespaced %v: [%q, %q), single %q %v, whole %v; want %+v", test.sel, test.namespaced, sc.From, sc.To, single, ok, sc.Whole(), test)
		}
	}
}

// A scope has a key if, and only if, its namespace and name are the selected ones.
func TestScopeHas(t *testing.T) {
	segments := []string{"", "a", "a.", "a0", "b", "aa", "ab", "-", "z"}
	pick := func() string { return segments[rand.IntN(len(segments))] }
	for range 5000 {
		sel := storage.Selection{Namespace: pick(), Name: pick()}
		namespaced := rand.IntN(2) == 0
		key := segments[1+rand.IntN(len(segments)-1)]
		if namespaced {
			key += "/" + segments[1+rand.IntN(len(segments)-1)]
		}
		namespace, name := storage.SplitKey(key, namespaced)
		want := (sel.Namespace == "" || sel.Namespace == namespace) && (sel.Name == "" || sel.Name == name)
		if got := sel.Scope(namespaced).Has(key); got != want {
			t.Fatalf("%+v has %q: %v", sel, key, got)
		}
	}
}

func TestCheckKey(t *testing.T) {
	for key, want := range map[string][2]bool{ // cluster-scoped, namespaced
		"a": {true, false}, "a/b": {false, true}, "a/b/c": {}, "": {}, "/": {}, "a/": {}, "/a": {}, ".": {}, "..": {}, "a/..": {}, "./a": {},
		"a\x00": {}, "a/\x00": {}, "...": {true, false}, "ключ/x y": {false, true},
	} {
		for i, namespaced := range []bool{false, true} {
			err := storage.CheckKey(key, namespaced)
			if (err == nil) != want[i] || err != nil && (!errors.Is(err, storage.ErrBadKey) || err.Error() != fmt.Sprintf("invalid key: %q", key)) {
				t.Errorf("CheckKey(%q, %v) = %v", key, namespaced, err)
			}
		}
	}
}

func TestScopeTokens(t *testing.T) {
	whole, part := storage.Selection{}.Scope(true), storage.Selection{Namespace: "default"}.Scope(true)
	after := storage.Continue{Revision: 1234, From: "default/foo\x00"}
	if got := whole.Token(after); got != goldenToken {
		t.Errorf("the token is %q, want %q", got, goldenToken)
	}
	latest := storage.Continue{Revision: storage.AtLatest, From: after.From}
	if got := whole.Token(latest); got != goldenLatest {
		t.Errorf("the token at the latest state is %q, want %q", got, goldenLatest)
	}
	for _, sc := range []storage.Scope{whole, part} {
		for _, c := range []storage.Continue{after, latest} {
			if got, err := sc.Continue(sc.Token(c)); err != nil || got != c {
				t.Errorf("%+v of %+v comes back as %+v, %v", c, sc, got, err)
			}
		}
	}
	// A token of another scope continues within the scope in which it is used.
	if got, err := part.Continue(goldenToken); err != nil || got.From != "default/default/foo\x00" {
		t.Errorf("Continue = %+v, %v", got, err)
	}
	if _, err := whole.Continue("!"); !errors.Is(err, storage.ErrBadContinue) {
		t.Errorf("error %v, want ErrBadContinue", err)
	}
}
