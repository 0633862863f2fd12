package handlers_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/keelson-dev/keelson/server/handlers"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	bad     = metav1.StatusReasonBadRequest
	invalid = metav1.StatusReasonInvalid
)

func TestQueryOptions(t *testing.T) {
	h := newHouse(t, tune{})
	h.make(t, "a")
	const rv = `invalid resource version: resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax`
	options := func(kind, rest string) string { return kind + `.meta.k8s.io "" is invalid: ` + rest }
	for _, c := range []struct {
		method, target, body string
		code                 int
		reason               metav1.StatusReason
		message              string
	}{
		// unparsable
		{"GET", base + "?limit=abc", "", 400, bad, `strconv.ParseInt: parsing "abc": invalid syntax`},
		{"GET", base + "?timeoutSeconds=abc", "", 400, bad, `strconv.ParseInt: parsing "abc": invalid syntax`},
		{"GET", base + "/a?export=true", "", 400, bad, "the export parameter, deprecated since v1.14, is no longer supported"},
		{"DELETE", base + "/a?gracePeriodSeconds=abc", "", 400, bad, `strconv.ParseInt: parsing "abc": invalid syntax`},
		// resourceVersion
		{"GET", base + "?resourceVersion=x", "", 400, bad, rv},
		{"GET", base + "?watch=true&resourceVersion=x", "", 400, bad, rv},
		{"GET", base + "/a?resourceVersion=x", "", 400, bad, rv},
		{"GET", base + "?resourceVersion=-1", "", 400, bad, `invalid resource version: resourceVersion: Invalid value: "-1": strconv.ParseUint: parsing "-1": invalid syntax`},
		{"GET", base + "?resourceVersionMatch=Exact", "", 422, invalid,
			options("ListOptions", "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided")},
		{"GET", base + "?resourceVersionMatch=Exact&resourceVersion=0", "", 422, invalid,
			options("ListOptions", `resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"`)},
		{"GET", base + "?resourceVersionMatch=Bogus&resourceVersion=1", "", 422, invalid,
			options("ListOptions", `resourceVersionMatch: Unsupported value: "Bogus": supported values: "Exact", "NotOlderThan", ""`)},
		{"GET", base + "?resourceVersionMatch=Exact&resourceVersion=1&continue=x", "", 422, invalid,
			options("ListOptions", "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided")},
		{"GET", base + "?resourceVersion=1&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiYSJ9", "", 400, bad, "specifying resource version is not allowed when using continue"},
		{"GET", base + "?resourceVersion=x&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiYSJ9", "", 400, bad, "specifying resource version is not allowed when using continue"},
		{"GET", base + "?resourceVersion=1&continue=x", "", 400, bad, "*invalid continue token: continue key is not valid"},
		{"GET", base + "?continue=x", "", 400, bad, "*invalid continue token: continue key is not valid"},
		// sendInitialEvents
		{"GET", base + "?sendInitialEvents=true", "", 422, invalid,
			options("ListOptions", "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list")},
		{"GET", base + "?watch=true&sendInitialEvents=true", "", 422, invalid,
			options("ListOptions", "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")},
		{"GET", base + "?watch=true&resourceVersionMatch=NotOlderThan", "", 422, invalid,
			options("ListOptions", "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")},
		{"GET", base + "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&continue=x", "", 422, invalid,
			options("ListOptions", "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided")},
		// selectors
		{"GET", base + "?labelSelector=a+in", "", 400, bad, "unable to parse requirement: found '' expected: '('"},
		{"GET", base + "?fieldSelector=foo", "", 400, bad, "invalid selector: 'foo'; can't understand 'foo'"},
		{"GET", base + "?fieldSelector=spec.foo%3Dbar", "", 400, bad, `"spec.foo" is not a known field selector: only "metadata.name", "metadata.namespace"`},
		{"GET", "/apis/example.com/v1/watch/namespaces/default/widgets/a?fieldSelector=metadata.name%3Db", "", 400, bad,
			"fieldSelector metadata.name doesn't match requested name"},
		{"DELETE", base + "?labelSelector=a+in", "", 400, bad, "unable to parse requirement: found '' expected: '('"},
		{"GET", base + "?labelSelector=" + terms(401, "l%d"), "", 400, bad, "the label selector is too large: it has 401 requirements, and at most 400 are allowed"},
		{"GET", base + "?watch=1&fieldSelector=" + terms(401, "metadata.name!%%3Dn%d"), "", 400, bad, "the field selector is too large: it has 401 requirements, and at most 400 are allowed"},
		{"GET", "/apis/example.com/v1/watch/widgets?labelSelector=" + terms(401, "l%d"), "", 400, bad, "the label selector is too large: it has 401 requirements, and at most 400 are allowed"},
		{"DELETE", base + "?labelSelector=n+in+(a," + terms(4000, "n%d") + ")", "", 400, bad, "the label selector is too large: it has 4001 values in its sets, and at most 4000 are allowed"},
		{"DELETE", base + "?fieldSelector=metadata.name%3Da," + strings.Repeat("metadata.name%3Da,", 40_000), "", 400, bad, "the field selector is too large: it has 640016 bytes, and at most 102400 are allowed"},
		{"GET", base + "?shardSelector=x", "", 400, bad, "shardSelector is not supported by this server"},
		// dryRun, fieldManager, fieldValidation, force
		{"POST", base + "?dryRun=foo", "{}", 422, invalid, options("CreateOptions", `dryRun: Unsupported value: ["foo"]: supported values: "All"`)},
		{"PUT", base + "/a?dryRun=foo", "{}", 422, invalid, options("UpdateOptions", `dryRun: Unsupported value: ["foo"]: supported values: "All"`)},
		{"PATCH", base + "/a?dryRun=foo", "{}", 422, invalid, options("PatchOptions", `dryRun: Unsupported value: ["foo"]: supported values: "All"`)},
		{"DELETE", base + "/a?dryRun=foo", "", 422, invalid, options("DeleteOptions", `dryRun: Unsupported value: ["foo"]: supported values: "All"`)},
		{"POST", base + "?fieldValidation=Bogus", "{}", 422, invalid,
			options("CreateOptions", `fieldValidation: Unsupported value: "Bogus": supported values: "", "Ignore", "Strict", "Warn"`)},
		{"POST", base + "?fieldManager=" + strings.Repeat("x", 129), "{}", 422, invalid,
			options("CreateOptions", "fieldManager: Too long: may not be more than 128 bytes")},
		{"PATCH", base + "/a?force=true", "{}", 422, invalid, options("PatchOptions", "force: Forbidden: may not be specified for non-apply patch")},
		{"DELETE", base + "/a?propagationPolicy=Bogus", "", 422, invalid,
			options("DeleteOptions", `propagationPolicy: Unsupported value: "Bogus": supported values: "Foreground", "Background", "Orphan", "nil"`)},
		{"DELETE", base + "?ignoreStoreReadErrorWithClusterBreakingPotential=true", "", 422, invalid,
			options("DeleteOptions", "ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: is not allowed with DELETECOLLECTION, try again after removing the option")},
	} {
		w := h.ask(c.method, c.target, c.body, contentType(c.method))
		message := c.message
		if strings.HasPrefix(message, "*") && w.Code == c.code {
			if got := decodeStatus(t, w.Body.Bytes()).Message; strings.HasPrefix(got, message[1:]) {
				message = got
			}
		}
		s := wantStatus(t, w, c.code, c.reason, message)
		if t.Failed() {
			t.Fatalf("%s %s", c.method, c.target)
		}
		if c.code == 422 && (s.Details.Group != "meta.k8s.io" || len(s.Details.Causes) == 0) {
			t.Errorf("%s %s: details %+v", c.method, c.target, s.Details)
		}
	}
	if got := decodeList(t, h.ask("GET", base, "")); len(got.Items) != 1 {
		t.Errorf("refused requests changed something: %+v", got)
	}
}

