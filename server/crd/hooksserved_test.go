package crd_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	keelsonruntime "github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/webhook"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/crd"
	"github.com/keelson-dev/keelson/storage"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const hooked = "hooks.example.com" // the group of most tests

// newHooked starts a server that serves crates, which the webhook of their group converts.
func newHooked(t *testing.T, h *hooks, b storage.Backend, change ...func(*apiextensionsv1.CustomResourceDefinition)) *site {
	t.Helper()
	s := newSite(t, b)
	s.establish(h.crates(t, hooked, change...))
	return s
}

// amend changes a definition, and waits until a watch of the objects ends because of that.
func (s *site) amend(name string, change func(*apiextensionsv1.CustomResourceDefinition)) {
	s.t.Helper()
	plural, group, _ := strings.Cut(name, ".")
	var stored string
	for _, v := range s.get(name).Spec.Versions {
		if v.Storage {
			stored = v.Name
		}
	}
	events := s.watch("/apis/" + group + "/" + stored + "/" + plural + "?watch=true")
	s.put(name, change)
	events.end()
}

// put changes a definition.
func (s *site) put(name string, change func(*apiextensionsv1.CustomResourceDefinition)) {
	s.t.Helper()
	eventually(s.t, func() bool {
		d := s.get(name)
		change(d)
		var answer string
		code := s.do("PUT", crdsPath+"/"+name, text(s.t, d), &answer)
		if code != http.StatusOK && code != http.StatusConflict { // the controller may write at the same time
			s.t.Fatalf("%d %s", code, answer)
		}
		return code == http.StatusOK
	}, func() string { return name + " cannot be changed" })
}

// storing returns a function that makes a version the stored one.
func storing(version string) func(*apiextensionsv1.CustomResourceDefinition) {
	return func(d *apiextensionsv1.CustomResourceDefinition) {
		for i := range d.Spec.Versions {
			d.Spec.Versions[i].Storage = d.Spec.Versions[i].Name == version
		}
	}
}

// end reads a watch to its end.
func (w *stream) end() {
	w.t.Helper()
	for w.in.Scan() {
	}
	if err := w.in.Err(); err != nil {
		w.t.Errorf("the end of a watch: %v", err)
	}
}

// A change of the webhook in a definition takes effect at once, and objects converted by the old webhook are not returned again.
func TestAWebhookChanges(t *testing.T) {
	t.Parallel()
	h := startHooks(t)
	s := newHooked(t, h, nil)
	h.set("second", "labels")
	v1, v2 := cratesIn(hooked, "v1"), cratesIn(hooked, "v2")
	s.want(201, "POST", v1, crate(hooked, "v1", "a", `,"spec":{"size":3}`))
	const plain, labelled = `"spec":{"box":{"width":3}}`, `"labels":{"shown-in":"v2"}`
	read := func(want string, not ...string) {
		t.Helper()
		for _, path := range []string{v2 + "/a", v2, v2 + "?resourceVersion=0", v2 + "?watch=true&resourceVersion=0"} {
			for range 2 {
				var got string
				if strings.Contains(path, "watch") {
					events := s.watch(path)
					got = string(events.next().Object)
					_ = events.resp.Body.Close()
				} else {
					got = s.want(200, "GET", path, "")
				}
				if !strings.Contains(got, want) || slices.ContainsFunc(not, func(text string) bool { return strings.Contains(got, text) }) {
					t.Errorf("%s: %s\nwant %s, without %s", path, got, want, not)
				}
			}
		}
	}
	client := func(change func(c *apiextensionsv1.WebhookClientConfig)) func(*apiextensionsv1.CustomResourceDefinition) {
		return func(d *apiextensionsv1.CustomResourceDefinition) { change(d.Spec.Conversion.Webhook.ClientConfig) }
	}
	name := "crates." + hooked
	read(plain, labelled)
	if n := h.spent(hooked); n != 1 {
		t.Errorf("%d calls for one object that does not change", n)
	}
	url := h.URL + "/second"
	s.amend(name, client(func(c *apiextensionsv1.WebhookClientConfig) { c.URL = &url }))
	read(labelled)
	if n := h.spent(hooked); n != 0 {
		t.Errorf("%d calls of a webhook that is no longer the definition's", n)
	}
	other := startHooks(t) // the same certificate, but another port
	s.amend(name, client(func(c *apiextensionsv1.WebhookClientConfig) { c.CABundle = newBundle(t) }))
	if got := s.want(500, "GET", v2+"/a", ""); !strings.Contains(got, "no usable answer") {
		t.Error(got)
	}
	s.amend(name, func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	})
	read(`"spec":{}`, labelled)
	s.amend(name, func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Conversion = other.crates(t, hooked).Spec.Conversion
	})
	read(plain, labelled)
	// A change of other parts keeps the webhook and its remembered answers.
	other.spent(hooked)
	s.amend(name, func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Names.ShortNames = []string{"crt"} })
	read(plain, labelled)
	if n := other.spent(hooked); n != 0 {
		t.Errorf("%d calls though the webhook is the same", n)
	}
}

