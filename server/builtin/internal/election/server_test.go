package election_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/server/builtin/internal/election"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/servertest"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// mortal is the access of a candidate to the Leases until it is cut off.
type mortal struct {
	election.Leases
	cut atomic.Bool
}

func (m *mortal) Get(ctx context.Context, namespace, name string) (*coordinationv1.Lease, error) {
	if m.cut.Load() {
		return nil, errors.New("cut off")
	}
	return m.Leases.Get(ctx, namespace, name)
}

func (m *mortal) Update(ctx context.Context, namespace string, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	if m.cut.Load() {
		return nil, errors.New("cut off")
	}
	return m.Leases.Update(ctx, namespace, lease)
}

// A leader that is cut off leads until its deadline of 10 s. The next one leads as soon as it sees that the Lease is 15 s old.
func TestLeasesOfAServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var leases *registry.Typed[*coordinationv1.Lease]
		servertest.New(t, builtin.New(builtin.Options{}), server.ExtensionFunc(func(h *server.Host) error {
			reg, err := h.Registry(schema.GroupResource{Group: coordinationv1.GroupName, Resource: "leases"})
			if err != nil {
				return err
			}
			leases, err = registry.For[*coordinationv1.Lease](reg, authn.System())
			return err
		}))
		first, second := &mortal{Leases: leases}, &mortal{Leases: leases}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		reigns := map[string][]time.Time{}
		var mu sync.Mutex // guards reigns
		run := func(who string, leases election.Leases) {
			running.Go(func() {
				err := election.Run(ctx, leases, election.Options{Namespace: "kube-system", Name: "crown", Identity: who}, func(ctx context.Context) {
					began := time.Now()
					<-ctx.Done()
					mu.Lock()
					defer mu.Unlock()
					reigns[who] = append(reigns[who], began, time.Now())
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		held := func(holder string) *coordinationv1.Lease {
			lease, err := leases.Get(t.Context(), "kube-system", "crown")
			if err != nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity != holder || lease.Spec.RenewTime == nil {
				t.Fatalf("%v: %v, want it held by %q", err, lease, holder)
			}
			return lease
		}
		run("first", first)
		synctest.Wait()
		run("second", second)
		time.Sleep(15*time.Minute + time.Second) // between two renewals
		lease := held("first")
		first.cut.Store(true)
		time.Sleep(time.Minute)
		if n := held("second").Spec.LeaseTransitions; n == nil || *n != *lease.Spec.LeaseTransitions+1 {
			t.Errorf("%v transitions", n)
		}
		stop()
		running.Wait()
		held("")
		if len(reigns["first"]) != 2 || len(reigns["second"]) != 2 {
			t.Fatalf("the reigns were %v, want one of each", reigns)
		}
		renewed := lease.Spec.RenewTime.Time
		if ended := reigns["first"][1].Sub(renewed); ended != 10*time.Second {
			t.Errorf("the first leads until %v after its last renewal, want 10s", ended)
		}
		const looks = 2400 * time.Millisecond // maximum time between reads: the retry period and up to a fifth of it
		if began := reigns["second"][0].Sub(renewed); began < 15*time.Second || began > 15*time.Second+2*looks {
			t.Errorf("the second leads from %v after the last renewal of the first, want 15s and two looks at the Lease at most", began)
		}
	})
}
