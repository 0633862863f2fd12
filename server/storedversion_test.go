package server_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/storage"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// wantRope checks an answer that shows a rope.
func wantRope(t *testing.T, what string, a answer, code int, want string) {
	t.Helper()
	if a.code != code {
		t.Errorf("%s: code %d, want %d: %.500s", what, a.code, code, a.body)
		return
	}
	if got := after(t, a.body); !sameJSON(t, got, want) {
		t.Errorf("%s:\ngot  %s\nwant %s", what, got, want)
	}
}

// wantError checks an answer that refuses something.
func wantError(t *testing.T, what string, a answer, code int32, message string) {
	t.Helper()
	if s := a.status(t); s.Code != code || !strings.Contains(s.Message, message) || s.Status != "Failure" {
		t.Errorf("%s: %d %s\nwant %d %s", what, s.Code, s.Message, code, message)
	}
}

// The answers do not depend on the stored version, for requests in any version.
func TestEveryVersionWhileStoredInEach(t *testing.T) {
	t.Parallel()
	for _, stored := range append([]string{""}, ropeVersions...) {
		for _, via := range ropeVersions {
			t.Run("stored in "+stored+" by way of "+via, func(t *testing.T) {
				t.Parallel()
				b := newLasting(t)
				w := ropeServer(t, b, stored, server.KindOptions[*Rope]{})
				path := ropesPath(via) + "/main"
				everywhere := func(step, color string, length int, state string) {
					t.Helper()
					for _, v := range ropeVersions {
						wantRope(t, step+", GET in "+v, w.ask(t, "GET", ropesPath(v)+"/main", ""), 200, ropeShown(v, color, length, state))
						list := w.ask(t, "GET", ropesPath(v), "")
						var items struct {
							APIVersion string
							Items      []json.RawMessage
						}
						list.into(t, &items)
						if len(items.Items) != 1 || items.APIVersion != "sea.example.com/"+v {
							t.Fatalf("%s, list in %s: %s", step, v, list.body)
						}
						item := strings.Replace(ropeShown(v, color, length, state), `"apiVersion":"sea.example.com/`+v+`",`, "", 1)
						if got := after(t, string(items.Items[0])); !sameJSON(t, got, item) {
							t.Errorf("%s, list in %s:\ngot  %s\nwant %s", step, v, got, item)
						}
					}
					in := stored
					if in == "" {
						in = "v1"
					}
					if got := storedIn(t, b)["main"]; got != in {
						t.Errorf("%s: stored in %s, want %s", step, got, in)
					}
				}
				wantRope(t, "POST", w.ask(t, "POST", ropesPath(via), rope(via, "main", "red", 12)), 201, ropeShown(via, "red", 12, ""))
				everywhere("POST", "red", 12, "")
				wantRope(t, "PUT", w.ask(t, "PUT", path, rope(via, "main", "blue", 13)), 200, ropeShown(via, "blue", 13, ""))
				everywhere("PUT", "blue", 13, "")
				change := map[string]string{"v1": `{"spec":{"length":14}}`, "v1beta1": `{"spec":{"length":"14m"}}`, "v1alpha1": `{"metres":14}`}[via]
				wantRope(t, "merge patch", w.ask(t, "PATCH", path, change, "Content-Type", mergePatchType), 200, ropeShown(via, "blue", 14, ""))
				everywhere("merge patch", "blue", 14, "")
				change = map[string]string{"v1": "/spec/color", "v1beta1": "/spec/colour", "v1alpha1": "/paint"}[via]
				wantRope(t, "JSON patch", w.ask(t, "PATCH", path, `[{"op":"replace","path":"`+change+`","value":"green"}]`, "Content-Type", "application/json-patch+json"), 200, ropeShown(via, "green", 14, ""))
				everywhere("JSON patch", "green", 14, "")
				change = map[string]string{"v1": `{"status":{"state":"wet"}}`, "v1beta1": `{"status":{"condition":"wet"}}`}[via]
				if change == "" {
					w.ask(t, "PATCH", path+"/status", "{}", "Content-Type", mergePatchType).want(t, 404)
				} else {
					wantRope(t, "status", w.ask(t, "PATCH", path+"/status", change, "Content-Type", mergePatchType), 200, ropeShown(via, "green", 14, "wet"))
					everywhere("status", "green", 14, "wet")
				}
				wantRope(t, "dry run", w.ask(t, "PUT", path+"?dryRun=All", rope(via, "main", "pink", 1)), 200, ropeShown(via, "pink", 1, map[bool]string{true: "", false: "wet"}[change == ""]))
				before, err := b.Get(context.Background(), "x", 0)
				if err != nil {
					t.Fatal(err)
				}
				w.ask(t, "PATCH", path, `{}`, "Content-Type", mergePatchType).want(t, 200)
				if now, err := b.Get(context.Background(), "x", 0); err != nil || now.Revision != before.Revision {
					t.Errorf("a patch that changes nothing took the store from %d to %d, %v", before.Revision, now.Revision, err)
				}
				w.ask(t, "DELETE", path, "").want(t, 200)
				for _, v := range ropeVersions {
					w.ask(t, "GET", ropesPath(v)+"/main", "").want(t, 404)
				}
			})
		}
	}
}

