package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/request"
	"github.com/keelson-dev/keelson/server/servertest"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reviews is a storage that answers creates and stores nothing.
type reviews struct{}

func (reviews) Create(call *registry.Call, obj runtime.Object, _ *metav1.CreateOptions) (runtime.Object, error) {
	review := obj.(*authorizationv1.SubjectAccessReview)
	if review.Spec.User == "" {
		return nil, apierrors.NewBadRequest("whose access?")
	}
	call.Warn("reviewed")
	review.Status.Allowed = review.Spec.User == "joe"
	return review, nil
}

func TestReviewIsCreateOnly(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, server.Group{Name: "authorization.k8s.io", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
		server.Kind("SubjectAccessReview", server.KindOptions[*authorizationv1.SubjectAccessReview]{ClusterScoped: true, Storage: reviews{}}),
	}}}})
	c := srv.Client()
	const path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
	code, body := call(t, c, "POST", srv.URL+path, `{"spec":{"user":"joe"}}`)
	wantCode(t, 201, code, body)
	if want := `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{},"spec":{"user":"joe"},"status":{"allowed":true}}` + "\n"; body != want {
		t.Errorf("got  %swant %s", body, want)
	}
	code, body = call(t, c, "POST", srv.URL+path, `{}`)
	wantCode(t, 400, code, body)
	for _, method := range []string{"GET", "DELETE"} {
		code, body = call(t, c, method, srv.URL+path, "")
		wantCode(t, 405, code, body)
	}
	code, body = call(t, c, "GET", srv.URL+"/apis/authorization.k8s.io/v1", "")
	wantCode(t, 200, code, body)
	if !strings.Contains(body, `"verbs":["create"]`) {
		t.Errorf("discovery: %s", body)
	}
}

// clocks is computed, can be watched, and has two subresources.
type clocks struct{}

type Clock = runtime.Resource[struct {
	Zone string `json:"zone"`
}, struct{}]

type Winding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Turns             int `json:"turns"`
}

func (w *Winding) DeepCopyObject() runtime.Object { return runtime.DeepCopy(w) }

func (clocks) Get(call *registry.Call, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	switch name {
	case "forgotten":
		return nil, nil
	case "strange":
		return &corev1.Pod{}, nil
	}
	return &Clock{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: call.Namespace}}, nil
}

func (clocks) Watch(*registry.Call, *metav1.ListOptions) (registry.ObjectWatch, error) {
	return &ticks{left: 2}, nil
}

type ticks struct{ left int }

func (k *ticks) Next(context.Context) (registry.ObjectEvent, error) {
	if k.left--; k.left < 0 {
		return registry.ObjectEvent{}, apierrors.NewResourceExpired("the spring is loose")
	}
	return registry.ObjectEvent{Type: "ADDED", Object: &Clock{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("tick-", k.left), ResourceVersion: "8"}}}, nil
}

func (*ticks) Close() {}

type bells struct{}

func (bells) ConnectMethods() []string { return []string{"GET", "POST"} }

func (bells) Connect(call *registry.Call, name, subpath string, _ *http.Request) (http.Handler, error) {
	if name == "broken" {
		return nil, apierrors.NewConflict(corev1.Resource("clocks"), name, errors.New("no bell"))
	}
	if name == "mute" {
		return nil, nil
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s/%s%s?%s", r.Method, call.Namespace, name, subpath, r.URL.RawQuery)
	}), nil
}

type keys struct{}

func (keys) Create(_ *registry.Call, obj runtime.Object, _ *metav1.CreateOptions) (runtime.Object, error) {
	w := obj.(*Winding)
	w.Turns++
	return w, nil
}

func clockGroup() server.Group {
	return server.Group{Name: "time.example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
		server.Kind("Clock", server.KindOptions[*Clock]{Storage: clocks{}, Subresources: map[string]server.Subresource{
			"bell": {Storage: bells{}}, "winding": server.SubresourceKind[*Winding]("Winding", keys{}),
		}}),
	}}}}
}

