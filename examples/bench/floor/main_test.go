package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/examples/bench/internal/programtest"
	"github.com/keelson-dev/keelson/examples/bench/internal/widget"
)

const (
	objects = 1234
	all     = "/apis/bench.example.com/v1/widgets"
)

func TestMain(m *testing.M) { os.Exit(programtest.Main(m, main)) }

func start(t *testing.T) *programtest.Process {
	t.Helper()
	return programtest.Start(t, "-addr", "127.0.0.1:0", "-token", "secret", "-objects", fmt.Sprint(objects))
}

func pathOf(i int) string {
	return "/apis/bench.example.com/v1/namespaces/" + widget.Namespace(i) + "/widgets/" + widget.Name(i)
}

func listed(t *testing.T, body string) *widget.WidgetList {
	t.Helper()
	list := new(widget.WidgetList)
	if err := json.Unmarshal([]byte(body), list); err != nil {
		t.Fatal(err)
	}
	if list.Kind != "WidgetList" || list.ResourceVersion == "" {
		t.Errorf("the list is %+v %+v", list.TypeMeta, list.ListMeta)
	}
	return list
}

// TestGet checks that each widget is the same as on the other servers.
func TestGet(t *testing.T) {
	p := start(t)
	for _, i := range []int{0, 1, 77, objects - 1} {
		answer := p.Get(pathOf(i)).Want(http.StatusOK)
		want := string(widget.Stored(widget.Namespace(i), i, int64(i+2))) + "\n"
		if answer.Body != want || answer.Header.Get("Content-Type") != "application/json" {
			t.Errorf("widget %d is %s %s\nwant %s", i, answer.Header, answer.Body, want)
		}
	}
	p.Get(pathOf(objects)).Want(http.StatusNotFound)
	p.Get("/apis/bench.example.com/v1/gadgets").Want(http.StatusNotFound)
	p.Do(http.MethodDelete, pathOf(1), "", "").Want(http.StatusMethodNotAllowed)
	p.WithToken("").Get("/readyz").Want(http.StatusOK)
	for _, token := range []string{"", "guess"} {
		p.WithToken(token).Get(pathOf(1)).Want(http.StatusUnauthorized)
		p.WithToken(token).Get(all).Want(http.StatusUnauthorized)
	}
}

// TestList checks that the whole list, the compressed one, the pages and the lists by label have the same widgets.
func TestList(t *testing.T) {
	p := start(t)
	plain := p.Get(all).Want(http.StatusOK).Body
	whole := listed(t, plain)
	if len(whole.Items) != objects {
		t.Fatalf("%d widgets, want %d", len(whole.Items), objects)
	}
	for _, w := range whole.Items {
		if w.Kind != "" || w.APIVersion != "" {
			t.Fatalf("an item of a list has its kind: %+v", w.TypeMeta)
		}
	}
	if any := p.Get(all + "?resourceVersion=0").Want(http.StatusOK).Body; any != plain {
		t.Error("a list at any revision is another one")
	}
	packed := p.Get(all, "Accept-Encoding", "gzip").Want(http.StatusOK)
	z, err := gzip.NewReader(strings.NewReader(packed.Body))
	if err != nil || packed.Header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("%v: %v", err, packed.Header)
	}
	if text, err := io.ReadAll(z); err != nil || !bytes.Equal(text, []byte(plain)) {
		t.Errorf("unpacked it is another list: %d bytes, want %d; %v", len(text), len(plain), err)
	}
	var paged []widget.Widget
	for next := ""; ; {
		page := listed(t, p.Get(all+"?limit=500&continue="+next).Want(http.StatusOK).Body)
		if paged = append(paged, page.Items...); len(page.Items) > 500 || len(paged) > objects {
			t.Fatalf("a page of %d, %d in all", len(page.Items), len(paged))
		}
		if next = page.Continue; next == "" {
			break
		}
		if len(page.Items) != 500 {
			t.Errorf("a page of %d, and there is another one", len(page.Items))
		}
	}
	if !reflect.DeepEqual(paged, whole.Items) {
		t.Error("the pages are not the list")
	}
	seen := 0
	for group := range widget.Groups {
		name := fmt.Sprintf("g-%02d", group)
		list := listed(t, p.Get(all+"?labelSelector=group%3D"+name).Want(http.StatusOK).Body)
		for _, w := range list.Items {
			if w.Labels["group"] != name {
				t.Fatalf("%s is in %s, and not in %s", w.Name, w.Labels["group"], name)
			}
		}
		seen += len(list.Items)
	}
	if seen != objects {
		t.Errorf("%d widgets are in groups, want %d", seen, objects)
	}
	p.Get(all + "?limit=none").Want(http.StatusBadRequest)
	p.Get(all + "?limit=5&continue=x").Want(http.StatusBadRequest)
	p.Get(all + "?labelSelector=other%3Dg").Want(http.StatusNotFound)
}

// TestWatch checks that every watch receives every write in order, and ends with the program.
func TestWatch(t *testing.T) {
	p := start(t)
	var watches []*programtest.Watch
	for range 3 {
		watches = append(watches, p.Watch(all+"?watch=1&resourceVersion=1&allowWatchBookmarks=true"))
	}
	for i := range 20 {
		method := []string{http.MethodPut, http.MethodPatch}[i%2]
		p.Do(method, pathOf(i), "application/json", "{}").Want(http.StatusOK, widget.Name(i))
	}
	for _, w := range watches {
		for i := range 20 {
			kind, object := w.Next()
			if want := widget.Stored(widget.Namespace(i), i, int64(i+2)); kind != "MODIFIED" || !bytes.Equal(object, want) {
				t.Fatalf("event %d is %s %s\nwant MODIFIED %s", i, kind, object, want)
			}
		}
	}
	p.Stop().Want(0)
	for _, w := range watches {
		if kind, _ := w.Next(); kind != "" {
			t.Errorf("a watch goes on with %s", kind)
		}
	}
}

// TestFeed checks that a watch that is behind receives everything that it has missed.
func TestFeed(t *testing.T) {
	f := newFeed()
	f.tell(7)
	at := f.now()
	for i := range 3 {
		f.tell(i)
	}
	got, err := f.next(t.Context(), at)
	if err != nil || !slices.Equal(got, []int{0, 1, 2}) {
		t.Errorf("the watch is told %v, %v", got, err)
	}
	if err := f.end(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.next(t.Context(), at+3); !errors.Is(err, errEnded) {
		t.Errorf("at the end: %v", err)
	}
}

// TestNobody checks that without a token every request is refused.
func TestNobody(t *testing.T) {
	p := programtest.Start(t, "-addr", "127.0.0.1:0", "-objects", "1")
	p.Get("/readyz").Want(http.StatusOK)
	p.Get(all).Want(http.StatusUnauthorized)
	p.Get(all, "Authorization", "Bearer ").Want(http.StatusUnauthorized)
}

func TestMisuse(t *testing.T) {
	programtest.Run(t, "-objects", "0").Want(2, "floor: -objects is 0")
}