// mixed returns a backend with a rope stored in each version, by servers that stored in it.
func mixed(t *testing.T) lasting {
	t.Helper()
	b := newLasting(t)
	for i, v := range ropeVersions {
		w := ropeServer(t, b, v, server.KindOptions[*Rope]{})
		w.ask(t, "POST", ropesPath("v1"), rope("v1", "in-"+v, "red", i)).want(t, 201)
		_ = w.Close()
	}
	if got := storedIn(t, b); got["in-v1"] != "v1" || got["in-v1beta1"] != "v1beta1" || got["in-v1alpha1"] != "v1alpha1" {
		t.Fatalf("stored in %v", got)
	}
	return b
}

// layouts are the ways in which a kind can be stored and cached.
var layouts = map[string]server.KindOptions[*Rope]{
	"cache":    {},
	"index":    {IndexFields: []string{"spec.color", "spec.length"}},
	"no cache": {NoCache: true},
}

func eachLayout(t *testing.T, f func(t *testing.T, stored string, hub server.KindOptions[*Rope])) {
	for layout, hub := range layouts {
		for _, stored := range ropeVersions {
			t.Run(layout+", stored in "+stored, func(t *testing.T) {
				t.Parallel()
				f(t, stored, hub)
			})
		}
	}
}

// Objects that are stored in another version are read like all others. Their next update stores them in the current version, even
// if it changes nothing.
func TestObjectsStoredInAnyVersion(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, stored string, hub server.KindOptions[*Rope]) {
		b := mixed(t)
		w := ropeServer(t, b, stored, hub)
		for _, v := range ropeVersions {
			for i, in := range ropeVersions {
				wantRope(t, "GET in "+v+" of one stored in "+in, w.ask(t, "GET", ropesPath(v)+"/in-"+in, ""), 200, ropeShown(v, "red", i, ""))
			}
			a := w.ask(t, "GET", ropesPath(v), "")
			a.want(t, 200)
			var list metav1.PartialObjectMetadataList
			a.into(t, &list)
			for i, item := range list.Items {
				if want := "in-" + slices.Sorted(slices.Values(ropeVersions))[i]; item.Name != want {
					t.Errorf("item %d is %s, want %s", i, item.Name, want)
				}
			}
			if len(list.Items) != 3 || strings.Contains(a.body, `"apiVersion":"sea.example.com/`+v+`","metadata":{"name"`) {
				t.Errorf("list in %s: %s", v, a.body)
			}
		}
		want := map[string]string{}
		for _, in := range ropeVersions {
			w.ask(t, "PATCH", ropesPath("v1beta1")+"/in-"+in, `{}`, "Content-Type", mergePatchType).want(t, 200)
			want["in-"+in] = stored
		}
		if got := storedIn(t, b); !maps.Equal(got, want) {
			t.Errorf("after patches that change nothing: stored in %v", got)
		}
		for i, in := range ropeVersions {
			wantRope(t, "after a patch that changes nothing", w.ask(t, "GET", ropesPath("v1alpha1")+"/in-"+in, ""), 200, ropeShown("v1alpha1", "red", i, ""))
		}
	})
}

