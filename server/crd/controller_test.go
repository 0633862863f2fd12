package crd_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/storage"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

func TestADefinitionIsEstablished(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.define(definitionOf("widgets", "Widget"))
	d := s.await("widgets.example.com", isTrue(apiextensionsv1.Established))
	// The API works as soon as the condition Established is visible.
	s.want(http.StatusCreated, "POST", "/apis/example.com/v1/namespaces/default/widgets", object("Widget", "one"))
	if got, want := conditionText(d, apiextensionsv1.NamesAccepted), "True NoConflicts: no conflicts found"; got != want {
		t.Errorf("NamesAccepted is %q, want %q", got, want)
	}
	if got, want := conditionText(d, apiextensionsv1.Established), "True InitialNamesAccepted: the initial names have been accepted"; got != want {
		t.Errorf("Established is %q, want %q", got, want)
	}
	if len(d.Status.Conditions) != 2 || d.Generation != 1 {
		t.Errorf("the definition is %s", text(t, d))
	}
}

// A client that sees Established in a watch can use the API at once, also if many definitions are created together.
func TestEstablishedMeansServed(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	w := s.watch(crdsPath + "?watch=true")
	const many = 20
	for i := range many {
		s.define(definitionOf(fmt.Sprintf("widgets%d", i), fmt.Sprintf("Widget%d", i)))
	}
	for left := many; left > 0; {
		e := w.next()
		var d apiextensionsv1.CustomResourceDefinition
		if err := json.Unmarshal(e.Object, &d); err != nil {
			t.Fatal(err)
		}
		if isTrue(apiextensionsv1.Established)(&d) {
			s.want(http.StatusOK, "GET", "/apis/example.com/v1/"+d.Spec.Names.Plural, "")
			left--
		}
	}
}

func TestNamesInUse(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.establish(definitionOf("aa", "Aa", func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Names.ShortNames = []string{"a", "x"} }))
	s.define(definitionOf("bb", "Aa", func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Names.Singular, d.Spec.Names.ShortNames, d.Spec.Names.Categories = "aa", []string{"a", "y"}, []string{"all"}
	}))
	d := s.await("bb.example.com", hasReason(apiextensionsv1.NamesAccepted, "ListKindConflict"))
	if got, want := conditionText(d, apiextensionsv1.NamesAccepted), `False ListKindConflict: "AaList" is already in use`; got != want {
		t.Errorf("NamesAccepted is %q, want %q", got, want)
	}
	if got, want := conditionText(d, apiextensionsv1.Established), "False NotAccepted: not all names are accepted"; got != want {
		t.Errorf("Established is %q, want %q", got, want)
	}
	if got := d.Status.AcceptedNames; got.Plural != "bb" || got.Singular != "" || got.Kind != "" || got.ListKind != "" || got.ShortNames != nil || !slices.Equal(got.Categories, []string{"all"}) {
		t.Errorf("accepted names are %+v", got)
	}
	s.want(http.StatusNotFound, "GET", "/apis/example.com/v1/bb", "")

	// The names of the other definition become free when it is deleted.
	s.want(http.StatusOK, "DELETE", crdsPath+"/aa.example.com", "")
	s.awaitGone("aa.example.com")
	s.await("bb.example.com", isTrue(apiextensionsv1.Established))
	s.want(http.StatusOK, "GET", "/apis/example.com/v1/bb", "")
}

// An established definition keeps its names if other names that it asks for are taken. It gives them up for free names.
func TestNamesOfAnEstablishedDefinitionChange(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.establish(definitionOf("aa", "Aa", func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Names.ShortNames = []string{"a"} }))
	s.establish(definitionOf("bb", "Bb"))
	merge := func(shortNames string) {
		t.Helper()
		s.want(http.StatusOK, "PATCH", crdsPath+"/aa.example.com", `{"spec":{"names":{"shortNames":`+shortNames+`}}}`, "Content-Type", "application/merge-patch+json")
	}
	merge(`["bb","c"]`)
	d := s.await("aa.example.com", hasReason(apiextensionsv1.NamesAccepted, "ShortNamesConflict"))
	if got, want := conditionText(d, apiextensionsv1.NamesAccepted), `False ShortNamesConflict: "bb" is already in use`; got != want {
		t.Errorf("NamesAccepted is %q, want %q", got, want)
	}
	if !isTrue(apiextensionsv1.Established)(d) || !slices.Equal(d.Status.AcceptedNames.ShortNames, []string{"a"}) {
		t.Errorf("the definition is %s", text(t, d))
	}
	if got := s.shortNames("aa"); !slices.Equal(got, []string{"a"}) {
		t.Errorf("discovery shows the short names %v", got)
	}
	merge(`["c"]`)
	s.await("aa.example.com", hasReason(apiextensionsv1.NamesAccepted, "NoConflicts"))
	eventually(t, func() bool { return slices.Equal(s.shortNames("aa"), []string{"c"}) }, func() string { return fmt.Sprint(s.shortNames("aa")) })
	s.define(definitionOf("dd", "Dd", func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Names.ShortNames = []string{"a"} }))
	s.await("dd.example.com", isTrue(apiextensionsv1.Established))
}

