package handlers_test

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/handlers"
)

// NewSpec is the spec of the second version, in which size is a text.
type NewSpec struct {
	Size  string `json:"size"`
	Shade string `json:"shade,omitempty"`
}

type NewWidget = runtime.Resource[NewSpec, WidgetStatus]

// newer serves the widgets of h in example.com/v2. A widget of the color "broken" cannot be converted to it.
func newer(t *testing.T) (old, young *house) {
	t.Helper()
	var o handlers.Options
	old = newHouse(t, tune{handlers: func(opts *handlers.Options) { o = *opts }})
	v2 := gv
	v2.Version = "v2"
	must(t, runtime.Register[*NewWidget](o.Scheme, v2.WithKind("Widget"), runtime.KindOptions[*NewWidget]{}))
	must(t, runtime.AddConversion(o.Scheme,
		func(in *NewWidget, out *Widget) error {
			n, err := strconv.ParseInt(in.Spec.Size, 10, 32)
			out.Spec, out.Status = WidgetSpec{Size: int32(n), Color: in.Spec.Shade}, in.Status
			return err
		},
		func(in *Widget, out *NewWidget) error {
			if in.Spec.Color == "broken" {
				return errors.New("broken beyond conversion")
			}
			out.Spec, out.Status = NewSpec{Size: strconv.Itoa(int(in.Spec.Size)), Shade: in.Spec.Color}, in.Status
			return nil
		}))
	o.Resource.Version, o.Kind.Version, o.Subresources = "v2", "v2", nil
	h, err := handlers.New(o)
	must(t, err)
	return old, &house{Handler: h, backend: old.backend, registry: old.registry, resource: h}
}

const base2 = "/apis/example.com/v2/namespaces/default/widgets"

func TestAnotherVersion(t *testing.T) {
	old, young := newer(t)
	w := young.ask("POST", base2, `{"kind":"Widget","apiVersion":"example.com/v2","metadata":{"name":"a"},"spec":{"size":"7","shade":"red"}}`)
	meta := old.metadata(t, "a")
	item := `"metadata":` + meta + `,"spec":{"size":"7","shade":"red"},"status":{}}`
	whole := `{"kind":"Widget","apiVersion":"example.com/v2",` + item
	wantBody(t, w, 201, whole+"\n")
	wantBody(t, young.ask("GET", base2+"/a", ""), 200, whole+"\n")
	wantBody(t, young.ask("GET", base2, ""), 200, `{"kind":"WidgetList","apiVersion":"example.com/v2","metadata":{"resourceVersion":"`+old.now(t)+`"},"items":[{`+item+"]}\n")
	if got := old.whole(t, "a"); !strings.Contains(got, `"spec":{"size":7,"color":"red","replicas":0}`) {
		t.Errorf("%s", got)
	}
	w = young.ask("GET", base2+"?includeObject=Object", "", asTable)
	if got := w.Body.String(); !strings.Contains(got, `"object":`+whole) {
		t.Errorf("%s", got)
	}
	w = young.ask("PATCH", base2+"/a", `[{"op":"replace","path":"/spec/size","value":"8"}]`, jsonType)
	if got := w.Body.String(); w.Code != 200 || !strings.Contains(got, `"spec":{"size":"8","shade":"red"}`) {
		t.Errorf("%d %s", w.Code, got)
	}
	w = young.ask("PUT", base2+"/a", `{"metadata":{"name":"a"},"spec":{"size":"x"}}`)
	wantStatus(t, w, 400, bad, decodeStatus(t, w.Body.Bytes()).Message)
}

func TestConversionThatFailsIsTheWholeAnswer(t *testing.T) {
	old, young := newer(t)
	old.makeLarge(t, 30)
	if w := old.ask("POST", base, `{"metadata":{"name":"z"},"spec":{"color":"broken"}}`); w.Code != 201 {
		t.Fatal(w.Body)
	}
	for _, target := range []string{base2, base2 + "/z"} {
		w := young.ask("GET", target, "")
		if s := decodeStatus(t, w.Body.Bytes()); w.Code != http.StatusInternalServerError || !strings.Contains(s.Message, "broken beyond conversion") {
			t.Errorf("%d %+v", w.Code, s)
		}
	}
	if w := young.ask("GET", base2+"?limit=30", ""); w.Code != 200 {
		t.Errorf("the others: %d", w.Code)
	}
	if w := young.ask("GET", base2, "", asPartialList); w.Code != 200 {
		t.Errorf("metadata needs no conversion: %d", w.Code)
	}
	if w := old.ask("GET", base, ""); w.Code != 200 {
		t.Errorf("in its own version: %d", w.Code)
	}
}

func TestWatchInAnotherVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, young := newer(t)
		s, done, stop := young.watching(base2 + "?watch=1")
		defer stop()
		synctest.Wait()
		old.make(t, "a")
		want := frame("ADDED", `{"kind":"Widget","apiVersion":"example.com/v2","metadata":`+old.metadata(t, "a")+`,"spec":{"size":"1"},"status":{}}`)
		synctest.Wait()
		wantWatch(t, s, want)
		old.ask("POST", base, `{"metadata":{"name":"z"},"spec":{"color":"broken"}}`)
		<-done
		if got := strings.TrimPrefix(s.text(), want); !strings.HasPrefix(got, `{"type":"ERROR","object":{"kind":"Status",`) || !strings.Contains(got, `"code":500`) {
			t.Errorf("%s", got)
		}
	})
}

// The empty object of a bookmark cannot be converted, and is not converted.
func TestWatchTableBookmarkInAnotherVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, young := newer(t)
		s, _, stop := young.watching(base2+"?watch=1&allowWatchBookmarks=1", asTable)
		defer stop()
		other, _, stopOther := young.watching(base2 + "?watch=1&allowWatchBookmarks=1")
		defer stopOther()
		synctest.Wait()
		if got := s.text(); !strings.HasPrefix(got, `{"type":"BOOKMARK",`) || !strings.Contains(got, `k8s.io/initial-events-end`) {
			t.Errorf("%s", got)
		}
		rv := young.now(t)
		wantWatch(t, other, frame("BOOKMARK", `{"kind":"Widget","apiVersion":"example.com/v2","metadata":{"resourceVersion":"`+rv+`","annotations":{"k8s.io/initial-events-end":"true"}},"spec":{"size":""},"status":{}}`))
	})
}