// names returns the names in a list with a field selector.
func (w *wire) names(t *testing.T, version, selector string) string {
	t.Helper()
	a := w.ask(t, "GET", ropesPath(version)+"?fieldSelector="+url.QueryEscape(selector), "")
	a.want(t, 200)
	var list metav1.PartialObjectMetadataList
	a.into(t, &list)
	var out []string
	for _, item := range list.Items {
		out = append(out, strings.TrimPrefix(item.Name, "in-"))
	}
	return strings.Join(out, " ")
}

// Each version selects by its own field names, whichever version an object is stored in.
func TestSelectorsOfEachVersion(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, stored string, hub server.KindOptions[*Rope]) {
		w := ropeServer(t, mixed(t), stored, hub)
		w.ask(t, "POST", ropesPath("v1alpha1"), rope("v1alpha1", "new", "blue", 2)).want(t, 201)
		for _, c := range []struct{ version, selector, want string }{
			{"v1", "spec.color=red", "v1 v1alpha1 v1beta1"},
			{"v1beta1", "spec.colour=red", "v1 v1alpha1 v1beta1"},
			{"v1alpha1", "paint=red", "v1 v1alpha1 v1beta1"},
			{"v1alpha1", "paint!=red", "new"},
			{"v1", "spec.length=2", "v1alpha1 new"},
			{"v1", "spec.length=1", "v1beta1"},
			{"v1alpha1", "metres=0", "v1"},
			{"v1alpha1", "metres=2,paint=blue", "new"},
			{"v1beta1", "spec.colour=blue,metadata.name=new", "new"},
		} {
			if got := w.names(t, c.version, c.selector); got != c.want {
				t.Errorf("%s in %s: %q, want %q", c.selector, c.version, got, c.want)
			}
		}
		for version, selector := range map[string]string{"v1": "paint=red", "v1beta1": "spec.color=red", "v1alpha1": "spec.color=red"} {
			field, _, _ := strings.Cut(selector, "=")
			a := w.ask(t, "GET", ropesPath(version)+"?fieldSelector="+selector, "")
			wantError(t, selector+" in "+version, a, 400, "field label not supported: "+field)
		}
		wantError(t, "the hub's length in v1beta1, which is a text there", w.ask(t, "GET", ropesPath("v1beta1")+"?fieldSelector=spec.length%3D2", ""), 400, "field label not supported: spec.length")
		w.ask(t, "DELETE", ropesPath("v1alpha1")+"?fieldSelector=paint%3Dred", "").want(t, 200)
		if got := w.names(t, "v1", "metadata.namespace=default"); got != "new" {
			t.Errorf("after a deletecollection by a renamed field: %q", got)
		}
	})
}

