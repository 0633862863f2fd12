package filters_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/server/filters"
	"github.com/keelson-dev/keelson/server/request"
)

var errNoName = errors.New("an authenticator returned a user without a name")

// The reason of a 401 is passed to Failed, and no part of it is sent to the client.
func TestTheReasonOfA401(t *testing.T) {
	secret := errors.New("the secret reason")
	for _, tc := range []struct {
		name string
		who  authn.Authenticator
		want error
	}{
		{"wrong", authn.Func(func(*http.Request) (*authn.Response, error) { return nil, secret }), secret},
		{"none", authn.Func(func(*http.Request) (*authn.Response, error) { return nil, nil }), nil},
		{"nobody", authn.AuthenticatedGroup(authn.Func(func(*http.Request) (*authn.Response, error) { return &authn.Response{}, nil })), errNoName},
	} {
		calls, got := 0, error(nil)
		failed := func(r *http.Request, err error) { calls, got = calls+1, err }
		w := serve(filters.Authenticate(tc.who, filters.AuthenticateOptions{Failed: failed}), func(http.ResponseWriter, *http.Request) {
			t.Errorf("%s: served", tc.name)
		}, httptest.NewRequest(http.MethodGet, "/", nil))
		if s := status(t, w.Body); w.Code != 401 || s.Message != "Unauthorized" {
			t.Errorf("%s: %d %+v", tc.name, w.Code, s)
		}
		if calls != 1 || !errors.Is(got, tc.want) && (tc.want != errNoName || got == nil || got.Error() != errNoName.Error()) {
			t.Errorf("%s: the hook was called %d times, with %v", tc.name, calls, got)
		}
	}
}

func TestAudiences(t *testing.T) {
	for _, tc := range []struct {
		server, credential []string
		code               int
	}{
		{nil, nil, 200},
		{nil, []string{"a"}, 200},
		{[]string{"a", "b"}, nil, 200},
		{[]string{"a", "b"}, []string{"c", "b"}, 200},
		{[]string{"a", "b"}, []string{"c"}, 401},
	} {
		who := authn.Func(func(r *http.Request) (*authn.Response, error) {
			if got := authn.AudiencesFrom(r.Context()); !slices.Equal(got, tc.server) {
				t.Errorf("the authenticator sees the audiences %q, want %q", got, tc.server)
			}
			return &authn.Response{User: authn.User{Name: "u"}, Audiences: tc.credential}, nil
		})
		w := serve(filters.Authenticate(who, filters.AuthenticateOptions{Audiences: tc.server}), func(http.ResponseWriter, *http.Request) {},
			httptest.NewRequest(http.MethodGet, "/", nil))
		if w.Code != tc.code {
			t.Errorf("server %q, credential %q: %d, want %d", tc.server, tc.credential, w.Code, tc.code)
		}
	}
}

func TestWarningsAndAnnotationsOfAuthentication(t *testing.T) {
	who := authn.Func(func(*http.Request) (*authn.Response, error) {
		return &authn.Response{
			User: authn.User{Name: "u"}, Warnings: []string{"this token ends soon"}, AuditAnnotations: map[string]string{"example.com/how": "token"},
		}, nil
	})
	annotations := &request.Annotations{}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r = r.WithContext(request.WithAnnotations(r.Context(), annotations))
	h := filters.Chain(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		request.Annotate(r.Context(), "example.com/how", "the first value stays")
		request.Annotate(r.Context(), "example.com/what", "x")
	}), filters.Warnings(), filters.Authenticate(who, filters.AuthenticateOptions{}))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if got := w.Header().Values("Warning"); !slices.Equal(got, []string{`299 - "this token ends soon"`}) {
		t.Errorf("warnings %q", got)
	}
	if got := annotations.All(); !maps.Equal(got, map[string]string{"example.com/how": "token", "example.com/what": "x"}) {
		t.Errorf("annotations %v", got)
	}
	request.Annotate(t.Context(), "dropped", "without a recorder")
}

// TestTrailersAreNotSeen checks that a trailer with the name of a header with credentials reaches no handler, over HTTP/1.1 and HTTP/2.
func TestTrailersAreNotSeen(t *testing.T) {
	who := authn.Func(func(*http.Request) (*authn.Response, error) { return &authn.Response{User: authn.User{Name: "u"}}, nil })
	srv := httptest.NewUnstartedServer(filters.Chain(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprint(w, len(r.Trailer), r.ProtoMajor)
	}), filters.Authenticate(who, filters.AuthenticateOptions{})))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	for major, client := range map[int]*http.Client{2: srv.Client(), 1: {Transport: &http.Transport{TLSClientConfig: srv.Client().Transport.(*http.Transport).TLSClientConfig.Clone()}}} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, io.MultiReader(strings.NewReader("body")))
		if err != nil {
			t.Fatal(err)
		}
		r.Trailer = http.Header{"X-Remote-User": {"eve"}, "Impersonate-User": {"eve"}}
		if major == 1 {
			client.Transport.(*http.Transport).TLSClientConfig.NextProtos = []string{"http/1.1"}
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		if _ = resp.Body.Close(); err != nil || string(text) != fmt.Sprint(0, major) {
			t.Errorf("HTTP/%d: %q, %v", major, text, err)
		}
		client.CloseIdleConnections()
	}
}
