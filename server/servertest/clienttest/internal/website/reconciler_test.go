package website_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/keelson-dev/keelson/server/servertest/clienttest/internal/website"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

func TestChildrenAreMade(t *testing.T) {
	s := in(t)
	s.run()
	s.create(s.site("blog"))
	w := s.untilReady("blog", website.ReasonStarting)

	d, svc, pages := new(appsv1.Deployment), new(corev1.Service), new(corev1.ConfigMap)
	for _, child := range []client.Object{d, svc, pages} {
		if !s.get(child, "blog") {
			t.Fatalf("there is no %T", child)
		}
		if !metav1.IsControlledBy(child, w) {
			t.Errorf("%T is owned by %v", child, child.GetOwnerReferences())
		}
	}
	if *d.Spec.Replicas != 1 || d.Spec.Template.Spec.Containers[0].Image != "web:1" {
		t.Errorf("the deployment is %+v", d.Spec)
	}
	if !maps.Equal(svc.Spec.Selector, d.Spec.Template.Labels) || !maps.Equal(pages.Data, w.Spec.Pages) {
		t.Errorf("the service selects %v, the pages are %v", svc.Spec.Selector, pages.Data)
	}
	if !controllerutil.ContainsFinalizer(w, website.Finalizer) {
		t.Error("nothing holds the website")
	}
}

func TestReadyWhenServersAnswer(t *testing.T) {
	s := in(t)
	s.run()
	w := s.site("blog")
	w.Spec.Replicas = new(int32(3))
	s.create(w)
	s.untilReady("blog", website.ReasonStarting)
	s.answer("blog")
	if w := s.untilReady("blog", website.ReasonServing); w.Status.ReadyReplicas != 3 {
		t.Errorf("%d servers are ready", w.Status.ReadyReplicas)
	}
	s.change(w, func() { w.Spec.Replicas = new(int32(5)) })
	if w := s.untilReady("blog", website.ReasonStarting); w.Status.ReadyReplicas != 3 || w.Status.ObservedGeneration != 2 {
		t.Errorf("the status is %+v", w.Status)
	}
}

func TestWhatOthersSetStays(t *testing.T) {
	s := in(t)
	s.run()
	s.create(s.site("blog"))
	s.untilReady("blog", website.ReasonStarting)
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "blog"}}
	s.change(d, func() {
		d.Labels = map[string]string{"team": "a"}
		d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: "sidecar", Image: "log:1"})
	})
	w := s.site("blog")
	s.change(w, func() { w.Spec.Image = "web:2" })
	s.until("the image is the new one", func() bool {
		return s.get(d, "blog") && d.Spec.Template.Spec.Containers[0].Image == "web:2"
	})
	if len(d.Spec.Template.Spec.Containers) != 2 || d.Labels["team"] != "a" {
		t.Errorf("the deployment has become %+v", d)
	}
}

func TestDriftIsRepaired(t *testing.T) {
	s := in(t)
	s.run()
	s.create(s.site("blog"))
	s.untilReady("blog", website.ReasonStarting)
	svc := new(corev1.Service)
	s.get(svc, "blog")
	was := svc.UID
	if err := s.Delete(s.ctx, svc); err != nil {
		t.Fatal(err)
	}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "blog"}}
	s.change(d, func() { d.Spec.Replicas = new(int32(9)) })
	s.until("there is a service again", func() bool { return s.get(svc, "blog") && svc.UID != was })
	s.until("there is one server again", func() bool { return s.get(d, "blog") && *d.Spec.Replicas == 1 })
}

func TestNewPagesReplacePods(t *testing.T) {
	s := in(t)
	s.run()
	s.create(s.site("blog"))
	s.untilReady("blog", website.ReasonStarting)
	hash := func() string {
		d := new(appsv1.Deployment)
		s.get(d, "blog")
		return d.Spec.Template.Annotations["web.example.com/content"]
	}
	first, w := hash(), s.site("blog")
	s.change(w, func() { w.Spec.Replicas = new(int32(2)) })
	s.until("there are two", func() bool { d := new(appsv1.Deployment); return s.get(d, "blog") && *d.Spec.Replicas == 2 })
	if hash() != first {
		t.Error("more servers replace those that are there")
	}
	s.change(w, func() { w.Spec.Pages["index.html"] = "goodbye" })
	s.until("the pods are others", func() bool { return hash() != first })
}

