package reviews_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin/reviews"
	"github.com/keelson-dev/keelson/server/servertest"
)

// members is an authenticator of an extension.
type members struct{}

func (members) AuthenticateToken(ctx context.Context, token string) (*authn.Response, error) {
	switch token {
	case "token-of-joe":
		return &authn.Response{User: authn.User{Name: "joe"}}, nil
	case "token-for-a":
		return &authn.Response{User: authn.User{Name: "ann"}, Audiences: []string{"a"}}, nil
	case "secret":
		return nil, errors.New("https://tokens.example.com says no")
	}
	return nil, nil
}

type extension struct{}

func (extension) Install(h *server.Host) error {
	return h.Authenticate(authn.TokenWebhook, authn.BearerToken(members{}))
}

func start(t *testing.T, audiences ...string) *servertest.Server {
	t.Helper()
	return servertest.Start(t, server.Options{
		Policy: server.Policy{Audiences: audiences, Users: map[string]authn.User{
			"token-of-jane": {Name: "jane", UID: "1", Groups: []string{"g"}, Extra: map[string][]string{"k": {"v"}}},
		}},
	}, reviews.New(reviews.Options{}), extension{})
}

// post returns the code and the answer to a POST of a review with a token.
func post(t *testing.T, srv *servertest.Server, token, resource, body string) (int, string) {
	t.Helper()
	code, text := request(t, srv, token, http.MethodPost, "/apis/authentication.k8s.io/v1/"+resource, json.RawMessage(body))
	return code, string(text)
}

func TestTokenReview(t *testing.T) {
	srv, bare := start(t, "own", "second"), start(t)
	const jane = `{"username":"jane","uid":"1","groups":["g","system:authenticated"],"extra":{"k":["v"]}}`
	const joe = `{"username":"joe","groups":["system:authenticated"]}`
	const invalid = `{"user":{},"error":"invalid bearer token"}`
	for _, test := range []struct {
		srv        *servertest.Server
		spec, want string // want is the status
	}{
		{srv, `{"token":"token-of-jane"}`, `{"authenticated":true,"user":` + jane + `,"audiences":["own","second"]}`},
		{srv, `{"token":"token-of-jane","audiences":["x","second"]}`, `{"authenticated":true,"user":` + jane + `,"audiences":["second"]}`},
		{srv, `{"token":"token-of-jane","audiences":["x"]}`, invalid},
		{srv, `{"token":"token-of-joe","audiences":["x"]}`, invalid},
		{srv, `{"token":"token-of-joe","audiences":["own"]}`, `{"authenticated":true,"user":` + joe + `,"audiences":["own"]}`},
		{srv, `{"token":"token-of-joe"}`, `{"authenticated":true,"user":` + joe + `,"audiences":["own","second"]}`},
		{srv, `{"token":"token-for-a"}`, invalid},
		{srv, `{"token":"token-for-a","audiences":["a"]}`, `{"authenticated":true,"user":{"username":"ann","groups":["system:authenticated"]},"audiences":["a"]}`},
		{srv, `{"token":"secret"}`, invalid},
		{srv, `{"token":"unknown"}`, invalid},
		{bare, `{"token":"token-of-jane"}`, `{"authenticated":true,"user":` + jane + `}`},
		{bare, `{"token":"token-of-joe"}`, `{"authenticated":true,"user":` + joe + `}`},
		{bare, `{"token":"token-of-jane","audiences":["x"]}`, invalid},
		{bare, `{"token":"token-of-joe","audiences":["x"]}`, invalid},
		{bare, `{"token":"token-for-a","audiences":["a"]}`, `{"authenticated":true,"user":{"username":"ann","groups":["system:authenticated"]},"audiences":["a"]}`},
	} {
		code, got := post(t, test.srv, test.srv.Token, "tokenreviews", `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":`+test.spec+`,"status":{"authenticated":true,"user":{"username":"root"}}}`)
		var answer struct{ Spec, Status any }
		var want, spec any
		for _, err := range []error{json.Unmarshal([]byte(got), &answer), json.Unmarshal([]byte(test.want), &want), json.Unmarshal([]byte(test.spec), &spec)} {
			if err != nil {
				t.Fatalf("%s: %v", got, err)
			}
		}
		if diff := cmp.Diff(want, answer.Status); code != http.StatusCreated || diff != "" || !cmp.Equal(spec, answer.Spec) {
			t.Errorf("%s: %d %s\n%s", test.spec, code, got, diff)
		}
		if strings.Contains(got, "tokens.example.com") {
			t.Errorf("the answer names another server: %s", got)
		}
	}
	if code, got := post(t, srv, srv.Token, "tokenreviews", `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{}}`); code != http.StatusBadRequest || !strings.Contains(got, `"message":"token is required for TokenReview in authentication"`) {
		t.Errorf("without a token: %d %s", code, got)
	}
	if code, got := post(t, srv, "token-of-jane", "tokenreviews", `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":"x"}}`); code != http.StatusForbidden {
		t.Errorf("a user without permissions: %d %s", code, got)
	}
}

func TestSelfSubjectReview(t *testing.T) {
	srv := start(t)
	code, got := post(t, srv, srv.Token, "selfsubjectreviews", `{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview","metadata":{"name":"x"},"status":{"userInfo":{"username":"z"}}}`)
	if code != http.StatusCreated || !strings.Contains(got, `"status":{"userInfo":{"username":"`) || strings.Contains(got, `"z"`) || strings.Contains(got, `"name"`) || !strings.Contains(got, `"creationTimestamp":"`) {
		t.Errorf("%d %s", code, got)
	}
	code, got = post(t, srv, "token-of-jane", "selfsubjectreviews", `{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`)
	if want := `"status":{"userInfo":{"username":"jane","uid":"1","groups":["g","system:authenticated"],"extra":{"k":["v"]}}}`; code != http.StatusCreated || !strings.Contains(got, want) {
		t.Errorf("%d %s", code, got)
	}
	if code, got := post(t, srv, "wrong", "selfsubjectreviews", `{}`); code != http.StatusUnauthorized {
		t.Errorf("%d %s", code, got)
	}
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
		r, _ := http.NewRequestWithContext(t.Context(), method, srv.URL+"/apis/authentication.k8s.io/v1/selfsubjectreviews", nil)
		resp, err := srv.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if _ = resp.Body.Close(); resp.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, resp.StatusCode)
		}
	}
}
