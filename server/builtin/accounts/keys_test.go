package accounts_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin/accounts"
	"github.com/keelson-dev/keelson/server/credentials"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	authenticationv1 "k8s.io/api/authentication/v1"
)

func newKey(t *testing.T) string {
	t.Helper()
	text, err := credentials.NewSigningKey()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// shared is a storage that several servers use; none closes it.
type shared struct{ storage.Backend }

func (shared) Close() error { return nil }

func sharedStorage() storage.Opener { return storage.Opened(shared{memory.New(memory.Options{})}) }

// keyOf returns the header of a token, which has the id of its key.
func keyOf(token string) string { return strings.Split(token, ".")[0] }

// The key is made in the directory of the credentials, and used again by the next server, which accepts the tokens of the former one.
func TestKeptKey(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "pki")
	o := server.Options{Storage: sharedStorage(), Serving: server.Serving{Credentials: dir}}
	first := start(t, o, accounts.Options{NoControllers: true})
	makeAccount(t, first, "a")
	token := tokenOf(t, first, "a", authenticationv1.TokenRequestSpec{})
	info, err := os.Stat(filepath.Join(dir, "service-accounts.pem"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	second := start(t, o, accounts.Options{NoControllers: true})
	if got := whoAmI(t, second, token); got != "system:serviceaccount:default:a" {
		t.Errorf("the next server: %s", got)
	}
	if other := tokenOf(t, second, "a", authenticationv1.TokenRequestSpec{}); keyOf(other) != keyOf(token) {
		t.Errorf("the next server has another key: %s, %s", other, token)
	}
}

// Another server's key verifies, and without it the tokens of that server are refused.
func TestKeyFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ours, theirs := filepath.Join(dir, "ours"), filepath.Join(dir, "theirs")
	write(t, ours, newKey(t))
	write(t, theirs, newKey(t))
	o := server.Options{Storage: sharedStorage()}
	other := start(t, o, accounts.Options{NoControllers: true, SigningKeyFile: theirs})
	makeAccount(t, other, "a")
	token := tokenOf(t, other, "a", authenticationv1.TokenRequestSpec{})
	for _, test := range []struct {
		files []string
		want  string
	}{{nil, "401"}, {[]string{theirs}, "system:serviceaccount:default:a"}} {
		srv := start(t, o, accounts.Options{NoControllers: true, SigningKeyFile: ours, KeyFiles: test.files})
		if got := whoAmI(t, srv, token); got != test.want {
			t.Errorf("with %v: %s, want %s", test.files, got, test.want)
		}
	}
}

// A key is rotated in its file, while clients with tokens of the former and of the new key send requests. None of them is refused.
func TestRotation(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys")
	before, after := newKey(t), newKey(t)
	write(t, path, before)
	srv := start(t, server.Options{}, accounts.Options{NoControllers: true, SigningKeyFile: path, Reload: 10 * time.Millisecond})
	makeAccount(t, srv, "a")
	issue := func() string { return tokenOf(t, srv, "a", authenticationv1.TokenRequestSpec{}) }
	first := issue()
	done := make(chan struct{})
	var clients sync.WaitGroup
	for _, held := range []string{first, ""} { // one keeps its token, and one requests a new one each time
		clients.Go(func() {
			for {
				token := held
				if token == "" {
					token = issue()
				}
				if got := whoAmI(t, srv, token); got != "system:serviceaccount:default:a" {
					t.Errorf("a request in the rotation: %s", got)
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	write(t, path, before+after)
	time.Sleep(50 * time.Millisecond)
	write(t, path, after+before)
	within(t, "the new key does not sign", func() bool { return keyOf(issue()) != keyOf(first) })
	close(done)
	clients.Wait()
	write(t, path, "damaged")
	time.Sleep(50 * time.Millisecond)
	second := issue() // the keys from before are in use
	write(t, path, after)
	within(t, "the former key still verifies", func() bool { return whoAmI(t, srv, first) == "401" })
	if got := whoAmI(t, srv, second); got != "system:serviceaccount:default:a" {
		t.Errorf("the new key: %s", got)
	}
}

// Options that cannot be used, and keys that cannot be read, are errors of Install.
func TestMistakes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	empty, good := filepath.Join(dir, "empty"), filepath.Join(dir, "good")
	write(t, empty, "")
	write(t, good, newKey(t))
	for name, o := range map[string]accounts.Options{
		"no file":              {SigningKeyFile: filepath.Join(dir, "none")},
		"no key":               {SigningKeyFile: empty},
		"no key that verifies": {SigningKeyFile: good, KeyFiles: []string{empty}},
		"an empty issuer":      {Issuers: []string{"a", ""}},
		"the legacy issuer":    {Issuers: []string{"kubernetes/serviceaccount"}},
		"a short limit":        {MaxExpiration: time.Minute},
		"a negative limit":     {MaxExpiration: -time.Hour},
		"a negative time":      {Reload: -1},
	} {
		srv := servertest.Start(t, server.Options{})
		installBuiltin(t, srv)
		if err := srv.Install(accounts.New(o)); err == nil || !strings.HasPrefix(err.Error(), "accounts: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := servertest.Start(t, server.Options{}).Install(accounts.New(accounts.Options{})); err == nil || !strings.Contains(err.Error(), "install package builtin first") {
		t.Errorf("without builtin: %v", err)
	}
}

// The documents can be read by service accounts and administrators. An issuer without https has none.
func TestDocuments(t *testing.T) {
	t.Parallel()
	srv := start(t, server.Options{Serving: server.Serving{URL: "https://api.example.com/"}}, accounts.Options{NoControllers: true})
	makeAccount(t, srv, "a")
	token := tokenOf(t, srv, "a", authenticationv1.TokenRequestSpec{})
	for _, path := range []string{"/.well-known/openid-configuration", "/openid/v1/jwks"} {
		for who, want := range map[string]int{token: http.StatusOK, srv.Token: http.StatusOK, "": http.StatusForbidden} {
			var out map[string]any
			code, header, _ := request(t, srv, who, "GET", path, nil, &out)
			if code != want || code == http.StatusOK && header.Get("Cache-Control") != "public, max-age=3600" {
				t.Errorf("%s: %d, %v; want %d", path, code, header, want)
			}
			if uri := out["jwks_uri"]; uri != nil && uri != "https://api.example.com/openid/v1/jwks" {
				t.Errorf("jwks_uri: %v", uri)
			}
		}
	}
	without := start(t, server.Options{}, accounts.Options{NoControllers: true, Issuers: []string{"local"}})
	if code, _, _ := request(t, without, without.Token, "GET", "/openid/v1/jwks", nil, nil); code != http.StatusNotFound {
		t.Errorf("an issuer without https: %d", code)
	}
	makeAccount(t, without, "a")
	if got := whoAmI(t, without, tokenOf(t, without, "a", authenticationv1.TokenRequestSpec{})); got != "system:serviceaccount:default:a" {
		t.Errorf("its tokens: %s", got)
	}
}