func TestASiteWaitsForItsSecret(t *testing.T) {
	s := in(t)
	s.run()
	w := s.site("shop")
	w.Spec.SecretName = "keys"
	s.create(w)
	s.untilReady("shop", website.ReasonSecretMissing)
	if s.get(&appsv1.Deployment{}, "shop") {
		t.Error("servers are started without their secret")
	}
	s.untilEvent("shop", corev1.EventTypeWarning, website.ReasonSecretMissing)
	s.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "keys"}, Data: map[string][]byte{"k": []byte("1")}})
	s.untilReady("shop", website.ReasonStarting)
}

func TestASecretConcernsOnlyItsSites(t *testing.T) {
	s := in(t)
	s.run()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "keys"}, Data: map[string][]byte{"k": []byte("1")}}
	s.create(secret)
	versions := map[string]string{}
	for _, name := range []string{"blog", "shop"} {
		w := s.site(name)
		if name == "shop" {
			w.Spec.SecretName = "keys"
		}
		s.create(w)
		s.untilReady(name, website.ReasonStarting)
	}
	version := func(name string) string {
		d := new(appsv1.Deployment)
		s.get(d, name)
		return d.ResourceVersion
	}
	for _, name := range []string{"blog", "shop"} {
		versions[name] = version(name)
	}
	s.change(secret, func() { secret.Data["k"] = []byte("2") })
	s.until("the shop's servers are others", func() bool { return version("shop") != versions["shop"] })
	if version("blog") != versions["blog"] {
		t.Error("the blog has no secret, and other servers")
	}
}

func TestADomainGoesWithItsSite(t *testing.T) {
	s := in(t)
	s.run()
	w := s.site("blog")
	w.Spec.Domain = s.ns + ".example.com"
	s.create(w)
	s.untilReady("blog", website.ReasonStarting)
	d := new(website.Domain)
	if !s.get(d, w.Spec.Domain) || d.Spec != (website.DomainSpec{Namespace: s.ns, Website: "blog"}) {
		t.Fatalf("the domain is %+v", d)
	}
	if err := s.Delete(s.ctx, w); err != nil {
		t.Fatal(err)
	}
	s.until("the site is gone", func() bool { return !s.get(&website.Website{}, "blog") })
	if s.get(d, w.Spec.Domain) {
		t.Error("the domain is not free")
	}
}

func TestASiteMovesToAnotherDomain(t *testing.T) {
	s := in(t)
	s.run()
	w := s.site("blog")
	w.Spec.Domain = s.ns + ".example.com"
	s.create(w)
	s.untilReady("blog", website.ReasonStarting)
	s.change(w, func() { w.Spec.Domain = s.ns + ".example.org" })
	s.untilReady("blog", website.ReasonStarting)
	if !s.get(&website.Domain{}, s.ns+".example.org") || s.get(&website.Domain{}, s.ns+".example.com") {
		t.Error("want the new domain and not the old one")
	}
}

func TestADomainIsOneSitesOnly(t *testing.T) {
	s := in(t)
	s.run()
	first, second := s.site("first"), s.site("second")
	first.Spec.Domain = s.ns + ".example.com"
	second.Spec.Domain = first.Spec.Domain
	s.create(first)
	s.untilReady("first", website.ReasonStarting)
	s.create(second)
	s.untilReady("second", website.ReasonDomainTaken)
	s.untilEvent("second", corev1.EventTypeWarning, website.ReasonDomainTaken)
	if err := s.Delete(s.ctx, first); err != nil {
		t.Fatal(err)
	}
	s.untilReady("second", website.ReasonStarting) // it is notified of the domain that it does not own
}

func TestAPausedSiteStaysAsItIs(t *testing.T) {
	s := in(t)
	s.run()
	w := s.site("blog")
	w.Spec.Paused = true
	s.create(w)
	other := s.site("other") // after it in the queue
	s.create(other)
	s.untilReady("other", website.ReasonStarting)
	if s.get(&appsv1.Deployment{}, "blog") {
		t.Error("a paused site has servers")
	}
	s.change(w, func() { w.Spec.Paused = false })
	s.untilReady("blog", website.ReasonStarting)
}

// The Environment has a real garbage collector; with envtest a suite can only check owner references.
func TestChildrenGoWithTheirSite(t *testing.T) {
	s := in(t)
	s.run()
	w := s.site("blog")
	s.create(w)
	s.untilReady("blog", website.ReasonStarting)
	if err := s.Delete(s.ctx, w); err != nil {
		t.Fatal(err)
	}
	for _, child := range []client.Object{&appsv1.Deployment{}, &corev1.Service{}, &corev1.ConfigMap{}} {
		s.until(fmt.Sprintf("%T is gone", child), func() bool { return !s.get(child, "blog") })
	}
}

