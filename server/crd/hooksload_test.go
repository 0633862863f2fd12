package crd_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/crd"
	"github.com/keelson-dev/keelson/server/crd/conversion"
)

// badLoad is many writers and watchers of crates in both versions while the webhook misbehaves.
type badLoad struct {
	*site
	ctx  context.Context
	work sync.WaitGroup
	good atomic.Int64 // number of writes in v1

	mu     sync.Mutex // guards all below
	least  map[string]int
	most   map[string]int // by name: the last acknowledged write, and the last attempted one
	shouts map[string]int // by message: number of refused requests in v2
}

type badObject struct {
	Metadata struct {
		Name            string `json:"name"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Spec struct {
		Size *int `json:"size"`
		Box  struct {
			Width *int `json:"width"`
		} `json:"box"`
	} `json:"spec"`
}

// state returns the relevant part of an object, in any version.
func (o badObject) state() string {
	n := o.Spec.Size
	if n == nil {
		n = o.Spec.Box.Width
	}
	if n == nil {
		return o.Metadata.ResourceVersion + ": none"
	}
	return fmt.Sprint(o.Metadata.ResourceVersion, ": ", *n)
}

// ask sends a request; the code is 0 when the test ends.
func (l *badLoad) ask(method, path, contentType, body string) (int, string) {
	req, err := http.NewRequestWithContext(l.ctx, method, l.srv.URL+path, strings.NewReader(body))
	if err != nil {
		l.t.Error(err)
		return 0, ""
	}
	req.Header.Set("Content-Type", contentType)
	resp, err := l.c.Do(req)
	if err != nil {
		if l.ctx.Err() == nil {
			l.t.Errorf("%s %s: %v", method, path, err)
		}
		return 0, ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, ""
	}
	return resp.StatusCode, string(text)
}

// write creates an object and changes it n times. In v1 no write may fail.
func (l *badLoad) write(version, name string, n int) {
	path := cratesIn(hooked, version)
	spec := func(i int) string {
		if version == "v1" {
			return fmt.Sprintf(`"spec":{"size":%d}`, i)
		}
		return fmt.Sprintf(`"spec":{"box":{"width":%d}}`, i)
	}
	made := false
	for i := 0; i < n && l.ctx.Err() == nil; i++ {
		l.mu.Lock()
		l.most[name] = i
		l.mu.Unlock()
		var code int
		var text string
		switch {
		case !made:
			code, text = l.ask("POST", path, "application/json", crate(hooked, version, name, ","+spec(i)))
			made = made || code == http.StatusConflict // an answer was lost
		case i%2 == 0:
			code, text = l.ask("PATCH", path+"/"+name, merge, "{"+spec(i)+"}")
		default:
			code, text = l.ask("PATCH", path+"/"+name+"?fieldManager=load&force=true", apply, crate(hooked, version, name, ","+spec(i)))
		}
		if code/100 == 2 {
			made = true
			l.mu.Lock()
			l.least[name] = i
			l.mu.Unlock()
			if version == "v1" {
				l.good.Add(1)
			}
			continue
		}
		l.refused(version, code, text)
	}
}

// refused checks an answer that is an error.
func (l *badLoad) refused(version string, code int, text string) {
	switch {
	case code == 0:
	case version == "v1":
		l.t.Errorf("v1: %d %s", code, text)
	case code == http.StatusInternalServerError && strings.Contains(text, "conversion webhook for hooks.example.com/v"), code == http.StatusTooManyRequests, code == http.StatusConflict:
		l.mu.Lock()
		l.shouts[fmt.Sprint(code)]++
		l.mu.Unlock()
	default:
		l.t.Errorf("%s: %d %s", version, code, text)
	}
}

// informer is the state of an informer.
type informer struct {
	mu    sync.Mutex // guards known
	known map[string]string
}

// follow lists and watches like an informer until the test ends.
func (l *badLoad) follow(path, version string, in *informer) {
	for l.ctx.Err() == nil {
		req, err := http.NewRequestWithContext(l.ctx, "GET", l.srv.URL+path+"?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", nil)
		if err != nil {
			l.t.Error(err)
			return
		}
		resp, err := l.c.Do(req)
		if err != nil {
			if l.ctx.Err() == nil {
				l.t.Error(err)
			}
			return
		}
		l.read(resp, version, in)
		resp.Body.Close()
		pause := time.NewTimer(5 * time.Millisecond)
		select {
		case <-pause.C:
		case <-l.ctx.Done():
		}
	}
}

// read reads one watch.
func (l *badLoad) read(resp *http.Response, version string, in *informer) {
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	if resp.StatusCode != http.StatusOK {
		lines.Scan()
		l.refused(version, resp.StatusCode, lines.Text())
		return
	}
	first := map[string]string{}
	known := first
	for lines.Scan() {
		var event struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		var object badObject
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return // the stream was cut off
		}
		if err := json.Unmarshal(event.Object, &object); err != nil {
			l.t.Errorf("%v in %s", err, lines.Text())
			return
		}
		in.mu.Lock()
		switch event.Type {
		case "ADDED", "MODIFIED":
			known[object.Metadata.Name] = object.state()
		case "DELETED":
			delete(known, object.Metadata.Name)
		case "BOOKMARK":
			if first != nil {
				in.known, first = known, nil
			}
		default:
			in.mu.Unlock()
			l.refused(version, http.StatusInternalServerError, lines.Text())
			return
		}
		in.mu.Unlock()
	}
}

// list returns the objects of a list by name.
func (l *badLoad) list(path string) map[string]string {
	l.t.Helper()
	var list struct {
		Items []badObject `json:"items"`
	}
	if code := l.do("GET", path, "", &list); code != http.StatusOK {
		l.t.Fatalf("%s: %d", path, code)
	}
	out := map[string]string{}
	for _, o := range list.Items {
		out[o.Metadata.Name] = o.state()
	}
	return out
}

// different describes the difference of two states.
func different(a, b map[string]string) string {
	var out []string
	for name := range a {
		if a[name] != b[name] {
			out = append(out, fmt.Sprintf("%s is %q and %q", name, a[name], b[name]))
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			out = append(out, fmt.Sprintf("%s is %q in the second alone", name, b[name]))
		}
	}
	return strings.Join(out, ", ")
}

// TestBadWebhooksUnderLoad makes a webhook misbehave in all ways, one after the other, while objects are written and watched in
// both versions. Requests in the stored version and of other kinds must not fail. Failures in the other version must be reported.
// At the end nothing is lost, and all watches have the same state.
func TestBadWebhooksUnderLoad(t *testing.T) {
	t.Parallel()
	h := startHooks(t)
	s := newHooked(t, h, nil)
	s.establish(definitionOf("others", "Other"))
	ctx, stop := context.WithCancel(t.Context())
	l := &badLoad{site: s, ctx: ctx, least: map[string]int{}, most: map[string]int{}, shouts: map[string]int{}}
	defer l.work.Wait()
	defer stop()
	informers := map[string][]*informer{}
	for _, version := range []string{"v1", "v2"} {
		for range 2 {
			in := &informer{}
			informers[version] = append(informers[version], in)
			l.work.Go(func() { l.follow(cratesIn(hooked, version), version, in) })
		}
	}
	others := &informer{}
	const othersPath = "/apis/example.com/v1/namespaces/default/others"
	l.work.Go(func() { l.follow(othersPath, "v1", others) })
	done := make(chan struct{})
	var writers sync.WaitGroup
	for _, version := range []string{"v1", "v2"} {
		for w := range 2 {
			writers.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-done:
						return
					case <-ctx.Done():
						return
					default:
						l.write(version, fmt.Sprintf("%s-%d-%d", version, w, i), 12) // 13 is invalid
					}
				}
			})
		}
	}
	writers.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			case <-ctx.Done():
				return
			default:
				if code, text := l.ask("POST", othersPath, "application/json", object("Other", fmt.Sprint("o", i))); code != http.StatusCreated {
					l.refused("v1", code, text)
				}
			}
		}
	})
	modes := []string{
		"fails", "wrong uid", "fewer", "more", "reordered", "unconverted", "kind", "name", "namespace", "uid", "bad labels", "no metadata", "metadata",
		downHook, busyHook, crashHook, noiseHook, emptyHook, hungHook,
	}
	rand.Shuffle(len(modes), func(i, j int) { modes[i], modes[j] = modes[j], modes[i] })
	for _, mode := range modes {
		for _, mode := range []string{mode, goodHook} {
			h.set(hooked, mode)
			h.spent(hooked)
			begun := l.good.Load()
			eventually(t, func() bool { return l.good.Load() > begun+15 && h.spent(hooked) > 0 || t.Failed() }, func() string { return "nothing is written while a webhook is " + mode })
		}
		if t.Failed() {
			t.Fatalf("while a webhook is %q", mode)
		}
	}
	close(done)
	writers.Wait()
	v1, v2 := l.list(cratesIn(hooked, "v1")), l.list(cratesIn(hooked, "v2"))
	if !maps.Equal(v1, v2) {
		t.Errorf("the versions differ: %s", different(v1, v2))
	}
	for name, least := range l.least {
		_, state, _ := strings.Cut(v1[name], ": ")
		n := -1
		if _, err := fmt.Sscan(state, &n); err != nil || n < least || n > l.most[name] {
			t.Errorf("%s is %q, want %d to %d", name, v1[name], least, l.most[name])
		}
	}
	for version, all := range informers {
		for _, in := range all {
			eventually(t, func() bool {
				in.mu.Lock()
				defer in.mu.Unlock()
				return maps.Equal(in.known, v1)
			}, func() string {
				in.mu.Lock()
				defer in.mu.Unlock()
				return fmt.Sprintf("a watch in %s differs from the list: %s", version, different(in.known, v1))
			})
		}
	}
	want := l.list(othersPath)
	eventually(t, func() bool {
		others.mu.Lock()
		defer others.mu.Unlock()
		return maps.Equal(others.known, want)
	}, func() string { return "the other kind's watch is behind" })
	t.Logf("%d objects, refused: %v", len(v1), l.shouts)
	if len(l.shouts) == 0 {
		t.Error("nothing was ever refused")
	}
}

// Only few requests wait for a webhook that hangs. All others are refused at once, and a request that leaves makes room.
func TestFewWaitForAWebhook(t *testing.T) {
	t.Parallel()
	h := startHooks(t)
	s := startSite(t, server.Options{}, crd.New(crd.Options{WebhookConversion: conversion.Options{MaxCalls: 1, MaxWaiting: 10}}))
	s.establish(h.crates(t, hooked))
	v1, v2 := cratesIn(hooked, "v1"), cratesIn(hooked, "v2")
	for i := range 40 {
		s.want(201, "POST", v1, crate(hooked, "v1", fmt.Sprint("x", i), ``))
	}
	h.set(hooked, hungHook)
	var codes []<-chan int
	for i := range 40 {
		codes = append(codes, s.hang(1, v2+fmt.Sprint("/x", i)))
	}
	count := map[int]int{}
	var waiting []<-chan int
	eventually(t, func() bool {
		waiting = nil
		for _, one := range codes {
			select {
			case code := <-one:
				count[code]++
			default:
				waiting = append(waiting, one)
			}
		}
		codes = waiting
		return len(waiting) <= 10
	}, func() string { return fmt.Sprintf("%d requests wait", len(waiting)) })
	if count[http.StatusTooManyRequests] != 30 {
		t.Errorf("%v", count)
	}
	h.called(t, hooked)
	s.want(200, "GET", v1, "")
	if n := h.spent(hooked); n != 0 {
		t.Errorf("%d calls at the same time, want 1", n+1)
	}
	h.set(hooked, goodHook)
	for _, one := range waiting {
		if code := <-one; code != http.StatusOK {
			t.Errorf("%d", code)
		}
	}
	s.want(200, "GET", v2, "")
}
