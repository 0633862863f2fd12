package servertest_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/server/builtin/election"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/servertest"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	configMaps = "/api/v1/namespaces/default/configmaps"
	events     = "/api/v1/namespaces/default/events"
)

// Kubernetes keeps an event for an hour.
func TestEventsInABubble(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		srv := servertest.New(t, builtin.New(builtin.Options{}))
		watch := hear(t, srv, events+"?watch=1&timeoutSeconds=86400")
		ask(t, srv, "POST", events, `{"metadata":{"name":"e"},"involvedObject":{"kind":"ConfigMap","namespace":"default","name":"m"},"reason":"Seen"}`).want(201)
		time.Sleep(time.Hour - time.Nanosecond)
		ask(t, srv, "GET", events+"/e", "").want(200)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		ask(t, srv, "GET", events+"/e", "").want(404)
		watch.want(t, "0s ADDED e", "1h0m0s DELETED e")
	})
}

// Once the server is at rest its controllers have done what there was to do.
func TestControllersInABubble(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		srv := servertest.New(t, builtin.New(builtin.Options{}), widgets())
		ask(t, srv, "POST", "/api/v1/namespaces", `{"metadata":{"name":"a"}}`).want(201)
		ask(t, srv, "POST", widgetsOfA, `{"metadata":{"name":"w"}}`).want(201)
		ask(t, srv, "POST", configMaps, `{"metadata":{"name":"owner"}}`).want(201)
		owner := metaOf(t, ask(t, srv, "GET", configMaps+"/owner", "").want(200))
		owned := `{"metadata":{"name":"owned","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":"` + string(owner.UID) + `"}]}}`
		ask(t, srv, "POST", configMaps, owned).want(201)
		synctest.Wait()
		ask(t, srv, "GET", configMaps+"/owned", "").want(200)

		ask(t, srv, "DELETE", configMaps+"/owner", "").want(200)
		ask(t, srv, "DELETE", "/api/v1/namespaces/a", "").want(200)
		synctest.Wait()
		ask(t, srv, "GET", configMaps+"/owned", "").want(404)
		ask(t, srv, "GET", widgetsOfA+"/w", "").want(404)
		ask(t, srv, "GET", "/api/v1/namespaces/a", "").want(404)
	})
}

// mortal is how a candidate reaches the Leases until it is cut off.
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

// A leader that is cut off leads until its deadline, of 10 s, and the next as soon as it sees the Lease 15 s old.
func TestLeasesInABubble(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var leases election.Leases
		srv := servertest.New(t, builtin.New(builtin.Options{}), server.ExtensionFunc(func(h *server.Host) error {
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
		const crown = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/crown"
		run("first", first)
		synctest.Wait()
		run("second", second)
		time.Sleep(15*time.Minute + time.Second) // between two renewals
		var lease coordinationv1.Lease
		held := ask(t, srv, "GET", crown, "").want(200, `"holderIdentity":"first"`, `"leaseTransitions":0`)
		if err := json.Unmarshal([]byte(held.body), &lease); err != nil || lease.Spec.RenewTime == nil {
			t.Fatalf("%v: %s", err, held.body)
		}
		first.cut.Store(true)
		time.Sleep(time.Minute)
		ask(t, srv, "GET", crown, "").want(200, `"holderIdentity":"second"`, `"leaseTransitions":1`)
		stop()
		running.Wait()
		ask(t, srv, "GET", crown, "").want(200, `"holderIdentity":""`)
		if len(reigns["first"]) != 2 || len(reigns["second"]) != 2 {
			t.Fatalf("the reigns were %v, want one of each", reigns)
		}
		renewed := lease.Spec.RenewTime.Time
		if ended := reigns["first"][1].Sub(renewed); ended != 10*time.Second {
			t.Errorf("the first leads until %v after its last renewal, want 10s", ended)
		}
		const looks = 2400 * time.Millisecond // apart: the retry period and up to a fifth of it
		if began := reigns["second"][0].Sub(renewed); began < 15*time.Second || began > 15*time.Second+2*looks {
			t.Errorf("the second leads from %v after the last renewal of the first, want 15s and two looks at the Lease at most", began)
		}
	})
}
