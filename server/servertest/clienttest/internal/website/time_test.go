package website_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/server/servertest/clienttest"
	"github.com/keelson-dev/keelson/server/servertest/clienttest/internal/website"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// alone runs a case with its own server in a bubble: time passes only when all goroutines of the case wait, and then it passes at
// once.
func alone(t *testing.T, do func(s *suite)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := servertest.New(t, builtin.New(builtin.Options{}), servertest.Types{AddToScheme: clientScheme, ClusterScoped: []string{"Domain"}})
		t.Cleanup(func() { time.Sleep(time.Minute) }) // a stopped manager may still write its last event
		s := at(t, srv, clienttest.Config(srv))
		s.pause = 100 * time.Millisecond // takes no real time
		do(s)
	})
}

func TestASiteExpires(t *testing.T) {
	alone(t, func(s *suite) {
		s.run()
		w := s.site("sale")
		w.Spec.Expires = new(metav1.NewTime(time.Now().Add(time.Hour)))
		s.create(w)
		s.untilReady("sale", website.ReasonStarting)
		time.Sleep(59 * time.Minute)
		if !s.get(w, "sale") {
			s.t.Error("the site is gone before its time")
		}
		time.Sleep(time.Minute)
		if s.get(w, "sale") {
			s.t.Error("the site is there after its time")
		}
	})
}

// runCandidate runs a manager with leader election. says determines whether it releases the Lease when it is stopped.
func (s *suite) runCandidate(name string, says bool) (writes *servertest.Recording, stop func()) {
	s.config = rest.CopyConfig(s.config)
	s.config.UserAgent = name
	writes = s.srv.Record(servertest.Match{UserAgent: name, Verbs: []string{"create", "update"}, Resources: []string{"deployments"}})
	return writes, s.run(func(o *manager.Options) {
		o.LeaderElection, o.LeaderElectionID, o.LeaderElectionNamespace = true, "websites", s.ns
		o.LeaderElectionReleaseOnCancel = says
	})
}

func TestOnlyTheLeaderActs(t *testing.T) {
	for name, says := range map[string]bool{"the leader resigns": true, "the leader dies": false} {
		t.Run(name, func(t *testing.T) {
			alone(t, func(s *suite) {
				first, stop := s.runCandidate("first", says)
				s.create(s.site("a"))
				s.untilReady("a", website.ReasonStarting)
				second, _ := s.runCandidate("second", says)
				time.Sleep(time.Minute)
				s.create(s.site("b"))
				s.untilReady("b", website.ReasonStarting)
				if did := len(second.Requests()); did != 0 {
					s.t.Errorf("the second does %d writes while the first leads", did)
				}
				stop()
				before := len(first.Requests())
				s.create(s.site("c"))
				s.untilReady("c", website.ReasonStarting)
				if len(second.Requests()) == 0 || len(first.Requests()) != before {
					s.t.Error("want the writes of the second, and of nobody else")
				}
			})
		})
	}
}
