package server_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage/bolt"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kinds with mistakes.
type (
	untaggedField = runtime.Resource[struct{ Size int32 }, struct{}]
	shortTag      = runtime.Resource[shortTagged, struct{}]
	misspeltTag   = runtime.Resource[misspeltTagged, struct{}]
	wrongRule     = runtime.Resource[wronglyRuled, struct{}]
	wrongDefault  = runtime.Resource[wronglyDefaulted, struct{}]
	neverAbsent   = runtime.Resource[requiredInt, struct{}]
	noJSON        = runtime.Resource[withChannel, struct{}]
	nameless      = runtime.Resource[namelessPart, struct{}]
	shortTagged   struct {
		Size int32 `json:"size" min:"1"`
	}
	misspeltTagged struct {
		Color string `json:"color" maxLenght:"3"`
	}
	wronglyRuled struct {
		Color string `json:"color" minimum:"3"`
	}
	wronglyDefaulted struct {
		Size int32 `json:"size" maximum:"3" default:"5"`
	}
	requiredInt struct {
		Size int32 `json:"size" required:"true"`
	}
	withChannel struct {
		C chan int `json:"c"`
	}
	namelessPart struct {
		Parts []struct {
			URL string
		} `json:"parts"`
	}
)

// Versions of a Widget, and another kind, for conversions with mistakes.
type (
	mistakenV1Beta1 = runtime.Resource[struct {
		Size int32 `json:"size"`
	}, struct{}]
	mistakenV1Alpha1 struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
	}
	mistakenGadget struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
	}
)

func (v *mistakenV1Alpha1) DeepCopyObject() runtime.Object { return runtime.DeepCopy(v) }
func (g *mistakenGadget) DeepCopyObject() runtime.Object   { return runtime.DeepCopy(g) }

// converts is a conversion function that is never called.
func converts[A, B any](A, B) error { return nil }

// nilGetter is a Storage whose pointer is nil.
type nilGetter struct{}

func (*nilGetter) Get(*registry.Call, string, *metav1.GetOptions) (runtime.Object, error) {
	return nil, nil
}

// listerOnly has a capability that no subresource has.
type listerOnly struct{}

func (listerOnly) List(*registry.Call, *metav1.ListOptions) (runtime.Object, error) { return nil, nil }
func (listerOnly) NewList() runtime.Object                                          { return nil }

