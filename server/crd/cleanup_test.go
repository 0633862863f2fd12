package crd_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/crd"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const widgetsPath = "/apis/example.com/v1/namespaces/default/widgets"

func (s *site) count(path string) int {
	s.t.Helper()
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal([]byte(s.want(http.StatusOK, "GET", path, "")), &list); err != nil {
		s.t.Fatal(err)
	}
	return len(list.Items)
}

// A DELETE answers with the marked definition, and deletes its objects. The next definition of that name has none.
func TestDeletionTakesTheObjects(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.establish(definitionOf("widgets", "Widget"))
	for i := range 100 {
		s.want(http.StatusCreated, "POST", fmt.Sprintf("/apis/example.com/v1/namespaces/n%d/widgets", i%7), object("Widget", fmt.Sprint("w", i)))
	}
	var d apiextensionsv1.CustomResourceDefinition
	check := func(text string) {
		t.Helper()
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			t.Fatal(err)
		}
		const want = "True InstanceDeletionPending: CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
		if got := conditionText(&d, apiextensionsv1.Terminating); got != want {
			t.Errorf("Terminating is %q, want %q", got, want)
		}
		if d.Generation != 1 || d.DeletionTimestamp == nil || d.DeletionGracePeriodSeconds != nil || fmt.Sprint(d.Finalizers) != "[customresourcecleanup.apiextensions.k8s.io]" {
			t.Errorf("the metadata is %+v", d.ObjectMeta)
		}
	}
	check(s.want(http.StatusOK, "DELETE", crdsPath+"/widgets.example.com?dryRun=All", ""))
	if got := s.count("/apis/example.com/v1/widgets"); got != 100 || s.get("widgets.example.com").DeletionTimestamp != nil {
		t.Fatalf("a dry run left %d objects", got)
	}
	check(s.want(http.StatusOK, "DELETE", crdsPath+"/widgets.example.com", ""))
	s.awaitGone("widgets.example.com")
	s.establish(definitionOf("widgets", "Widget"))
	if got := s.count("/apis/example.com/v1/widgets"); got != 0 {
		t.Errorf("the next of its name begins with %d objects", got)
	}
}

// While finalizers hold objects, no new objects can be created, and the definition and its names stay.
func TestDeletionWaitsForFinalizers(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.establish(definitionOf("widgets", "Widget"))
	for _, name := range []string{"one", "two"} {
		s.want(http.StatusCreated, "POST", widgetsPath, object("Widget", name, "example.com/hold"))
	}
	s.want(http.StatusCreated, "POST", widgetsPath, object("Widget", "free"))
	s.want(http.StatusOK, "DELETE", crdsPath+"/widgets.example.com", "")

	refused := `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"widgets.example.com \"zz\" is forbidden: create not allowed while custom resource definition is terminating",` +
		`"reason":"Forbidden","details":{"name":"zz","group":"example.com","kind":"widgets"},"code":403}`
	if got := strings.TrimSpace(s.want(http.StatusForbidden, "POST", widgetsPath, object("Widget", "zz"))); got != refused {
		t.Errorf("a create is answered with\n%s, want\n%s", got, refused)
	}
	if got := strings.TrimSpace(s.want(http.StatusForbidden, "PATCH", widgetsPath+"/zz?fieldManager=x", object("Widget", "zz"), "Content-Type", "application/apply-patch+yaml")); got != refused {
		t.Errorf("an apply is answered with\n%s, want\n%s", got, refused)
	}
	got := s.want(http.StatusForbidden, "POST", widgetsPath, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"generateName":"zz-"}}`)
	if !strings.Contains(got, `"message":"widgets.example.com is forbidden: create not allowed`) {
		t.Errorf("a create with generateName is answered with %s", got)
	}
	d := s.await("widgets.example.com", hasReason(apiextensionsv1.Terminating, "InstanceDeletionInProgress"))
	if got, want := conditionText(d, apiextensionsv1.Terminating), "True InstanceDeletionInProgress: CustomResource deletion is in progress"; got != want {
		t.Errorf("Terminating is %q, want %q", got, want)
	}
	eventually(t, func() bool { return s.verbs("widgets") == "[delete deletecollection get list watch]" }, func() string { return s.verbs("widgets") })
	eventually(t, func() bool { return s.count(widgetsPath) == 2 }, func() string { return "the free one is there" })

	s.want(http.StatusConflict, "POST", crdsPath, text(t, definitionOf("widgets", "Widget")))
	s.define(definitionOf("gadgets", "Widget"))
	s.await("gadgets.example.com", hasReason(apiextensionsv1.NamesAccepted, "ListKindConflict"))
	// A second DELETE changes only the grace period, as for any object.
	s.want(http.StatusOK, "DELETE", crdsPath+"/widgets.example.com", "")

	for _, name := range []string{"one", "two"} {
		s.want(http.StatusOK, "PATCH", widgetsPath+"/"+name, `{"metadata":{"finalizers":null}}`, "Content-Type", "application/merge-patch+json")
	}
	s.awaitGone("widgets.example.com")
	s.await("gadgets.example.com", isTrue(apiextensionsv1.Established))
}