func (s *site) shortNames(plural string) []string {
	s.t.Helper()
	var list metav1.APIResourceList
	s.do("GET", "/apis/example.com/v1", "", &list)
	for _, r := range list.APIResources {
		if r.Name == plural {
			return r.ShortNames
		}
	}
	return nil
}

type toolSpec struct {
	Size int32 `json:"size,omitempty"`
}

// tools is a kind with a Go type in the group of the tests.
func tools() server.Group {
	return server.Group{Name: "example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
		server.Kind("Tool", server.KindOptions[*runtime.Resource[toolSpec, struct{}]]{}),
	}}}}
}

// Kinds with Go types keep their names, and can be in one group with definitions.
func TestNamesOfGoKinds(t *testing.T) {
	t.Parallel()
	var host *server.Host
	s := newSite(t, nil, tools(), server.ExtensionFunc(func(h *server.Host) error { host = h; return nil }))
	s.establish(definitionOf("widgets", "Widget"))
	s.define(definitionOf("tools", "Hammer"))
	s.define(definitionOf("hammers", "Tool"))
	d := s.await("tools.example.com", hasReason(apiextensionsv1.NamesAccepted, "PluralConflict"))
	if got, want := conditionText(d, apiextensionsv1.NamesAccepted), `False PluralConflict: "tools" is already in use`; got != want {
		t.Errorf("NamesAccepted is %q, want %q", got, want)
	}
	s.await("hammers.example.com", hasReason(apiextensionsv1.NamesAccepted, "ListKindConflict"))
	s.want(http.StatusCreated, "POST", "/apis/example.com/v1/namespaces/default/tools", object("Tool", "saw"))
	s.want(http.StatusCreated, "POST", "/apis/example.com/v1/namespaces/default/widgets", object("Widget", "one"))

	// A definition that was never established is removed at once, without deleting anything that is not its own.
	s.want(http.StatusOK, "DELETE", crdsPath+"/tools.example.com", "")
	eventually(t, func() bool { return s.get("tools.example.com") == nil }, func() string { return text(t, s.get("tools.example.com")) })
	s.want(http.StatusOK, "GET", "/apis/example.com/v1/namespaces/default/tools/saw", "")

	if err := host.Withdraw(schema.GroupResource{Group: "example.com", Resource: "tools"}); err != nil {
		t.Fatal(err)
	}
	s.await("hammers.example.com", isTrue(apiextensionsv1.Established))
	s.want(http.StatusOK, "GET", "/apis/example.com/v1/hammers", "")
}

// stream is a watch over HTTP.
type stream struct {
	t    *testing.T
	resp *http.Response
	in   *bufio.Scanner
}

type streamEvent struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

func (s *site) watch(path string) *stream {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.srv.URL+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := s.c.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		s.t.Fatalf("watch %s: %s", path, resp.Status)
	}
	in := bufio.NewScanner(resp.Body)
	in.Buffer(nil, 1<<22)
	return &stream{s.t, resp, in}
}

func (w *stream) next() streamEvent {
	w.t.Helper()
	if !w.in.Scan() {
		w.t.Fatalf("the watch has ended: %v", w.in.Err())
	}
	var e streamEvent
	if err := json.Unmarshal(w.in.Bytes(), &e); err != nil {
		w.t.Fatal(err)
	}
	return e
}

// A change of a definition ends the watches of its own objects only, and only if it changes the API.
func TestWhoseWatchesEnd(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.establish(definitionOf("widgets", "Widget"))
	s.establish(definitionOf("gadgets", "Gadget"))
	widgets, gadgets := s.watch("/apis/example.com/v1/widgets?watch=true"), s.watch("/apis/example.com/v1/gadgets?watch=true")

	patch := func(body string) {
		t.Helper()
		s.want(http.StatusOK, "PATCH", crdsPath+"/widgets.example.com", body, "Content-Type", "application/merge-patch+json")
	}
	patch(`{"metadata":{"labels":{"a":"b"}}}`)
	s.establish(definitionOf("others", "Other")) // by now the change of the label was observed
	s.want(http.StatusCreated, "POST", "/apis/example.com/v1/namespaces/default/widgets", object("Widget", "one"))
	if e := widgets.next(); e.Type != "ADDED" {
		t.Errorf("the watch shows %s", e.Type)
	}
	patch(`{"spec":{"names":{"shortNames":["w"]}}}`)
	if widgets.in.Scan() {
		t.Errorf("the watch of what changed goes on: %s", widgets.in.Text())
	}
	s.want(http.StatusOK, "DELETE", crdsPath+"/others.example.com", "")
	s.awaitGone("others.example.com")
	s.want(http.StatusCreated, "POST", "/apis/example.com/v1/namespaces/default/gadgets", object("Gadget", "one"))
	if e := gadgets.next(); e.Type != "ADDED" {
		t.Errorf("the watch shows %s", e.Type)
	}
}