// A definition with an invalid CABundle is not established until that is corrected. It has the condition of kube-apiserver.
func TestInvalidBundle(t *testing.T) {
	t.Parallel()
	h := startHooks(t)
	s := newSite(t, nil)
	d := h.crates(t, hooked, func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Conversion.Webhook.ClientConfig.CABundle = []byte("none")
	})
	s.define(d)
	got := s.await(d.Name, hasReason(apiextensionsv1.Established, "InvalidCABundle"))
	if want := "False InvalidCABundle: The conversion webhook CABundle is invalid"; conditionText(got, apiextensionsv1.Established) != want {
		t.Errorf("Established is %q", conditionText(got, apiextensionsv1.Established))
	}
	s.want(404, "GET", cratesIn(hooked, "v1"), "")
	s.put(d.Name, func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Conversion.Webhook.ClientConfig.CABundle = h.bundle
	})
	got = s.await(d.Name, isTrue(apiextensionsv1.Established))
	s.want(201, "POST", cratesIn(hooked, "v2"), crate(hooked, "v2", "a", `,"spec":{"box":{}}`))
	got.Spec.Conversion.Webhook.ClientConfig.CABundle = []byte("none")
	want := `spec.conversion.webhookClientConfig.caBundle: Invalid value: \"bm9uZQ==\": unable to load root certificates: unable to parse bytes as PEM block`
	if a := s.want(422, "PUT", crdsPath+"/"+d.Name, text(t, got)); !strings.Contains(a, want) {
		t.Error(a)
	}
}

// If another program established a definition with an invalid CABundle, only the stored version is served.
func TestInvalidBundleOfAnotherServer(t *testing.T) {
	t.Parallel()
	h := startHooks(t)
	b := newSharedStorage(t)
	d := h.crates(t, hooked, func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Conversion.Webhook.ClientConfig.CABundle = []byte("none")
		d.Status.AcceptedNames = d.Spec.Names
		d.Status.StoredVersions = []string{"v1"}
		for _, c := range []apiextensionsv1.CustomResourceDefinitionConditionType{apiextensionsv1.NamesAccepted, apiextensionsv1.Established} {
			d.Status.Conditions = append(d.Status.Conditions, apiextensionsv1.CustomResourceDefinitionCondition{
				Type: c, Status: apiextensionsv1.ConditionTrue, LastTransitionTime: metav1.Now(),
			})
		}
	})
	put(t, b, d)
	s := newSite(t, b)
	s.want(201, "POST", cratesIn(hooked, "v1"), crate(hooked, "v1", "a", ``))
	a := s.want(500, "GET", cratesIn(hooked, "v2"), "")
	for _, want := range []string{"conversion webhook for Crate.hooks.example.com cannot be called", h.URL, "unable to load root certificates"} {
		if !strings.Contains(a, want) {
			t.Errorf("%s\nwant %s", a, want)
		}
	}
	s.want(200, "DELETE", crdsPath+"/"+d.Name, "")
	s.awaitGone(d.Name)
}