const clocksPath = "/apis/time.example.com/v1/namespaces/default/clocks"

func TestComputedWatch(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, clockGroup())
	resp, err := srv.Client().Get(srv.URL + clocksPath + "?watch=1")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var got []string
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		got = append(got, lines.Text())
	}
	want := []string{
		`{"type":"ADDED","object":{"kind":"Clock","apiVersion":"time.example.com/v1","metadata":{"name":"tick-1","resourceVersion":"8"},"spec":{"zone":""}}}`,
		`{"type":"ADDED","object":{"kind":"Clock","apiVersion":"time.example.com/v1","metadata":{"name":"tick-0","resourceVersion":"8"},"spec":{"zone":""}}}`,
		`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the spring is loose","reason":"Expired","code":410}}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestSubresourcesOfTheProgram(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, clockGroup())
	c := srv.Client()
	for _, step := range []struct {
		method, path, body string
		code               int
		want               string
	}{
		{"GET", "/a/bell/loud/twice?n=2", "", 200, "GET default/a/loud/twice?n=2"},
		{"POST", "/a/bell", "", 200, "POST default/a?"},
		{"PUT", "/a/bell", "", 405, `"reason":"MethodNotAllowed"`},
		{"GET", "/broken/bell", "", 409, "no bell"},
		{"GET", "/mute/bell", "", 500, "the storage of clocks/bell returned neither a handler nor an error"},
		{"POST", "/a/winding", `{"turns":3}`, 201, `{"kind":"Winding","apiVersion":"time.example.com/v1","metadata":{"name":"a","namespace":"default"},"turns":4}`},
		{"POST", "/a/winding", `{"kind":"Clock","turns":3}`, 400, `Clock in version \"v1\" cannot be handled as a Winding`},
		{"GET", "/a/winding", "", 405, `"reason":"MethodNotAllowed"`},
	} {
		code, body := call(t, c, step.method, srv.URL+clocksPath+step.path, step.body)
		if code != step.code || !strings.Contains(body, step.want) {
			t.Errorf("%s %s: %d %s\nwant %d with %s", step.method, step.path, code, body, step.code, step.want)
		}
	}
	code, body := call(t, c, "GET", srv.URL+"/apis/time.example.com/v1", "")
	wantCode(t, 200, code, body)
	for _, want := range []string{
		`{"name":"clocks","singularName":"clock","namespaced":true,"kind":"Clock","verbs":["get","watch"]}`,
		`{"name":"clocks/bell","singularName":"","namespaced":true,"kind":"Clock","verbs":["create","get"]}`,
		`{"name":"clocks/winding","singularName":"","namespaced":true,"kind":"Winding","verbs":["create"]}`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("discovery: %s\nlacks %s", body, want)
		}
	}
}

func TestStorageThatAnswersNonsenseIsNamed(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, clockGroup())
	for name, want := range map[string]string{
		"forgotten": `"message":"the storage of clocks returned neither an object nor an error"`,
		"strange":   `"message":"the storage of clocks returned a *v1.Pod, which is no kind of the scheme"`,
	} {
		code, body := call(t, srv.Client(), "GET", srv.URL+clocksPath+"/"+name, "")
		wantCode(t, 500, code, body)
		if !strings.Contains(body, want) {
			t.Errorf("%s: %s", name, body)
		}
	}
}

