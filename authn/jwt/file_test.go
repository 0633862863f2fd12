package jwt_test

import (
	"crypto/elliptic"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authn/jwt"
)

// While the file changes again and again, every request has a user of the configuration before or of that after, and once a change has
// been used only of the latter, in spite of the cache of tokens.
func TestFileChangesUnderLoad(t *testing.T) {
	p, key := newProvider(t, "127.0.0.1:0"), newEC(t, elliptic.P256())
	p.issue(issuerURL, "/a", public("k", key))
	file := func(prefix string) []byte {
		c := configurationOf(entryOf(p, p.URL+"/a/discovery"))
		c.APIVersion, c.Kind = "apiserver.config.k8s.io/v1", "AuthenticationConfiguration"
		c.JWT[0].ClaimMappings.Username.Prefix = &prefix
		return []byte(encodeJSON(c))
	}
	var live authn.Live
	f := jwt.NewBriefFile(func(a *jwt.Authenticator) error { return live.Set(authn.OIDC, authn.BearerToken(a)) }, jwt.Options{})
	defer f.Close()
	if err := f.Use(file("0:")); err != nil {
		t.Fatal(err)
	}
	token := sign(t, "ES256", "k", key, valid())
	who := func() string {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		resp, err := live.Authenticate(r)
		if resp == nil {
			return err.Error()
		}
		return resp.User.Name
	}
	for strings.Contains(who(), "not initialized") {
		time.Sleep(time.Millisecond)
	}
	var group sync.WaitGroup
	var stop atomic.Bool
	for range 4 {
		group.Go(func() {
			for !stop.Load() {
				if name := who(); name != "0:ann" && name != "1:ann" {
					t.Errorf("the answer is %s", name)
					return
				}
			}
		})
	}
	for n := range 20 {
		prefix := string(rune('0'+(n+1)%2)) + ":"
		if err := f.Use(file(prefix)); err != nil {
			t.Fatal(err)
		}
		if name := who(); name != prefix+"ann" {
			t.Errorf("after change %d: %s", n, name)
		}
	}
	stop.Store(true)
	group.Wait()
}
