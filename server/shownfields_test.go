package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/storage/memory"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// shout converts between v1, which has spec.color, and v2, which has spec.colour in upper case.
func shout(u *unstructured.Unstructured, to schema.GroupVersion) (*unstructured.Unstructured, error) {
	spec, _ := u.Object["spec"].(map[string]any)
	switch text, ok := spec["color"].(string); {
	case ok && to.Version == "v2":
		delete(spec, "color")
		spec["colour"] = strings.ToUpper(text)
	case to.Version == "v1":
		if text, ok := spec["colour"].(string); ok {
			delete(spec, "colour")
			spec["color"] = strings.ToLower(text)
		}
	}
	u.SetAPIVersion(to.String())
	return u, nil
}

// selectableShapes returns shapes with a selectable field in each version.
func selectableShapes(change func(o *untypedOptions, version int)) server.Group {
	return shapes(func(o *untypedOptions, version int) {
		o.SelectableFields = [][]string{nil, {"spec.color"}, {"spec.colour"}}[version]
		change(o, version)
	}, specFields{"color": nil}, specFields{"colour": nil})
}

// shownShape is a shape as a version shows it.
type shownShape struct {
	Metadata metav1.ObjectMeta
	Spec     struct{ Color, Colour string }
}

type shownEvent struct {
	Type   string
	Object shownShape
}

func (e shownEvent) String() string {
	return fmt.Sprint(e.Type, " ", e.Object.Metadata.Name, "@", e.Object.Metadata.ResourceVersion, " ", e.Object.Spec)
}

// eventsUntil reads a watch up to the event with a resourceVersion.
func eventsUntil(t *testing.T, srv *servertest.Server, path, last string) (out []shownEvent) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", srv.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		var e shownEvent
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil || e.Type == "ERROR" {
			t.Fatalf("%s: %s", path, lines.Text())
		}
		if out = append(out, e); e.Object.Metadata.ResourceVersion == last {
			return out
		}
	}
	t.Fatalf("%s ended before %s", path, last)
	return nil
}

// filtered returns the events that a watch with a selector has, where one without has all.
func filtered(all []shownEvent, before map[string]shownShape, matches func(shownShape) bool) (out []shownEvent) {
	shown := map[string]shownShape{}
	for name, o := range before {
		shown[name] = o
	}
	for _, e := range all {
		name := e.Object.Metadata.Name
		was, there := shown[name]
		matched, is := there && matches(was), e.Type != "DELETED" && matches(e.Object)
		switch {
		case is && matched:
			e.Type = "MODIFIED"
			out = append(out, e)
		case is:
			out = append(out, shownEvent{"ADDED", e.Object})
		case matched:
			gone := was
			gone.Metadata.ResourceVersion = e.Object.Metadata.ResourceVersion
			out = append(out, shownEvent{"DELETED", gone})
		}
		if shown[name] = e.Object; e.Type == "DELETED" {
			delete(shown, name)
		}
	}
	return out
}

func shownList(t *testing.T, srv *servertest.Server, path string) (items []shownShape, meta metav1.ListMeta) {
	t.Helper()
	var list struct {
		Metadata metav1.ListMeta
		Items    []shownShape
	}
	code, text := untypedText(t, srv, "GET", path, "", "")
	if err := json.Unmarshal([]byte(text), &list); err != nil || code != 200 {
		t.Fatalf("%s: %d %s", path, code, text)
	}
	return list.Items, list.Metadata
}

// A list and a watch with a field selector have what the selector selects of a list and a watch without one, in every version,
// whatever converts and whichever version is stored.
func TestSelectorsReadWhatAVersionShows(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(o *untypedOptions, version int){
		"function":               func(o *untypedOptions, _ int) { o.Convert = shout },
		"function, v2 is stored": func(o *untypedOptions, v int) { o.Convert, o.Stored = shout, v == 2 },
		"many":                   func(o *untypedOptions, _ int) { o.ConvertAll = shoutAll },
		"many, v2 is stored":     func(o *untypedOptions, v int) { o.ConvertAll, o.Stored = shoutAll, v == 2 },
		"many, no cache":         func(o *untypedOptions, v int) { o.ConvertAll, o.NoCache = shoutAll, v == 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := servertest.New(t, selectableShapes(change))
			r := rand.New(rand.NewPCG(3, 4))
			for range 12 {
				selectorRound(t, srv, r)
			}
		})
	}
}

