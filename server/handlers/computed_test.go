package handlers_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/handlers"
	"github.com/keelson-dev/keelson/server/registry"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// readings is a resource without a backend: it computes its objects.
type readings struct{ names []string }

func (r readings) Get(_ *registry.Call, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	for i, n := range r.names {
		if n == name {
			return reading(n, i), nil
		}
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: gv.Group, Resource: "widgets"}, name)
}

func (r readings) List(_ *registry.Call, opts *metav1.ListOptions) (runtime.Object, error) {
	list := &runtime.List[Widget]{}
	for i, n := range r.names {
		if opts.FieldSelector == "" || opts.FieldSelector == "metadata.name="+n {
			list.Items = append(list.Items, *reading(n, i))
		}
	}
	return list, nil
}

func reading(name string, size int) *Widget {
	w := &Widget{Spec: WidgetSpec{Size: int32(size)}}
	w.Name = name
	w.Kind, w.APIVersion = "Widget", gv.String()
	return w
}

func serve(t *testing.T, storage any, change func(*handlers.Options)) *house {
	t.Helper()
	scheme := runtime.NewScheme()
	must(t, runtime.Register[*Widget](scheme, gv.WithKind("Widget"), runtime.KindOptions[*Widget]{}))
	o := handlers.Options{Scheme: scheme, Resource: gv.WithResource("widgets"), Kind: gv.WithKind("Widget"), Storage: storage}
	if change != nil {
		change(&o)
	}
	h, err := handlers.New(o)
	must(t, err)
	return &house{Handler: h, resource: h}
}

func TestComputedReadOnly(t *testing.T) {
	h := serve(t, readings{[]string{"x", "y"}}, nil)
	if got := strings.Join(h.resource.Verbs(""), " "); got != "get list" {
		t.Errorf("verbs %s", got)
	}
	const x, y = `"metadata":{"name":"x"},"spec":{"size":0,"replicas":0},"status":{}}`, `"metadata":{"name":"y"},"spec":{"size":1,"replicas":0},"status":{}}`
	const head = `{"kind":"Widget","apiVersion":"example.com/v1",`
	const list = `{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":{},"items":[`
	wantBody(t, h.ask("GET", all+"/y", ""), 200, head+y+"\n")
	wantBody(t, h.ask("GET", all, ""), 200, list+"{"+x+",{"+y+"]}\n")
	wantBody(t, h.ask("GET", all+"?fieldSelector=metadata.name%3D%3Dy", ""), 200, list+"{"+y+"]}\n")
	wantBody(t, serve(t, readings{}, nil).ask("GET", all, ""), 200, list+"]}\n")
	wantStatus(t, h.ask("GET", all+"/z", ""), 404, metav1.StatusReasonNotFound, `widgets.example.com "z" not found`)
	wantBody(t, h.ask("GET", all, "", asPartialList), 200, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{},"items":[`+partial("v1", `{"name":"x"}`)+","+partial("v1", `{"name":"y"}`)+"]}\n")
	w := h.ask("GET", all+"/y?includeObject=None", "", asTable)
	if got := w.Body.String(); !strings.HasSuffix(got, `"rows":[{"cells":["y","\u003cunknown\u003e"],"object":null}]}`+"\n") {
		t.Errorf("%s", got)
	}
	for method, verb := range map[string]string{"PUT": "update", "PATCH": "patch", "DELETE": "delete"} {
		wantStatus(t, h.ask(method, all+"/x", `{}`), 405, metav1.StatusReasonMethodNotAllowed, verb+` is not supported on resources of kind "widgets.example.com"`)
	}
	wantStatus(t, h.ask("POST", all, `{}`), 405, metav1.StatusReasonMethodNotAllowed, `create is not supported on resources of kind "widgets.example.com"`)
	wantStatus(t, h.ask("GET", all+"?watch=1", ""), 405, metav1.StatusReasonMethodNotAllowed, `watch is not supported on resources of kind "widgets.example.com"`)
}

func TestComputedOfAKindOutsideTheScheme(t *testing.T) {
	h := serve(t, readings{[]string{"x"}}, func(o *handlers.Options) { o.Scheme = runtime.NewScheme(); o.Kind.Kind = "Reading" })
	wantBody(t, h.ask("GET", all+"/x", ""), 200, `{"kind":"Reading","apiVersion":"example.com/v1","metadata":{"name":"x"},"spec":{"size":0,"replicas":0},"status":{}}`+"\n")
}

// reviews returns each object that it receives, and stores none.
type reviews struct{}

func (reviews) Create(_ *registry.Call, obj runtime.Object, _ *metav1.CreateOptions) (runtime.Object, error) {
	w := obj.(*Widget)
	w.Status.Ready = w.Spec.Size > 0
	return w, nil
}

func TestComputedReview(t *testing.T) {
	h := serve(t, reviews{}, nil)
	wantBody(t, h.ask("POST", all, `{"spec":{"size":1}}`), 201, `{"kind":"Widget","apiVersion":"example.com/v1","metadata":{},"spec":{"size":1,"replicas":0},"status":{"ready":true}}`+"\n")
	wantStatus(t, h.ask("GET", all, ""), 405, metav1.StatusReasonMethodNotAllowed, `list is not supported on resources of kind "widgets.example.com"`)
}

// ticks is a resource that can only be watched.
type ticks struct{ events chan registry.ObjectEvent }

func (c ticks) Watch(*registry.Call, *metav1.ListOptions) (registry.ObjectWatch, error) {
	return c, nil
}
func (c ticks) Close() {}

func (c ticks) Next(ctx context.Context) (registry.ObjectEvent, error) {
	select {
	case e := <-c.events:
		if e.Object == nil {
			return e, apierrors.NewResourceExpired("too old")
		}
		return e, nil
	case <-ctx.Done():
		return registry.ObjectEvent{}, ctx.Err()
	}
}

func TestComputedWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := ticks{make(chan registry.ObjectEvent)}
		h := serve(t, c, nil)
		s, done, stop := h.watching(all + "?watch=1&allowWatchBookmarks=1&timeoutSeconds=9")
		defer stop()
		c.events <- registry.ObjectEvent{Type: "ADDED", Object: reading("x", 3)}
		marked := reading("ignored", 9)
		marked.ResourceVersion = "opaque"
		c.events <- registry.ObjectEvent{Type: "BOOKMARK", Object: marked}
		c.events <- registry.ObjectEvent{}
		<-done
		wantWatch(t, s, frame("ADDED", `{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"x"},"spec":{"size":3,"replicas":0},"status":{}}`)+mark("opaque", false)+
			frame("ERROR", `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old","reason":"Expired","code":410}`))
	})
}