func TestASiteGoesWithItsNamespace(t *testing.T) {
	s := in(t)
	s.run()
	w := s.site("blog")
	w.Spec.Domain = s.ns + ".example.com"
	s.create(w)
	s.untilReady("blog", website.ReasonStarting)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.ns}}
	if err := s.Delete(s.ctx, ns); err != nil {
		t.Fatal(err)
	}
	s.until("the namespace is gone", func() bool {
		return client.IgnoreNotFound(s.Get(s.ctx, client.ObjectKeyFromObject(ns), ns)) == nil && s.Get(s.ctx, client.ObjectKeyFromObject(ns), ns) != nil
	})
	if s.get(&website.Domain{}, w.Spec.Domain) {
		t.Error("the finalizer was not obeyed: the domain is not free")
	}
}

func TestEventsTellWhatWasMade(t *testing.T) {
	s := in(t)
	s.run()
	s.create(s.site("blog"))
	for _, kind := range []string{"ConfigMap", "Deployment", "Service"} {
		s.until("an event tells of a "+kind, func() bool {
			for _, e := range s.events("blog") {
				if e.Reason == "Created" && e.Message == kind+" blog was created" && e.ReportingController == "websites" {
					return true
				}
			}
			return false
		})
	}
}

// events returns the events about a site, by the query of kubectl describe.
func (s *suite) events(site string) []corev1.Event {
	s.t.Helper()
	var list corev1.EventList
	if err := s.List(s.ctx, &list, client.InNamespace(s.ns), client.MatchingFields{"involvedObject.kind": "Website", "involvedObject.name": site}); err != nil {
		s.t.Fatal(err)
	}
	return list.Items
}

func (s *suite) untilEvent(site, eventType, reason string) {
	s.t.Helper()
	s.until("an event says "+reason, func() bool {
		for _, e := range s.events(site) {
			if e.Type == eventType && e.Reason == reason {
				return true
			}
		}
		return false
	})
}

func TestManySites(t *testing.T) {
	s := in(t)
	s.run()
	const many = 20
	for i := range many {
		s.create(s.site(fmt.Sprint("site-", i)))
	}
	for i := range many {
		s.untilReady(fmt.Sprint("site-", i), website.ReasonStarting)
	}
	if err := s.DeleteAllOf(s.ctx, &website.Website{}, client.InNamespace(s.ns)); err != nil {
		t.Fatal(err)
	}
	s.until("all are gone", func() bool {
		var left website.WebsiteList
		if err := s.List(s.ctx, &left, client.InNamespace(s.ns)); err != nil {
			t.Fatal(err)
		}
		return len(left.Items) == 0
	})
}

func TestANewManagerCatchesUp(t *testing.T) {
	s := in(t)
	stop := s.run()
	s.create(s.site("old"))
	s.untilReady("old", website.ReasonStarting)
	stop()

	w := s.site("old")
	s.change(w, func() { w.Spec.Image = "web:2" })
	s.create(s.site("new"))
	s.run()
	s.untilReady("new", website.ReasonStarting)
	s.untilReady("old", website.ReasonStarting)
	d := new(appsv1.Deployment)
	if s.get(d, "old"); d.Spec.Template.Spec.Containers[0].Image != "web:2" {
		t.Errorf("the deployment is %+v", d.Spec)
	}
}

// The controller owns the status and its finalizer, and none of the fields that a user has applied.
func TestUserAndControllerOwnTheirFields(t *testing.T) {
	s := in(t)
	s.run()
	apply := func(image string) {
		t.Helper()
		err := s.Patch(s.ctx, s.site("blog"), client.RawPatch("application/apply-patch+yaml", fmt.Appendf(nil,
			"apiVersion: web.example.com/v1\nkind: Website\nmetadata: {name: blog}\nspec: {image: %q}\n", image)), client.FieldOwner("user"))
		if err != nil {
			t.Fatal(err)
		}
	}
	apply("web:1")
	s.untilReady("blog", website.ReasonStarting)
	apply("web:2") // would conflict if the controller had written the spec
	w := s.untilReady("blog", website.ReasonStarting)
	status := 0
	for _, entry := range w.ManagedFields {
		if entry.Subresource == "status" {
			status++
		}
	}
	if w.Spec.Image != "web:2" || status != 1 {
		t.Errorf("the site is %+v", w)
	}
}
