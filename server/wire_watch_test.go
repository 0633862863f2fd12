package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stream is an open watch that is read line by line, for a minute at most.
type stream struct {
	t     *testing.T
	resp  *http.Response
	lines *bufio.Scanner
}

// event is one line of a watch.
type event struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
	text   string
}

func (w *wire) watch(t *testing.T, path string, header ...string) *stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "GET", w.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := w.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != 200 {
		t.Fatalf("watch: code %d", resp.StatusCode)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 4<<20)
	return &stream{t, resp, lines}
}

// next waits for the next event.
func (s *stream) next() (e event) {
	s.t.Helper()
	if !s.lines.Scan() {
		s.t.Fatalf("the watch ended: %v", s.lines.Err())
	}
	e.text = s.lines.Text()
	if err := json.Unmarshal([]byte(e.text), &e); err != nil {
		s.t.Fatalf("%v in %s", err, e.text)
	}
	return e
}

// end waits for the end of the stream.
func (s *stream) end() {
	s.t.Helper()
	if s.lines.Scan() {
		s.t.Errorf("one event too many: %s", s.lines.Text())
	}
	if err := s.lines.Err(); err != nil {
		s.t.Errorf("the watch did not end cleanly: %v", err)
	}
}

func (e event) meta(t *testing.T) (m metav1.PartialObjectMetadata) {
	t.Helper()
	if err := json.Unmarshal(e.Object, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func (s *stream) want(want ...string) {
	s.t.Helper()
	for _, w := range want {
		if e := s.next(); e.Type+" "+e.meta(s.t).Name != w {
			s.t.Errorf("got %s %s, want %s", e.Type, e.text, w)
		}
	}
}

func TestWireWatch(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	w.make(t, widgetList, `{"metadata":{"name":"b"}}`)
	first := w.make(t, widgetList, `{"metadata":{"name":"a"}}`)
	t.Run("from a version", func(t *testing.T) {
		s := w.watch(t, widgetList+"?watch=true&resourceVersion="+first.ResourceVersion)
		if got := s.resp.Header.Get("Content-Type"); got != "application/json" {
			t.Errorf("Content-Type %q", got)
		}
		made := w.ask(t, "POST", widgetList, `{"metadata":{"name":"c","finalizers":["example.com/f"]}}`)
		if e := s.next(); e.text != `{"type":"ADDED","object":`+strings.TrimSuffix(made.body, "\n")+`}` {
			t.Errorf("%s", e.text)
		}
		marked := w.ask(t, "DELETE", widgetList+"/c", "")
		if e := s.next(); e.text != `{"type":"MODIFIED","object":`+strings.TrimSuffix(marked.body, "\n")+`}` {
			t.Errorf("%s", e.text)
		}
		w.ask(t, "PUT", widgetList+"/c", `{"metadata":{"name":"c"}}`).want(t, 200)
		e := s.next()
		if m := e.meta(t); e.Type != "DELETED" || m.Name != "c" || m.ResourceVersion != w.version(t) {
			t.Errorf("%s", e.text)
		}
	})
	t.Run("initial events are in the order of keys", func(t *testing.T) {
		w.watch(t, widgetList+"?watch=1").want("ADDED a", "ADDED b")
		w.watch(t, widgetList+"?watch=1&resourceVersion=0").want("ADDED a", "ADDED b")
		w.watch(t, allWidgets+"?watch=1").want("ADDED a", "ADDED b")
		w.watch(t, widgetList+"?watch=1&fieldSelector=metadata.name%3Db").want("ADDED b")
	})
	t.Run("watch list", func(t *testing.T) {
		s := w.watch(t, widgetList+"?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
		s.want("ADDED a", "ADDED b")
		want := `{"type":"BOOKMARK","object":{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"resourceVersion":"` + w.version(t) +
			`","annotations":{"k8s.io/initial-events-end":"true"}},"spec":{},"status":{}}}`
		if e := s.next(); e.text != want {
			t.Errorf("%s\nwant %s", e.text, want)
		}
		w.ask(t, "PATCH", widgetList+"/a", `{"spec":{"color":"live"}}`, "Content-Type", mergePatch).want(t, 200)
		s.want("MODIFIED a")
	})
	t.Run("no initial events when told so", func(t *testing.T) {
		for _, rv := range []string{"", "&resourceVersion=0"} {
			s := w.watch(t, widgetList+"?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"+rv)
			w.ask(t, "PATCH", widgetList+"/b", `{"spec":{"color":"live`+rv+`"}}`, "Content-Type", mergePatch).want(t, 200)
			s.want("MODIFIED b")
		}
	})
	t.Run("a selector sees objects come and go", func(t *testing.T) {
		w.make(t, widgetList, `{"metadata":{"name":"flip","labels":{"on":"1"}}}`)
		s := w.watch(t, widgetList+"?watch=1&labelSelector=on&resourceVersion="+w.version(t))
		away := w.ask(t, "PATCH", widgetList+"/flip", `{"metadata":{"labels":null}}`, "Content-Type", mergePatch).meta(t)
		e := s.next()
		if m := e.meta(t); e.Type != "DELETED" || m.Labels["on"] != "1" || m.ResourceVersion != away.ResourceVersion {
			t.Errorf("%s", e.text)
		}
		back := w.ask(t, "PATCH", widgetList+"/flip", `{"metadata":{"labels":{"on":"2"}}}`, "Content-Type", mergePatch).meta(t)
		e = s.next()
		if m := e.meta(t); e.Type != "ADDED" || m.Labels["on"] != "2" || m.ResourceVersion != back.ResourceVersion {
			t.Errorf("%s", e.text)
		}
		w.ask(t, "DELETE", widgetList+"/flip", "").want(t, 200)
		e = s.next()
		if m := e.meta(t); e.Type != "DELETED" || m.Labels["on"] != "2" || m.ResourceVersion != w.version(t) {
			t.Errorf("%s", e.text)
		}
	})
	t.Run("tables", func(t *testing.T) {
		s := w.watch(t, widgetList+"?watch=1", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
		for i, name := range []string{"a", "b"} {
			e := s.next()
			var table metav1.Table
			if err := json.Unmarshal(e.Object, &table); err != nil {
				t.Fatal(err)
			}
			if table.Kind != "Table" || len(table.Rows) != 1 || table.Rows[0].Cells[0] != name || (len(table.ColumnDefinitions) > 0) != (i == 0) || table.ResourceVersion == "" {
				t.Errorf("%s", e.text)
			}
		}
	})
	t.Run("metadata", func(t *testing.T) {
		s := w.watch(t, widgetList+"?watch=1", "Accept", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")
		if e := s.next(); !strings.HasPrefix(e.text, `{"type":"ADDED","object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a",`) || strings.Contains(e.text, "spec") {
			t.Errorf("%s", e.text)
		}
	})
	t.Run("the old paths", func(t *testing.T) {
		w.watch(t, "/apis/example.com/v1/watch/namespaces/default/widgets/b").want("ADDED b")
		w.watch(t, "/apis/example.com/v1/watch/namespaces/default/widgets").want("ADDED a", "ADDED b")
		w.watch(t, "/apis/example.com/v1/watch/widgets").want("ADDED a", "ADDED b")
		a := w.ask(t, "GET", "/apis/example.com/v1/watch/namespaces/default/widgets/b?fieldSelector=metadata.name%3Da", "")
		a.wantRefusal(t, refusal{400, "BadRequest", "fieldSelector metadata.name doesn't match requested name", "", ""})
	})
}

func TestWireWatchEnds(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	made := w.make(t, widgetList, `{"metadata":{"name":"a"}}`)
	t.Run("after timeoutSeconds", func(t *testing.T) {
		t.Parallel()
		s := w.watch(t, widgetList+"?watch=1&timeoutSeconds=1&resourceVersion="+made.ResourceVersion)
		s.end()
	})
	t.Run("at a version to come it waits", func(t *testing.T) {
		t.Parallel()
		s := w.watch(t, widgetList+"?watch=1&timeoutSeconds=1&resourceVersion=99999")
		s.end()
	})
	t.Run("timeout means nothing", func(t *testing.T) {
		t.Parallel()
		s := w.watch(t, widgetList+"?watch=1&timeoutSeconds=1&timeout=1ms")
		s.want("ADDED a")
		s.end()
	})
	t.Run("a bookmark before the end", func(t *testing.T) {
		t.Parallel()
		s := w.watch(t, widgetList+"?watch=1&timeoutSeconds=3&allowWatchBookmarks=true&resourceVersion="+made.ResourceVersion)
		if e := s.next(); e.text != `{"type":"BOOKMARK","object":{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"resourceVersion":"`+made.ResourceVersion+`"},"spec":{},"status":{}}}` {
			t.Errorf("%s", e.text)
		}
		s.end()
	})
	t.Run("a list at a version to come is an event", func(t *testing.T) {
		t.Parallel()
		s := w.watch(t, widgetList+"?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=99999")
		if e := s.next(); e.text != `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Timeout: Too large resource version: 99999, current: `+made.ResourceVersion+
			`","reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1},"code":504}}` {
			t.Errorf("%s", e.text)
		}
		s.end()
	})
	t.Run("refused before it begins", func(t *testing.T) {
		t.Parallel()
		w.runRefusals(t, map[string]exchange{
			"a version of letters": {"GET", widgetList + "?watch=1&resourceVersion=abc", "", nil, refusal{400, "BadRequest", `invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax`, "", ""}},
			"unknown field":        {"GET", widgetList + "?watch=1&fieldSelector=spec.x%3D1", "", nil, refusal{400, "BadRequest", `"spec.x" is not a known field selector: only "metadata.name", "metadata.namespace"`, "", ""}},
		})
		a := w.ask(t, "GET", widgetList+"?watch=1", "", "Accept", "application/yaml")
		a.want(t, 406)
		if !strings.Contains(a.body, "only the following media types are accepted: application/json;stream=watch") || a.header.Get("Content-Type") != "application/yaml" {
			t.Errorf("%q %s", a.header.Get("Content-Type"), a.body)
		}
		w.ask(t, "GET", widgetList+"?watch=1", "", "Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").want(t, 406)
		w.ask(t, "POST", "/apis/example.com/v1/watch/widgets", "{}").want(t, 405)
	})
}

func TestWireWatchExpired(t *testing.T) {
	t.Parallel()
	w := newWire(t, short)
	made := w.make(t, widgetList, `{"metadata":{"name":"a"}}`)
	for range 5 {
		w.make(t, widgetList, `{"metadata":{"generateName":"x-"}}`)
	}
	s := w.watch(t, widgetList+"?watch=1&resourceVersion="+made.ResourceVersion)
	e := s.next()
	var status metav1.Status
	if err := json.Unmarshal(e.Object, &status); err != nil {
		t.Fatal(err)
	}
	t.Log(e.text)
	if e.Type != "ERROR" || status.Code != 410 || status.Reason != metav1.StatusReasonExpired || !strings.HasPrefix(status.Message, "too old resource version: "+made.ResourceVersion+" (") && status.Message != "The resourceVersion for the provided watch is too old." {
		t.Errorf("%s", e.text)
	}
	s.end()
}

func TestWireWatchUnderAForeignDeadline(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	w.make(t, widgetList, `{"metadata":{"name":"a"}}`)
	handler := w.Handler()
	foreign := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 200*time.Millisecond)
		defer cancel()
		handler.ServeHTTP(rw, r.WithContext(ctx))
	}))
	defer foreign.Close()
	req, err := http.NewRequestWithContext(t.Context(), "GET", foreign.URL+widgetList+"?watch=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.Token)
	resp, err := foreign.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 || strings.Count(string(body), "ADDED") != 1 {
		t.Errorf("%d %v %s", resp.StatusCode, err, body)
	}
}
