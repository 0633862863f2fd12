package authn_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/keelson-dev/keelson/authn"
)

func TestLive(t *testing.T) {
	live := &authn.Live{}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	if got := result(live, r); got != "no opinion" {
		t.Errorf("an empty one: %s", got)
	}
	for _, m := range []struct {
		name string
		of   authn.Authenticator
	}{{"own", knows("own")}, {authn.TokenWebhook, fails("x")}, {authn.ClientCertificate, silent}, {authn.ServiceAccounts, fails("y")}} {
		if err := live.Set(m.name, m.of); err != nil {
			t.Fatal(err)
		}
	}
	if got := live.Names(); !slices.Equal(got, []string{"x509", "service-accounts", "webhook", "own"}) {
		t.Errorf("the order is %q", got)
	}
	if got := result(live, r); got != "own" {
		t.Errorf("a success after errors: %s", got)
	}
	_ = live.Set(authn.ClientCertificate, knows("admin"))
	if got := result(live, r); got != "admin" {
		t.Errorf("after a member was replaced: %s", got)
	}
	live.Remove(authn.ClientCertificate)
	if !live.Remove("own") || live.Remove("own") {
		t.Error("Remove")
	}
	if got := result(live, r); got != "error: service-accounts: y\nwebhook: x" {
		t.Errorf("errors are not remembered: %s", got)
	}
	if live.Set("", silent) == nil || live.Set("x", nil) == nil {
		t.Error("a member without a name, or without an authenticator, was taken")
	}
}

// TestLiveAsksAfterAnAnonymousAnswer checks that a member that returns system:anonymous hides neither the members after it nor an
// error.
func TestLiveAsksAfterAnAnonymousAnswer(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for want, members := range map[string][]authn.Authenticator{
		authn.AnonymousUser: {authn.Anonymous(), silent},
		"own":               {authn.Anonymous(), fails("x"), knows("own")},
		"error: a: x":       {fails("x"), authn.Anonymous()},
		"error: b: y":       {authn.Anonymous(), fails("y")},
	} {
		live := &authn.Live{}
		for i, m := range members {
			_ = live.Set(string(rune('a'+i)), m)
		}
		before := live.Now()
		if got := result(before, r); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		_ = live.Set("a", knows("another"))
		if got := result(before, r); got != want || before == live.Now() {
			t.Errorf("after a change what was taken before says %s, want %s", got, want)
		}
	}
}
