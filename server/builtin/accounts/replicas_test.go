package accounts_test

import (
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin/accounts"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Two servers share a storage and a key. A token that one of them has just issued for an account that it has just made is accepted by
// the other, also if an account of that name has existed before. A deletion on one ends the tokens on both.
func TestReplicas(t *testing.T) {
	t.Parallel()
	o := server.Options{Storage: sharedStorage()}
	key := filepath.Join(t.TempDir(), "key")
	write(t, key, newKey(t))
	one, two := start(t, o, accounts.Options{SigningKeyFile: key}), start(t, o, accounts.Options{SigningKeyFile: key})
	for range 20 {
		makeAccount(t, one, "a")
		token := tokenOf(t, one, "a", authenticationv1.TokenRequestSpec{})
		unused := tokenOf(t, one, "a", authenticationv1.TokenRequestSpec{})
		if got := whoAmI(t, two, token); got != "system:serviceaccount:default:a" {
			t.Fatalf("at once, at the other server: %s", got)
		}
		admin(t, one, "DELETE", inDefault+"serviceaccounts/a", nil, nil)
		if got := whoAmI(t, one, unused); got != "401" {
			t.Fatalf("after the deletion, at the same server: %s", got)
		}
	}
	makeAccount(t, one, "b")
	var held []string
	for range 50 { // each is used once, so that none is remembered
		held = append(held, tokenOf(t, one, "b", authenticationv1.TokenRequestSpec{}))
	}
	admin(t, one, "DELETE", inDefault+"serviceaccounts/b", nil, nil)
	within(t, "the other server still accepts tokens of the deleted account", func() bool {
		token := held[0]
		if len(held) > 1 {
			held = held[1:]
		}
		return whoAmI(t, two, token) == "401"
	})
}

// The controllers of two servers come to one result, and write nothing when nothing differs.
func TestRacingControllers(t *testing.T) {
	t.Parallel()
	o := server.Options{Storage: sharedStorage()}
	key := filepath.Join(t.TempDir(), "key")
	write(t, key, newKey(t))
	a := accounts.Options{SigningKeyFile: key, RootCA: []byte("CA\n")}
	one, two := start(t, o, a), start(t, o, a)
	var names []string
	for _, name := range []string{"r1", "r2", "r3", "r4", "r5"} {
		names = append(names, name)
		admin(t, one, "POST", "/api/v1/namespaces", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil)
	}
	versions := map[string]string{}
	look := func(path string) string {
		var m metav1.PartialObjectMetadata
		if code, _, _ := request(t, two, two.Token, "GET", path, nil, &m); code != http.StatusOK {
			return ""
		}
		return m.ResourceVersion
	}
	for _, ns := range names {
		for _, object := range []string{"serviceaccounts/default", "configmaps/kube-root-ca.crt"} {
			path := "/api/v1/namespaces/" + ns + "/" + object
			within(t, "no "+path, func() bool { return look(path) != "" })
			versions[path] = look(path)
		}
	}
	start(t, o, a)
	time.Sleep(200 * time.Millisecond)
	for path, version := range versions {
		if got := look(path); got != version {
			t.Errorf("%s was written again: %s, %s", path, got, version)
		}
	}
}
