package accounts_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/server/builtin/accounts"
	"github.com/keelson-dev/keelson/server/builtin/reviews"
	"github.com/keelson-dev/keelson/server/servertest"
)

// A program gets a token for a service account, and is that account.
func ExampleNew() {
	srv, err := servertest.Run(server.Options{}, builtin.New(builtin.Options{}), accounts.New(accounts.Options{}), reviews.New(reviews.Options{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = srv.Close() }()

	post := func(token, path, body string, out any) {
		req, err := http.NewRequest(http.MethodPost, srv.URL+path, strings.NewReader(body))
		if err != nil {
			fmt.Println(err)
			return
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/json")
		resp, err := srv.Anonymous().Do(req)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer func() { _ = resp.Body.Close() }()
		if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
			fmt.Println(err)
		}
	}
	var account struct{ Metadata struct{ Name string } }
	post(srv.Token, "/api/v1/namespaces/default/serviceaccounts", `{"metadata":{"name":"robot"}}`, &account)
	var request struct{ Status struct{ Token string } }
	post(srv.Token, "/api/v1/namespaces/default/serviceaccounts/robot/token", `{"spec":{"expirationSeconds":600}}`, &request)
	var me struct {
		Status struct{ UserInfo struct{ Username string } }
	}
	post(request.Status.Token, "/apis/authentication.k8s.io/v1/selfsubjectreviews", `{}`, &me)
	fmt.Println(account.Metadata.Name, "is", me.Status.UserInfo.Username)
	// Output: robot is system:serviceaccount:default:robot
}