// A function of the program is called in place of a webhook, even if the webhook is invalid.
func TestAFunctionInThePlaceOfAWebhook(t *testing.T) {
	t.Parallel()
	h := startHooks(t)
	s := startSite(t, server.Options{}, crd.New(crd.Options{Conversions: map[schema.GroupKind]keelsonruntime.ConvertUntyped{
		{Group: hooked, Kind: "Crate"}: func(in *unstructured.Unstructured, to schema.GroupVersion) (*unstructured.Unstructured, error) {
			in.SetAPIVersion(to.String())
			in.SetLabels(map[string]string{"by": "function"})
			return in, nil
		},
	}}))
	s.establish(h.crates(t, hooked, func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Conversion.Webhook.ClientConfig = &apiextensionsv1.WebhookClientConfig{
			Service: &apiextensionsv1.ServiceReference{Namespace: "nowhere", Name: "nobody", Port: new(int32)},
		}
		*d.Spec.Conversion.Webhook.ClientConfig.Service.Port = 443
	}))
	s.want(201, "POST", cratesIn(hooked, "v1"), crate(hooked, "v1", "a", ``))
	if a := s.want(200, "GET", cratesIn(hooked, "v2")+"/a", ""); !strings.Contains(a, `"labels":{"by":"function"}`) {
		t.Error(a)
	}
	if n := h.spent(hooked); n != 0 {
		t.Errorf("%d calls of the webhook", n)
	}
}

// stopped is a clock that always returns the same second.
type stopped struct{ zapcore.Clock }

func (stopped) Now() time.Time { return time.Unix(1e9, 0) }

// A service is at the address that the program chooses. Errors there are logged, and not returned to clients.
func TestAWebhookOfAService(t *testing.T) {
	t.Parallel()
	h := startHooks(t)
	asked := make(chan string, 1)
	core, lines := observer.New(zap.WarnLevel)
	s := startSite(t, server.Options{}, crd.New(crd.Options{Logger: zap.New(core, zap.WithClock(stopped{})), Webhooks: webhook.Options{
		Resolve: func(_ context.Context, namespace, name string, port int32) (string, error) {
			select {
			case asked <- fmt.Sprintf("%s/%s:%d", namespace, name, port):
			default:
			}
			return h.Listener.Addr().String(), nil
		},
	}}))
	s.establish(h.crates(t, hooked, func(d *apiextensionsv1.CustomResourceDefinition) {
		port, path := int32(8443), "/"+hooked
		d.Spec.Conversion.Webhook.ClientConfig = &apiextensionsv1.WebhookClientConfig{
			Service: &apiextensionsv1.ServiceReference{Namespace: "system", Name: "example", Port: &port, Path: &path}, CABundle: h.bundle,
		}
	}))
	s.want(201, "POST", cratesIn(hooked, "v1"), crate(hooked, "v1", "a", `,"spec":{"size":3}`))
	// The certificate must be for the name of the service in the cluster, whatever the address is.
	for range 30 {
		if a := s.want(500, "GET", cratesIn(hooked, "v2")+"/a", ""); strings.Contains(a, "x509") || !strings.Contains(a, "no usable answer") {
			t.Error(a)
		}
	}
	logged := lines.FilterMessage("a call of a conversion webhook failed").All()
	if len(logged) != 10 || !strings.Contains(fmt.Sprint(logged[0].ContextMap()), "not example.system.svc") {
		t.Errorf("%d lines, want the 10 of a second: %v", len(logged), logged)
	}
	if got := <-asked; got != "system/example:8443" {
		t.Errorf("%s was looked for", got)
	}
}

