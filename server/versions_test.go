package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Sail in v1, its hub, has an area in square metres.
type Sail struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   SailSpec   `json:"spec"`
	Status SailStatus `json:"status,omitempty"`
}

type SailSpec struct {
	Area  int32  `json:"area"`
	Color string `json:"color,omitempty"`
}

type SailStatus struct {
	State string `json:"state,omitempty"`
}

func (s *Sail) DeepCopyObject() runtime.Object { return runtime.DeepCopy(s) }

// In v1beta1 the area is a text with a unit, the status has a field with another name, and the color is called hue.
type SailV1Beta1 = runtime.Resource[struct {
	Area string `json:"area,omitempty"`
	Hue  string `json:"hue,omitempty"`
}, struct {
	Condition string `json:"condition,omitempty"`
}]

// In v1alpha1 a sail is flat, has no status, and is no larger than 100 square metres.
type SailV1Alpha1 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Area int32 `json:"area,omitempty"`
}

func (s *SailV1Alpha1) DeepCopyObject() runtime.Object { return runtime.DeepCopy(s) }

func sails() server.Group {
	return server.Group{
		Name: "sea.example.com",
		Versions: []server.Version{
			{Name: "v1alpha1", Resources: []server.Resource{
				server.Kind("Sail", server.KindOptions[*SailV1Alpha1]{Deprecated: "sea.example.com/v1alpha1 Sail is deprecated"}),
			}},
			{Name: "v1", Resources: []server.Resource{server.Kind("Sail", server.KindOptions[*Sail]{
				Hub:              true,
				SelectableFields: []string{"spec.color"},
				Columns:          []server.Column[*Sail]{{Name: "Area", Type: "integer", Value: func(s *Sail) any { return s.Spec.Area }}, server.AgeColumn[*Sail]()},
			})}},
			{Name: "v1beta1", Resources: []server.Resource{server.Kind("Sail", server.KindOptions[*SailV1Beta1]{
				Default: func(s *SailV1Beta1) {
					if s.Spec.Hue == "" {
						s.Spec.Hue = "white"
					}
				},
				Columns: []server.Column[*SailV1Beta1]{{Name: "Size", Value: func(s *SailV1Beta1) any { return s.Spec.Area }}},
			})}},
		},
		Conversions: []server.Conversion{
			server.Convert(func(in *SailV1Beta1, out *Sail) error {
				if _, err := fmt.Sscanf(in.Spec.Area, "%dm2", &out.Spec.Area); err != nil && in.Spec.Area != "" {
					return fmt.Errorf("area %q: want a number and m2", in.Spec.Area)
				}
				out.Spec.Color, out.Status.State = in.Spec.Hue, in.Status.Condition
				return nil
			}, func(in *Sail, out *SailV1Beta1) error {
				out.Spec.Area, out.Spec.Hue, out.Status.Condition = fmt.Sprintf("%dm2", in.Spec.Area), in.Spec.Color, in.Status.State
				return nil
			}),
			server.Convert(func(in *SailV1Alpha1, out *Sail) error {
				out.Spec.Area = in.Area
				return nil
			}, func(in *Sail, out *SailV1Alpha1) error {
				if out.Area = in.Spec.Area; out.Area > 100 {
					return errors.New("too large")
				}
				return nil
			}),
		},
	}
}

func sailsPath(version string) string {
	return "/apis/sea.example.com/" + version + "/namespaces/default/sails"
}

const mergePatchType = "application/merge-patch+json"