func (s *site) verbs(plural string) string {
	s.t.Helper()
	var list metav1.APIResourceList
	s.do("GET", "/apis/example.com/v1", "", &list)
	for _, r := range list.APIResources {
		if r.Name == plural {
			return fmt.Sprint(r.Verbs)
		}
	}
	return ""
}

// A finalizer of another client holds the definition after its objects are gone.
func TestOthersHoldADefinition(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.establish(definitionOf("widgets", "Widget", func(d *apiextensionsv1.CustomResourceDefinition) { d.Finalizers = []string{"example.com/hold"} }))
	s.want(http.StatusCreated, "POST", widgetsPath, object("Widget", "one"))
	s.want(http.StatusOK, "DELETE", crdsPath+"/widgets.example.com", "")
	d := s.await("widgets.example.com", hasReason(apiextensionsv1.Terminating, "InstanceDeletionCompleted"))
	if got, want := conditionText(d, apiextensionsv1.Terminating), "False InstanceDeletionCompleted: removed all instances"; got != want {
		t.Errorf("Terminating is %q, want %q", got, want)
	}
	if got := s.count(widgetsPath); got != 0 {
		t.Errorf("%d objects are left", got)
	}
	s.want(http.StatusForbidden, "POST", widgetsPath, object("Widget", "two"))
	s.want(http.StatusOK, "PATCH", crdsPath+"/widgets.example.com", `{"metadata":{"finalizers":null}}`, "Content-Type", "application/merge-patch+json")
	s.awaitGone("widgets.example.com")
}

// If a client removes the finalizer, the objects are kept for the next definition of that name, and the names are free.
func TestTheFinalizerTakenByHandKeepsTheObjects(t *testing.T) {
	t.Parallel()
	s := startSite(t, server.Options{Policy: server.Policy{
		Admission: admission.Chain{{Validator: admission.ValidatorFunc(func(ctx context.Context, r *admission.Request) error {
			if r.Operation == admission.Delete && r.Resource.Resource == "widgets" {
				<-ctx.Done() // until the definition is gone
				return ctx.Err()
			}
			return nil
		})}},
	}}, crd.New(crd.Options{}))
	s.establish(definitionOf("widgets", "Widget"))
	s.want(http.StatusCreated, "POST", widgetsPath, object("Widget", "one"))
	s.define(definitionOf("gadgets", "Widget"))
	s.await("gadgets.example.com", hasReason(apiextensionsv1.NamesAccepted, "ListKindConflict"))
	s.want(http.StatusOK, "DELETE", crdsPath+"/widgets.example.com", "")
	s.await("widgets.example.com", hasReason(apiextensionsv1.Terminating, "InstanceDeletionInProgress"))
	s.want(http.StatusOK, "PATCH", crdsPath+"/widgets.example.com", `{"metadata":{"finalizers":null}}`, "Content-Type", "application/merge-patch+json")
	s.awaitGone("widgets.example.com")
	s.await("gadgets.example.com", isTrue(apiextensionsv1.Established))
	s.want(http.StatusOK, "DELETE", crdsPath+"/gadgets.example.com", "")
	s.awaitGone("gadgets.example.com")
	s.establish(definitionOf("widgets", "Widget"))
	if got := s.count(widgetsPath); got != 1 {
		t.Errorf("%d objects are left", got)
	}
}