// The condition of a definition in a protected group follows its annotation.
func TestApprovalOfAProtectedGroup(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	d := definitionOf("widgets", "Widget", func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Name, d.Spec.Group = "widgets.keelson.k8s.io", "keelson.k8s.io"
		d.Annotations = map[string]string{"api-approved.kubernetes.io": "unapproved, a test"}
	})
	s.establish(d)
	got := s.await(d.Name, hasReason(apiextensionsv1.KubernetesAPIApprovalPolicyConformant, "UnapprovedAnnotation"))
	if got, want := conditionText(got, apiextensionsv1.KubernetesAPIApprovalPolicyConformant), `False UnapprovedAnnotation: not approved: "unapproved, a test"`; got != want {
		t.Errorf("the condition is %q, want %q", got, want)
	}
	s.want(http.StatusOK, "PATCH", crdsPath+"/"+d.Name, `{"metadata":{"annotations":{"api-approved.kubernetes.io":"https://example.com/1"}}}`, "Content-Type", "application/merge-patch+json")
	got = s.await(d.Name, isTrue(apiextensionsv1.KubernetesAPIApprovalPolicyConformant))
	if got, want := conditionText(got, apiextensionsv1.KubernetesAPIApprovalPolicyConformant), `True ApprovedAnnotation: approved in https://example.com/1`; got != want {
		t.Errorf("the condition is %q, want %q", got, want)
	}
}

// A server that is ready serves the stored definitions, and continues the work of another server.
func TestARestart(t *testing.T) {
	t.Parallel()
	b := newSharedStorage(t)
	first := newSite(t, b)
	for i := range 10 {
		first.establish(definitionOf(fmt.Sprintf("widgets%d", i), fmt.Sprintf("Widget%d", i)))
	}
	first.want(http.StatusCreated, "POST", "/apis/example.com/v1/namespaces/default/widgets3", object("Widget3", "one"))
	if err := first.srv.Close(); err != nil {
		t.Fatal(err)
	}
	second := newSite(t, b)
	for i := range 10 {
		second.want(http.StatusOK, "GET", fmt.Sprintf("/apis/example.com/v1/widgets%d", i), "")
	}
	second.want(http.StatusOK, "GET", "/apis/example.com/v1/namespaces/default/widgets3/one", "")
	if got := second.want(http.StatusOK, "GET", "/readyz?verbose", ""); !strings.Contains(got, "[+]customresourcedefinitions ok") {
		t.Errorf("the checks are %s", got)
	}
}

// If the program now serves a kind that a definition defines, it takes precedence, and the deletion of the definition keeps its
// objects.
func TestAGoKindTakesTheNameOfADefinition(t *testing.T) {
	t.Parallel()
	b := newSharedStorage(t)
	first := newSite(t, b)
	first.establish(definitionOf("tools", "Tool"))
	first.want(http.StatusCreated, "POST", "/apis/example.com/v1/namespaces/default/tools", object("Tool", "saw"))
	if err := first.srv.Close(); err != nil {
		t.Fatal(err)
	}
	second := newSite(t, b, tools())
	second.want(http.StatusOK, "GET", "/apis/example.com/v1/namespaces/default/tools/saw", "")
	second.want(http.StatusOK, "DELETE", crdsPath+"/tools.example.com", "")
	eventually(t, func() bool { return second.get("tools.example.com") == nil }, func() string { return text(t, second.get("tools.example.com")) })
	second.want(http.StatusOK, "GET", "/apis/example.com/v1/namespaces/default/tools/saw", "")
}

