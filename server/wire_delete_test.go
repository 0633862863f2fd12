package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestWireDelete(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	t.Run("gone at once", func(t *testing.T) {
		w.make(t, widgetList, `{"metadata":{"name":"a"}}`)
		r := w.ask(t, "DELETE", widgetList+"/a?dryRun=All", "")
		r.want(t, 200)
		const want = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":"a","group":"example.com","kind":"widgets","uid":"U"}}` + "\n"
		r.wantBody(t, want)
		r = w.ask(t, "DELETE", widgetList+"/a", "")
		r.want(t, 200)
		r.wantBody(t, want)
		w.ask(t, "DELETE", widgetList+"/a", "").want(t, 404)
	})
	t.Run("core group", func(t *testing.T) {
		w.make(t, configMapList, `{"metadata":{"name":"c"}}`)
		r := w.ask(t, "DELETE", configMapList+"/c", `{"kind":"DeleteOptions","apiVersion":"v1"}`)
		r.want(t, 200)
		r.wantBody(t, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":"c","kind":"configmaps","uid":"U"}}`+"\n")
	})
	t.Run("finalizers", func(t *testing.T) {
		const f = widgetList + "/f"
		w.make(t, widgetList, `{"metadata":{"name":"f","finalizers":["example.com/f"]},"spec":{"size":1}}`)
		r := w.ask(t, "DELETE", f, "")
		r.want(t, 200)
		r.wantBody(t, `{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"f","namespace":"default","uid":"U","resourceVersion":"N","generation":2,"creationTimestamp":"T",`+
			`"deletionTimestamp":"T","deletionGracePeriodSeconds":0,"finalizers":["example.com/f"]},"spec":{"size":1},"status":{}}`+"\n")
		check := w.unchanged(t)
		again := w.ask(t, "DELETE", f, "")
		again.want(t, 200)
		if again.body != r.body {
			t.Errorf("again %s", again.body)
		}
		w.ask(t, "DELETE", f+"?orphanDependents=false", "").want(t, 202)
		refused := w.ask(t, "PATCH", f, `{"metadata":{"finalizers":["example.com/f","example.com/g"]}}`, "Content-Type", mergePatch)
		refused.wantRefusal(t, refusal{422, "Invalid",
			`Widget.example.com "f" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"example.com/g"}`,
			`{"name":"f",` + widgetKind + `,"causes":[{"reason":"FieldValueForbidden","message":"Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"example.com/g\"}","field":"metadata.finalizers"}]}`, ""})
		check()
		last := w.ask(t, "PATCH", f, `{"metadata":{"finalizers":null}}`, "Content-Type", mergePatch)
		last.want(t, 200)
		if m := last.meta(t); len(m.Finalizers) != 0 || m.Name != "f" || m.Kind != "Widget" {
			t.Errorf("%s", last.body)
		}
		w.ask(t, "GET", f, "").want(t, 404)
	})
	t.Run("immutable metadata", func(t *testing.T) {
		w.make(t, widgetList, `{"metadata":{"name":"im"}}`)
		defer w.unchanged(t)()
		r := w.ask(t, "PATCH", widgetList+"/im", `{"metadata":{"deletionTimestamp":"2020-01-01T00:00:00Z"}}`, "Content-Type", mergePatch)
		r.want(t, 422)
		w.ask(t, "PATCH", widgetList+"/im", `{"metadata":{"creationTimestamp":"2020-01-01T00:00:00Z","generation":99}}`, "Content-Type", mergePatch).want(t, 200)
	})
	t.Run("preconditions", func(t *testing.T) {
		made := w.make(t, widgetList, `{"metadata":{"name":"p"}}`)
		check := w.unchanged(t)
		w.ask(t, "DELETE", widgetList+"/p", `{"preconditions":{"uid":"x"}}`).wantRefusal(t, refusal{409, "Conflict",
			fmt.Sprintf(`Operation cannot be fulfilled on Widget.example.com "p": the UID in the precondition (x) does not match the UID in record (%s). The object might have been deleted and then recreated`, made.UID),
			`{"name":"p",` + widgetKind + `}`, ""})
		w.ask(t, "DELETE", widgetList+"/p", `{"preconditions":{"resourceVersion":"1"}}`).wantRefusal(t, refusal{409, "Conflict",
			fmt.Sprintf(`Operation cannot be fulfilled on Widget.example.com "p": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (%s). The object might have been modified`, made.ResourceVersion),
			`{"name":"p",` + widgetKind + `}`, ""})
		check()
		w.ask(t, "DELETE", widgetList+"/p", `{"kind":"DeleteOptions","apiVersion":"meta.k8s.io/v1","preconditions":{"uid":"`+string(made.UID)+`","resourceVersion":"`+made.ResourceVersion+`"}}`).want(t, 200)
	})
	t.Run("policies add no finalizer without a collector", func(t *testing.T) {
		for _, policy := range []string{"Background", "Orphan", "Foreground"} {
			w.make(t, widgetList, `{"metadata":{"name":"q"}}`)
			w.ask(t, "DELETE", widgetList+"/q?propagationPolicy="+policy, "").want(t, 200)
			w.ask(t, "GET", widgetList+"/q", "").want(t, 404)
		}
		w.make(t, widgetList, `{"metadata":{"name":"q"}}`)
		w.ask(t, "DELETE", widgetList+"/q?gracePeriodSeconds=30", "").want(t, 200)
		w.ask(t, "GET", widgetList+"/q", "").want(t, 404)
	})
	t.Run("options as yaml", func(t *testing.T) {
		w.make(t, widgetList, `{"metadata":{"name":"y"}}`)
		w.ask(t, "DELETE", widgetList+"/y", "propagationPolicy: Background\n", "Content-Type", "application/yaml").want(t, 200)
	})
}

func TestWireDeleteRefused(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	w.make(t, widgetList, `{"metadata":{"name":"a"}}`)
	const a = widgetList + "/a"
	options := func(message, cause string) refusal {
		return refusal{422, "Invalid", `DeleteOptions.meta.k8s.io "" is invalid: ` + message, `{"group":"meta.k8s.io","kind":"DeleteOptions","causes":[` + cause + `]}`, ""}
	}
	w.runRefusals(t, map[string]exchange{
		"a policy of no sense": {"DELETE", a + "?propagationPolicy=Bogus", "", nil, options(`propagationPolicy: Unsupported value: "Bogus": supported values: "Foreground", "Background", "Orphan", "nil"`,
			`{"reason":"FieldValueNotSupported","message":"Unsupported value: \"Bogus\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"","field":"propagationPolicy"}`)},
		"dryRun of no sense": {"DELETE", a, `{"dryRun":["x"]}`, nil, options(`dryRun: Unsupported value: ["x"]: supported values: "All"`,
			`{"reason":"FieldValueNotSupported","message":"Unsupported value: [\"x\"]: supported values: \"All\"","field":"dryRun"}`)},
	})
	t.Run("codes", func(t *testing.T) {
		defer w.unchanged(t)()
		for _, c := range []struct {
			query, body string
			code        int
		}{
			{"?orphanDependents=true&propagationPolicy=Background", "", 422}, {"", `{"orphanDependents":true,"propagationPolicy":"Background"}`, 422},
			{"", `{"kind":"Widget"}`, 400}, {"", `{"kind":"DeleteOptions","apiVersion":"x/v9/y"}`, 400}, {"", `[]`, 400}, {"", `{`, 400}, {"", `{"gracePeriodSeconds":"x"}`, 400},
			{"?gracePeriodSeconds=x", "", 400}, {"", "\xff\xfe", 400}, {"", `{"preconditions":7}`, 400}, {"", `"x"`, 400},
		} {
			if r := w.ask(t, "DELETE", a+c.query, c.body); r.code != c.code || r.status(t).Reason == "" {
				t.Errorf("%+v: %d %s", c, r.code, r.body)
			}
		}
		w.ask(t, "DELETE", a, "x: y", "Content-Type", "text/plain").want(t, 415)
	})
}

func TestWireDeleteCollection(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	fill := func() {
		for _, name := range []string{"a", "b", "c"} {
			w.make(t, configMapList, `{"metadata":{"name":"`+name+`","labels":{"n":"`+name+`"}}}`)
		}
	}
	names := func(a answer) string {
		var list corev1.ConfigMapList
		if err := json.Unmarshal([]byte(a.body), &list); err != nil || list.Kind != "ConfigMapList" || list.APIVersion != "v1" || list.ResourceVersion == "" {
			t.Errorf("%v: %s", err, a.body)
		}
		var out []string
		for _, item := range list.Items {
			out = append(out, item.Name)
		}
		return strings.Join(out, " ")
	}
	fill()
	for _, c := range []struct{ query, want, left string }{
		{"?labelSelector=n+in+(a,c)&dryRun=All", "a c", "a b c"}, {"?labelSelector=n+in+(a,c)", "a c", "b"}, {"?fieldSelector=metadata.name%3Dzzz", "", "b"},
		{"?fieldSelector=metadata.name%3Db", "b", ""}, {"", "", ""},
	} {
		r := w.ask(t, "DELETE", configMapList+c.query, "")
		r.want(t, 200)
		if got := names(r); got != c.want {
			t.Errorf("DELETE %s: %q, want %q", c.query, got, c.want)
		}
		if got := names(w.ask(t, "GET", configMapList, "")); got != c.left {
			t.Errorf("after %s: %q, want %q", c.query, got, c.left)
		}
	}
	fill()
	t.Run("refused", func(t *testing.T) {
		defer w.unchanged(t)()
		for query, code := range map[string]int{
			"?labelSelector=a+in": 400, "?fieldSelector=spec.none%3D1": 400, "?propagationPolicy=x": 422, "?ignoreStoreReadErrorWithClusterBreakingPotential=true": 422,
			"?resourceVersionMatch=Exact": 422, "?continue=nonsense": 400, "?limit=x": 400, "?resourceVersion=x": 400,
		} {
			if r := w.ask(t, "DELETE", configMapList+query, ""); r.code != code {
				t.Errorf("%s: %d %s", query, r.code, r.body)
			}
		}
		w.ask(t, "DELETE", configMapList, `{"kind":"Pod"}`).want(t, 400)
	})
}
