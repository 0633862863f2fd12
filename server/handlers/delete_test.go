package handlers_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/handlers"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDelete(t *testing.T) {
	h := newHouse(t, tune{})
	h.make(t, "a")
	uid := h.record(t, "a").Body.Field("metadata.uid")
	want := `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":"a","group":"example.com","kind":"widgets","uid":"` + uid + `"}}` + "\n"
	wantBody(t, h.ask("DELETE", base+"/a?dryRun=All", ""), 200, want)
	wantBody(t, h.ask("DELETE", base+"/a", "", "Accept: application/json;as=Table;g=meta.k8s.io;v=v1"), 200, want)
	wantStatus(t, h.ask("DELETE", base+"/a", ""), 404, metav1.StatusReasonNotFound, `widgets.example.com "a" not found`)
}

func TestDeleteReturningTheObject(t *testing.T) {
	h := newHouse(t, tune{strategy: registry.Strategy[*Widget]{ReturnDeleted: true}})
	h.make(t, "a")
	w := h.ask("DELETE", base+"/a", "")
	if w.Code != 200 || !strings.HasPrefix(w.Body.String(), `{"kind":"Widget",`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestDeleteWithFinalizers(t *testing.T) {
	h := newHouse(t, tune{})
	if w := h.ask("POST", base, `{"metadata":{"name":"a","finalizers":["example.com/f"]}}`); w.Code != 201 {
		t.Fatal(w.Body)
	}
	w := h.ask("DELETE", base+"/a", "")
	wantBody(t, w, 200, h.whole(t, "a")+"\n")
	if got := w.Body.String(); !strings.Contains(got, `"deletionGracePeriodSeconds":0`) || !strings.Contains(got, `"generation":2`) {
		t.Errorf("%s", got)
	}
	if w := h.ask("DELETE", base+"/a?orphanDependents=false", ""); w.Code != http.StatusAccepted {
		t.Errorf("orphanDependents=false: %d", w.Code)
	}
	if w := h.ask("PATCH", base+"/a", `{"metadata":{"finalizers":null}}`, mergeType); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := h.ask("GET", base+"/a", ""); w.Code != 404 {
		t.Errorf("still there: %s", w.Body)
	}
}

func TestDeleteBodies(t *testing.T) {
	for name, c := range map[string]struct {
		body, head string
		code       int
		message    string
	}{
		"v1":        {`{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"}`, "", 200, ""},
		"meta":      {`{"kind":"DeleteOptions","apiVersion":"meta.k8s.io/v1"}`, "", 200, ""},
		"own group": {`{"kind":"DeleteOptions","apiVersion":"example.com/v1"}`, "", 200, ""},
		"silent":    {`{}`, "", 200, ""},
		"YAML":      {"kind: DeleteOptions\napiVersion: v1\n", "Content-Type: application/yaml", 200, ""},
		"other":     {`{"kind":"DeleteOptions","apiVersion":"other.io/v7"}`, "", 200, ""},
		"kind":      {`{"kind":"Widget","apiVersion":"v1","gracePeriodSeconds":"x"}`, "", 400, `no kind "Widget" is registered for version "v1" in scheme "keelson"`},
		"broken":    {`{"kind":`, "", 400, "couldn't get version/kind; json parse error: unexpected end of JSON input"},
		"type":      {`{"gracePeriodSeconds":"x"}`, "", 400, "*json: cannot unmarshal string"},
		"media":     {`{}`, "Content-Type: text/plain", 415, "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf"},
		"dryRun":    {`{"dryRun":["x"]}`, "", 422, `DeleteOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["x"]: supported values: "All"`},
		"uid":       {`{"preconditions":{"uid":"x"}}`, "", 409, "*Operation cannot be fulfilled on Widget.example.com \"a\": the UID in the precondition (x) does not match the UID in record ("},
		"version":   {`{"preconditions":{"resourceVersion":"1"}}`, "", 409, "*Operation cannot be fulfilled on Widget.example.com \"a\": the ResourceVersion in the precondition (1) does not match"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, tune{})
			h.make(t, "a")
			w := h.ask("DELETE", base+"/a", c.body, c.head)
			if w.Code != c.code {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			if got := decodeStatus(t, w.Body.Bytes()).Message; got != c.message && (c.message == "" || c.message[0] != '*' || !strings.HasPrefix(got, c.message[1:])) {
				t.Errorf("message %s", got)
			}
			if gone := h.ask("GET", base+"/a", "").Code == 404; gone != (c.code == 200) {
				t.Errorf("gone: %v", gone)
			}
		})
	}
}

func TestDeleteByQuery(t *testing.T) {
	h := newHouse(t, tune{})
	h.make(t, "a")
	if w := h.ask("DELETE", base+"/a?uid=x", ""); w.Code != 409 {
		t.Errorf("uid: %d %s", w.Code, w.Body)
	}
	if w := h.ask("DELETE", base+"/a?resourceVersion=1", ""); w.Code != 409 {
		t.Errorf("resourceVersion: %d %s", w.Code, w.Body)
	}
	if w := h.ask("DELETE", base+"/a?propagationPolicy=Background&gracePeriodSeconds=0", ""); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestDeleteCollection(t *testing.T) {
	h := newHouse(t, tune{})
	h.make(t, "a", "b", "c")
	items := h.listed(t, "a") + "," + h.listed(t, "b")
	w := h.ask("DELETE", base+"?labelSelector=n+in+(a,b)", `{"kind":"DeleteOptions","apiVersion":"v1"}`)
	if got := w.Body.String(); w.Code != 200 || !strings.HasPrefix(got, `{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"`) || !strings.HasSuffix(got, `},"items":[`+items+"]}\n") {
		t.Errorf("%d %s", w.Code, got)
	}
	if got := decodeList(t, h.ask("GET", base, "")); len(got.Items) != 1 || got.Items[0].Name != "c" {
		t.Errorf("%+v", got)
	}
}

// In the query of a collection, resourceVersion is the version of the list. It is no precondition of the objects.
func TestDeleteCollectionAtARevision(t *testing.T) {
	h := newHouse(t, tune{})
	h.make(t, "a", "b")
	if w := h.ask("DELETE", base+"?resourceVersionMatch=NotOlderThan&resourceVersion="+h.now(t), ""); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if got := decodeList(t, h.ask("GET", base, "")); len(got.Items) != 0 {
		t.Errorf("%+v", got)
	}
}

// TestDeleteHonoursDryRunOfTheQuery: a dryRun in the query counts even if there is a body without a dryRun.
func TestDeleteHonoursDryRunOfTheQuery(t *testing.T) {
	h := newHouse(t, tune{})
	h.make(t, "a")
	before := h.now(t)
	for _, body := range []string{"", "{}", "null", `{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"}`, `{"dryRun":["All"]}`} {
		for _, target := range []string{base + "/a", base} {
			if w := h.ask("DELETE", target+"?dryRun=All", body); w.Code != 200 {
				t.Errorf("%s %q: %d %s", target, body, w.Code, w.Body)
			}
		}
		if now := h.now(t); now != before {
			t.Fatalf("%q: the dry run was written", body)
		}
		if w := h.ask("DELETE", base+"/a?dryRun=Some", body); body != `{"dryRun":["All"]}` && w.Code != 422 {
			t.Errorf("%q: dryRun=Some: %d %s", body, w.Code, w.Body)
		}
		before = h.now(t)
	}
}

// TestDeleteOfUnreadableOnly: the option for unreadable objects does not delete readable ones.
func TestDeleteOfUnreadableOnly(t *testing.T) {
	h := newHouse(t, tune{handlers: func(o *handlers.Options) { o.Authorizer = authz.AlwaysAllow() }})
	h.make(t, "a")
	for _, body := range []string{`{"` + option + `":true}`, `{"` + option + `":true,"dryRun":["All"]}`} {
		s := wantStatus(t, h.ask("DELETE", base+"/a", body), 422, metav1.StatusReasonInvalid,
			`widgets.example.com "a" is invalid: `+option+`: Invalid value: true: is exclusively used to delete corrupt object(s), try again by removing this option`)
		if s.Details.Kind != "widgets" || s.Details.Name != "a" {
			t.Errorf("details %+v", s.Details)
		}
		wantStatus(t, h.ask("DELETE", base+"/b", body), 404, metav1.StatusReasonNotFound, `widgets.example.com "b" not found`)
	}
	if w := h.ask("GET", base+"/a", ""); w.Code != 200 {
		t.Errorf("it was deleted: %d %s", w.Code, w.Body)
	}
	if w := h.ask("DELETE", base+"/a", `{"`+option+`":false}`); w.Code != 200 {
		t.Errorf("without the option: %d %s", w.Code, w.Body)
	}
}

const option = "ignoreStoreReadErrorWithClusterBreakingPotential"

// damage makes the widget called name unreadable.
func (h *house) damage(t *testing.T, name string) {
	t.Helper()
	c := storage.Commit{Key: "/registry/example.com/widgets/default/" + name, Expect: storage.AnyRevision, Value: []byte("\x01")}
	_, err := h.backend.Commit(t.Context(), c)
	must(t, err)
}

// TestUnsafeDelete: an unreadable object is deleted at once, in cases in which a readable one would stay.
func TestUnsafeDelete(t *testing.T) {
	h := newHouse(t, tune{
		strategy: registry.Strategy[*Widget]{ReturnDeleted: true},
		handlers: func(o *handlers.Options) { o.Authorizer = authz.AlwaysAllow() },
	})
	for _, c := range []struct{ query, body string }{
		{"?" + option + "=true", ""},
		{"", `{"` + option + `":true}`},
		{"", `{"kind":"DeleteOptions","apiVersion":"v1","` + option + `":true}`},
	} {
		h.damage(t, "a")
		wantBody(t, h.ask("DELETE", base+"/a"+c.query, c.body), 200,
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":"a","kind":"Widget"},"code":200}`+"\n")
		if w := h.ask("GET", base+"/a", ""); w.Code != 404 {
			t.Errorf("it is there: %d %s", w.Code, w.Body)
		}
	}
}

// TestUnsafeDeleteDryRun: a dry run has the same answer as the deletion, and deletes nothing.
func TestUnsafeDeleteDryRun(t *testing.T) {
	h := newHouse(t, tune{handlers: func(o *handlers.Options) { o.Authorizer = authz.AlwaysAllow() }})
	h.damage(t, "a")
	before := h.now(t)
	for query, body := range map[string]string{
		"?dryRun=All&" + option + "=true": "", "?dryRun=All": `{"` + option + `":true}`, "": `{"dryRun":["All"],"` + option + `":true}`,
	} {
		wantBody(t, h.ask("DELETE", base+"/a"+query, body), 200,
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":"a","kind":"Widget"},"code":200}`+"\n")
	}
	if w := h.ask("GET", base+"/a", ""); w.Code != 500 || h.now(t) != before {
		t.Errorf("it was deleted: %d %s", w.Code, w.Body)
	}
}

// TestUnsafeDeleteRefusesCompany: options that need the content of the object are refused.
func TestUnsafeDeleteRefusesCompany(t *testing.T) {
	h := newHouse(t, tune{handlers: func(o *handlers.Options) { o.Authorizer = authz.AlwaysAllow() }})
	h.damage(t, "a")
	for more, name := range map[string]string{
		`"propagationPolicy":"Background"`: "propagationPolicy",
		`"orphanDependents":false`:         "orphanDependents",
		`"gracePeriodSeconds":0`:           "gracePeriodSeconds",
		`"preconditions":{"uid":"1"}`:      "preconditions",
	} {
		wantStatus(t, h.ask("DELETE", base+"/a", `{"`+option+`":true,`+more+`}`), 422, metav1.StatusReasonInvalid,
			`DeleteOptions.meta.k8s.io "" is invalid: `+option+`: Invalid value: true: cannot be set together with .`+name)
	}
	if w := h.ask("GET", base+"/a", ""); w.Code != 500 {
		t.Errorf("it was deleted: %d %s", w.Code, w.Body)
	}
}

// TestUnsafeDeleteNeedsItsOwnPermission: the error is that of kube-apiserver, for readable and unreadable objects.
func TestUnsafeDeleteNeedsItsOwnPermission(t *testing.T) {
	const verb = "unsafe-delete-ignore-read-errors"
	for _, c := range []struct {
		authorizer authz.Authorizer
		code       int
		reason     metav1.StatusReason
		message    string
	}{
		{authz.Func(func(context.Context, authz.Attributes) (authz.Verdict, string, error) {
			return authz.Deny, "not you", nil
		}),
			403, metav1.StatusReasonForbidden, `widgets.example.com "a" is forbidden: not permitted to do "` + verb + `", reason: not you`},
		{authz.Func(func(context.Context, authz.Attributes) (authz.Verdict, string, error) {
			return authz.Allow, "", errors.New("no rules")
		}), 403, metav1.StatusReasonForbidden, `widgets.example.com "a" is forbidden: error while checking permission for "` + verb + `", no rules`},
		{nil, 500, metav1.StatusReasonInternalError, "Internal error occurred: no authorizer provided, unable to authorize unsafe delete"},
	} {
		h := newHouse(t, tune{handlers: func(o *handlers.Options) { o.Authorizer = c.authorizer }})
		h.damage(t, "a")
		h.make(t, "b")
		before := h.now(t)
		wantStatus(t, h.ask("DELETE", base+"/a?"+option+"=true", ""), c.code, c.reason, c.message)
		wantStatus(t, h.ask("DELETE", base+"/b?"+option+"=true", ""), c.code, c.reason, strings.Replace(c.message, `"a"`, `"b"`, 1))
		if h.now(t) != before {
			t.Errorf("%s: something was deleted", c.message)
		}
	}
}

// removable is a resource without stored bytes, so none of its objects can be unreadable.
type removable struct{ readings }

func (removable) Delete(*registry.Call, string, *metav1.DeleteOptions) (runtime.Object, bool, error) {
	return nil, true, nil
}

func TestUnsafeDeleteWithoutAStore(t *testing.T) {
	h := serve(t, removable{}, func(o *handlers.Options) { o.Authorizer = authz.AlwaysAllow() })
	wantStatus(t, h.ask("DELETE", all+"/a?"+option+"=true", ""), 500, metav1.StatusReasonInternalError,
		"Internal error occurred: no unsafe deleter provided, can not honor "+option)
	if w := h.ask("DELETE", all+"/a?"+option+"=false", ""); w.Code != 200 {
		t.Errorf("without the option: %d %s", w.Code, w.Body)
	}
}

// TestUnreadableQueryChangesNothing: a query of which net/url would drop a part is refused.
func TestUnreadableQueryChangesNothing(t *testing.T) {
	h := newHouse(t, tune{})
	h.make(t, "a")
	for _, query := range []string{"labelSelector=n%zzb", "labelSelector=n%3Db;x", "dryRun=All;", "%=1", "a=%"} {
		for _, target := range []string{"DELETE " + base, "DELETE " + base + "/a", "GET " + base, "POST " + base} {
			method, path, _ := strings.Cut(target, " ")
			r := httptest.NewRequest(method, path, nil)
			r.URL.RawQuery = query
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if s := decodeStatus(t, w.Body.Bytes()); w.Code != 400 || !strings.HasPrefix(s.Message, "the query of the request cannot be read: ") {
				t.Errorf("%s ? %s: %d %s", target, query, w.Code, w.Body)
			}
		}
	}
	if w := h.ask("GET", base+"/a", ""); w.Code != 200 {
		t.Errorf("it was deleted: %d %s", w.Code, w.Body)
	}
}