// A definition created on one server is served by the other one. If both accept the same kind for two definitions, one of these
// is established.
func TestTwoServers(t *testing.T) {
	t.Parallel()
	b := newSharedStorage(t)
	one, other := newSite(t, b), newSite(t, b)
	one.establish(definitionOf("widgets", "Widget"))
	eventually(t, func() bool { return other.do("GET", "/apis/example.com/v1/widgets", "", nil) == http.StatusOK }, func() string { return "not served" })
	other.want(http.StatusCreated, "POST", "/apis/example.com/v1/namespaces/default/widgets", object("Widget", "one"))
	one.want(http.StatusOK, "GET", "/apis/example.com/v1/namespaces/default/widgets/one", "")

	for i := range 10 {
		kind := fmt.Sprintf("Rival%d", i)
		var both sync.WaitGroup
		for plural, s := range map[string]*site{fmt.Sprintf("ones%d", i): one, fmt.Sprintf("others%d", i): other} {
			both.Go(func() { s.define(definitionOf(plural, kind)) })
		}
		both.Wait()
		settled := func() (established, refused int) {
			for _, plural := range []string{fmt.Sprintf("ones%d", i), fmt.Sprintf("others%d", i)} {
				d := one.get(plural + ".example.com")
				if isTrue(apiextensionsv1.Established)(d) {
					established++
				}
				if condition(d, apiextensionsv1.NamesAccepted).Status == apiextensionsv1.ConditionFalse {
					refused++
				}
			}
			return established, refused
		}
		eventually(t, func() bool { e, r := settled(); return e+r >= 2 }, func() string { return fmt.Sprint(settled()) })
		if e, r := settled(); e != 1 || r != 1 {
			t.Errorf("of two definitions with one kind %d are established and %d refused", e, r)
		}
	}
}

// put stores a definition as another program would.
func put(t *testing.T, b storage.Backend, d *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	d.UID = types.UID(d.Name)
	d.Generation, d.CreationTimestamp = 1, metav1.Now()
	d.Spec.Names.Singular, d.Spec.Names.ListKind = strings.ToLower(d.Spec.Names.Plural), d.Spec.Names.Kind+"List"
	if d.Spec.Conversion == nil {
		d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	}
	d.Status.StoredVersions = []string{"v1"}
	key := "/registry/apiextensions.k8s.io/customresourcedefinitions/" + d.Name
	if _, err := b.Commit(t.Context(), storage.Commit{Key: key, Value: []byte(text(t, d))}); err != nil {
		t.Fatal(err)
	}
}

// If servers accept the same kind for two definitions at the same time, the first one is established, and the other one loses the
// kind.
func TestAKindAcceptedTwice(t *testing.T) {
	t.Parallel()
	b := newSharedStorage(t)
	for _, plural := range []string{"bbs", "aas", "ccs"} {
		put(t, b, definitionOf(plural, "Rival", func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Status.AcceptedNames = apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Singular: plural, Kind: "Rival", ListKind: "RivalList"}
			d.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
				{Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue, Reason: "NoConflicts", Message: "no conflicts found", LastTransitionTime: metav1.Now()},
				{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionFalse, Reason: "Installing", Message: "the initial names have been accepted", LastTransitionTime: metav1.Now()},
			}
		}))
	}
	s := newSite(t, b)
	s.await("bbs.example.com", isTrue(apiextensionsv1.Established))
	for _, name := range []string{"aas.example.com", "ccs.example.com"} {
		d := s.await(name, hasReason(apiextensionsv1.NamesAccepted, "ListKindConflict"))
		if isTrue(apiextensionsv1.Established)(d) || d.Status.AcceptedNames.Kind != "" {
			t.Errorf("the definition is %s", text(t, d))
		}
	}
	s.want(http.StatusOK, "GET", "/apis/example.com/v1/bbs", "")
	s.want(http.StatusNotFound, "GET", "/apis/example.com/v1/aas", "")
}

// A stored definition that cannot be served has a condition that says so, and can be deleted.
func TestADefinitionThatCannotBeServed(t *testing.T) {
	t.Parallel()
	b := newSharedStorage(t)
	put(t, b, definitionOf("hooks", "Hook", func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter}
	}))
	put(t, b, definitionOf("shapes", "Shape", func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Versions[0].Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{"a": {}}}
	}))
	s := newSite(t, b)
	for name, want := range map[string]string{"hooks": "its conversion webhook cannot be called", "shapes": "its schema is not structural"} {
		d := s.await(name+".example.com", hasReason(apiextensionsv1.Established, "NotServed"))
		if got := conditionText(d, apiextensionsv1.Established); !strings.Contains(got, want) || isTrue(apiextensionsv1.Established)(d) {
			t.Errorf("Established is %q", got)
		}
		if got := condition(d, apiextensionsv1.NonStructuralSchema).Status == apiextensionsv1.ConditionTrue; got != (name == "shapes") {
			t.Errorf("the definition is %s", text(t, d))
		}
		before := d.ResourceVersion
		s.establish(definitionOf("after"+name, "After"+name))
		if after := s.get(name + ".example.com").ResourceVersion; after != before {
			t.Errorf("the definition is written while nothing changes")
		}
		s.want(http.StatusOK, "DELETE", crdsPath+"/"+name+".example.com", "")
		s.awaitGone(name + ".example.com")
	}
}
