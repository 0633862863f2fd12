package server_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// calls is a list of names, in the order of the calls.
type calls struct {
	mu sync.Mutex // guards of
	of []string
}

func (c *calls) add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of = append(c.of, name)
}

func (c *calls) list() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.of)
}

func TestHooksRunInTheirOrder(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, widgets())
	var done calls
	release := make(chan struct{})
	hook := func(name string, after ...string) server.Hook {
		return server.Hook{Name: name, After: after, Run: func(ctx context.Context) error {
			if name == "first" {
				<-release
			}
			done.add(name)
			return nil
		}}
	}
	var h *server.Host
	err := srv.Install(server.ExtensionFunc(func(host *server.Host) error {
		h = host
		return host.Start(hook("third", "second", "first"), hook("second", "first"), hook("first"))
	}))
	if err != nil {
		t.Fatal(err)
	}
	ready := func() string {
		_, body := call(t, srv.Client(), "GET", srv.URL+"/readyz?verbose", "")
		return body
	}
	for _, name := range []string{"first", "second", "third"} {
		if body := ready(); !strings.Contains(body, "[-]poststarthook/"+name+" failed: reason withheld\n") {
			t.Errorf("before: %s", body)
		}
		code, body := call(t, srv.Client(), "GET", srv.URL+"/livez/poststarthook/"+name, "")
		if code != 500 || body != "internal server error: not finished\n" {
			t.Errorf("/livez/poststarthook/%s: %d %q", name, code, body)
		}
	}
	close(release)
	eventually(t, "all hooks end", func() bool { return strings.Contains(ready(), "[+]poststarthook/third ok\n") })
	if got := done.list(); !slices.Equal(got, []string{"first", "second", "third"}) {
		t.Errorf("%q", got)
	}
	if err := h.Start(hook("fourth", "third")); err != nil { // while the server serves
		t.Error(err)
	}
	eventually(t, "a later hook ends", func() bool { return strings.Contains(ready(), "[+]poststarthook/fourth ok\n") })
}

func TestHooksThatCannotRun(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, widgets())
	run := func(context.Context) error { return nil }
	for want, all := range map[string][]server.Hook{
		`hook "": want a name and a function Run`:                    {{Run: run}},
		`hook "a": want a name and a function Run`:                   {{Name: "a"}},
		`hook "a": there is another of that name`:                    {{Name: "a", Run: run}, {Name: "a", Run: run}},
		`hook "a" is to run after "b", which no extension has added`: {{Name: "a", After: []string{"b"}, Run: run}},
		`the hooks "a", "b", "c" wait for each other`:                {{Name: "a", After: []string{"b"}, Run: run}, {Name: "b", After: []string{"c"}, Run: run}, {Name: "c", After: []string{"b"}, Run: run}, {Name: "d", Run: run}},
		`the hooks "a" wait for each other`:                          {{Name: "a", After: []string{"a"}, Run: run}},
	} {
		err := srv.Install(server.ExtensionFunc(func(h *server.Host) error { return h.Start(all...) }))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
	err := srv.Install(server.ExtensionFunc(func(h *server.Host) error {
		return errors.Join(h.Start(server.Hook{Name: "a", Run: func(context.Context) error { panic("it ran") }}), errors.New("not installed"))
	}))
	if err == nil || !strings.Contains(err.Error(), "not installed") {
		t.Error(err)
	}
	if err := srv.Install(server.ExtensionFunc(func(h *server.Host) error { return h.Start(server.Hook{Name: "a", Run: run}) })); err != nil {
		t.Errorf("the name of a hook that was never installed: %v", err)
	}
}

// The error or the panic of a hook ends the server.
func TestHooksThatFail(t *testing.T) {
	t.Parallel()
	for want, run := range map[string]func(context.Context) error{
		`server: hook "make": no namespace`: func(context.Context) error { return errors.New("no namespace") },
		`server: hook "make": panic: oh`:    func(context.Context) error { panic("oh") },
	} {
		s, err := server.New(server.Options{Groups: []server.Group{widgets()}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Install(server.ExtensionFunc(func(h *server.Host) error { return h.Start(server.Hook{Name: "make", Run: run}) })); err != nil {
			t.Fatal(err)
		}
		if err := s.Run(t.Context()); err == nil || err.Error() != want {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

// /livez waits for hooks, except in the time of grace.
func TestLivezGrace(t *testing.T) {
	t.Parallel()
	for grace, want := range map[time.Duration]int{0: 500, time.Hour: 200} {
		o := server.Options{Groups: []server.Group{widgets()}}
		o.Serving.LivezGrace = grace
		srv := servertest.Start(t, o)
		err := srv.Install(server.ExtensionFunc(func(h *server.Host) error {
			return h.Start(server.Hook{Name: "slow", Run: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }})
		}))
		if err != nil {
			t.Fatal(err)
		}
		for path, code := range map[string]int{"/livez": want, "/readyz": 500, "/healthz": 500} {
			if got, body := call(t, srv.Client(), "GET", srv.URL+path, ""); got != code {
				t.Errorf("grace %v: %s: %d %s", grace, path, got, body)
			}
		}
	}
}

// Functions before the stop are called while the server serves, and it waits for them.
func TestBeforeStop(t *testing.T) {
	t.Parallel()
	var done calls
	srv := run(t, server.Options{Groups: []server.Group{widgets()}})
	c, auth := srv.client(t), "Bearer "+srv.Credentials().Token
	err := srv.Install(server.ExtensionFunc(func(h *server.Host) error {
		return errors.Join(
			h.BeforeStop("writes", func(context.Context) error {
				code, _ := tryCall(t, c, "POST", srv.url+widgetsPath, `{"metadata":{"name":"last"}}`, "Authorization", auth)
				if code == 201 {
					done.add("written")
				}
				return nil
			}),
			h.BeforeStop("panics", func(context.Context) error { panic("oh") }),
			h.BeforeStop("fails", func(context.Context) error { done.add("failed"); return errors.New("no") }),
		)
	}))
	if err != nil {
		t.Fatal(err)
	}
	srv.stop()
	if err := <-srv.ended; err != nil {
		t.Error(err)
	}
	srv.ended <- nil
	got := done.list()
	slices.Sort(got)
	if !slices.Equal(got, []string{"failed", "written"}) {
		t.Errorf("%q", got)
	}
}

// A function before the stop that ignores its context does not hold the end of the server, and is named in the log.
func TestBeforeStopThatDoesNotReturn(t *testing.T) {
	t.Parallel()
	core, log := observer.New(zap.WarnLevel)
	o := server.Options{Observe: server.Observe{Logger: zap.New(core)}}
	o.Limits.RequestTimeout = 50 * time.Millisecond
	srv := run(t, o)
	release := make(chan struct{})
	defer close(release)
	err := srv.Install(server.ExtensionFunc(func(h *server.Host) error {
		return h.BeforeStop("stays", func(context.Context) error { <-release; return nil })
	}))
	if err != nil {
		t.Fatal(err)
	}
	srv.stop()
	select {
	case err := <-srv.ended:
		if err != nil {
			t.Error(err)
		}
		srv.ended <- nil
	case <-time.After(20 * time.Second):
		t.Fatal("the server does not end")
	}
	lines := log.FilterMessage("functions before the stop have not returned").All()
	if len(lines) != 1 || fmt.Sprint(lines[0].ContextMap()["names"]) != "[stays]" {
		t.Errorf("logged %v", lines)
	}
}