// Watches in all versions get the same changes, each in its version, and selectors follow what a change makes of an object.
func TestWatchesOfEachVersion(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, stored string, hub server.KindOptions[*Rope]) {
		w := ropeServer(t, mixed(t), stored, hub)
		watches := map[string]*stream{}
		for _, v := range ropeVersions {
			watches[v] = w.watch(t, ropesPath(v)+"?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
			for _, in := range slices.Sorted(slices.Values(ropeVersions)) {
				e := watches[v].next()
				if e.Type != "ADDED" || !strings.Contains(e.text, `"name":"in-`+in+`"`) || !sameJSON(t, after(t, string(e.Object)), ropeShown(v, "red", slices.Index(ropeVersions, in), "")) {
					t.Errorf("in %s: %s", v, e.text)
				}
			}
			if e := watches[v].next(); e.Type != "BOOKMARK" {
				t.Errorf("in %s: %s", v, e.text)
			}
		}
		since := w.ask(t, "GET", ropesPath("v1"), "").meta(t).ResourceVersion
		red := map[string]*stream{}
		for v, selector := range map[string]string{"v1": "spec.color=red", "v1beta1": "spec.colour=red", "v1alpha1": "paint=red"} {
			red[v] = w.watch(t, ropesPath(v)+"?watch=1&resourceVersion="+since+"&fieldSelector="+url.QueryEscape(selector))
		}
		expect := func(streams map[string]*stream, kind, name, color string, length int) {
			t.Helper()
			for _, v := range ropeVersions {
				e := streams[v].next()
				if e.Type != kind || !strings.Contains(e.text, `"name":"`+name+`"`) || !sameJSON(t, after(t, string(e.Object)), ropeShown(v, color, length, "")) {
					t.Errorf("in %s: %s\nwant %s %s %s", v, e.text, kind, name, ropeShown(v, color, length, ""))
				}
			}
		}
		w.ask(t, "PUT", ropesPath("v1alpha1")+"/in-v1beta1", rope("v1alpha1", "in-v1beta1", "red", 7)).want(t, 200)
		w.ask(t, "PUT", ropesPath("v1beta1")+"/in-v1alpha1", rope("v1beta1", "in-v1alpha1", "blue", 8)).want(t, 200)
		w.ask(t, "PUT", ropesPath("v1")+"/in-v1alpha1", rope("v1", "in-v1alpha1", "red", 9)).want(t, 200)
		w.ask(t, "POST", ropesPath("v1beta1"), rope("v1beta1", "new", "blue", 1)).want(t, 201)
		w.ask(t, "DELETE", ropesPath("v1alpha1")+"/in-v1", "").want(t, 200)
		expect(watches, "MODIFIED", "in-v1beta1", "red", 7)
		expect(watches, "MODIFIED", "in-v1alpha1", "blue", 8)
		expect(watches, "MODIFIED", "in-v1alpha1", "red", 9)
		expect(watches, "ADDED", "new", "blue", 1)
		expect(watches, "DELETED", "in-v1", "red", 0)
		expect(red, "MODIFIED", "in-v1beta1", "red", 7)
		expect(red, "DELETED", "in-v1alpha1", "red", 2)
		expect(red, "ADDED", "in-v1alpha1", "red", 9)
		expect(red, "DELETED", "in-v1", "red", 0)
	})
}

// The storage version hash in discovery changes with the stored version.
func TestStorageVersionHash(t *testing.T) {
	t.Parallel()
	for stored, in := range map[string]string{"": "v1", "v1": "v1", "v1beta1": "v1beta1", "v1alpha1": "v1alpha1"} {
		w := ropeServer(t, newLasting(t), stored, server.KindOptions[*Rope]{})
		sum := sha256.Sum256([]byte("sea.example.com/" + in + "/Rope"))
		for _, v := range ropeVersions {
			var list metav1.APIResourceList
			w.ask(t, "GET", "/apis/sea.example.com/"+v, "").into(t, &list)
			if got, want := list.APIResources[0].StorageVersionHash, base64.StdEncoding.EncodeToString(sum[:8]); got != want {
				t.Errorf("stored in %q: hash in %s is %s, want %s", stored, v, got, want)
			}
		}
	}
}

