package server_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A Bell is in two groups that have the same objects. The hub is in iron.example.com.
type (
	Bell = runtime.Resource[struct {
		Tone   string `json:"tone,omitempty"`
		Weight int32  `json:"weight,omitempty" maximum:"1000"`
	}, struct {
		Rung int32 `json:"rung,omitempty"`
	}]
	BronzeBell = runtime.Resource[struct {
		Note string `json:"note,omitempty"`
		Mass int32  `json:"mass,omitempty" minimum:"1"`
	}, struct {
		Times int32 `json:"times,omitempty"`
	}]
	BronzeBellV1Beta1 = runtime.Resource[struct {
		Sound string `json:"sound,omitempty"`
	}, struct{}]
)

const (
	ironBells   = "/apis/iron.example.com/v1/namespaces/default/bells"
	bronzeBells = "/apis/bronze.example.com/v1/namespaces/default/bells"
	betaBells   = "/apis/bronze.example.com/v1beta1/namespaces/default/bells"
)

// twoGroups returns the groups, that of the hub last: the order does not matter. Each may be changed before it is served.
func twoGroups(iron server.KindOptions[*Bell], bronze server.KindOptions[*BronzeBell]) []server.Group {
	iron.SelectableFields = []string{"spec.tone"}
	iron.Columns = []server.Column[*Bell]{{Name: "Tone", Value: func(b *Bell) any { return b.Spec.Tone }}}
	bronze.RenamedFields = map[string]string{"spec.note": "spec.tone"}
	bronze.Columns = []server.Column[*BronzeBell]{
		{Name: "Note", Value: func(b *BronzeBell) any { return b.Spec.Note }}, {Name: "Called", Format: "name", Value: func(b *BronzeBell) any { return b.Name }},
	}
	return []server.Group{
		{
			Name: "bronze.example.com",
			Versions: []server.Version{
				{Name: "v1", Resources: []server.Resource{server.Kind("Bell", bronze)}},
				{Name: "v1beta1", Resources: []server.Resource{server.Kind("Bell", server.KindOptions[*BronzeBellV1Beta1]{})}},
			},
			Conversions: []server.Conversion{
				server.Convert(
					func(in *BronzeBell, out *Bell) error {
						out.Spec.Tone, out.Spec.Weight, out.Status.Rung = in.Spec.Note, in.Spec.Mass, in.Status.Times
						return nil
					},
					func(in *Bell, out *BronzeBell) error {
						out.Spec.Note, out.Spec.Mass, out.Status.Times = in.Spec.Tone, in.Spec.Weight, in.Status.Rung
						return nil
					}),
				server.Convert(
					func(in *BronzeBellV1Beta1, out *Bell) error { out.Spec.Tone = in.Spec.Sound; return nil },
					func(in *Bell, out *BronzeBellV1Beta1) error { out.Spec.Sound = in.Spec.Tone; return nil }),
			},
		},
		{Name: "iron.example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{server.Kind("Bell", iron)}}}},
	}
}

func TestAKindServedInTwoGroups(t *testing.T) {
	t.Parallel()
	backend := memory.New(memory.Options{})
	var seen []string
	asked := admission.ValidatorFunc(func(_ context.Context, r *admission.Request) error {
		seen = append(seen, fmt.Sprintf("%s %s %s %T", r.Operation, r.Kind, r.Resource, r.Object()))
		return nil
	})
	srv := servertest.Start(t, server.Options{
		Groups:  twoGroups(server.KindOptions[*Bell]{}, server.KindOptions[*BronzeBell]{}),
		Storage: func(context.Context) (storage.Backend, error) { return backend, nil },
		Policy:  server.Policy{Admission: admission.Chain{{Validator: asked}}},
	})
	ask := func(method, path, body string, header ...string) answer {
		t.Helper()
		return roundTrip(t, srv.Client(), method, srv.URL+path, body, header...)
	}
	shows := func(method, path, body, want string) {
		t.Helper()
		a := ask(method, path, body, "Content-Type", contentType(method))
		if a.code > 201 {
			t.Fatalf("%s %s: %d %s", method, path, a.code, a.body)
		}
		if got := after(t, a.body); !sameJSON(t, got, want) {
			t.Errorf("%s %s:\ngot  %s\nwant %s", method, path, got, want)
		}
	}
	shows("POST", bronzeBells, `{"metadata":{"name":"a"},"spec":{"note":"c","mass":7}}`, `{"apiVersion":"bronze.example.com/v1","spec":{"note":"c","mass":7},"status":{}}`)
	shows("GET", ironBells+"/a", "", `{"apiVersion":"iron.example.com/v1","spec":{"tone":"c","weight":7},"status":{}}`)
	shows("GET", betaBells+"/a", "", `{"apiVersion":"bronze.example.com/v1beta1","spec":{"sound":"c"}}`)
	shows("PATCH", bronzeBells+"/a/status", `{"status":{"times":3}}`, `{"apiVersion":"bronze.example.com/v1","spec":{"note":"c","mass":7},"status":{"times":3}}`)
	shows("PUT", ironBells+"/a", `{"metadata":{"name":"a"},"spec":{"tone":"d","weight":8}}`, `{"apiVersion":"iron.example.com/v1","spec":{"tone":"d","weight":8},"status":{"rung":3}}`)
	shows("POST", ironBells, `{"metadata":{"name":"b"},"spec":{"tone":"e","weight":9}}`, `{"apiVersion":"iron.example.com/v1","spec":{"tone":"e","weight":9},"status":{}}`)

	// They are stored once, in the version of the hub.
	stored, err := backend.Range(t.Context(), storage.Range{From: "/registry/"})
	if err != nil {
		t.Fatal(err)
	}
	for i, kv := range stored.KVs {
		want := "/registry/iron.example.com/bells/default/" + []string{"a", "b"}[i]
		if kv.Key != want || !strings.HasPrefix(string(kv.Value), `{"kind":"Bell","apiVersion":"iron.example.com/v1",`) {
			t.Errorf("%s: %s", kv.Key, kv.Value)
		}
	}

	// Selectors use the field names of each version, and tables its columns.
	for path, code := range map[string]int{
		ironBells + "?fieldSelector=spec.tone%3Dd": 200, bronzeBells + "?fieldSelector=spec.note%3Dd": 200,
		bronzeBells + "?fieldSelector=spec.tone%3Dd": 400, ironBells + "?fieldSelector=spec.note%3Dd": 400, betaBells + "?fieldSelector=spec.sound%3Dd": 400,
	} {
		a := ask("GET", path, "")
		if a.code != code || code == 200 && (strings.Count(a.body, `"name"`) != 1 || !strings.Contains(a.body, `"name":"a"`)) {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
	}
	for path, want := range map[string]string{ironBells: `"cells":["a","d"]`, bronzeBells: `"cells":["d","a"]`} {
		if a := ask("GET", path, "", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"); !strings.Contains(a.body, want) {
			t.Errorf("table of %s: %s", path, a.body)
		}
	}

	// Errors name the resource of the request's group; the kind is that of the hub.
	for _, c := range []struct{ method, path, body, want string }{
		{"GET", bronzeBells + "/x", "", `bells.bronze.example.com \"x\" not found`},
		{"GET", ironBells + "/x", "", `bells.iron.example.com \"x\" not found`},
		{"POST", bronzeBells, `{"metadata":{"name":"a"},"spec":{"mass":1}}`, `bells.bronze.example.com \"a\" already exists`},
		{"PUT", bronzeBells + "/a", `{"metadata":{"name":"a","resourceVersion":"1"},"spec":{"mass":1}}`, `fulfilled on bells.bronze.example.com \"a\"`},
		{"PUT", bronzeBells + "/a/status", `{"metadata":{"name":"a","resourceVersion":"1"},"spec":{"mass":1}}`, `fulfilled on bells.bronze.example.com \"a\"`},
		{"PUT", ironBells + "/a", `{"metadata":{"name":"a","resourceVersion":"1"}}`, `fulfilled on bells.iron.example.com \"a\"`},
		// An object is judged by the rules of the hub and of the request's version, and errors use the field names of each.
		{"POST", bronzeBells, `{"metadata":{"name":"c"},"spec":{"mass":-1}}`, `Bell.iron.example.com \"c\" is invalid: spec.mass: Invalid value: -1: spec.mass in body should be greater than or equal to 1`},
		{"POST", bronzeBells, `{"metadata":{"name":"c"},"spec":{"mass":1001}}`, `spec.weight in body should be less than or equal to 1000 (in version iron.example.com/v1)`},
		{"POST", ironBells, `{"metadata":{"name":"c"},"spec":{"weight":1001}}`, `spec.weight in body should be less than or equal to 1000"`},
		{"POST", bronzeBells, `{"kind":"Bell","apiVersion":"iron.example.com/v1","metadata":{"name":"c"}}`, `the API version in the data (iron.example.com/v1) does not match the expected API version (bronze.example.com/v1)`},
	} {
		if a := ask(c.method, c.path, c.body); a.code < 400 || !strings.Contains(a.body, c.want) {
			t.Errorf("%s %s: %d %s\nwant %s", c.method, c.path, a.code, a.body, c.want)
		}
	}

	// Admission gets the object in the hub, whichever group the request is for.
	seen = nil
	shows("PATCH", bronzeBells+"/b", `{"spec":{"note":"f"}}`, `{"apiVersion":"bronze.example.com/v1","spec":{"note":"f","mass":9},"status":{}}`)
	if want := "UPDATE iron.example.com/v1, Kind=Bell iron.example.com/v1, Resource=bells *runtime.Resource["; len(seen) != 1 || !strings.HasPrefix(seen[0], want) {
		t.Errorf("admission was asked about %q", seen)
	}

	// Two field managers, one in each group.
	const applied = "application/apply-patch+yaml"
	ask("PATCH", ironBells+"/s?fieldManager=iron", `{"apiVersion":"iron.example.com/v1","kind":"Bell","metadata":{"name":"s"},"spec":{"tone":"c"}}`, "Content-Type", applied).want(t, 201)
	ask("PATCH", bronzeBells+"/s?fieldManager=bronze", `{"apiVersion":"bronze.example.com/v1","kind":"Bell","metadata":{"name":"s"},"spec":{"mass":5}}`, "Content-Type", applied).want(t, 200)
	var m metav1.PartialObjectMetadata
	if ask("GET", bronzeBells+"/s", "").into(t, &m); len(m.ManagedFields) != 2 || m.ManagedFields[0].APIVersion == m.ManagedFields[1].APIVersion {
		t.Errorf("managed in two groups: %+v", m.ManagedFields)
	}
	a := ask("PATCH", bronzeBells+"/s?fieldManager=bronze", `{"apiVersion":"bronze.example.com/v1","kind":"Bell","metadata":{"name":"s"},"spec":{"mass":5,"note":"d"}}`, "Content-Type", applied)
	if a.code != 409 || !strings.Contains(a.body, `conflict with \"iron\"`) {
		t.Errorf("a conflict: %d %s", a.code, a.body)
	}
	a = ask("PATCH", ironBells+"/s?fieldManager=iron", `{"apiVersion":"iron.example.com/v1","kind":"Bell","metadata":{"name":"s"}}`, "Content-Type", applied)
	if a.code != 200 || !strings.Contains(a.body, `"spec":{"weight":5}`) || strings.Contains(a.body, `"manager":"iron"`) {
		t.Errorf("nothing applied any longer in one group: %d %s", a.code, a.body)
	}

	ask("DELETE", bronzeBells+"/a", "").want(t, 200)
	ask("GET", ironBells+"/a", "").want(t, 404)
	ask("DELETE", bronzeBells, "").want(t, 200)
	if a := ask("GET", ironBells, ""); !strings.Contains(a.body, `"items":[]`) {
		t.Errorf("all deleted: %s", a.body)
	}
}

func TestAKindOfTwoGroupsIsWatchedInBoth(t *testing.T) {
	t.Parallel()
	srv := servertest.Start(t, server.Options{Groups: twoGroups(server.KindOptions[*Bell]{}, server.KindOptions[*BronzeBell]{})})
	next := map[string]func() string{}
	for _, path := range []string{ironBells, bronzeBells + "?fieldSelector=spec.note%3Dc"} {
		at := srv.URL + path + "?watch=1&timeoutSeconds=20"
		if strings.Contains(path, "?") {
			at = srv.URL + path + "&watch=1&timeoutSeconds=20"
		}
		req, err := http.NewRequestWithContext(t.Context(), "GET", at, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		lines := bufio.NewScanner(resp.Body)
		next[path] = func() string { lines.Scan(); return lines.Text() }
	}
	roundTrip(t, srv.Client(), "POST", srv.URL+ironBells, `{"metadata":{"name":"a"},"spec":{"tone":"c"}}`).want(t, 201)
	roundTrip(t, srv.Client(), "PATCH", srv.URL+bronzeBells+"/a", `{"spec":{"note":"d"}}`, "Content-Type", mergePatchType).want(t, 200)
	for path, want := range map[string][]string{
		ironBells: {`{"type":"ADDED","object":{"kind":"Bell","apiVersion":"iron.example.com/v1"`, `{"type":"MODIFIED","object":{"kind":"Bell","apiVersion":"iron.example.com/v1"`},
		bronzeBells + "?fieldSelector=spec.note%3Dc": {`{"type":"ADDED","object":{"kind":"Bell","apiVersion":"bronze.example.com/v1"`, `{"type":"DELETED","object":{"kind":"Bell","apiVersion":"bronze.example.com/v1"`},
	} {
		for _, w := range want {
			if line := next[path](); !strings.HasPrefix(line, w) {
				t.Errorf("%s: %s\nwant %s", path, line, w)
			}
		}
	}
}

// A version of the other group may be the stored one. One migration, by either name, moves the objects.
func TestAKindOfTwoGroupsMovesBetweenThem(t *testing.T) {
	t.Parallel()
	backend := memory.New(memory.Options{})
	serve := func(iron, bronze bool) *servertest.Server {
		return servertest.Start(t, server.Options{
			Groups:  twoGroups(server.KindOptions[*Bell]{Stored: iron}, server.KindOptions[*BronzeBell]{Stored: bronze}),
			Storage: func(context.Context) (storage.Backend, error) { return backend, nil },
		})
	}
	stored := func() string {
		t.Helper()
		got, err := backend.Range(t.Context(), storage.Range{From: "/registry/"})
		if err != nil || len(got.KVs) != 1 || got.KVs[0].Key != "/registry/iron.example.com/bells/default/a" {
			t.Fatalf("%+v, %v", got, err)
		}
		return string(got.KVs[0].Value)
	}
	srv := serve(false, true)
	roundTrip(t, srv.Client(), "POST", srv.URL+ironBells, `{"metadata":{"name":"a"},"spec":{"tone":"c"}}`).want(t, 201)
	if got := stored(); !strings.HasPrefix(got, `{"kind":"Bell","apiVersion":"bronze.example.com/v1",`) {
		t.Errorf("stored in the other group: %s", got)
	}
	a := roundTrip(t, srv.Client(), "GET", srv.URL+ironBells+"?fieldSelector=spec.tone%3Dc", "")
	if !strings.Contains(a.body, `"spec":{"tone":"c"}`) {
		t.Errorf("read: %s", a.body)
	}
	_, err := server.New(server.Options{Groups: twoGroups(server.KindOptions[*Bell]{Stored: true}, server.KindOptions[*BronzeBell]{Stored: true})})
	if err == nil || !strings.Contains(err.Error(), "kind Bell.iron.example.com: Stored is set in the versions bronze.example.com/v1 and iron.example.com/v1, and a kind is stored in one") {
		t.Errorf("stored in both: %v", err)
	}

	srv = serve(false, false) // a second server on the same storage
	a = roundTrip(t, srv.Client(), "GET", srv.URL+bronzeBells+"/a", "")
	if !strings.Contains(a.body, `"spec":{"note":"c"}`) {
		t.Errorf("read by a server that stores in another version: %s", a.body)
	}
	resource := apischema.GroupResource{Group: "bronze.example.com", Resource: "bells"}
	if m, err := srv.MigrateStorage(t.Context(), resource, storage.MigrateOptions{}); err != nil || m.Rewritten != 1 {
		t.Fatalf("%+v, %v", m, err)
	}
	if got := stored(); !strings.HasPrefix(got, `{"kind":"Bell","apiVersion":"iron.example.com/v1",`) {
		t.Errorf("migrated: %s", got)
	}
}

func TestGroupsThatDoNotFitTogetherAreRefused(t *testing.T) {
	t.Parallel()
	plain := func() []server.Group {
		return twoGroups(server.KindOptions[*Bell]{}, server.KindOptions[*BronzeBell]{})
	}
	for name, c := range map[string]struct {
		groups []server.Group
		want   string
	}{
		"a strategy of the other group": {twoGroups(server.KindOptions[*Bell]{}, server.KindOptions[*BronzeBell]{Strategy: registry.Strategy[*BronzeBell]{
			Validate: func(*registry.Call, *BronzeBell) field.ErrorList { return nil },
		}}), "resource bronze.example.com/v1, Resource=bells: only the hub iron.example.com/v1, Kind=Bell may have a Strategy"},
		"another plural": {twoGroups(server.KindOptions[*Bell]{Plural: "chimes"}, server.KindOptions[*BronzeBell]{}),
			`the hub iron.example.com/v1, Kind=Bell has the plural "chimes"; the versions of a kind share one`},
		"another scope":   {twoGroups(server.KindOptions[*Bell]{ClusterScoped: true}, server.KindOptions[*BronzeBell]{}), "must both be ClusterScoped, or neither"},
		"a path":          {twoGroups(server.KindOptions[*Bell]{}, server.KindOptions[*BronzeBell]{StoragePath: "bells"}), "may have StoragePath"},
		"two hubs":        {twoGroups(server.KindOptions[*Bell]{}, server.KindOptions[*BronzeBell]{Hub: true}), "bronze.example.com/v1, Kind=Bell was registered as the hub of its group, and a kind has one; remove Hub there"},
		"the hub missing": {plain()[:1], "register both types first"},
		"a version without a conversion": {func() []server.Group {
			groups := plain()
			groups[0].Conversions = groups[0].Conversions[:1]
			return groups
		}(), "resource bronze.example.com/v1beta1, Resource=bells: nothing converts it to the hub iron.example.com/v1, Kind=Bell and back; add a server.Convert"},
	} {
		if _, err := server.New(server.Options{Groups: c.groups}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
		if _, err := server.NewScheme(c.groups...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, a scheme: %v; want %q", name, err, c.want)
		}
	}
	// Groups of one kind are served in one call, and withdrawn in one.
	srv, err := server.New(server.Options{Groups: plain()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = srv.Close() }()
	var h *server.Host
	if err := srv.Install(server.ExtensionFunc(func(host *server.Host) error { h = host; return nil })); err != nil {
		t.Fatal(err)
	}
	iron, bronze := apischema.GroupResource{Group: "iron.example.com", Resource: "bells"}, apischema.GroupResource{Group: "bronze.example.com", Resource: "bells"}
	if err := h.Withdraw(iron); err == nil || !strings.Contains(err.Error(), "bells.iron.example.com has the same objects as bells.bronze.example.com; withdraw both") {
		t.Errorf("half of a kind: %v", err)
	}
	for _, k := range h.Catalogue().Kinds() {
		groups := []string{}
		for _, gvk := range k.Kinds {
			groups = append(groups, gvk.GroupVersion().String())
		}
		if slices.Sort(groups); k.Kind.Group != "iron.example.com" || !slices.Equal(groups, []string{"bronze.example.com/v1", "bronze.example.com/v1beta1", "iron.example.com/v1"}) {
			t.Errorf("the catalogue has %s in %v", k.Kind, groups)
		}
	}
	if err := h.Withdraw(iron, bronze); err != nil {
		t.Fatal(err)
	}
	if err := h.Serve(plain()...); err != nil {
		t.Errorf("served again: %v", err)
	}
}
