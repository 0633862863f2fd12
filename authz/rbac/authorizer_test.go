package rbac_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/authz/rbac"
	"github.com/keelson-dev/keelson/runtime"
)

var (
	_ authz.Pinner       = (*rbac.Authorizer)(nil)
	_ authz.RuleResolver = (*rbac.Authorizer)(nil)
	_ authz.Authorizer   = (*rbac.Policy)(nil)
	_ authz.RuleResolver = (*rbac.Policy)(nil)
)

func follow(t testing.TB, w *world, o rbac.Options) *rbac.Authorizer {
	t.Helper()
	a, err := rbac.New(w, o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// allowed asks whether user may get pods.
func allowed(ctx context.Context, a authz.Authorizer, user string) bool {
	verdict, _, err := a.Authorize(ctx, request(user, "", "get core/pods ns"))
	return verdict == authz.Allow && err == nil
}

func TestPinFollowsChanges(t *testing.T) { // not parallel: it counts allocations
	w := newWorld()
	a, ctx := follow(t, w, rbac.Options{}), t.Context()
	empty := a.Pin(ctx)
	if allowed(ctx, empty, "u") {
		t.Error("allowed by nothing")
	}
	pods, to := clusterRole("pods", rule("get", "core", "pods", "")), clusterBinding("pods", "pods", "User/u")
	w.put(pods, to)
	with := a.Pin(ctx)
	if !allowed(ctx, with, "u") || allowed(ctx, empty, "u") || with == empty {
		t.Error("a change is not seen, or changes what was pinned before")
	}
	before := w.reads()
	if a.Pin(ctx) != with || fmt.Sprint(w.reads()) != fmt.Sprint(before) {
		t.Error("without a change it is another policy, or the objects are read")
	}
	if n := testing.AllocsPerRun(100, func() { a.Pin(ctx) }); n != 0 {
		t.Errorf("Pin allocates %v times while nothing changes", n)
	}
	w.drop(pods)
	if allowed(ctx, a, "u") || !allowed(ctx, with, "u") {
		t.Error("a role that is deleted allows, or what was pinned before has changed")
	}
	// A change that is no difference: an object that comes and goes between two requests.
	last := a.Pin(ctx)
	for _, k := range w.kinds {
		k.changed.Store(w.revision + 1)
	}
	w.set(func() { w.revision++ })
	if a.Pin(ctx) != last {
		t.Error("a reading that brings nothing makes another policy")
	}
}

// What has not changed is shared by policies, and keeps none of them in memory.
func TestOldPoliciesAreLetGo(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.put(role("ns", "a"), binding("ns", "a", "Role/a", "User/u"), clusterBinding("a", "a", "User/u Group/g"))
	a := follow(t, w, rbac.Options{})
	var old []weak.Pointer[rbac.Policy]
	for i := range 10 {
		old = append(old, weak.Make(a.Pin(t.Context()).(*rbac.Policy)))
		w.put(clusterBinding(fmt.Sprint(i), "a", "User/v"))
	}
	a.Pin(t.Context())
	goruntime.GC()
	for i, p := range old {
		if p.Value() != nil {
			t.Errorf("policy %d is still in memory", i)
		}
	}
	goruntime.KeepAlive(a)
}

func TestNotLoaded(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.put(clusterRole("pods", rule("get", "core", "pods", "")), clusterBinding("pods", "pods", "User/u"))
	w.notReady = errors.New("loading")
	a, ctx := follow(t, w, rbac.Options{Hooks: rbac.Hooks{Failed: func(err error) { t.Errorf("failed: %v", err) }}}), t.Context()
	verdict, reason, err := a.Authorize(ctx, request("u", "", "get core/pods"))
	if verdict != authz.NoOpinion || reason != "RBAC: roles and bindings are not loaded yet" || err != nil {
		t.Errorf("%v %q %v", verdict, reason, err)
	}
	if a.Pin(ctx) != a.Pin(ctx) {
		t.Error("nothing is loaded, but it is another policy each time")
	}
	if rules, err := a.RulesFor(ctx, request("u", "", "get core/pods").User, ""); err == nil || !rules.Incomplete {
		t.Errorf("rules %+v, %v", rules, err)
	}
	contains(t, a.Ready(ctx), "ClusterRole: loading\nRole: loading\nClusterRoleBinding: loading\nRoleBinding: loading")
	w.set(func() { w.notReady = nil })
	if err := a.Ready(ctx); err != nil || !allowed(ctx, a, "u") {
		t.Errorf("loaded: %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	_, err := rbac.New(nil, rbac.Options{})
	contains(t, err, "nothing to read")
	_, err = rbac.New(newWorld(), rbac.Options{RetryAfter: -1})
	contains(t, err, "must not be negative")
	_, err = rbac.New(newWorld(), rbac.Options{MaxMissing: -1})
	contains(t, err, "must not be negative")
}

// While the objects cannot be read requests are decided by those known, without waiting for each of them.
func TestFailuresKeepThePolicy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.put(clusterRole("pods", rule("get", "core", "pods", "")), clusterBinding("pods", "pods", "User/u"))
		var failures []error
		a, ctx := follow(t, w, rbac.Options{Hooks: rbac.Hooks{Failed: func(err error) { failures = append(failures, err) }}}), t.Context()
		known := a.Pin(ctx)
		w.put(clusterBinding("more", "pods", "User/v"))
		w.set(func() { w.fail = runtime.ErrNotReady })
		for range 5 {
			if a.Pin(ctx) != known {
				t.Error("another policy, though nothing could be read")
			}
		}
		if len(failures) != 1 || !errors.Is(failures[0], runtime.ErrNotReady) {
			t.Errorf("%d readings failed: %v", len(failures), failures)
		}
		contains(t, a.Ready(ctx), "roles and bindings: ClusterRole: the objects are not loaded")
		time.Sleep(time.Second)
		if a.Pin(ctx) != known || len(failures) != 2 {
			t.Errorf("after a while %d readings failed", len(failures))
		}
		w.set(func() { w.fail = nil })
		time.Sleep(time.Second)
		if !allowed(ctx, a, "v") || a.Ready(ctx) != nil {
			t.Errorf("the objects can be read again: %v", a.Ready(ctx))
		}
	})
}

// A state that is not retained any more is read anew, at a revision that is.
func TestExpired(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.put(clusterRole("pods", rule("get", "core", "pods", "")), clusterBinding("old", "pods", "User/u"))
	a, ctx := follow(t, w, rbac.Options{RetryAfter: 1}), t.Context()
	if !allowed(ctx, a, "u") {
		t.Fatal("not allowed")
	}
	w.drop(clusterBinding("old", "pods", "User/u"))
	newest := w.put(clusterBinding("new", "pods", "User/v"))
	// The kinds say that they are older than they are: what is asked for first is not retained.
	w.set(func() { w.compacted = newest })
	for _, k := range w.kinds {
		k.changed.Store(newest - 1)
	}
	bump := make(chan struct{})
	w.kinds["ClusterRole"].expired = func() { w.kinds["RoleBinding"].changed.Store(newest); close(bump) }
	if policy := a.Pin(ctx); !allowed(ctx, policy, "v") || allowed(ctx, policy, "u") {
		t.Error("it is not the newest state")
	}
	<-bump
	// And when no state is retained it is said.
	w.put(clusterBinding("other", "pods", "User/w"))
	w.kinds["ClusterRole"].expired = func() {}
	w.set(func() { w.compacted = w.revision + 1 })
	known := a.Pin(ctx)
	contains(t, a.Ready(ctx), "they change faster than they can be read")
	if !allowed(ctx, known, "v") {
		t.Error("the policy was not kept")
	}
}

// Of many requests that find a change one reads it, and the others wait; a request that ends does not hold the others up.
func TestOneReadingForMany(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.put(clusterRole("pods", rule("get", "core", "pods", "")), clusterBinding("pods", "pods", "User/u"))
		a := follow(t, w, rbac.Options{Hooks: rbac.Hooks{Failed: func(err error) { t.Errorf("failed: %v", err) }}})
		old := a.Pin(t.Context())
		w.put(clusterBinding("more", "pods", "User/v"))
		before := w.reads()["ClusterRole"]
		hold := make(chan struct{})
		w.set(func() { w.hold = hold })

		var all sync.WaitGroup
		first, cancel := context.WithCancel(t.Context())
		all.Go(func() {
			if a.Pin(first) != old {
				t.Error("a request that has ended has got a policy that nobody could read")
			}
		})
		synctest.Wait() // the first reads
		short, cancelShort := context.WithTimeout(t.Context(), time.Second)
		defer cancelShort()
		all.Go(func() {
			if a.Pin(short) != old {
				t.Error("a request that has ended while it waited has got a policy that nobody could read")
			}
		})
		for range 20 {
			all.Go(func() {
				if !allowed(t.Context(), a, "v") {
					t.Error("a request that began after the change is decided without it")
				}
			})
		}
		time.Sleep(2 * time.Second)
		cancel()
		synctest.Wait() // another reads
		close(hold)
		all.Wait()
		if n := w.reads()["ClusterRole"] - before; n != 2 {
			t.Errorf("%d readings, want one that was broken off and one more", n)
		}
	})
}