func TestOwnUsersAndRights(t *testing.T) {
	t.Parallel()
	srv := servertest.Start(t, server.Options{
		Groups: []server.Group{widgets()},
		Policy: server.Policy{
			Authenticator: authn.WithAnonymous(authn.AuthenticatedGroup(authn.Func(func(r *http.Request) (*authn.Response, error) {
				switch name := r.Header.Get("X-User"); name {
				case "":
					return nil, nil
				case "mallory":
					return nil, errors.New("bad credentials")
				default:
					return &authn.Response{User: authn.User{Name: name}}, nil
				}
			}))),
			Authorizer: authz.Union(authz.AllowPaths("/readyz"), authz.Func(func(_ context.Context, a authz.Attributes) (authz.Verdict, string, error) {
				switch {
				case a.User.Name == "reader" && a.IsReadOnly():
					return authz.Allow, "", nil
				case a.User.Name == "eve":
					return authz.Deny, "eve may not", nil
				case a.User.Name == "lost":
					return authz.NoOpinion, "", errors.New("the book of rights is lost")
				}
				return authz.NoOpinion, "", nil
			})),
		},
	})
	const forbidden = `widgets.example.com is forbidden: User \"%s\" cannot %s resource \"widgets\" in API group \"example.com\" in the namespace \"default\"`
	for _, row := range []struct {
		user, method string
		code         int
		want         string
	}{
		{"reader", "GET", 200, `"kind":"WidgetList"`},
		{"reader", "POST", 403, fmt.Sprintf(forbidden, "reader", "create") + `"`},
		{"eve", "GET", 403, fmt.Sprintf(forbidden, "eve", "list") + `: eve may not"`},
		{"", "GET", 403, fmt.Sprintf(forbidden, "system:anonymous", "list") + `"`},
		{"mallory", "GET", 401, `"message":"Unauthorized"`},
		{"lost", "GET", 500, "the book of rights is lost"},
	} {
		code, body := call(t, srv.Anonymous(), row.method, srv.URL+widgetsPath, `{"metadata":{"name":"a"}}`, "X-User", row.user)
		if code != row.code || !strings.Contains(body, row.want) {
			t.Errorf("%s %s: %d %s\nwant %d with %s", row.method, row.user, code, body, row.code, row.want)
		}
	}
	code, body := call(t, srv.Anonymous(), "GET", srv.URL+"/readyz", "")
	wantCode(t, 200, code, body)
}

func TestFiltersCanBeRearranged(t *testing.T) {
	t.Parallel()
	stamp := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if info := request.InfoFrom(r.Context()); info != nil {
				w.Header().Set("X-Verb", info.Verb)
			}
			next.ServeHTTP(w, r)
		})
	}
	srv := servertest.Start(t, server.Options{Groups: []server.Group{widgets()}, Serving: server.Serving{
		TrustFilters: true,
		Filters: func(list []server.NamedFilter) []server.NamedFilter {
			list = slices.DeleteFunc(list, func(f server.NamedFilter) bool { return f.Name == server.FilterInFlight })
			return server.InsertAfter(list, server.FilterRequestInfo, server.NamedFilter{Name: "stamp", Filter: stamp})
		},
	}})
	if chain := strings.Join(srv.Chain(), " "); !strings.Contains(chain, "request-info record stamp slow log") || strings.Contains(chain, "in-flight header-bytes") {
		t.Errorf("chain: %s", chain)
	}
	resp, err := srv.Client().Get(srv.URL + widgetsPath)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if got := resp.Header.Get("X-Verb"); got != "list" {
		t.Errorf("X-Verb %q", got)
	}
}

// Filters are inserted around and behind others by name; what cannot be is an error of New.
func TestFiltersAreInserted(t *testing.T) {
	t.Parallel()
	pass := func(next http.Handler) http.Handler { return next }
	own := server.NamedFilter{Name: "own", Filter: pass}
	for name, c := range map[string]struct {
		filters func([]server.NamedFilter) []server.NamedFilter
		want    string
	}{
		"before": {func(l []server.NamedFilter) []server.NamedFilter {
			return server.InsertBefore(l, server.FilterLongRunning, own)
		}, "authorize own long-running metrics"},
		"after": {func(l []server.NamedFilter) []server.NamedFilter {
			return server.InsertAfter(l, server.FilterMetrics, own, server.NamedFilter{Name: "other", Filter: pass})
		}, "long-running metrics own other"},
		"before one that is not there": {func(l []server.NamedFilter) []server.NamedFilter {
			return server.InsertBefore(l, "autorize", own)
		}, `there is no filter "autorize": insert before or after one of recover, unread-body,`},
		"a nil filter": {func(l []server.NamedFilter) []server.NamedFilter {
			return server.InsertAfter(l, server.FilterAuthorize, server.NamedFilter{Name: "own"})
		}, `the filter "own" is nil: set its Filter, or leave it out`},
		"a filter without a handler": {func(l []server.NamedFilter) []server.NamedFilter {
			return server.InsertAfter(l, server.FilterAuthorize, server.NamedFilter{Name: "own", Filter: func(http.Handler) http.Handler { return nil }})
		}, `the filter "own" returns no handler`},
	} {
		srv, err := server.New(server.Options{Serving: server.Serving{Filters: c.filters}})
		got := fmt.Sprint(err)
		if err == nil {
			got = strings.Join(srv.Chain(), " ")
			if err := srv.Close(); err != nil {
				t.Error(err)
			}
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: %s\nwant %s", name, got, c.want)
		}
	}
}