// selectorRound makes some changes and compares lists and watches of them.
func selectorRound(t *testing.T, srv *servertest.Server, r *rand.Rand) {
	t.Helper()
	before := map[int]map[string]shownShape{1: {}, 2: {}}
	began := ""
	for version := range before {
		items, meta := shownList(t, srv, shapePath(version))
		for _, o := range items {
			before[version][o.Metadata.Name] = o
		}
		began = meta.ResourceVersion
	}
	last := shapeChanges(t, srv, r, before[1])
	for version, field := range map[int]string{1: "spec.color", 2: "spec.colour"} {
		red := map[int]string{1: "red", 2: "RED"}[version]
		isRed := func(o shownShape) bool { return o.Spec.Color+o.Spec.Colour == red }
		for query, matches := range map[string]func(shownShape) bool{
			"fieldSelector=" + field + "%3D" + red:                        isRed,
			"fieldSelector=" + field + "%21%3D" + red:                     func(o shownShape) bool { return !isRed(o) },
			"fieldSelector=metadata.name%21%3Dx3," + field + "%3D" + red:  func(o shownShape) bool { return isRed(o) && o.Metadata.Name != "x3" },
			"labelSelector=l%3Da&fieldSelector=" + field + "%3D" + red:    func(o shownShape) bool { return isRed(o) && o.Metadata.Labels["l"] == "a" },
			"fieldSelector=metadata.name%3Dzz," + field + "%21%3D" + "ec": func(o shownShape) bool { return o.Metadata.Name == "zz" },
		} {
			path := shapePath(version) + "?" + query
			all, _ := shownList(t, srv, shapePath(version))
			want := slices.DeleteFunc(all, func(o shownShape) bool { return !matches(o) })
			for _, limit := range []int{0, 1, 3, 500} {
				if got := allPages(t, srv, path, limit); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Fatalf("%s, limit %d: %v\nwant %v", path, limit, got, want)
				}
			}
			if strings.Contains(query, "labelSelector") {
				continue // the last change has no label
			}
			events := eventsUntil(t, srv, shapePath(version)+"?watch=true&resourceVersion="+began, last)
			got := eventsUntil(t, srv, path+"&watch=true&resourceVersion="+began, last)
			if want := filtered(events, before[version], matches); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("%s from %s: %v\nwant %v", path, began, got, want)
			}
		}
	}
}

// allPages returns the objects of a list that is read by pages.
func allPages(t *testing.T, srv *servertest.Server, path string, limit int) (all []shownShape) {
	t.Helper()
	query := path + fmt.Sprint("&limit=", limit)
	for at := query; ; {
		items, meta := shownList(t, srv, at)
		if limit > 0 && len(items) > limit || meta.RemainingItemCount != nil {
			t.Errorf("%s: %d items, %v remain", at, len(items), meta.RemainingItemCount)
		}
		all = append(all, items...)
		if meta.Continue == "" {
			return all
		}
		at = query + "&continue=" + meta.Continue
	}
}

// shapeChanges makes random changes, and at the end makes zz red and then blue. It returns the resourceVersion of that.
func shapeChanges(t *testing.T, srv *servertest.Server, r *rand.Rand, there map[string]shownShape) (last string) {
	t.Helper()
	exists := map[string]bool{}
	for name := range there {
		exists[name] = true
	}
	set := func(name, color string) {
		body := fmt.Sprintf(`{"metadata":{"labels":{"l":%q}},"spec":{"color":%q}}`, string("ab"[r.IntN(2)]), color)
		if name == "zz" {
			body = fmt.Sprintf(`{"spec":{"color":%q}}`, color)
		}
		var got map[string]any
		if exists[name] {
			got = untypedAsk(t, srv, "PATCH", shapePath(1)+"/"+name, "application/merge-patch+json", body, 200)
		} else {
			got = untypedAsk(t, srv, "POST", shapePath(1), "application/json", shape(1, name, fmt.Sprintf(`,"spec":{"color":%q}`, color)), 201)
		}
		exists[name] = true
		last, _ = got["metadata"].(map[string]any)["resourceVersion"].(string)
	}
	for range r.IntN(15) {
		name := fmt.Sprint("x", r.IntN(8))
		if exists[name] && r.IntN(4) == 0 {
			untypedAsk(t, srv, "DELETE", shapePath(2)+"/"+name, "", "", 200)
			delete(exists, name)
			continue
		}
		set(name, []string{"red", "blue", "green"}[r.IntN(3)])
	}
	set("zz", "red")
	set("zz", "blue")
	return last
}

