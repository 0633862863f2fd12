package crd_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime/webhook"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/crd"
)

// An object that cannot be converted can still be read from the storage: the option for unreadable objects does not delete it.
func TestAnObjectThatIsNotConvertedIsNotCorrupt(t *testing.T) {
	t.Parallel()
	h := startHooks(t)
	s := newHooked(t, h, nil)
	v1, v2 := cratesIn(hooked, "v1"), cratesIn(hooked, "v2")
	held := strings.Replace(crate(hooked, "v1", "a", ``), `"name"`, `"finalizers":["example.com/held"],"name"`, 1)
	s.want(201, "POST", v1, held)
	for _, stored := range []string{"v1", "v2"} {
		if stored == "v2" {
			s.amend("crates."+hooked, storing("v2"))
		}
		h.set(hooked, downHook)
		for _, path := range []string{v2 + "/a", v2} {
			if stored == "v2" {
				if got := s.want(500, "GET", path, ""); !strings.Contains(got, `"message":"conversion webhook for hooks.example.com/v1, Kind=Crate failed: `) || strings.Contains(got, "reason") {
					t.Errorf("%s: %s", path, got)
				}
			}
		}
		for _, version := range []string{v1, v2} {
			var answer string
			code := s.do("DELETE", version+"/a?ignoreStoreReadErrorWithClusterBreakingPotential=true", "", &answer)
			if code/100 == 2 || s.do("GET", v1+"/a", "", nil) != 200 {
				t.Errorf("%s is stored, DELETE %s: %d %s", stored, version, code, answer)
			}
		}
		h.set(hooked, goodHook)
	}
}

// hang sends n requests that wait for a webhook, and returns the codes of their answers, 0 for no answer.
func (s *site) hang(n int, path string) (codes <-chan int) {
	out := make(chan int, n)
	for range n {
		go func() {
			req, err := http.NewRequestWithContext(s.t.Context(), "GET", s.srv.URL+path, nil)
			if err != nil {
				s.t.Error(err)
			}
			resp, err := s.c.Do(req)
			if err != nil {
				out <- 0
				return
			}
			_ = resp.Body.Close()
			out <- resp.StatusCode
		}()
	}
	return out
}

// called waits until a webhook was called.
func (h *hooks) called(t *testing.T, group string) {
	t.Helper()
	eventually(t, func() bool { return h.spent(group) > 0 }, func() string { return "the webhook is not called" })
}

// While a webhook hangs, its definition can be changed and deleted, and other kinds and the stored version are not slower.
func TestADefinitionIsDeletedWhileItsWebhookHangs(t *testing.T) {
	t.Parallel()
	h := startHooks(t)
	s := newHooked(t, h, nil)
	v1, v2 := cratesIn(hooked, "v1"), cratesIn(hooked, "v2")
	for i := range 5 {
		s.want(201, "POST", v1, crate(hooked, "v1", fmt.Sprint("x", i), ``))
	}
	h.set(hooked, hungHook)
	codes := s.hang(20, v2)
	events := s.watch(v2 + "?watch=true&resourceVersion=0")
	selected := s.watch(v2 + "?watch=true&resourceVersion=0&fieldSelector=spec.shade%3Dred")
	h.called(t, hooked)
	s.want(200, "GET", v1, "")
	s.establish(definitionOf("others", "Other"))
	s.want(201, "POST", "/apis/example.com/v1/namespaces/default/others", object("Other", "o"))
	s.want(200, "DELETE", crdsPath+"/crates."+hooked, "")
	s.awaitGone("crates." + hooked)
	h.set(hooked, goodHook)
	for range 20 {
		if code := <-codes; code != 200 && code/100 != 5 && code != 404 {
			t.Errorf("a list: %d", code)
		}
	}
	events.end()
	selected.end()
}

// While a webhook hangs, watches that wait for it end after their timeoutSeconds, also those that wait for the conversion of
// another watch.
func TestWatchesEndWhileAWebhookHangs(t *testing.T) {
	t.Parallel()
	h := startHooks(t)
	s := newHooked(t, h, nil)
	v2 := cratesIn(hooked, "v2")
	s.want(201, "POST", cratesIn(hooked, "v1"), crate(hooked, "v1", "a", `,"spec":{"size":3,"color":"red"}`))
	from := s.want(200, "GET", v2, "")
	_, from, _ = strings.Cut(from, `"metadata":{"continue":"","resourceVersion":"`)
	from, _, _ = strings.Cut(from, `"`)
	h.set(hooked, hungHook)
	s.want(200, "PATCH", cratesIn(hooked, "v1")+"/a", `{"spec":{"color":"blue"}}`, "Content-Type", merge)
	for _, query := range []string{"", "&fieldSelector=spec.shade%3Dred"} {
		path := v2 + "?watch=true&resourceVersion=" + from + query
		long := s.watch(path)
		h.called(t, hooked)
		if got := s.want(200, "GET", path+"&timeoutSeconds=1", ""); got != "" {
			t.Errorf("%q: %s", query, got)
		}
		_ = long.resp.Body.Close()
		h.set(hooked, goodHook) // the call that hangs ends
		h.set(hooked, hungHook)
		s.want(200, "PATCH", cratesIn(hooked, "v1")+"/a", `{"spec":{"note":"x"}}`, "Content-Type", merge)
	}
}