// terms returns n selector terms, joined by commas.
func terms(n int, format string) string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(texts, ",")
}

// Selectors within the bounds are accepted. A Resource may have other bounds.
func TestLargeSelectors(t *testing.T) {
	h := newHouse(t, tune{})
	h.make(t, "a", "b", "n7")
	for query, want := range map[string]string{
		"labelSelector=" + terms(400, "!l%d"):                                     "a b n7",
		"labelSelector=n+in+(a," + terms(3999, "n%d") + ")":                       "a n7",
		"labelSelector=n+notin+(a," + terms(3999, "n%d") + ")":                    "b",
		"fieldSelector=" + terms(399, "metadata.name!%%3Dn%d"):                    "a b",
		"fieldSelector=metadata.name%3Da," + terms(399, "metadata.name!%%3Dn%d"):  "a",
		"fieldSelector=metadata.name%3Dn7," + terms(399, "metadata.name!%%3Dn%d"): "",
	} {
		var got []string
		for _, w := range decodeList(t, h.ask("GET", base+"?"+query, "")).Items {
			got = append(got, w.Name)
		}
		if names := strings.Join(got, " "); names != want {
			t.Errorf("%.40s...: %q, want %q", query, names, want)
		}
	}
	few := newHouse(t, tune{handlers: func(o *handlers.Options) { o.Selectors = 2 }})
	wantStatus(t, few.ask("GET", base+"?labelSelector=a,b,c", ""), 400, bad, "the label selector is too large: it has 3 requirements, and at most 2 are allowed")
	more := newHouse(t, tune{handlers: func(o *handlers.Options) { o.Selectors = -1 }})
	if w := more.ask("GET", base+"?labelSelector="+terms(401, "l%d"), ""); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// selected records the selections of the watches of a registry.
type selected struct {
	*registry.Registry
	mu  sync.Mutex
	all []storage.Selection
}

func (s *selected) WatchRecords(call *registry.Call, opts storage.WatchOptions) (storage.Watch, error) {
	s.mu.Lock()
	s.all = append(s.all, opts.Selection)
	s.mu.Unlock()
	return s.Registry.WatchRecords(call, opts)
}

// Watches with equal long selectors share one copy, until the last of them ends.
func TestWatchesShareSelectors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *selected
		h := newHouse(t, tune{handlers: func(o *handlers.Options) {
			s = &selected{Registry: o.Storage.(*registry.Registry)}
			o.Storage = s
		}})
		both := base + "?watch=1&labelSelector=" + terms(200, "!l%d") + "&fieldSelector=" + terms(100, "metadata.name!%%3Dn%d")
		begin := func(target string) (end func()) {
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				h.ServeHTTP(newStream(), httptest.NewRequest("GET", target, http.NoBody).WithContext(ctx))
			}()
			synctest.Wait()
			return func() { cancel(); <-done }
		}
		same := func(i, j int) bool {
			return s.all[i].Labels == s.all[j].Labels && s.all[i].Fields == s.all[j].Fields
		}
		end0, end1 := begin(both), begin(both)
		endOther := begin(both + "%2Cmetadata.name!%3Dx")
		if !same(0, 1) || s.all[2].Labels != s.all[0].Labels || s.all[2].Fields == s.all[0].Fields {
			t.Errorf("equal selectors are not shared, or others are: %p %p %p", s.all[0].Labels, s.all[1].Labels, s.all[2].Labels)
		}
		end0()
		end2 := begin(both)
		if !same(1, 3) {
			t.Error("a selector is forgotten before the last watch with it is over")
		}
		end1()
		end2()
		endOther()
		end3 := begin(both)
		defer end3()
		if same(3, 4) || s.all[4].Labels.String() != s.all[3].Labels.String() || s.all[4].Fields.String() != s.all[3].Fields.String() {
			t.Error("a selector is kept when all watches with it are over")
		}
	})
}