func shoutAll(_ context.Context, in []*unstructured.Unstructured, to schema.GroupVersion) ([]*unstructured.Unstructured, error) {
	for _, u := range in {
		if _, err := shout(u, to); err != nil {
			return nil, err
		}
	}
	return in, nil
}

// TestSelectorsConvertManyAtOnce selects few of 1,100 objects in the version that is not stored.
func TestSelectorsConvertManyAtOnce(t *testing.T) {
	t.Parallel()
	const n, each = 1100, 50
	r := &repainter{}
	srv := servertest.New(t, selectableShapes(func(o *untypedOptions, _ int) { o.ConvertAll = r.convert }))
	for i := range n {
		color := "red"
		if i%each == 0 {
			color = "blue"
		}
		untypedAsk(t, srv, "POST", shapePath(1), "application/json", shape(1, fmt.Sprintf("x%04d", i), fmt.Sprintf(`,"spec":{"color":%q}`, color)), 201)
	}
	r.spent()
	path := shapePath(2) + "?fieldSelector=spec.colour%3Dblue"
	if items, _ := shownList(t, srv, path); len(items) != n/each {
		t.Errorf("%d items", len(items))
	}
	if calls, objects := r.spent(); calls > 5 || objects > n+n/each {
		t.Errorf("a list: %d calls for %d objects", calls, objects)
	}
	for _, query := range []string{"", "&limit=5", "&limit=1000"} {
		if items := allPages(t, srv, path+query, 500); len(items) != n/each {
			t.Errorf("%q: %d items", query, len(items))
		}
		if calls, objects := r.spent(); calls > n/each || objects > 2*n/each { // those that match
			t.Errorf("%q: another list: %d calls for %d objects", query, calls, objects)
		}
	}
	untypedAsk(t, srv, "DELETE", path, "", "", 200)
	if items, _ := shownList(t, srv, path); len(items) != 0 {
		t.Errorf("%d items were not deleted", len(items))
	}
	if items, _ := shownList(t, srv, shapePath(1)); len(items) != n-n/each {
		t.Errorf("%d items are left", len(items))
	}
}