// after returns the part of an answer after its metadata, which differs between runs.
func after(t *testing.T, body string) string {
	t.Helper()
	var o map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &o); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	delete(o, "metadata")
	delete(o, "kind")
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestVersionsShowOneObject(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, sails())
	c := srv.Client()
	for _, step := range []struct{ method, version, path, body, want string }{
		{"POST", "v1beta1", "", `{"metadata":{"name":"jib"},"spec":{"area":"12m2"}}`, `{"apiVersion":"sea.example.com/v1beta1","spec":{"area":"12m2","hue":"white"},"status":{}}`},
		{"GET", "v1", "/jib", "", `{"apiVersion":"sea.example.com/v1","spec":{"area":12,"color":"white"},"status":{}}`},
		{"GET", "v1alpha1", "/jib", "", `{"apiVersion":"sea.example.com/v1alpha1","area":12}`},
		{"PATCH", "v1beta1", "/jib", `{"spec":{"hue":"red"}}`, `{"apiVersion":"sea.example.com/v1beta1","spec":{"area":"12m2","hue":"red"},"status":{}}`},
		{"PATCH", "v1beta1", "/jib/status", `{"status":{"condition":"Set"},"spec":{"hue":"dropped"}}`, `{"apiVersion":"sea.example.com/v1beta1","spec":{"area":"12m2","hue":"red"},"status":{"condition":"Set"}}`},
		{"GET", "v1", "/jib/status", "", `{"apiVersion":"sea.example.com/v1","spec":{"area":12,"color":"red"},"status":{"state":"Set"}}`},
		// A write in a version that cannot express a field loses it, except the status, which such a write does not change.
		{"PUT", "v1alpha1", "/jib", `{"metadata":{"name":"jib"},"area":13}`, `{"apiVersion":"sea.example.com/v1alpha1","area":13}`},
		{"GET", "v1", "/jib", "", `{"apiVersion":"sea.example.com/v1","spec":{"area":13},"status":{"state":"Set"}}`},
		{"PUT", "v1", "/jib/status", `{"metadata":{"name":"jib"},"spec":{"area":1},"status":{"state":"Reefed"}}`, `{"apiVersion":"sea.example.com/v1","spec":{"area":13},"status":{"state":"Reefed"}}`},
	} {
		code, body := call(t, c, step.method, srv.URL+sailsPath(step.version)+step.path, step.body, "Content-Type", contentType(step.method))
		if code > 201 {
			t.Fatalf("%s %s%s: %d %s", step.method, step.version, step.path, code, body)
		}
		if got := after(t, body); !sameJSON(t, got, step.want) {
			t.Errorf("%s %s%s:\ngot  %s\nwant %s", step.method, step.version, step.path, got, step.want)
		}
	}
	code, body := call(t, c, "GET", srv.URL+sailsPath("v1beta1"), "")
	wantCode(t, 200, code, body)
	if !strings.HasPrefix(body, `{"kind":"SailList","apiVersion":"sea.example.com/v1beta1",`) || !strings.Contains(body, `"items":[{"metadata":{`) || !strings.Contains(body, `"spec":{"area":"13m2"`) {
		t.Errorf("list: %s", body)
	}
	// A version whose type has no status neither shows nor changes it.
	for _, method := range []string{"GET", "PUT"} {
		code, body = call(t, c, method, srv.URL+sailsPath("v1alpha1")+"/jib/status", `{"metadata":{"name":"jib"}}`)
		wantCode(t, 404, code, body)
	}
}

func contentType(method string) string {
	if method == "PATCH" {
		return mergePatchType
	}
	return "application/json"
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if err := errors.Join(json.Unmarshal([]byte(a), &x), json.Unmarshal([]byte(b), &y)); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(x) == fmt.Sprint(y)
}

func TestVersionsAreStoredOnce(t *testing.T) {
	t.Parallel()
	backend := memory.New(memory.Options{})
	srv := servertest.Start(t, server.Options{Groups: []server.Group{sails()}, Storage: func(context.Context) (storage.Backend, error) { return backend, nil }})
	for v, fields := range map[string]string{"v1": `"spec":{"area":1}`, "v1beta1": `"spec":{"area":"2m2"}`, "v1alpha1": `"area":3`} {
		code, body := call(t, srv.Client(), "POST", srv.URL+sailsPath(v), `{"metadata":{"name":"`+v+`"},`+fields+`}`)
		wantCode(t, 201, code, body)
	}
	stored, err := backend.Range(t.Context(), storage.Range{From: "/registry/"})
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, kv := range stored.KVs {
		keys = append(keys, kv.Key)
		if !strings.HasPrefix(string(kv.Value), `{"kind":"Sail","apiVersion":"sea.example.com/v1",`) {
			t.Errorf("%s is stored as %s", kv.Key, kv.Value)
		}
	}
	const at = "/registry/sea.example.com/sails/default/"
	if want := []string{at + "v1", at + "v1alpha1", at + "v1beta1"}; !slices.Equal(keys, want) {
		t.Errorf("keys %q, want %q", keys, want)
	}
}