// Metrics count calls, and are removed with the definition.
func TestWebhookMetrics(t *testing.T) {
	t.Parallel()
	h := startHooks(t)
	s := newHooked(t, h, nil)
	s.want(201, "POST", cratesIn(hooked, "v1"), crate(hooked, "v1", "a", `,"spec":{"size":3}`))
	s.want(200, "GET", cratesIn(hooked, "v2")+"/a", "")
	h.set(hooked, "fails")
	s.want(200, "PATCH", cratesIn(hooked, "v1")+"/a", `{"spec":{"size":4}}`, "Content-Type", merge)
	s.want(500, "GET", cratesIn(hooked, "v2")+"/a", "")
	got := s.want(200, "GET", "/metrics", "")
	const of = `crd_name="crates.hooks.example.com"`
	for _, want := range []string{
		`apiserver_crd_conversion_webhook_duration_seconds_count{` + of + `,from_version="v1",succeeded="true",to_version="v2"} 1`,
		`apiserver_crd_conversion_webhook_duration_seconds_count{` + of + `,from_version="v1",succeeded="false",to_version="v2"} 1`,
		`apiserver_conversion_webhook_request_total{failure_type="",result="success"} 1`,
		`apiserver_conversion_webhook_request_total{failure_type="conversion_webhook_malformed_response_failure",result="failure"} 1`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s", want)
		}
	}
	s.want(200, "DELETE", crdsPath+"/crates."+hooked, "")
	s.awaitGone("crates." + hooked)
	if got := s.want(200, "GET", "/metrics", ""); strings.Contains(got, of) {
		t.Errorf("there are metrics of what is gone")
	}
}

// Objects stored in an earlier version are converted when they are migrated, and when a server starts. If the webhook is
// unreachable they stay in that version.
func TestMigrationThroughAWebhook(t *testing.T) {
	t.Parallel()
	h := startHooks(t)
	b := newSharedStorage(t)
	v1, v2 := cratesIn(hooked, "v1"), cratesIn(hooked, "v2")
	s := newHooked(t, h, b)
	for i := range 30 {
		s.want(201, "POST", v1, crate(hooked, "v1", fmt.Sprint("x", i), fmt.Sprintf(`,"spec":{"size":%d}`, i+40)))
	}
	s.amend("crates."+hooked, storing("v2"))
	resource := schema.GroupResource{Group: hooked, Resource: "crates"}
	h.set(hooked, downHook)
	done, err := s.srv.MigrateStorage(t.Context(), resource, storage.MigrateOptions{})
	if err == nil && done.Failed == 0 {
		t.Errorf("migration without a webhook: %+v", done)
	}
	if code := s.do("GET", v1+"/x1", "", nil); code != 200 { // stored in this version
		t.Errorf("v1: %d", code)
	}
	s.want(500, "GET", v2+"/x1", "")
	// A server that starts while the webhook is unreachable serves everything else.
	later := newSite(t, b)
	later.await("crates."+hooked, isTrue(apiextensionsv1.Established))
	eventually(t, func() bool { return later.do("GET", v1+"/x1", "", nil) == 200 }, func() string { return "v1 is not served" })
	h.set(hooked, goodHook)
	eventually(t, func() bool { return later.do("GET", v2+"/x1", "", nil) == 200 }, func() string { return "v2 is not served" })
	if done, err = s.srv.MigrateStorage(t.Context(), resource, storage.MigrateOptions{}); err != nil || done.Failed > 0 {
		t.Fatalf("%+v %v", done, err)
	}
	h.set(hooked, downHook)
	for i := range 30 {
		if got, want := s.want(200, "GET", v2+fmt.Sprint("/x", i), ""), fmt.Sprintf(`"spec":{"box":{"height":7,"width":%d}}`, i+40); !strings.Contains(got, want) {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}