// TestSelectorsShareConversions changes objects that many watches with selectors look at.
func TestSelectorsShareConversions(t *testing.T) {
	t.Parallel()
	const watches, rounds = 10, 20
	r := &repainter{}
	srv := servertest.New(t, selectableShapes(func(o *untypedOptions, _ int) { o.ConvertAll = r.convert }))
	untypedAsk(t, srv, "POST", shapePath(1), "application/json", shape(1, "x", `,"spec":{"color":"red"}`), 201)
	_, meta := shownList(t, srv, shapePath(1))
	path := shapePath(2) + "?fieldSelector=spec.colour%3Dred&watch=true&resourceVersion=" + meta.ResourceVersion
	var streams []*bufio.Scanner
	for range watches {
		req, err := http.NewRequestWithContext(t.Context(), "GET", srv.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		streams = append(streams, bufio.NewScanner(resp.Body))
	}
	r.spent()
	for i := range rounds {
		color := []string{"blue", "red"}[i%2]
		untypedAsk(t, srv, "PATCH", shapePath(1)+"/x", "application/merge-patch+json", fmt.Sprintf(`{"spec":{"color":%q}}`, color), 200)
		for _, s := range streams {
			if s.Scan(); !strings.Contains(s.Text(), []string{"DELETED", "ADDED"}[i%2]) {
				t.Fatalf("%d: %s", i, s.Text())
			}
		}
	}
	// Each event is converted once to find its field, and once for its text.
	if _, objects := r.spent(); objects > 3*rounds {
		t.Errorf("%d objects were converted for %d events", objects, rounds)
	}
}

// TestSelectorsOfWhatCannotBeConverted checks that a conversion that fails has the same errors with a selector as without.
func TestSelectorsOfWhatCannotBeConverted(t *testing.T) {
	t.Parallel()
	r := &repainter{}
	srv := servertest.New(t, selectableShapes(func(o *untypedOptions, _ int) { o.ConvertAll = r.convert }))
	untypedAsk(t, srv, "POST", shapePath(1), "application/json", shape(1, "x", `,"spec":{"color":"red"}`), 201)
	r.set(true, nil)
	const sel = "fieldSelector=spec.colour%3Dblue"
	for _, c := range []struct{ method, query string }{
		{"GET", ""}, {"GET", "limit=1"}, {"GET", "resourceVersion=0"}, {"DELETE", ""}, {"GET", "watch=true&resourceVersion=0&timeoutSeconds=60"},
	} {
		code, text := untypedText(t, srv, c.method, shapePath(2)+"?"+c.query, "", "")
		gotCode, got := untypedText(t, srv, c.method, shapePath(2)+"?"+sel+"&"+c.query, "", "")
		if code != gotCode || text != got || !strings.Contains(text, "out of paint") {
			t.Errorf("%s %s: %d %s\nwithout a selector %d %s", c.method, c.query, gotCode, got, code, text)
		}
	}
	untypedAsk(t, srv, "GET", shapePath(1)+"/x", "", "", 200)
	untypedAsk(t, srv, "GET", shapePath(1)+"?fieldSelector=spec.color%3Dred", "", "", 200)
}

// TestWatchesEndWhileAConversionHangs checks that a watch ends after its timeoutSeconds, whether it converts an object itself or
// waits for another request that does.
func TestWatchesEndWhileAConversionHangs(t *testing.T) {
	t.Parallel()
	r := &repainter{}
	srv := servertest.New(t, selectableShapes(func(o *untypedOptions, _ int) { o.ConvertAll = r.convert }))
	untypedAsk(t, srv, "POST", shapePath(1), "application/json", shape(1, "x", `,"spec":{"color":"red"}`), 201)
	_, meta := shownList(t, srv, shapePath(1))
	untypedAsk(t, srv, "PATCH", shapePath(1)+"/x", "application/merge-patch+json", `{"spec":{"color":"blue"}}`, 200)
	for _, query := range []string{"?watch=true", "?fieldSelector=spec.colour%3Dblue&watch=true"} {
		entered := make(chan context.Context, 100)
		r.set(false, entered)
		path := shapePath(2) + query + "&resourceVersion=" + meta.ResourceVersion
		ctx, leave := context.WithCancel(t.Context())
		long := make(chan struct{})
		go func() {
			defer close(long)
			req, err := http.NewRequestWithContext(ctx, "GET", srv.URL+path+"&timeoutSeconds=3000", nil)
			if err != nil {
				t.Error(err)
				return
			}
			if resp, err := srv.Client().Do(req); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		}()
		<-entered                                                                  // the long watch converts the object
		code, text := untypedText(t, srv, "GET", path+"&timeoutSeconds=1", "", "") // hangs if the watch waits for the long one
		if code != 200 || text != "" {
			t.Errorf("%s: %d %s", query, code, text)
		}
		select {
		case <-long:
			t.Errorf("%s: the long watch has ended", query)
		default:
		}
		leave()
		<-long
	}
}

// TestShownFieldsAreNotIndexed refuses options that could not be kept.
func TestShownFieldsAreNotIndexed(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(o *untypedOptions, version int){
		`IndexFields: "spec.colour" is compared as this version shows it`: func(o *untypedOptions, version int) {
			if o.Convert = shout; version == 2 {
				o.IndexFields = o.SelectableFields
			}
		},
		`IndexFields: "spec.color" is compared as this version shows it`: func(o *untypedOptions, version int) {
			if o.Convert = shout; version == 1 {
				o.ShownFields, o.IndexFields = o.SelectableFields, o.SelectableFields
			}
		},
		`ShownFields: "spec.size" cannot be selected by`: func(o *untypedOptions, _ int) { o.Convert, o.ShownFields = shout, []string{"spec.size"} },
	} {
		if _, err := server.New(server.Options{Groups: []server.Group{selectableShapes(change)}, Storage: memory.Open()}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