func TestVersionsAreWatchedEachInItsOwn(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, sails())
	c := srv.Client()
	watch := func(v string) func() string {
		req, err := http.NewRequestWithContext(t.Context(), "GET", srv.URL+sailsPath(v)+"?watch=1&timeoutSeconds=20", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		lines := bufio.NewScanner(resp.Body)
		return func() string {
			if !lines.Scan() {
				return "END"
			}
			return lines.Text()
		}
	}
	v1, beta, alpha := watch("v1"), watch("v1beta1"), watch("v1alpha1")
	create := func(name string, area int) {
		code, body := call(t, c, "POST", srv.URL+sailsPath("v1"), fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"area":%d}}`, name, area))
		wantCode(t, 201, code, body)
	}
	expect := func(next func() string, want ...string) {
		t.Helper()
		line := next()
		for _, w := range want {
			if !strings.Contains(line, w) {
				t.Errorf("event %s\nlacks %s", line, w)
			}
		}
	}
	create("jib", 12)
	expect(v1, `"type":"ADDED"`, `"apiVersion":"sea.example.com/v1",`, `"area":12`)
	expect(beta, `"type":"ADDED"`, `"apiVersion":"sea.example.com/v1beta1",`, `"area":"12m2"`)
	expect(alpha, `"type":"ADDED"`, `"apiVersion":"sea.example.com/v1alpha1",`, `"area":12`)
	// A sail that cannot be converted to v1alpha1 ends the watches of that version, and no others.
	create("genoa", 120)
	expect(alpha, `"type":"ERROR"`, "too large")
	expect(alpha, "END")
	create("main", 40)
	for _, name := range []string{"genoa", "main"} {
		expect(v1, `"type":"ADDED"`, `"name":"`+name+`"`)
		expect(beta, `"type":"ADDED"`, `"name":"`+name+`"`)
	}
}

func TestConversionThatFailsFailsItsReaderOnly(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, sails())
	c := srv.Client()
	code, body := call(t, c, "POST", srv.URL+sailsPath("v1"), `{"metadata":{"name":"genoa"},"spec":{"area":120}}`)
	wantCode(t, 201, code, body)
	code, body = call(t, c, "POST", srv.URL+sailsPath("v1"), `{"metadata":{"name":"jib"},"spec":{"area":12}}`)
	wantCode(t, 201, code, body)
	const why = `"message":"converting Sail.sea.example.com from sea.example.com/v1 to sea.example.com/v1alpha1: too large"`
	for _, path := range []string{"/genoa", ""} {
		code, body = call(t, c, "GET", srv.URL+sailsPath("v1alpha1")+path, "")
		wantCode(t, 500, code, body)
		if !strings.Contains(body, why) {
			t.Errorf("GET %s: %s", path, body)
		}
		for _, v := range []string{"v1", "v1beta1"} {
			code, body = call(t, c, "GET", srv.URL+sailsPath(v)+path, "")
			wantCode(t, 200, code, body)
		}
	}
	code, body = call(t, c, "GET", srv.URL+sailsPath("v1alpha1")+"/jib", "")
	wantCode(t, 200, code, body)

	// In the other direction it is an error of the client, and changes nothing.
	code, body = call(t, c, "POST", srv.URL+sailsPath("v1beta1"), `{"metadata":{"name":"bad"},"spec":{"area":"big"}}`)
	wantCode(t, 400, code, body)
	const cause = `converting Sail.sea.example.com from sea.example.com/v1beta1 to sea.example.com/v1: area \"big\": want a number and m2`
	if !strings.Contains(body, `"message":"Sail in version \"v1beta1\" cannot be handled as a Sail: `+cause+`"`) {
		t.Errorf("POST: %s", body)
	}
	code, body = call(t, c, "PUT", srv.URL+sailsPath("v1beta1")+"/jib", `{"metadata":{"name":"jib"},"spec":{"area":"big"}}`)
	wantCode(t, 400, code, body)
	code, body = call(t, c, "PATCH", srv.URL+sailsPath("v1beta1")+"/jib", `{"spec":{"area":"big"}}`, "Content-Type", mergePatchType)
	wantCode(t, 422, code, body)
	code, body = call(t, c, "GET", srv.URL+sailsPath("v1")+"/jib", "")
	wantCode(t, 200, code, body)
	if !strings.Contains(body, `"spec":{"area":12}`) {
		t.Errorf("after refused changes: %s", body)
	}
}

func TestVersionsHaveTheirOwnTables(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, sails())
	c := srv.Client()
	code, body := call(t, c, "POST", srv.URL+sailsPath("v1"), `{"metadata":{"name":"jib"},"spec":{"area":12}}`)
	wantCode(t, 201, code, body)
	for version, want := range map[string]string{"v1": "Name,Area,Age jib,12,", "v1beta1": "Name,Size jib,12m2", "v1alpha1": "Name,Age jib,"} {
		for _, path := range []string{"", "/jib"} {
			code, body = call(t, c, "GET", srv.URL+sailsPath(version)+path, "", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
			wantCode(t, 200, code, body)
			var table metav1.Table
			if err := json.Unmarshal([]byte(body), &table); err != nil {
				t.Fatal(err)
			}
			var names, cells []string
			for _, col := range table.ColumnDefinitions {
				names = append(names, col.Name)
			}
			for _, cell := range table.Rows[0].Cells {
				cells = append(cells, fmt.Sprint(cell))
			}
			if got := strings.Join(names, ",") + " " + strings.Join(cells, ","); !strings.HasPrefix(got, want) {
				t.Errorf("%s%s: %s, want %s", version, path, got, want)
			}
		}
	}
}

