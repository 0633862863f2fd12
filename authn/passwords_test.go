package authn_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/authn"
)

func TestReadPasswords(t *testing.T) {
	got, err := authn.ReadPasswords(strings.NewReader("secret,jane,1,\"a,b\"\n\n pass word ,joe,,,more\n"))
	if diff := cmp.Diff([]authn.Password{
		{"secret", authn.User{Name: "jane", UID: "1", Groups: []string{"a", "b"}}}, {" pass word ", authn.User{Name: "joe", Groups: []string{""}}},
	}, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	for text, want := range map[string]string{
		"secret,jane":                  "line 1 has 2 of",
		"a,b,c\n,jane,1":               "line 2 has an empty password",
		"secret,,1":                    "line 1 has an empty user name",
		"secret,b,1\nother,b,2":        "line 2 has the user of line 1",
		"a,b,\"c":                      "quote",
		strings.Repeat("p,u,1\n", 3e6): "line 2 has the user of line 1",
		"\"" + strings.Repeat("x", authn.MaxPasswordFileBytes): "larger than",
	} {
		if _, err := authn.ReadPasswords(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

func FuzzReadPasswords(f *testing.F) {
	f.Add("secret,jane,1,\"a,b\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		users, err := authn.ReadPasswords(strings.NewReader(text))
		if err != nil {
			return
		}
		a := authn.BasicAuth(users)
		for _, u := range users {
			if strings.Contains(u.User.Name, ":") {
				continue // cannot be sent
			}
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.SetBasicAuth(u.User.Name, u.Password)
			if got := result(a, r); got != u.User.Name {
				t.Errorf("%q: %s", u.User.Name, got)
			}
			r.SetBasicAuth(u.User.Name, u.Password+"x")
			if got := result(a, r); got != "error: wrong name or password" {
				t.Errorf("%q with a wrong password: %s", u.User.Name, got)
			}
		}
	})
}

func TestBasicAuth(t *testing.T) {
	a := authn.BasicAuth([]authn.Password{{"pass:word", authn.User{Name: "jane"}}, {"", authn.User{}}})
	basic := func(name, password string) string {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.SetBasicAuth(name, password)
		return r.Header.Get("Authorization")
	}
	for header, want := range map[string]string{
		"":                         "no opinion",
		basic("jane", "pass:word"): "jane",
		"bAsIc " + basic("jane", "pass:word")[6:]: "jane",
		basic("jane", "pass"):                     "error: wrong name or password",
		basic("joe", "pass:word"):                 "error: wrong name or password",
		basic("", ""):                             "error: wrong name or password",
		"Bearer pass:word":                        "no opinion",
		"Basic !":                                 "error: the Authorization header of a basic authentication cannot be read",
		"Basic":                                   "error: the Authorization header of a basic authentication cannot be read",
		"Basicx":                                  "no opinion",
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if header != "" {
			r.Header.Set("Authorization", header)
		}
		if got := result(a, r); got != want {
			t.Errorf("%q: %s, want %s", header, got, want)
		}
	}
}