// A request whose time is over while it waits for a webhook is answered with 504. Requests that wait for the same conversion are
// not answered with its error: they go on.
func TestTheEndOfARequestIsNoErrorOfOthers(t *testing.T) {
	t.Parallel()
	h := startHooks(t)
	s := newHooked(t, h, nil)
	v1, v2 := cratesIn(hooked, "v1"), cratesIn(hooked, "v2")
	s.want(201, "POST", v1, crate(hooked, "v1", "a", `,"spec":{"size":3,"color":"red"}`))
	for i, path := range []string{v2 + "?fieldSelector=spec.shade%3Dred", v2 + "?watch=true&resourceVersion=0&fieldSelector=spec.shade%3Dred", v2 + "/a"} {
		s.want(200, "PATCH", v1+"/a", fmt.Sprintf(`{"spec":{"note":"%d"}}`, i), "Content-Type", merge)
		h.set(hooked, hungHook)
		h.spent(hooked)
		short := s.hang(1, v2+"?timeout=1s&fieldSelector=spec.shade%3Dred")
		h.called(t, hooked)
		var codes <-chan int
		var events *stream
		if strings.Contains(path, "watch") {
			events = s.watch(path)
		} else {
			codes = s.hang(3, path)
		}
		if code := <-short; code != 504 {
			t.Errorf("%s: the one whose time is over: %d", path, code)
		}
		h.set(hooked, goodHook)
		if events != nil {
			if e := events.next(); e.Type != "ADDED" {
				t.Errorf("%s: %s %s", path, e.Type, e.Object)
			}
			_ = events.resp.Body.Close()
			continue
		}
		for range 3 {
			if code := <-codes; code != 200 {
				t.Errorf("%s: %d", path, code)
			}
		}
	}
}

// A write whose time is over while the sent object is being converted is answered with 504, and changes nothing.
func TestAWriteEndsWhileAWebhookHangs(t *testing.T) {
	t.Parallel()
	h := startHooks(t)
	s := newHooked(t, h, nil)
	v1, v2 := cratesIn(hooked, "v1"), cratesIn(hooked, "v2")
	s.want(201, "POST", v1, crate(hooked, "v1", "a", ``))
	before := s.want(200, "GET", v1, "")
	h.set(hooked, hungHook)
	for _, c := range []struct{ method, path, contentType string }{
		{"POST", v2 + "?timeout=1s", "application/json"},
		{"PUT", v2 + "/a?timeout=1s", "application/json"},
		{"PATCH", v2 + "/b?timeout=1s&fieldManager=m", "application/apply-patch+yaml"},
	} {
		name := "b"
		if c.method == "PUT" {
			name = "a"
		}
		if got := s.want(504, c.method, c.path, crate(hooked, "v2", name, ``), "Content-Type", c.contentType); !strings.Contains(got, `"reason":"Timeout"`) {
			t.Errorf("%s: %s", c.method, got)
		}
	}
	h.set(hooked, goodHook)
	if after := s.want(200, "GET", v1, ""); after != before {
		t.Errorf("before %s\nafter  %s", before, after)
	}
}

// A server ends although a webhook hangs: requests that wait for the webhook are answered after its timeout.
func TestTheServerEndsWhileAWebhookHangs(t *testing.T) {
	t.Parallel()
	h := startHooks(t)
	s := startSite(t, server.Options{}, crd.New(crd.Options{Webhooks: webhook.Options{Timeout: time.Second}}))
	s.establish(h.crates(t, hooked))
	s.want(201, "POST", cratesIn(hooked, "v1"), crate(hooked, "v1", "a", ``))
	h.set(hooked, hungHook)
	codes := s.hang(5, cratesIn(hooked, "v2")+"/a")
	events := s.watch(cratesIn(hooked, "v2") + "?watch=true&resourceVersion=0")
	selected := s.watch(cratesIn(hooked, "v2") + "?watch=true&resourceVersion=0&fieldSelector=spec.shade%3Dred")
	h.called(t, hooked)
	if err := s.srv.Close(); err != nil {
		t.Error(err)
	}
	for _, w := range []*stream{events, selected} {
		for w.in.Scan() { // the stream may be cut off
		}
	}
	for range 5 {
		if code := <-codes; code == 200 {
			t.Error("a request was answered")
		}
	}
}