func contentType(method string) string {
	if method == "PATCH" {
		return "Content-Type: application/merge-patch+json"
	}
	return "X: y"
}

func TestReadAtRevisions(t *testing.T) {
	h := newHouse(t, tune{})
	h.make(t, "a", "b")
	first := h.now(t)
	h.make(t, "c", "d")
	for query, want := range map[string]int{
		"": 4, "resourceVersion=0": 4, "resourceVersion=00": 4, "resourceVersion=0&limit=1": 4, "limit=1": 1,
		"resourceVersion=" + first: 4, "resourceVersion=" + first + "&limit=9": 2,
		"resourceVersion=" + first + "&resourceVersionMatch=Exact":                2,
		"resourceVersion=" + first + "&resourceVersionMatch=NotOlderThan":         4,
		"resourceVersion=" + first + "&resourceVersionMatch=NotOlderThan&limit=1": 1,
		"resourceVersion=0&resourceVersionMatch=NotOlderThan&limit=1":             4,
		"fieldSelector=metadata.name%3Da":                                         1,
		"fieldSelector=metadata.name%3D..":                                        0,
		"fieldSelector=metadata.name%3Da%2Cmetadata.namespace%3Dother":            0,
		"fieldSelector=metadata.name%21%3Da":                                      3,
		"labelSelector=n+in+(a,b)":                                                2,
		"labelSelector=n%3Da":                                                     1,
		"limit=-5":                                                                4,
	} {
		if got := decodeList(t, h.ask("GET", base+"?"+query, "")); len(got.Items) != want {
			t.Errorf("%s: %d items, want %d", query, len(got.Items), want)
		}
	}
	if w := h.ask("GET", base+"?limit=1&labelSelector=n", ""); strings.Contains(w.Body.String(), "remainingItemCount") {
		t.Errorf("remainingItemCount with a selector: %s", w.Body)
	}
}

func TestUnknownFutureIsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, tune{})
		h.make(t, "a")
		now := h.now(t)
		for _, target := range []string{
			base + "?resourceVersion=99999&resourceVersionMatch=Exact",
			base + "?resourceVersion=99999&resourceVersionMatch=NotOlderThan",
			base + "?resourceVersion=99999",
			base + "/a?resourceVersion=99999",
		} {
			w := h.ask("GET", target, "")
			s := wantStatus(t, w, http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "Timeout: Too large resource version: 99999, current: "+now)
			if w.Header().Get("Retry-After") != "1" || len(s.Details.Causes) != 1 || s.Details.Causes[0].Type != metav1.CauseTypeResourceVersionTooLarge {
				t.Errorf("%s: Retry-After %q, details %+v", target, w.Header().Get("Retry-After"), s.Details)
			}
		}
		if w := h.ask("GET", base+"?resourceVersion=99999999999999999999999", ""); w.Code != http.StatusBadRequest {
			t.Errorf("beyond 64 bits: %d", w.Code)
		}
		if w := h.ask("GET", base+"?resourceVersion=18446744073709551615", ""); w.Code != http.StatusGatewayTimeout {
			t.Errorf("beyond 63 bits: %d", w.Code)
		}
	})
}