// An object that cannot be converted is refused before anything is stored, with a message about the conversion and the reason.
// Other objects are not affected.
func TestWritesWhoseConversionFails(t *testing.T) {
	t.Parallel()
	b := newLasting(t)
	w := ropeServer(t, b, "v1beta1", server.KindOptions[*Rope]{})
	w.ask(t, "POST", ropesPath("v1"), rope("v1", "good", "red", 1)).want(t, 201)
	before := w.ask(t, "GET", ropesPath("v1")+"/good", "").body
	now, err := b.Get(context.Background(), "x", 0)
	if err != nil {
		t.Fatal(err)
	}
	const toSpoke = "converting Rope.sea.example.com from sea.example.com/v1 to sea.example.com/v1beta1: "
	const back = "converting Rope.sea.example.com from sea.example.com/v1beta1 to sea.example.com/v1: "
	for _, c := range []struct {
		version, color string
		post           int32 // code of POST and PUT
		patch          int32
		message        string
	}{
		// To the hub.
		{"v1beta1", "nohub", 400, 422, back + "no color for the hub"},
		{"v1beta1", "panichub", 400, 422, back + "the conversion panicked: no color at all for the hub"},
		{"v1alpha1", "nohub", 400, 422, "converting Rope.sea.example.com from sea.example.com/v1alpha1 to sea.example.com/v1: no color for the hub"},
		// From the hub to the stored version.
		{"v1", "nospoke", 400, 400, "the object cannot be stored: " + toSpoke + "no color but for the hub"},
		{"v1", "panicspoke", 400, 400, "the object cannot be stored: " + toSpoke + "the conversion panicked: no color at all but for the hub"},
		{"v1", "oneway", 400, 400, "the object cannot be stored: what would be stored cannot be read: " + back + "no color for the hub"},
	} {
		patch := map[string]string{"v1": `{"spec":{"color":%q}}`, "v1beta1": `{"spec":{"colour":%q}}`, "v1alpha1": `{"paint":%q}`}[c.version]
		for _, dry := range []string{"", "?dryRun=All"} {
			what := c.version + " " + c.color + dry
			wantError(t, "POST "+what, w.ask(t, "POST", ropesPath(c.version)+dry, rope(c.version, "bad", c.color, 1)), c.post, c.message)
			wantError(t, "PUT "+what, w.ask(t, "PUT", ropesPath(c.version)+"/good"+dry, rope(c.version, "good", c.color, 1)), c.post, c.message)
			wantError(t, "PATCH "+what, w.ask(t, "PATCH", ropesPath(c.version)+"/good"+dry, fmt.Sprintf(patch, c.color), "Content-Type", mergePatchType), c.patch, c.message)
		}
	}
	if after, err := b.Get(context.Background(), "x", 0); err != nil || after.Revision != now.Revision {
		t.Errorf("something was stored: revision %d after %d, %v", after.Revision, now.Revision, err)
	}
	if after := w.ask(t, "GET", ropesPath("v1")+"/good", "").body; after != before {
		t.Errorf("the object is now %s", after)
	}
	w.ask(t, "PUT", ropesPath("v1alpha1")+"/good", rope("v1alpha1", "good", "green", 2)).want(t, 200)
}

// A stored object that a conversion cannot read is an error for requests in another version, until it is replaced or deleted.
func TestStoredObjectWhoseConversionFails(t *testing.T) {
	t.Parallel()
	b := newLasting(t)
	w := ropeServer(t, b, "v1", server.KindOptions[*Rope]{})
	w.ask(t, "POST", ropesPath("v1"), rope("v1", "good", "red", 1)).want(t, 201)
	plant := storage.Commit{Key: "/registry/sea.example.com/ropes/default/bad", Value: []byte(
		`{"kind":"Rope","apiVersion":"sea.example.com/v1beta1","metadata":{"name":"bad","namespace":"default","uid":"1"},"spec":{"colour":"panichub","length":"1m"},"status":{}}`)}
	if _, err := b.Commit(context.Background(), plant); err != nil {
		t.Fatal(err)
	}
	const why = "the conversion panicked: no color at all for the hub"
	for _, v := range []string{"v1", "v1alpha1"} {
		for _, path := range []string{"", "/bad"} {
			wantError(t, "GET "+v+path, w.ask(t, "GET", ropesPath(v)+path, ""), 500, why)
		}
		w.ask(t, "GET", ropesPath(v)+"/good", "").want(t, 200)
	}
	w.ask(t, "GET", ropesPath("v1beta1")+"/bad", "").want(t, 200)
	w.ask(t, "GET", ropesPath("v1beta1"), "").want(t, 200)
	wantError(t, "PUT", w.ask(t, "PUT", ropesPath("v1")+"/bad", rope("v1", "bad", "red", 1)), 500, why)
	wantError(t, "DELETE", w.ask(t, "DELETE", ropesPath("v1")+"/bad", ""), 500, why)
	w.ask(t, "DELETE", ropesPath("v1")+"/bad"+unsafely, "").want(t, 200)
	w.ask(t, "GET", ropesPath("v1alpha1"), "").want(t, 200)
}

