package filters_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/server/filters"
	"github.com/keelson-dev/keelson/server/request"
)

// The filter chain around a handler of another package: the mux of the application is protected, and its requests are resolved as
// those of a Kubernetes API.
func Example() {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		info, user := request.InfoFrom(r.Context()), authn.UserFrom(r.Context())
		_, _ = fmt.Fprintf(w, "%s may %s %s", user.Name, info.Verb, info.Path)
		if info.ResourceRequest {
			_, _ = fmt.Fprintf(w, ": %s of group %s in namespace %s", info.Resource, info.APIGroup, info.Namespace)
		}
	})

	tokens := authn.StaticTokens(map[string]authn.User{"s3cret": {Name: "admin", Groups: []string{authn.MastersGroup}}})
	who := authn.WithAnonymous(authn.AuthenticatedGroup(authn.BearerToken(tokens)))
	may := authz.Union(authz.PrivilegedGroups(authn.MastersGroup), authz.AllowPaths("/healthz", "/healthz/*"))

	srv := httptest.NewServer(filters.Chain(mux,
		filters.Recover(nil),
		filters.AuditID(),
		filters.RequestInfo(request.Resolver{}),
		filters.Authenticate(who, filters.AuthenticateOptions{}),
		filters.Authorize(may),
	))
	defer srv.Close()

	get := func(path, token string) {
		r, err := http.NewRequest(http.MethodGet, srv.URL+path, nil)
		if err != nil {
			panic(err)
		}
		r.Header.Set("Audit-ID", "42")
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := srv.Client().Do(r)
		if err != nil {
			panic(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			panic(err)
		}
		fmt.Println(resp.StatusCode, resp.Header.Get("Audit-Id"), string(body))
	}
	get("/apis/example.com/v1/namespaces/ns/widgets", "s3cret")
	get("/healthz", "")
	get("/apis/example.com/v1/namespaces/ns/widgets", "")
	get("/healthz", "wrong")

	// Output:
	// 200 42 admin may list /apis/example.com/v1/namespaces/ns/widgets: widgets of group example.com in namespace ns
	// 200 42 system:anonymous may get /healthz
	// 403 42 {"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"widgets.example.com is forbidden: User \"system:anonymous\" cannot list resource \"widgets\" in API group \"example.com\" in the namespace \"ns\"","reason":"Forbidden","details":{"group":"example.com","kind":"widgets"},"code":403}
	//
	// 401 42 {"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}
}