func TestHandlerInAForeignRouter(t *testing.T) {
	t.Parallel()
	srv, err := server.New(server.Options{Groups: []server.Group{widgets()}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = srv.Close() }()
	mux := chi.NewRouter()
	mux.Get("/mine", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "mine") })
	mux.Mount("/", srv.Handler())
	foreign := httptest.NewServer(mux)
	defer foreign.Close()
	for path, want := range map[string]string{"/mine": "mine", "/readyz": "ok", widgetsPath: `"kind":"WidgetList"`, "/apis": `"kind":"APIGroupList"`} {
		code, body := call(t, foreign.Client(), "GET", foreign.URL+path, "", "Authorization", "Bearer "+srv.Credentials().Token)
		if code != 200 || !strings.Contains(body, want) {
			t.Errorf("GET %s: %d %s", path, code, body)
		}
	}
}

func TestMoreMistakesAreNamed(t *testing.T) {
	t.Parallel()
	group := func(name, version string, resources ...server.Resource) server.Options {
		return server.Options{Groups: []server.Group{{Name: name, Versions: []server.Version{{Name: version, Resources: resources}}}}}
	}
	widget := func(o server.KindOptions[*Widget]) server.Resource { return server.Kind("Widget", o) }
	column := func(c server.Column[*Widget]) server.Options {
		return group("example.com", "v1", widget(server.KindOptions[*Widget]{Columns: []server.Column[*Widget]{c}}))
	}
	none := widget(server.KindOptions[*Widget]{})
	for name, c := range map[string]struct {
		opts server.Options
		want string
	}{
		"group":            {group("Example Com", "v1", none), "DNS name"},
		"version":          {group("example.com", "v1/x", none), "version"},
		"number":           {group("example.com", "1", none), "v1"},
		"kind":             {group("example.com", "v1", server.Kind("My Widget", server.KindOptions[*Widget]{})), "My Widget"},
		"plural":           {group("example.com", "v1", widget(server.KindOptions[*Widget]{Plural: "Widgets"})), "lower case"},
		"column unnamed":   {column(server.Column[*Widget]{Value: func(*Widget) any { return 1 }}), "Name"},
		"column valueless": {column(server.Column[*Widget]{Name: "Size"}), "Value"},
		"columns alike": {group("example.com", "v1", widget(server.KindOptions[*Widget]{Columns: []server.Column[*Widget]{
			{Name: "Size", Value: func(*Widget) any { return 1 }}, {Name: "size", Value: func(*Widget) any { return 1 }},
		}})), `column 1, "size"`},
		"column type": {column(server.Column[*Widget]{Name: "Size", Type: "int", Value: func(*Widget) any { return 1 }}), "want string, integer"},
		"no verbs":    {group("example.com", "v1", widget(server.KindOptions[*Widget]{Verbs: []string{}})), "nil for all"},
		"same place":  {group("example.com", "v1", none, server.Kind("Sail", server.KindOptions[*Sail]{StoragePath: "example.com/widgets"})), "StoragePath"},
		"place above": {group("example.com", "v1", none, server.Kind("Sail", server.KindOptions[*Sail]{StoragePath: "example.com"})), "StoragePath"},
		"filter":      {server.Options{Serving: server.Serving{Filters: func(l []server.NamedFilter) []server.NamedFilter { return append(l, server.NamedFilter{Name: "mine"}) }}}, `"mine"`},
	} {
		srv, err := server.New(c.opts)
		if err == nil {
			_ = srv.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant it to name %q", name, err, c.want)
		}
	}
}

