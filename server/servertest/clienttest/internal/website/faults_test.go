package website_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/server/servertest/clienttest/internal/website"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// inject injects a fault for requests in the namespace of the case.
func (s *suite) inject(f servertest.Fault) (remove func()) {
	f.Namespace = s.ns
	return s.srv.Inject(f)
}

func TestConflictsAreTriedAgain(t *testing.T) {
	s := in(t)
	s.inject(servertest.Fault{
		Match: servertest.Match{Verbs: []string{"update"}, Resources: []string{"websites", "websites/status"}}, Times: 5, Conflicts: 1,
	})
	refused := s.srv.Record(servertest.Match{Namespace: s.ns, Verbs: []string{"update"}})
	s.run() // no error is logged
	s.create(s.site("blog"))
	s.untilReady("blog", website.ReasonStarting)
	conflicts := 0
	for _, r := range refused.Requests() {
		if r.Code == 409 {
			conflicts++
		}
	}
	if conflicts < 5 {
		t.Errorf("%d conflicts, want 5 at least", conflicts)
	}
}

func TestFailuresAreTriedAgain(t *testing.T) {
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	for name, fault := range map[string]servertest.Fault{
		"refused":               {Error: apierrors.NewInternalError(errors.New("etcdserver: leader changed"))},
		"forbidden":             {Error: apierrors.NewForbidden(deployments, "blog", errors.New("exceeded quota"))},
		"connection lost":       {Drop: true},
		"done, and answer lost": {Lost: true, Error: apierrors.NewTimeoutError("request did not complete within the allotted timeout", 0)},
	} {
		t.Run(name, func(t *testing.T) {
			s := in(t)
			fault.Match, fault.Times = servertest.Match{Verbs: []string{"create"}, Resources: []string{"deployments"}}, 2
			if fault.Lost {
				fault.Times = 1 // the second create finds the deployment
			}
			s.inject(fault)
			log, _ := s.runLogged()
			s.create(s.site("blog"))
			s.untilReady("blog", website.ReasonStarting)
			if lines := log.all(); len(lines) < fault.Times || !strings.Contains(lines[0], "Reconciler error") {
				t.Errorf("reported was %q", lines)
			}
		})
	}
}

func TestAnEndedWatchIsTakenUpAgain(t *testing.T) {
	s := in(t)
	s.inject(servertest.Fault{Match: servertest.Match{Verbs: []string{"watch"}, Resources: []string{"websites"}}, Events: 1, Times: 4})
	s.run()
	for _, name := range []string{"a", "b", "c", "d"} {
		s.create(s.site(name))
		s.untilReady(name, website.ReasonStarting)
	}
}

func TestASiteStaysUntilItsDomainIsFree(t *testing.T) {
	s := in(t)
	_, _ = s.runLogged()
	w := s.site("blog")
	w.Spec.Domain = s.ns + ".example.com"
	s.create(w)
	s.untilReady("blog", website.ReasonStarting)
	refused := servertest.Match{Verbs: []string{"delete"}, Resources: []string{"domains"}, Name: w.Spec.Domain}
	remove := s.srv.Inject(servertest.Fault{Match: refused, Error: apierrors.NewServiceUnavailable("the registrar is away")})
	tries := s.srv.Record(refused)
	if err := s.Delete(s.ctx, w); err != nil {
		t.Fatal(err)
	}
	s.until("it was tried twice", func() bool { return len(tries.Requests()) >= 2 })
	if !s.get(w, "blog") || !s.get(&website.Domain{}, w.Spec.Domain) {
		t.Error("the site has gone before its domain")
	}
	remove()
	s.until("the site is gone", func() bool { return !s.get(w, "blog") })
}

// The requests of a reconcile, one by one. This needs no manager.
func TestTheRequestsOfAReconcile(t *testing.T) {
	s := in(t)
	w := s.site("blog")
	w.Spec.Domain = s.ns + ".example.com"
	s.create(w)
	r := &website.Reconciler{Client: s.Client, Recorder: events.NewFakeRecorder(10)}
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w)}

	first := s.srv.Record(servertest.Match{UserAgent: s.config.UserAgent})
	if _, err := r.Reconcile(s.ctx, request); err != nil {
		t.Fatal(err)
	}
	first.Stop()
	names := strings.NewReplacer(s.ns, "case", string(w.UID), "<uid>")
	first.GoldenWith(t, "testdata/first-reconcile.golden", servertest.GoldenOptions{Rewrite: names.Replace})

	writes := s.srv.Record(servertest.Match{UserAgent: s.config.UserAgent, Verbs: []string{"create", "update", "patch", "delete"}})
	if _, err := r.Reconcile(s.ctx, request); err != nil {
		t.Fatal(err)
	}
	if done := writes.Requests(); len(done) != 0 {
		t.Errorf("nothing had changed, and there was %+v", done)
	}
	if !s.get(&appsv1.Deployment{}, "blog") {
		t.Error("there is no deployment")
	}
}
