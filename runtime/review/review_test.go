package review_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime/client"
	"github.com/keelson-dev/keelson/runtime/review"
)

type answer struct {
	Status struct {
		Good bool `json:"good"`
	} `json:"status"`
}

// ask sends a review to a server.
func ask(t *testing.T, handler http.HandlerFunc, o review.Options) (answer, error) {
	t.Helper()
	server := httptest.NewServer(handler)
	defer server.Close()
	o.Name, o.Kind, o.APIVersion = "test webhook", "Review", "example.com/v1"
	hook, err := review.New(client.Config{Server: server.URL}, o)
	if err != nil {
		t.Fatal(err)
	}
	defer hook.Close()
	var a answer
	err = errors.Join(hook.Ask(t.Context(), []byte(`{}`), &a), hook.Ready(t.Context()))
	return a, err
}

// TestErrors checks the words of errors, and how often a review is sent.
func TestErrors(t *testing.T) {
	code := func(code int, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(code)
		}
	}
	text := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
	}
	for _, c := range []struct {
		handler  http.HandlerFunc
		path     string
		want     string // "" is success
		attempts int
	}{
		{text(`{"kind":"Review","apiVersion":"example.com/v1","status":{"good":true}}`), "", "", 1},
		{text(`{"status":{"good":true}}`), "", "", 1},
		{text(`{"kind":"Other","apiVersion":"example.com/v1"}`), "", `test webhook: the answer is a "Other" of "example.com/v1": want a Review of example.com/v1`, 1},
		{text(`{"kind":"Review","apiVersion":"example.com/v2"}`), "", `test webhook: the answer is a "Review" of "example.com/v2"`, 1},
		{text(`hello`), "", "test webhook: the answer is no Review in JSON: ", 1},
		{text(`{"status":{"good":"yes"}}`), "", "test webhook: the answer is no Review in JSON: ", 1},
		{code(404), "", "test webhook: refused: the server at that URL serves no Reviews at its path: ", 1},
		{code(404), "/x", "test webhook: refused: the server at that URL serves no Reviews at the path /x: ", 1},
		{code(403), "", "test webhook: refused: ", 1},
		{code(500), "", "test webhook: 3 attempts failed, the last with the code 500: ", 3},
		{code(504), "", "test webhook: 3 attempts failed, the last with the code 504: ", 3},
		{code(429), "", "test webhook: 3 attempts failed, the last with the code 429: ", 3},
		{code(503), "", "test webhook: 1 attempts failed, the last with the code 503: ", 1},
		{code(503, "Retry-After", "1"), "", "test webhook: 3 attempts failed, the last with the code 503: ", 3},
		{func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "", "test webhook: no answer in ", 0},
	} {
		attempts := 0
		_, err := ask(t, c.handler, review.Options{Path: c.path, Attempts: 3, Backoff: time.Millisecond, Attempted: func(error, time.Duration) { attempts++ }})
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)):
			t.Errorf("%v, want %s", err, c.want)
		case c.attempts > 0 && attempts != c.attempts:
			t.Errorf("%s: %d attempts", c.want, attempts)
		}
	}
}

// Names are compared exactly, as in kube-apiserver: an answer in another case says nothing.
func TestNamesAreExact(t *testing.T) {
	for text, want := range map[string]bool{`{"status":{"good":true}}`: true, `{"Status":{"good":true}}`: false, `{"status":{"GOOD":true}}`: false, `{"status":{"good":false},"STATUS":{"good":true}}`: false} {
		a, err := ask(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }, review.Options{})
		if a.Status.Good != want || err != nil {
			t.Errorf("%s: %t, %v", text, a.Status.Good, err)
		}
	}
}

// The pauses end with the context, and a pause that would be longer than its time is not begun.
func TestPauses(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }))
	defer server.Close()
	hook, err := review.New(client.Config{Server: server.URL}, review.Options{Name: "w", Kind: "Review", APIVersion: "v1", Backoff: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if err := hook.Ask(ctx, nil, &answer{}); err == nil || !strings.Contains(err.Error(), "1 attempts failed") || ctx.Err() != nil {
		t.Error(err)
	}
	hook.Close()
	if err := hook.Ready(t.Context()); err == nil {
		t.Error("a closed webhook is ready")
	}
}

func TestWrongOptions(t *testing.T) {
	for _, o := range []review.Options{{Attempts: -1}, {Backoff: -1}, {Timeout: -1}} {
		if _, err := review.New(client.Config{Server: "http://127.0.0.1"}, o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"kind":"Review","apiVersion":"example.com/v1","status":{"good":true}}`)
	}))
	defer server.Close()
	hook, err := review.New(client.Config{Server: server.URL}, review.Options{Name: "example webhook", Kind: "Review", APIVersion: "example.com/v1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer hook.Close()
	var a answer
	err = hook.Ask(context.Background(), []byte(`{"kind":"Review","apiVersion":"example.com/v1"}`), &a)
	fmt.Println(a.Status.Good, err)
	// Output: true <nil>
}