func TestDeletionOfManyObjects(t *testing.T) {
	t.Parallel()
	many := 10000
	if testing.Short() {
		many = 1000
	}
	var host *server.Host
	s := newSite(t, nil, server.ExtensionFunc(func(h *server.Host) error { host = h; return nil }))
	s.establish(definitionOf("widgets", "Widget"))
	reg, err := host.Registry(schema.GroupResource{Group: "example.com", Resource: "widgets"})
	if err != nil {
		t.Fatal(err)
	}
	widgets, err := registry.For[*unstructured.Unstructured](reg, authn.System())
	if err != nil {
		t.Fatal(err)
	}
	for i := range many {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(i)}}}
		u.SetName(fmt.Sprint("w", i))
		if _, err := widgets.Create(t.Context(), fmt.Sprint("n", i%50), u); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.count("/apis/example.com/v1/widgets"); got != many {
		t.Fatalf("there are %d objects", got)
	}
	s.want(http.StatusOK, "DELETE", crdsPath+"/widgets.example.com", "")
	s.awaitGone("widgets.example.com")
	s.establish(definitionOf("widgets", "Widget"))
	if got := s.count("/apis/example.com/v1/widgets"); got != 0 {
		t.Errorf("the next of its name begins with %d objects", got)
	}
}

// obstinate is a plug-in that refuses requests according to its functions.
type obstinate struct {
	refuse func(r *admission.Request) error
}

func (o *obstinate) Validate(_ context.Context, r *admission.Request) error { return o.refuse(r) }

func sharedOptions(b storage.Backend, v admission.Validator) server.Options {
	return server.Options{
		Storage: func(context.Context) (storage.Backend, error) { return b, nil },
		Policy:  server.Policy{Admission: admission.Chain{{Validator: v}}},
	}
}

// A server may end at any step of a deletion, and another server continues the deletion.
func TestADeletionIsCutOff(t *testing.T) {
	t.Parallel()
	isDefinition := func(r *admission.Request) bool { return r.Resource.Resource == "customresourcedefinitions" }
	writes := func(r *admission.Request, reason string) bool {
		d, ok := r.Object().(*apiextensionsv1.CustomResourceDefinition)
		return ok && isDefinition(r) && r.Operation == admission.Update && condition(d, apiextensionsv1.Terminating).Reason == reason
	}
	for name, refuses := range map[string]func(r *admission.Request) bool{
		"before it is told":           func(r *admission.Request) bool { return writes(r, "InstanceDeletionInProgress") },
		"before an object is deleted": func(r *admission.Request) bool { return r.Operation == admission.Delete && !isDefinition(r) },
		"when some objects are deleted": func(r *admission.Request) bool {
			return r.Operation == admission.Delete && strings.HasSuffix(r.Name, "7")
		},
		"before it is told that they are gone": func(r *admission.Request) bool {
			return writes(r, "InstanceDeletionCompleted") && len(r.Object().(*apiextensionsv1.CustomResourceDefinition).Finalizers) > 0
		},
		"before the finalizer is taken off": func(r *admission.Request) bool {
			return writes(r, "InstanceDeletionCompleted") && len(r.Object().(*apiextensionsv1.CustomResourceDefinition).Finalizers) == 0
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newSharedStorage(t)
			var refused atomic.Int64
			first := startSite(t, sharedOptions(b, &obstinate{func(r *admission.Request) error {
				if refuses(r) {
					refused.Add(1)
					return errors.New("not now")
				}
				return nil
			}}), crd.New(crd.Options{}))
			first.establish(definitionOf("widgets", "Widget"))
			for i := range 20 {
				first.want(http.StatusCreated, "POST", widgetsPath, object("Widget", fmt.Sprint("w", i)))
			}
			first.want(http.StatusOK, "DELETE", crdsPath+"/widgets.example.com", "")
			eventually(t, func() bool { return refused.Load() > 1 }, func() string { return "nothing was refused" })
			if first.get("widgets.example.com") == nil {
				t.Fatal("the definition is gone")
			}
			if err := first.srv.Close(); err != nil {
				t.Fatal(err)
			}
			second := newSite(t, b)
			second.awaitGone("widgets.example.com")
			second.establish(definitionOf("widgets", "Widget"))
			if got := second.count(widgetsPath); got != 0 {
				t.Errorf("the next of its name begins with %d objects", got)
			}
		})
	}
}

