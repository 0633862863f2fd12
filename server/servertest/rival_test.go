package servertest_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestRivals(t *testing.T) {
	t.Parallel()
	put := func(h harbour, version string) reply {
		return h.do("PUT", boats+"/sloop", `{"apiVersion":"sea.example.com/v1","kind":"Boat","metadata":{"name":"sloop","resourceVersion":"`+version+`"},"spec":{"length":5}}`)
	}
	apply := func(h harbour) reply {
		return h.do("PATCH", boats+"/sloop?fieldManager=mate&force=true", `{"apiVersion":"sea.example.com/v1","kind":"Boat","metadata":{"name":"sloop"},"spec":{"length":5}}`,
			"Content-Type", "application/apply-patch+yaml")
	}
	for name, tc := range map[string]struct {
		conflicts int
		do        func(h harbour, version string) reply
		code      int
		events    []string // after the object's creation
	}{
		"PUT of a known state": {1, put, 409, []string{"MODIFIED"}},
		"PUT of any state":     {2, func(h harbour, _ string) reply { return put(h, "") }, 200, []string{"MODIFIED", "MODIFIED", "MODIFIED"}},
		"merge patch":          {3, func(h harbour, _ string) reply { return h.merge("sloop", `{"spec":{"length":5}}`) }, 200, []string{"MODIFIED", "MODIFIED", "MODIFIED", "MODIFIED"}},
		"merge patch of a state": {1, func(h harbour, v string) reply {
			return h.merge("sloop", `{"metadata":{"resourceVersion":"`+v+`"},"spec":{"length":5}}`)
		}, 409, []string{"MODIFIED"}},
		"apply":  {2, func(h harbour, _ string) reply { return apply(h) }, 200, []string{"MODIFIED", "MODIFIED", "MODIFIED"}},
		"delete": {1, func(h harbour, _ string) reply { return h.do("DELETE", boats+"/sloop", "") }, 200, []string{"MODIFIED", "DELETED"}},
		"delete of a state": {1, func(h harbour, v string) reply {
			return h.do("DELETE", boats+"/sloop", `{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"resourceVersion":"`+v+`"}}`)
		}, 409, []string{"MODIFIED"}},
		"deletecollection": {2, func(h harbour, _ string) reply { return h.do("DELETE", boats, "") }, 200, []string{"MODIFIED", "MODIFIED", "DELETED"}},
		"create":           {1, func(h harbour, _ string) reply { return h.create("rival") }, 409, []string{"ADDED"}},
		"a dry run":        {1, func(h harbour, v string) reply { return h.do("DELETE", boats+"/sloop?dryRun=All", "") }, 200, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarbour(t, server.Options{})
			version := versionOf(t, h.want(201, h.create("sloop")))
			remove := h.Inject(servertest.Fault{Conflicts: tc.conflicts})
			a := h.want(tc.code, tc.do(h, version))
			remove()
			if tc.code == 409 && a.status(t).Reason != metav1.StatusReasonConflict && a.status(t).Reason != metav1.StatusReasonAlreadyExists {
				t.Errorf("answered %s", a.body)
			}
			// The object last marks the end of the events.
			h.want(201, h.create("last"))
			h.Inject(servertest.Fault{Match: on("watch"), Events: len(tc.events) + 1})
			got, _ := eventsOf(t, h.want(200, h.do("GET", boats+"?watch=1&resourceVersion="+version, "")))
			if want := append(tc.events[:len(tc.events):len(tc.events)], "ADDED"); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("the watch saw %v, want %v", got, want)
			}
		})
	}
	t.Run("a rival leaves the content as it is", func(t *testing.T) {
		t.Parallel()
		h := newHarbour(t, server.Options{})
		before := h.want(201, h.create("sloop"))
		version := versionOf(t, before)
		h.Inject(servertest.Fault{Match: on("update"), Conflicts: 1})
		h.want(409, put(h, version))
		after := h.want(200, h.get("sloop"))
		if now := versionOf(t, after); now == version || strings.ReplaceAll(after.body, `"resourceVersion":"`+now+`"`, `"resourceVersion":"`+version+`"`) != before.body {
			t.Errorf("before %s, after %s", before.body, after.body)
		}
	})
	t.Run("a storm that does not end", func(t *testing.T) {
		t.Parallel()
		h := newHarbour(t, server.Options{})
		h.want(201, h.create("sloop"))
		h.Inject(servertest.Fault{Match: on("patch"), Conflicts: math.MaxInt})
		h.want(504, h.do("PATCH", boats+"/sloop?timeout=20ms", `{"spec":{"length":5}}`, "Content-Type", "application/merge-patch+json"))
	})
	t.Run("rivals, and then the reply is lost", func(t *testing.T) {
		t.Parallel()
		h := newHarbour(t, server.Options{})
		h.want(201, h.create("sloop"))
		h.Inject(servertest.Fault{Match: on("patch"), Conflicts: 1, Drop: true, Lost: true, Times: 1})
		h.wantDropped(h.merge("sloop", `{"spec":{"length":5}}`))
		if a := h.get("sloop"); !strings.Contains(a.body, `"length":5`) {
			t.Errorf("the patch is lost too: %s", a.body)
		}
	})
}