// Mistakes that a program can make in its options are errors of New, which name the mistake and the cure. The messages are in
// testdata/mistakes.txt, where KEELSON_UPDATE=1 writes them.
func TestMistakes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	taken := filepath.Join(dir, "taken.db")
	backend, err := bolt.Open(taken, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = backend.Close() }()
	foreign := filepath.Join(dir, "foreign.db")
	if err := os.WriteFile(foreign, []byte(strings.Repeat("no storage file", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}

	kind := func(r ...server.Resource) server.Options {
		return server.Options{Groups: []server.Group{{Name: "example.com", Versions: []server.Version{{Name: "v1", Resources: r}}}}}
	}
	type options = server.KindOptions[*Widget]
	widget := func(o options) server.Options { return kind(server.Kind("Widget", o)) }
	column := func(c ...server.Column[*Widget]) server.Options { return widget(options{Columns: c}) }
	group := func(name, version string) server.Options {
		return server.Options{Groups: []server.Group{{Name: name, Versions: []server.Version{{Name: version, Resources: []server.Resource{server.Kind("Widget", options{})}}}}}}
	}
	convert := func(c ...server.Conversion) server.Options {
		return server.Options{Groups: []server.Group{{Name: "example.com", Versions: []server.Version{
			{Name: "v1", Resources: []server.Resource{server.Kind("Widget", options{}), server.Kind("Gadget", server.KindOptions[*mistakenGadget]{})}},
			{Name: "v1beta1", Resources: []server.Resource{server.Kind("Widget", server.KindOptions[*mistakenV1Beta1]{})}},
			{Name: "v1alpha1", Resources: []server.Resource{server.Kind("Widget", server.KindOptions[*mistakenV1Alpha1]{})}},
		}, Conversions: c}}}
	}
	filter := func(f func([]server.NamedFilter) []server.NamedFilter) server.Options {
		return server.Options{Serving: server.Serving{Filters: f}}
	}
	value := func(*Widget) any { return 1 }

	cases := []struct {
		name string
		opts server.Options
	}{
		{"a field without a json tag", kind(server.Kind("Untagged", server.KindOptions[*untaggedField]{}))},
		{"a field of a part without a json tag", kind(server.Kind("Nameless", server.KindOptions[*nameless]{}))},
		{"a tag that another library has", kind(server.Kind("Short", server.KindOptions[*shortTag]{}))},
		{"a misspelt tag", kind(server.Kind("Misspelt", server.KindOptions[*misspeltTag]{}))},
		{"a rule for another type", kind(server.Kind("Wrong", server.KindOptions[*wrongRule]{}))},
		{"a default that breaks a rule", kind(server.Kind("Default", server.KindOptions[*wrongDefault]{}))},
		{"required, and never absent", kind(server.Kind("Never", server.KindOptions[*neverAbsent]{}))},
		{"a type that is not JSON", kind(server.Kind("Channel", server.KindOptions[*noJSON]{}))},
		{"a version without a number", group("example.com", "one")},
		{"a version that is a number", group("example.com", "1")},
		{"a version with a path", group("example.com", "v1/x")},
		{"a group without a dot", group("example", "v1")},
		{"a group with a blank", group("Example Com", "v1")},
		{"a group twice", server.Options{Groups: append(group("example.com", "v1").Groups, group("example.com", "v1").Groups...)}},
		{"a group without versions", server.Options{Groups: []server.Group{{Name: "example.com"}}}},
		{"a version without resources", server.Options{Groups: []server.Group{{Name: "example.com", Versions: []server.Version{{Name: "v1"}}}}}},
		{"a zero resource", kind(server.Resource{})},
		{"a zero conversion", server.Options{Groups: []server.Group{{Name: "example.com", Versions: group("example.com", "v1").Groups[0].Versions, Conversions: []server.Conversion{{}}}}}},
		{"a conversion the wrong way round", convert(server.Convert(converts[*Widget, *mistakenV1Beta1], converts[*mistakenV1Beta1, *Widget]))},
		{"a conversion of the hub to itself", convert(server.Convert(converts[*Widget, *Widget], converts[*Widget, *Widget]))},
		{"a conversion of a version to itself", convert(server.Convert(converts[*mistakenV1Beta1, *mistakenV1Beta1], converts[*mistakenV1Beta1, *mistakenV1Beta1]))},
		{"a conversion to a version that is not the hub", convert(server.Convert(converts[*mistakenV1Alpha1, *mistakenV1Beta1], converts[*mistakenV1Beta1, *mistakenV1Alpha1]))},
		{"a conversion to another kind", convert(server.Convert(converts[*mistakenV1Beta1, *mistakenGadget], converts[*mistakenGadget, *mistakenV1Beta1]))},
		{"a conversion of a type that is not served", convert(server.Convert(converts[*shortTag, *Widget], converts[*Widget, *shortTag]))},
		{"a conversion with one direction", convert(server.Convert(converts[*mistakenV1Beta1, *Widget], nil))},
		{"a conversion twice", convert(server.Convert(converts[*mistakenV1Beta1, *Widget], converts[*Widget, *mistakenV1Beta1]), server.Convert(converts[*mistakenV1Beta1, *Widget], converts[*Widget, *mistakenV1Beta1]))},
		{"a version without a conversion", convert(server.Convert(converts[*mistakenV1Beta1, *Widget], converts[*Widget, *mistakenV1Beta1]))},
		{"a kind in lower case", kind(server.Kind("widget", options{}))},
		{"a kind with a blank", kind(server.Kind("My Widget", options{}))},
		{"no kind", kind(server.Kind("", options{}))},
		{"one type for two kinds", kind(server.Kind("Widget", options{}), server.Kind("Gadget", options{}))},
		{"a plural in upper case", widget(options{Plural: "Widgets"})},
		{"a short name with a blank", widget(options{ShortNames: []string{"w d"}})},
		{"a category in upper case", widget(options{Categories: []string{"All"}})},
		{"a path of a scale that is not there", widget(options{Scale: &registry.Scale{SpecReplicas: ".spec.none", StatusReplicas: ".status.replicas"}})},
		{"a selectable field that is not there", widget(options{SelectableFields: []string{"spec.none"}})},
		{"an index of what is not selectable", widget(options{IndexFields: []string{"spec.color"}})},
		{"a field that is shown, of a kind with a Go type", widget(options{SelectableFields: []string{"spec.color"}, ShownFields: []string{"spec.color"}})},
		{"an index of no label", widget(options{IndexLabels: []string{"a b"}})},
		{"an index without a cache", widget(options{NoCache: true, IndexLabels: []string{"app"}})},
		{"verbs, but none", widget(options{Verbs: []string{}})},
		{"a verb that there is not", widget(options{Verbs: []string{"get", "post"}})},
		{"a negative TTL", widget(options{TTL: -time.Second})},
		{"a storage path with empty names", widget(options{StoragePath: "/a//b"})},
		{"a storage that is nil", widget(options{Storage: (*nilGetter)(nil)})},
		{"a storage that can do nothing", widget(options{Storage: struct{}{}})},
		{"a storage and a scale", widget(options{Storage: moons{}, Scale: &registry.Scale{}})},
		{"functions that are not there", widget(options{Computed: &server.Computed[*Widget]{}})},
		{"functions and a storage", widget(options{Computed: &server.Computed[*Widget]{Get: noWidget}, Storage: moons{}})},
		{"functions and a strategy", widget(options{Computed: &server.Computed[*Widget]{Get: noWidget}, SelectableFields: []string{"spec.color"}})},
		{"an action without a function", widget(options{Subresources: map[string]server.Subresource{"do": server.Action[*Widget]("Do", nil)}})},
		{"a subresource that can only list", widget(options{Subresources: map[string]server.Subresource{"parts": {Storage: listerOnly{}}}})},
		{"a subresource with a blank", widget(options{Subresources: map[string]server.Subresource{"do it": {Storage: moons{}}}})},
		{"a subresource that there is already", widget(options{Subresources: map[string]server.Subresource{"status": {Storage: moons{}}}})},
		{"a column without a name", column(server.Column[*Widget]{Value: value})},
		{"a column without a value", column(server.Column[*Widget]{Name: "Size"})},
		{"a column of an unknown type", column(server.Column[*Widget]{Name: "Size", Type: "int", Value: value})},
		{"two columns of one name", column(server.Column[*Widget]{Name: "Size", Value: value}, server.Column[*Widget]{Name: "size", Value: value})},
		{"an option of the hub elsewhere", spoke(server.KindOptions[*SailV1Beta1]{NoCache: true})},
		{"a filter that is nil", filter(func(l []server.NamedFilter) []server.NamedFilter { return append(l, server.NamedFilter{Name: "mine"}) })},
		{"a filter beside one that is not there", filter(func(l []server.NamedFilter) []server.NamedFilter {
			return server.InsertBefore(l, "nope", server.NamedFilter{Name: "mine", Filter: func(next http.Handler) http.Handler { return next }})
		})},
		{"a filter without a handler", filter(func(l []server.NamedFilter) []server.NamedFilter {
			return append(l, server.NamedFilter{Name: "mine", Filter: func(http.Handler) http.Handler { return nil }})
		})},
		{"a guard that is removed", filter(func(l []server.NamedFilter) []server.NamedFilter {
			return slices.DeleteFunc(l, func(f server.NamedFilter) bool { return f.Name == server.FilterAuthorize })
		})},
		{"an address without a port", server.Options{Serving: server.Serving{Listen: "localhost"}}},
		{"a proxy that is zero", server.Options{Serving: server.Serving{Proxies: []netip.Prefix{{}}}}},
		{"a user without a name", server.Options{Policy: server.Policy{Users: map[string]authn.User{"secret": {Groups: []string{"builders"}}}}}},
		{"a kubeconfig for nobody", server.Options{Serving: server.Serving{Kubeconfig: "x"}, Policy: server.Policy{NoAdministrator: true}}},
		{"a kubeconfig in no folder", server.Options{Serving: server.Serving{Kubeconfig: filepath.Join(dir, "none", "kubeconfig")}}},
		{"authorities that are a file name", server.Options{Serving: server.Serving{Authorities: []byte("ca.crt")}}},
		{"a private key among the authorities", server.Options{Serving: server.Serving{Authorities: []byte("-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n")}}},
		{"a URL without https", server.Options{Serving: server.Serving{URL: "fair.example.com"}}},
		{"credentials in a file", server.Options{Serving: server.Serving{Credentials: foreign}}},
		{"a negative time", server.Options{Limits: server.Limits{IdleTimeout: -1}}},
		{"a negative token cache", server.Options{Policy: server.Policy{TokenCache: authn.CacheOptions{Entries: -1}}}},
		{"no path", server.Options{Storage: bolt.At("")}},
		{"a path in no folder", server.Options{Storage: bolt.At(filepath.Join(dir, "none", "x.db"))}},
		{"a path of a folder", server.Options{Storage: bolt.At(dir)}},
		{"a path of another file", server.Options{Storage: bolt.At(foreign)}},
		{"a file that is open", server.Options{Storage: bolt.At(taken)}},
		{"a quota for nothing", server.Options{Storage: bolt.With(filepath.Join(dir, "q.db"), bolt.Options{Quota: 1000})}},
	}
	var got strings.Builder
	for _, c := range cases {
		srv, err := server.New(c.opts)
		if err == nil {
			_ = srv.Close()
			t.Errorf("%s is no error", c.name)
			continue
		}
		fmt.Fprintf(&got, "%s:\n    %s\n", c.name, strings.ReplaceAll(strings.ReplaceAll(err.Error(), dir, "DIR"), "\n", "\n    "))
	}
	const golden = "testdata/mistakes.txt"
	if os.Getenv("KEELSON_UPDATE") != "" {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil { //nolint:gosec // a file of the repository
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("the messages differ from those in %s:\n%s", golden, got.String())
	}
}

func noWidget(*registry.Call, string) (*Widget, error) { return nil, nil }