// A condition lists the objects that cannot be deleted. Their deletion is tried again, also if a plug-in returns NotFound.
func TestADeletionThatFailsIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		why  error
		want string
	}{
		"refused":   {errors.New("not now"), `widgets.example.com "one" is forbidden: not now`},
		"not found": {apierrors.NewNotFound(schema.GroupResource{Resource: "others"}, "two"), `default/one cannot be deleted: others "two" not found`},
	} {
		t.Run(name, func(t *testing.T) { testADeletionThatFails(t, c.why, c.want) })
	}
}

func testADeletionThatFails(t *testing.T, why error, text string) {
	t.Parallel()
	var good atomic.Bool
	s := startSite(t, server.Options{Policy: server.Policy{
		Admission: admission.Chain{{Validator: &obstinate{func(r *admission.Request) error {
			if r.Operation == admission.Delete && r.Name == "one" && !good.Load() {
				return why
			}
			return nil
		}}}},
	}}, crd.New(crd.Options{}))
	s.establish(definitionOf("widgets", "Widget"))
	s.want(http.StatusCreated, "POST", widgetsPath, object("Widget", "one"))
	s.want(http.StatusOK, "DELETE", crdsPath+"/widgets.example.com", "")
	d := s.await("widgets.example.com", hasReason(apiextensionsv1.Terminating, "InstanceDeletionFailed"))
	want := "True InstanceDeletionFailed: could not issue all deletes: " + text
	if got := conditionText(d, apiextensionsv1.Terminating); got != want {
		t.Errorf("Terminating is %q, want %q", got, want)
	}
	good.Store(true)
	s.awaitGone("widgets.example.com")
}

// establishOnBoth defines Widgets, and waits until both servers serve them.
func establishOnBoth(one, other *site) {
	one.t.Helper()
	one.establish(definitionOf("widgets", "Widget"))
	for _, s := range []*site{one, other} {
		eventually(s.t, func() bool { return s.do("GET", widgetsPath, "", nil) == http.StatusOK }, func() string { return "not served" })
	}
}

// A writer on another server leaves no object that the next definition of the name would have.
func TestDeletionWithWritersOnAnotherServer(t *testing.T) {
	t.Parallel()
	b := newSharedStorage(t)
	one, other := newSite(t, b), newSite(t, b)
	for round := range 5 {
		establishOnBoth(one, other)
		stop := make(chan struct{})
		var writers sync.WaitGroup
		for w := range 4 {
			writers.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					code := other.do("POST", widgetsPath, object("Widget", fmt.Sprintf("w-%d-%d-%d", round, w, i)), nil)
					if code != http.StatusCreated && code != http.StatusForbidden && code != http.StatusNotFound {
						t.Errorf("a create is answered with %d", code)
						return
					}
				}
			})
		}
		eventually(t, func() bool { return one.count(widgetsPath) > 20 }, func() string { return "nothing is written" })
		one.want(http.StatusOK, "DELETE", crdsPath+"/widgets.example.com", "")
		one.awaitGone("widgets.example.com")
		eventually(t, func() bool { return other.do("GET", widgetsPath, "", nil) == http.StatusNotFound }, func() string { return "still served" })
		close(stop)
		writers.Wait()
		establishOnBoth(one, other)
		if got := one.count(widgetsPath); got != 0 {
			t.Fatalf("the next of its name begins with %d objects", got)
		}
		one.want(http.StatusOK, "DELETE", crdsPath+"/widgets.example.com", "")
		one.awaitGone("widgets.example.com")
		eventually(t, func() bool { return other.do("GET", widgetsPath, "", nil) == http.StatusNotFound }, func() string { return "still served" })
	}
}

// The deletion of the collection of definitions deletes each of them.
func TestDeletionOfACollection(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	for _, name := range []string{"widget", "gadget"} {
		s.establish(definitionOf(name+"s", strings.ToUpper(name[:1])+name[1:]))
	}
	s.want(http.StatusCreated, "POST", widgetsPath, object("Widget", "one"))
	s.want(http.StatusOK, "DELETE", crdsPath, "")
	s.awaitGone("widgets.example.com")
	s.awaitGone("gadgets.example.com")
	s.establish(definitionOf("widgets", "Widget"))
	if got := s.count(widgetsPath); got != 0 {
		t.Errorf("%d objects are left", got)
	}
}