// Every decision under changes is the one of a state that was, and of one that is no older than the request.
func TestPinUnderChanges(t *testing.T) {
	t.Parallel()
	w := newWorld()
	a := follow(t, w, rbac.Options{RetryAfter: 1})
	done := make(chan struct{})
	var readers, writers sync.WaitGroup
	for i := range uint64(4) {
		readers.Go(func() {
			r := random{rand.New(rand.NewPCG(i, 2))}
			for n := 0; ; n++ {
				select {
				case <-done:
					if n > 10 {
						return
					}
				default:
				}
				var began int64
				w.set(func() { began = w.revision })
				policy := a.Pin(context.Background()).(*rbac.Policy)
				asked := r.request()
				verdict, reason, err := policy.Authorize(context.Background(), asked)
				objects := w.at(policy.Revision())
				if why := wrong(objects, asked, verdict, reason, err); why != "" || policy.Revision() < began {
					t.Errorf("at %d, begun at %d: %s: %s", policy.Revision(), began, describe(asked), why)
					return
				}
			}
		})
	}
	for i := range uint64(2) {
		writers.Go(func() {
			r := random{rand.New(rand.NewPCG(i, 3))}
			for range 400 {
				if obj := r.object(); r.IntN(3) == 0 {
					w.drop(obj)
				} else {
					w.put(obj)
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
}

// many is a policy of n bindings of 1,000 roles: half of them ClusterRoleBindings, the others in 100 namespaces, of a user
// each; and those of a user who is in three groups with ten bindings.
func many(n int) []runtime.Object {
	var objects []runtime.Object
	for i := range 1000 {
		objects = append(objects, clusterRole(fmt.Sprint("role-", i),
			rule("get list watch", "core", "pods services configmaps secrets endpoints", ""),
			rule("get list watch create update patch delete", "apps", "deployments replicasets statefulsets daemonsets", ""),
			rule("create", "authorization.k8s.io", "selfsubjectaccessreviews", "")))
	}
	for i := range n {
		name, role, to := fmt.Sprint("binding-", i), fmt.Sprint("role-", i%1000), fmt.Sprint("User/user-", i, " Group/team-", i)
		if i%2 == 0 {
			objects = append(objects, clusterBinding(name, role, to))
		} else {
			objects = append(objects, binding(fmt.Sprint("ns-", i%100), name, "ClusterRole/"+role, to))
		}
	}
	for i := range 10 {
		group := fmt.Sprint("Group/", strings.Fields("dev qa ops")[i%3])
		objects = append(objects, clusterBinding(fmt.Sprint("team-", i), fmt.Sprint("role-", i), group))
	}
	return append(objects,
		clusterRole("own", rule("get update", "example.com", "airports", "")),
		binding("ns-1", "own", "ClusterRole/own", "User/alice"))
}

var sizes = []int{10, 10_000}

// A decision, for a user of three groups with eleven bindings, the last of which allows; and one that nothing allows.
func BenchmarkAuthorize(b *testing.B) {
	for _, n := range sizes {
		policy := static(b, many(n)...)
		for _, c := range []struct{ name, request string }{
			{"allowed", "update example.com/airports ns-1 muc"},
			{"refused", "delete example.com/airports ns-1 muc"},
		} {
			asked := request("alice", "dev qa ops system:authenticated", c.request)
			b.Run(fmt.Sprint(c.name, "/bindings=", n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if v, _, _ := policy.Authorize(b.Context(), asked); (v == authz.Allow) != (c.name == "allowed") {
						b.Fatal(v)
					}
				}
			})
		}
	}
}

func BenchmarkPin(b *testing.B) {
	w := newWorld()
	w.put(many(10_000)...)
	a := follow(b, w, rbac.Options{})
	b.ReportAllocs()
	for b.Loop() {
		a.Pin(b.Context())
	}
}

// A changed binding, or a changed role, and the Pin that reads it.
func BenchmarkChange(b *testing.B) {
	for _, n := range sizes {
		for _, c := range []struct {
			name    string
			objects [2]runtime.Object
		}{
			{"binding", [2]runtime.Object{clusterBinding("team-1", "role-1", "Group/dev"), clusterBinding("team-1", "role-1", "Group/ops")}},
			{"role", [2]runtime.Object{clusterRole("role-1"), clusterRole("role-1", rule("get", "core", "pods", ""))}},
		} {
			b.Run(fmt.Sprint(c.name, "/bindings=", n), func(b *testing.B) {
				w := newWorld()
				w.put(many(n)...)
				a := follow(b, w, rbac.Options{})
				a.Pin(b.Context())
				w.forget()
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					w.put(c.objects[i%2])
					if a.Pin(b.Context()).(*rbac.Policy).Revision() != w.revision {
						b.Fatal("the change was not read")
					}
					w.forget()
				}
			})
		}
	}
}

// The first reading.
func BenchmarkLoad(b *testing.B) {
	w := newWorld()
	w.put(many(10_000)...)
	b.ReportAllocs()
	for b.Loop() {
		follow(b, w, rbac.Options{}).Pin(b.Context())
	}
}

// What a decision may cost, whatever the machine.
func TestDecisionAllocates(t *testing.T) {
	policy := static(t, many(1000)...)
	for _, c := range []string{"update example.com/airports ns-1 muc", "delete example.com/airports ns-1 muc"} {
		asked := request("alice", "dev qa ops system:authenticated", c)
		n := testing.AllocsPerRun(100, func() { _, _, _ = policy.Authorize(context.Background(), asked) })
		if n > 5 {
			t.Errorf("%s: %v allocations", c, n)
		}
	}
}