// columned is ticks with a column that needs a default.
type columned struct{ ticks }

func (columned) Columns() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name"}, {Name: "Color", Type: "string"}}
}

func (columned) Row(_ context.Context, obj runtime.Object) ([]any, error) {
	w := obj.(*Widget)
	return []any{w.Name, w.Spec.Color[:1]}, nil
}

// The empty object of a bookmark has no defaults. If a Tabler panics on it, its cells are nil.
func TestTableOfABookmarkThatHasNoRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := columned{ticks{make(chan registry.ObjectEvent)}}
		h := serve(t, c, nil)
		s, done, stop := h.watching(all+"?watch=1&allowWatchBookmarks=1&timeoutSeconds=9", asTable)
		defer stop()
		x := reading("x", 3)
		x.Spec.Color = "red"
		c.events <- registry.ObjectEvent{Type: "ADDED", Object: x}
		c.events <- registry.ObjectEvent{Type: "BOOKMARK", Object: reading("ignored", 9)}
		c.events <- registry.ObjectEvent{}
		<-done
		if got := s.text(); !strings.Contains(got, `"cells":["x","r"]`) || !strings.Contains(got, `"cells":[null,null]`) {
			t.Errorf("%s", got)
		}
	})
}

// shades is a computed resource with a selectable field, which it checks itself.
type shades struct{}

func (shades) List(_ *registry.Call, opts *metav1.ListOptions) (runtime.Object, error) {
	red, blue := reading("red", 1), reading("blue", 2)
	if strings.Contains(opts.FieldSelector, "spec.color=blue") {
		return &runtime.List[Widget]{Items: []Widget{*blue}}, nil
	}
	return &runtime.List[Widget]{Items: []Widget{*red, *blue}}, nil
}

func TestComputedListWithASelectableField(t *testing.T) {
	h := serve(t, shades{}, func(o *handlers.Options) {
		o.Scheme = runtime.NewScheme()
		must(t, runtime.Register[*Widget](o.Scheme, gv.WithKind("Widget"), runtime.KindOptions[*Widget]{SelectableFields: []string{"spec.color"}}))
	})
	for selector, want := range map[string]string{
		"": "red blue", "spec.color=blue": "blue", "spec.color=blue,metadata.name=red": "", "metadata.name!=red": "blue", "spec.color!=blue,metadata.name=red": "red",
	} {
		w := h.ask("GET", all+"?fieldSelector="+url.QueryEscape(selector), "")
		var list runtime.List[Widget]
		if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", selector, w.Code, w.Body)
		}
		var names []string
		for _, item := range list.Items {
			names = append(names, item.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%q chooses %q, want %q", selector, got, want)
		}
	}
}