// A create that another server admitted before the DELETE and that ends after the definition is gone leaves no object.
func TestACreateThatEndsLate(t *testing.T) {
	t.Parallel()
	b := newSharedStorage(t)
	arrived, goOn := make(chan struct{}), make(chan struct{})
	one := newSite(t, b)
	other := startSite(t, sharedOptions(b, &obstinate{func(r *admission.Request) error {
		if r.Operation == admission.Create && r.Name == "late" {
			close(arrived)
			<-goOn
		}
		return nil
	}}), crd.New(crd.Options{}))
	establishOnBoth(one, other)
	var late sync.WaitGroup
	late.Go(func() {
		if code := other.do("POST", widgetsPath, object("Widget", "late"), nil); code != http.StatusCreated {
			t.Errorf("the late create is answered with %d", code)
		}
	})
	<-arrived
	one.want(http.StatusOK, "DELETE", crdsPath+"/widgets.example.com", "")
	one.awaitGone("widgets.example.com")
	close(goOn)
	late.Wait()
	eventually(t, func() bool { return other.do("GET", widgetsPath, "", nil) == http.StatusNotFound }, func() string { return "still served" })
	establishOnBoth(one, other)
	if got := one.count(widgetsPath); got != 0 {
		t.Errorf("the next of its name begins with %d objects", got)
	}
}

// A definition stays until creates that were admitted before its DELETE have ended. The created objects are deleted.
func TestADeletionWaitsForCreates(t *testing.T) {
	t.Parallel()
	arrived, goOn := make(chan struct{}), make(chan struct{})
	s := startSite(t, server.Options{Policy: server.Policy{
		Admission: admission.Chain{{Validator: &obstinate{func(r *admission.Request) error {
			if r.Operation == admission.Create && r.Name == "late" {
				close(arrived)
				<-goOn
			}
			return nil
		}}}},
	}}, crd.New(crd.Options{}))
	s.establish(definitionOf("widgets", "Widget"))
	var late sync.WaitGroup
	late.Go(func() {
		if code := s.do("POST", widgetsPath, object("Widget", "late"), nil); code != http.StatusCreated {
			t.Errorf("the late create is answered with %d", code)
		}
	})
	<-arrived
	s.want(http.StatusOK, "DELETE", crdsPath+"/widgets.example.com", "")
	for range 3 {
		s.establish(definitionOf("gadgets", "Gadget"))
		s.want(http.StatusOK, "DELETE", crdsPath+"/gadgets.example.com", "")
		s.awaitGone("gadgets.example.com")
	}
	if s.get("widgets.example.com") == nil {
		t.Error("the definition is gone")
	}
	close(goOn)
	late.Wait()
	s.awaitGone("widgets.example.com")
	s.establish(definitionOf("widgets", "Widget"))
	if got := s.count(widgetsPath); got != 0 {
		t.Errorf("the next of its name begins with %d objects", got)
	}
}

// After the answer to the DELETE, the same server admits no create.
func TestNoCreateAfterADelete(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	for range 30 {
		s.establish(definitionOf("widgets", "Widget"))
		s.want(http.StatusCreated, "POST", widgetsPath, object("Widget", "one"))
		s.want(http.StatusOK, "DELETE", crdsPath+"/widgets.example.com", "")
		if code := s.do("POST", widgetsPath, object("Widget", "two"), nil); code != http.StatusForbidden && code != http.StatusNotFound {
			t.Fatalf("a create after the DELETE is answered with %d", code)
		}
		s.awaitGone("widgets.example.com")
	}
}

// A server that starts while a definition is being deleted also refuses creates, and its discovery shows the remaining verbs.
func TestARestartDuringADeletion(t *testing.T) {
	t.Parallel()
	b := newSharedStorage(t)
	first := newSite(t, b)
	first.establish(definitionOf("widgets", "Widget"))
	first.want(http.StatusCreated, "POST", widgetsPath, object("Widget", "one", "example.com/hold"))
	first.want(http.StatusOK, "DELETE", crdsPath+"/widgets.example.com", "")
	if err := first.srv.Close(); err != nil {
		t.Fatal(err)
	}
	second := newSite(t, b)
	second.want(http.StatusForbidden, "POST", widgetsPath, object("Widget", "two"))
	if got := second.verbs("widgets"); got != "[delete deletecollection get list watch]" {
		t.Errorf("discovery shows the verbs %s", got)
	}
	second.want(http.StatusOK, "PATCH", widgetsPath+"/one", `{"metadata":{"finalizers":null}}`, "Content-Type", "application/merge-patch+json")
	second.awaitGone("widgets.example.com")
}
