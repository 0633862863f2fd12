package authn_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/keelson-dev/keelson/authn"
)

func Example() {
	tokens := authn.StaticTokens(map[string]authn.User{"s3cret": {Name: "alice", Groups: []string{"dev"}}})
	who := authn.WithAnonymous(authn.AuthenticatedGroup(authn.Union(authn.BearerToken(tokens))))

	for _, token := range []string{"s3cret", "", "wrong"} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := who.Authenticate(r)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(resp.User.Name, resp.User.Groups)
	}
	// Output:
	// alice [dev system:authenticated]
	// system:anonymous [system:unauthenticated]
	// invalid bearer token
}