// A body in another version than the URL is refused, whether that is served or not, and so is a URL with a version that is not
// served.
func TestVersionsThatAreNotMeant(t *testing.T) {
	t.Parallel()
	w := ropeServer(t, newLasting(t), "v1beta1", server.KindOptions[*Rope]{})
	w.ask(t, "POST", ropesPath("v1"), rope("v1", "good", "red", 1)).want(t, 201)
	for _, v := range []string{"v1beta1", "v2"} {
		message := "the API version in the data (sea.example.com/" + v + ") does not match the expected API version (sea.example.com/v1)"
		patched := "json: cannot unmarshal number into Go struct field .spec.length of type string" // it is read in that version
		if v == "v2" {
			message = `no kind "Rope" is registered for version "sea.example.com/v2" in scheme "keelson"`
			patched = message
			message = `Rope in version "v2" cannot be handled as a Rope: ` + message
		}
		body := strings.Replace(rope("v1", "good", "red", 1), "sea.example.com/v1", "sea.example.com/"+v, 1)
		body = `{"kind":"Rope",` + body[1:]
		for what, a := range map[string]answer{
			"POST": w.ask(t, "POST", ropesPath("v1"), body),
			"PUT":  w.ask(t, "PUT", ropesPath("v1")+"/good", body),
		} {
			if s := a.status(t); s.Code != 400 || s.Message != message || s.Reason != metav1.StatusReasonBadRequest {
				t.Errorf("%s of %s: %+v\nwant %s", what, v, s, message)
			}
		}
		a := w.ask(t, "PATCH", ropesPath("v1")+"/good", `{"apiVersion":"sea.example.com/`+v+`"}`, "Content-Type", mergePatchType)
		if s := a.status(t); s.Code != 422 || !strings.HasSuffix(s.Message, "}\": "+patched) {
			t.Errorf("PATCH of %s: %+v\nwant %s", v, s, patched)
		}
	}
	for method, path := range map[string]string{"GET": "", "POST": "", "PUT": "/good", "PATCH": "/good", "DELETE": "/good"} {
		a := w.ask(t, method, ropesPath("v2")+path, rope("v1", "good", "red", 1), "Content-Type", contentType(method))
		if s := a.status(t); a.code != 404 || s.Message != "the server could not find the requested resource" {
			t.Errorf("%s in a version that is not served: %d %s", method, a.code, a.body)
		}
	}
}

// A version that is registered, and not served any longer, can still be read.
func TestStoredVersionThatIsNotServed(t *testing.T) {
	t.Parallel()
	b := mixed(t)
	scheme := runtime.NewScheme()
	gvk := schema.GroupVersionKind{Group: "sea.example.com", Version: "v1alpha1", Kind: "Rope"}
	err := runtime.Register(scheme, gvk, runtime.KindOptions[*RopeV1Alpha1]{RenamedFields: map[string]string{"paint": "spec.color"}})
	if err != nil {
		t.Fatal(err)
	}
	g := ropes("", server.KindOptions[*Rope]{})
	g.Versions = g.Versions[1:]
	srv := servertest.Start(t, server.Options{Scheme: scheme, Storage: storage.Opened(b), Groups: []server.Group{g}})
	w := &wire{Server: srv, client: srv.Client()}
	w.ask(t, "GET", ropesPath("v1alpha1"), "").want(t, 404)
	wantRope(t, "GET", w.ask(t, "GET", ropesPath("v1beta1")+"/in-v1alpha1", ""), 200, ropeShown("v1beta1", "red", 2, ""))
	if got := w.names(t, "v1", "spec.color=red,spec.length=2"); got != "v1alpha1" {
		t.Errorf("selected: %q", got)
	}
}

