package servertest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestEndsOfWatches(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault   servertest.Fault
		query   string // VERSION is replaced by the version of the first of three boats
		events  []string
		message string // of the last event
		dropped bool
	}{
		"after events":           {servertest.Fault{Events: 2}, "", []string{"ADDED", "ADDED"}, "", false},
		"after events, aborted":  {servertest.Fault{Events: 2, Drop: true}, "", []string{"ADDED", "ADDED"}, "", true},
		"after events, expired":  {servertest.Fault{Events: 1, Expired: true}, "", []string{"ADDED", "ERROR"}, "The resourceVersion for the provided watch is too old.", false},
		"after events, by error": {servertest.Fault{Events: 1, Error: errors.New("oops")}, "", []string{"ADDED", "ERROR"}, "oops", false},
		"bookmarks are events":   {servertest.Fault{Events: 4}, "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", []string{"ADDED", "ADDED", "ADDED", "BOOKMARK"}, "", false},
		"at once":                {servertest.Fault{Lasts: time.Nanosecond}, "&resourceVersion=99999", nil, "", false},
		"at once, aborted":       {servertest.Fault{Lasts: time.Nanosecond, Drop: true}, "&resourceVersion=99999", nil, "", true},
		"after a time, expired":  {servertest.Fault{Lasts: time.Millisecond, Expired: true}, "&resourceVersion=99999", []string{"ERROR"}, "The resourceVersion for the provided watch is too old.", false},
		"expired":                {servertest.Fault{Expired: true}, "&resourceVersion=VERSION", []string{"ERROR"}, "too old resource version: ", false},
		"never begun":            {servertest.Fault{Drop: true}, "", nil, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarbour(t, server.Options{})
			version := versionOf(t, h.want(201, h.create("first")))
			h.want(201, h.create("second"))
			h.want(201, h.create("third"))
			tc.fault.Match = on("watch")
			h.Inject(tc.fault)
			a := h.do("GET", boats+"?watch=1"+strings.ReplaceAll(tc.query, "VERSION", version), "", "Accept-Encoding", "gzip")
			if (a.err != nil) != tc.dropped || a.err == nil && a.code != 200 {
				t.Fatalf("answered %d %s, error %v", a.code, a.body, a.err)
			}
			got, last := eventsOf(t, a)
			if fmt.Sprint(got) != fmt.Sprint(tc.events) || !strings.HasPrefix(last.Message, tc.message) {
				t.Errorf("events %v, the last %q; want %v and %q", got, last.Message, tc.events, tc.message)
			}
			if tc.fault.Expired && (last.Code != 410 || last.Reason != metav1.StatusReasonExpired || last.Status != metav1.StatusFailure) {
				t.Errorf("the ERROR event has %+v", last)
			}
		})
	}
	t.Run("a watch that is refused", func(t *testing.T) {
		t.Parallel()
		h := newHarbour(t, server.Options{})
		h.Inject(servertest.Fault{Match: on("watch"), Expired: true})
		if s := h.want(400, h.do("GET", boats+"?watch=1&resourceVersion=1&fieldSelector=none", "")).status(t); s.Reason != metav1.StatusReasonBadRequest {
			t.Errorf("answered %+v", s)
		}
	})
}

func TestExpiredLists(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, server.Options{})
	for _, name := range []string{"a", "b", "c"} {
		h.want(201, h.create(name))
	}
	var page metav1.PartialObjectMetadataList
	if err := json.Unmarshal([]byte(h.want(200, h.do("GET", boats+"?limit=1", "")).body), &page); err != nil || page.Continue == "" {
		t.Fatalf("no continue token: %v", err)
	}
	h.Inject(servertest.Fault{Match: on("list"), Expired: true})
	h.want(200, h.do("GET", boats, ""))
	h.want(200, h.do("GET", boats+"?resourceVersion=0", ""))
	h.want(400, h.do("GET", boats+"?resourceVersion=x", ""))
	s := h.want(410, h.do("GET", boats+"?resourceVersionMatch=Exact&resourceVersion="+page.ResourceVersion, "")).status(t)
	if s.Reason != metav1.StatusReasonExpired || s.Message != "The resourceVersion for the provided list is too old." || s.Continue != "" {
		t.Errorf("answered %+v", s)
	}
	s = h.want(410, h.do("GET", boats+"?limit=1&continue="+page.Continue, "")).status(t)
	if s.Reason != metav1.StatusReasonExpired || !strings.HasPrefix(s.Message, "The provided continue parameter is too old") || s.Continue == "" {
		t.Fatalf("answered %+v", s)
	}
	// With the token, the list continues at the same place in the latest state.
	rest := h.want(200, h.do("GET", boats+"?continue="+s.Continue, ""))
	if strings.Contains(rest.body, `"name":"a"`) || !strings.Contains(rest.body, `"name":"b"`) || !strings.Contains(rest.body, `"name":"c"`) {
		t.Errorf("the rest is %s", rest.body)
	}
	h.want(400, h.do("GET", boats+"?continue=nonsense", ""))
}