func TestImportedKindsAreServed(t *testing.T) {
	t.Parallel()
	deployments := func(o server.KindOptions[*appsv1.Deployment]) []server.Group {
		return []server.Group{{Name: "apps", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{server.Kind("Deployment", o)}}}}}
	}
	imported := func() *runtime.Scheme {
		s := runtime.NewScheme()
		if _, err := s.Import(appsv1.AddToScheme); err != nil {
			t.Fatal(err)
		}
		return s
	}
	srv := servertest.Start(t, server.Options{Scheme: imported(), Groups: deployments(server.KindOptions[*appsv1.Deployment]{})})
	code, body := call(t, srv.Client(), "POST", srv.URL+"/apis/apps/v1/namespaces/a/deployments", `{"metadata":{"name":"d"}}`)
	wantCode(t, 201, code, body)
	late := server.KindOptions[*appsv1.Deployment]{Default: func(*appsv1.Deployment) {}}
	if _, err := server.New(server.Options{Scheme: imported(), Groups: deployments(late)}); err == nil ||
		!strings.Contains(err.Error(), "scheme already, so Default, SelectableFields, RenamedFields, SelectableFrom, Schema, Convert, ConvertAll and ListKind would come too late") {
		t.Errorf("defaults for an imported kind: %v", err)
	}
	misspelt := server.ImportedKind(imported().Lookup(appsv1.SchemeGroupVersion.WithKind("Deplyment")), server.KindOptions[runtime.Object]{})
	groups := []server.Group{{Name: "apps", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{misspelt}}}}}
	if _, err := server.New(server.Options{Scheme: imported(), Groups: groups}); err == nil || !strings.Contains(err.Error(), "ImportedKind was given a nil Kind") {
		t.Errorf("an imported kind that there is not: %v", err)
	}
}

// A user who may update, but not create, cannot create an object by an update.
func TestPutThatCreatesNeedsCreate(t *testing.T) {
	t.Parallel()
	only := authz.Func(func(_ context.Context, a authz.Attributes) (authz.Verdict, string, error) {
		if a.User.Name == "admin" || a.Verb == "update" || a.Verb == "get" {
			return authz.Allow, "", nil
		}
		return authz.NoOpinion, "", nil
	})
	srv := servertest.Start(t, server.Options{Policy: server.Policy{Authorizer: only}, Groups: []server.Group{{Name: "example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
		server.Kind("Widget", server.KindOptions[*Widget]{Strategy: registry.Strategy[*Widget]{CreateOnUpdate: true}}),
	}}}}}})
	code, body := call(t, srv.Anonymous(), "PUT", srv.URL+widgetsPath+"/a", `{"metadata":{"name":"a"}}`)
	wantCode(t, 403, code, body)
	if want := `widgets.example.com \"a\" is forbidden: User \"system:anonymous\" cannot create resource \"widgets\" in API group \"example.com\" in the namespace \"default\"`; !strings.Contains(body, want) {
		t.Errorf("refused with %s", body)
	}
	code, body = call(t, srv.Anonymous(), "GET", srv.URL+widgetsPath+"/a", "")
	wantCode(t, 404, code, body)
	code, body = call(t, srv.Client(), "PUT", srv.URL+widgetsPath+"/a", `{"metadata":{"name":"a"}}`)
	wantCode(t, 201, code, body)
	code, body = call(t, srv.Anonymous(), "PUT", srv.URL+widgetsPath+"/a", `{"metadata":{"name":"a"},"spec":{"size":2}}`)
	wantCode(t, 200, code, body)
}