// Every answer of a deprecated version has a warning, and none of another version.
func TestEveryVerbOfADeprecatedVersionWarns(t *testing.T) {
	t.Parallel()
	w := ropeServer(t, newLasting(t), "v1beta1", server.KindOptions[*Rope]{})
	for _, v := range ropeVersions {
		want := ""
		if v == "v1alpha1" {
			want = `299 - "sea.example.com/v1alpha1 Rope is deprecated"`
		}
		patch := map[string]string{"v1": `{"spec":{"length":3}}`, "v1beta1": `{"spec":{"length":"3m"}}`, "v1alpha1": `{"metres":3}`}[v]
		for _, c := range []struct {
			code               int
			method, path, body string
		}{
			{201, "POST", "", rope(v, "a", "red", 1)},
			{409, "POST", "", rope(v, "a", "red", 1)},
			{200, "GET", "/a", ""},
			{200, "GET", "", ""},
			{200, "GET", "?watch=1&timeoutSeconds=1&resourceVersion=1", ""},
			{200, "PUT", "/a", rope(v, "a", "red", 2)},
			{200, "PATCH", "/a", patch},
			{400, "PUT", "/a", "{"},
			{404, "GET", "/nobody", ""},
			{405, "PUT", "", ""},
			{200, "DELETE", "/a", ""},
			{200, "DELETE", "", ""},
		} {
			a := w.ask(t, c.method, ropesPath(v)+c.path, c.body, "Content-Type", contentType(c.method))
			if got := a.header.Get("Warning"); got != want || a.code != c.code || len(a.header.Values("Warning")) > 1 {
				t.Errorf("%s %s%s: code %d, want %d; warnings %q, want %q", c.method, v, c.path, a.code, c.code, a.header.Values("Warning"), want)
			}
		}
	}
	a := w.ask(t, "GET", "/apis/sea.example.com/v1alpha1", "")
	if a.code != http.StatusOK || a.header.Get("Warning") != "" {
		t.Errorf("discovery: %d, warning %q", a.code, a.header.Get("Warning"))
	}
}

func TestStoredVersionsThatAreRefused(t *testing.T) {
	t.Parallel()
	two := ropes("v1beta1", server.KindOptions[*Rope]{})
	two.Versions[2] = server.Version{Name: "v1", Resources: []server.Resource{server.Kind("Rope", server.KindOptions[*Rope]{
		Hub: true, Stored: true, SelectableFields: []string{"spec.color", "spec.length"},
	})}}
	kinds := func(hub server.KindOptions[*Rope], spoke server.KindOptions[*RopeV1Beta1]) server.Group {
		return server.Group{Name: "sea.example.com", Conversions: []server.Conversion{server.Convert(betaToHub, betaFromHub)}, Versions: []server.Version{
			{Name: "v1", Resources: []server.Resource{server.Kind("Rope", hub)}},
			{Name: "v1beta1", Resources: []server.Resource{server.Kind("Rope", spoke)}},
		}}
	}
	type hub = server.KindOptions[*Rope]
	type spoke = server.KindOptions[*RopeV1Beta1]
	colour := map[string]string{"spec.colour": "spec.color"}
	for name, c := range map[string]struct {
		group server.Group
		want  string
	}{
		"fine":               {kinds(hub{SelectableFields: []string{"spec.color"}}, spoke{RenamedFields: colour, Stored: true}), ""},
		"two":                {two, "Stored is set in the versions sea.example.com/v1 and sea.example.com/v1beta1, and a kind is stored in one"},
		"of its own":         {kinds(hub{Storage: moons{}}, spoke{Storage: moons{}, Stored: true}), "Stored"},
		"renamed to nothing": {kinds(hub{}, spoke{RenamedFields: colour}), `"spec.color" is no selectable field of the hub`},
		"renamed hub":        {kinds(hub{RenamedFields: map[string]string{"spec.color": "spec.colour"}}, spoke{}), "is the hub and has RenamedFields"},
		"renamed alone": {server.Group{Name: "sea.example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
			server.Kind("Rope", hub{RenamedFields: map[string]string{"spec.color": "spec.colour"}}),
		}}}}, "RenamedFields"},
		"another type": {kinds(hub{SelectableFields: []string{"spec.length"}}, spoke{RenamedFields: map[string]string{"spec.colour": "spec.length"}}), "an integer in the hub"},
	} {
		_, err := server.NewScheme(c.group)
		srv, err2 := server.New(server.Options{Groups: []server.Group{c.group}})
		if err2 == nil {
			err2 = srv.Close()
		}
		for _, err := range []error{err, err2} {
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s: %v\nwant %q", name, err, c.want)
			}
		}
	}
}