func TestVersionsInDiscovery(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, sails())
	c := srv.Client()
	code, body := call(t, c, "GET", srv.URL+"/apis/sea.example.com", "")
	wantCode(t, 200, code, body)
	want := `"versions":[{"groupVersion":"sea.example.com/v1","version":"v1"},{"groupVersion":"sea.example.com/v1beta1","version":"v1beta1"},{"groupVersion":"sea.example.com/v1alpha1","version":"v1alpha1"}],"preferredVersion":{"groupVersion":"sea.example.com/v1","version":"v1"}`
	if !strings.Contains(body, want) {
		t.Errorf("group: %s\nwant %s", body, want)
	}
	hashes := map[string]bool{}
	for version, subresources := range map[string]int{"v1": 1, "v1beta1": 1, "v1alpha1": 0} {
		var list metav1.APIResourceList
		code, body := call(t, c, "GET", srv.URL+"/apis/sea.example.com/"+version, "")
		wantCode(t, 200, code, body)
		if err := json.Unmarshal([]byte(body), &list); err != nil {
			t.Fatal(err)
		}
		if len(list.APIResources) != 1+subresources {
			t.Errorf("%s serves %v", version, list.APIResources)
		}
		hashes[list.APIResources[0].StorageVersionHash] = true
	}
	if len(hashes) != 1 {
		t.Errorf("storage version hashes %v: the versions are stored as one", hashes)
	}
}

func TestDeprecatedVersionWarns(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, sails())
	for version, want := range map[string]string{"v1": "", "v1alpha1": `299 - "sea.example.com/v1alpha1 Sail is deprecated"`} {
		resp, err := srv.Client().Get(srv.URL + sailsPath(version))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if got := resp.Header.Get("Warning"); got != want {
			t.Errorf("%s: warning %q, want %q", version, got, want)
		}
	}
}

func TestVersionsThatDisagreeAreRefused(t *testing.T) {
	t.Parallel()
	convert := server.Convert(func(*SailV1Alpha1, *Sail) error { return nil }, func(*Sail, *SailV1Alpha1) error { return nil })
	try := func(hub server.KindOptions[*Sail], spoke server.KindOptions[*SailV1Alpha1], conversions ...server.Conversion) error {
		srv, err := server.New(server.Options{Groups: []server.Group{{Name: "sea.example.com", Conversions: conversions, Versions: []server.Version{
			{Name: "v1", Resources: []server.Resource{server.Kind("Sail", hub)}},
			{Name: "v1alpha1", Resources: []server.Resource{server.Kind("Sail", spoke)}},
		}}}})
		if err == nil {
			err = srv.Close()
		}
		return err
	}
	type hub = server.KindOptions[*Sail]
	type spoke = server.KindOptions[*SailV1Alpha1]
	if err := try(hub{SelectableFields: []string{"spec.area"}}, spoke{}, convert); err != nil {
		t.Errorf("versions that agree: %v", err)
	}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"no conversion": {try(hub{}, spoke{}), "server.Convert"},
		"scope":         {try(hub{}, spoke{ClusterScoped: true}, convert), "ClusterScoped"},
		"plural":        {try(hub{}, spoke{Plural: "sailcloths"}, convert), "Plural"},
		"field":         {try(hub{}, spoke{SelectableFields: []string{"area"}}, convert), "SelectableFields"},
		"path":          {try(hub{}, spoke{StoragePath: "x"}, convert), "StoragePath"},
		"no status":     {try(hub{}, spoke{NoStatus: true}, convert), "NoStatus"},
		"strategy":      {try(hub{}, spoke{Strategy: registry.Strategy[*SailV1Alpha1]{NoGeneration: true}}, convert), "Strategy"},
		"half computed": {try(hub{Storage: moons{}}, spoke{}, convert), "Storage"},
		"computed spoke": {try(hub{Storage: moons{}}, spoke{Computed: &server.Computed[*SailV1Alpha1]{
			Create: func(_ *registry.Call, s *SailV1Alpha1, _ *metav1.CreateOptions) (*SailV1Alpha1, error) { return s, nil },
		}}, convert), "only that may have them"},
		"a second hub":   {try(hub{Hub: true}, spoke{Hub: true}, server.Convert(func(*Sail, *SailV1Alpha1) error { return nil }, func(*SailV1Alpha1, *Sail) error { return nil })), "Hub"},
		"wrong hub":      {try(hub{}, spoke{Hub: true}, convert), "the hub is"},
		"no such type":   {try(hub{}, spoke{}, convert, server.Convert(func(*Widget, *Sail) error { return nil }, func(*Sail, *Widget) error { return nil })), "register both"},
		"not a function": {try(hub{}, spoke{}, server.Conversion{}), "server.Convert"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: %v\nwant it to name %q", name, c.err, c.want)
		}
	}
}