// echo connects every request to a handler that writes the request.
type echo struct{}

func (echo) ConnectMethods() []string { return []string{"GET", "POST"} }

func (echo) Connect(_ *registry.Call, name, subpath string, _ *http.Request) (http.Handler, error) {
	if name == "none" {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "widgets"}, name)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, r.Method+" "+name+" "+subpath+" "+string(body))
	}), nil
}

func TestConnect(t *testing.T) {
	h := serve(t, readings{[]string{"x"}}, func(o *handlers.Options) {
		o.Subresources = map[string]handlers.Subresource{"proxy": {Storage: echo{}}}
	})
	if got := strings.Join(h.resource.Verbs("proxy"), " "); got != "create get" {
		t.Errorf("verbs %s", got)
	}
	for target, want := range map[string]string{
		"/x/proxy": "POST x  hi", "/x/proxy/": "POST x / hi", "/x/proxy/a/b": "POST x /a/b hi", "/x/proxy/a/b/": "POST x /a/b/ hi",
	} {
		wantBody(t, h.ask("POST", all+target, "hi"), 200, want)
	}
	wantBody(t, h.ask("GET", all+"/x/proxy/a?b=c", ""), 200, "GET x /a ")
	wantStatus(t, h.ask("GET", all+"/x/proxy?dryRun=All", ""), 400, bad, "dryRun is not supported")
	wantStatus(t, h.ask("GET", all+"/none/proxy", ""), 404, metav1.StatusReasonNotFound, `widgets "none" not found`)
	for _, target := range []string{"/x/proxy", "/x/proxy/a"} {
		wantStatus(t, h.ask("DELETE", all+target, ""), 405, metav1.StatusReasonMethodNotAllowed, `delete is not supported on resources of kind "widgets.example.com"`)
	}
}

// binding is created at the path of its widget.
func TestCreateAtASubresource(t *testing.T) {
	h := serve(t, readings{[]string{"x"}}, func(o *handlers.Options) {
		o.Subresources = map[string]handlers.Subresource{"binding": {Storage: reviews{}}}
	})
	wantBody(t, h.ask("POST", all+"/x/binding", `{}`), 201, `{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"x"},"spec":{"size":0,"replicas":0},"status":{}}`+"\n")
	wantStatus(t, h.ask("POST", all+"/x/binding", `{"metadata":{"name":"y"}}`), 400, bad, "the name of the object (y) does not match the name on the URL (x)")
}

type slow struct{}

func (slow) Get(call *registry.Call, _ string, _ *metav1.GetOptions) (runtime.Object, error) {
	<-call.Done()
	return nil, call.Err()
}

func (slow) Update(call *registry.Call, _ string, _ registry.ObjectUpdate, _ *metav1.UpdateOptions) (runtime.Object, bool, error) {
	<-call.Done()
	return nil, false, call.Err()
}

func TestWritesHaveADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := serve(t, slow{}, nil)
		for _, method := range []string{"PUT", "PATCH"} {
			r := httptest.NewRequest(method, all+"/x", strings.NewReader(`{"metadata":{"name":"x"}}`))
			if method == "PATCH" {
				r.Header.Set("Content-Type", "application/merge-patch+json")
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			wantStatus(t, w, 504, metav1.StatusReasonTimeout, "Timeout: request did not complete within requested timeout - context deadline exceeded")
		}
	})
}

// twice calls every update function twice, and changes the first result.
type twice struct{ slow }

func (twice) Update(call *registry.Call, _ string, update registry.ObjectUpdate, _ *metav1.UpdateOptions) (runtime.Object, bool, error) {
	first, err := update(call, &Widget{})
	if err != nil {
		return nil, false, err
	}
	first.(*Widget).Spec.Color += "spoiled"
	second, err := update(call, &Widget{})
	return second, true, err
}

func TestUpdateMadeTwice(t *testing.T) {
	h := serve(t, twice{}, nil)
	w := h.ask("PUT", all+"/x", `{"metadata":{"name":"x"},"spec":{"color":"red"}}`)
	var got Widget
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 201 || got.Spec.Color != "red" {
		t.Errorf("%d %v %s", w.Code, err, w.Body)
	}
	if f := got.ManagedFields; len(f) != 1 || f[0].Manager != "unknown" || f[0].FieldsV1.String() != `{"f:spec":{"f:color":{}}}` {
		t.Errorf("managed fields %+v", f)
	}
}
