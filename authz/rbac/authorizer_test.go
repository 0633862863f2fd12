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

// allowed reports whether user may get pods.
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
	// A change without a difference: an object is created and deleted between two requests.
	last := a.Pin(ctx)
	for _, k := range w.kinds {
		k.changed.Store(w.revision + 1)
	}
	w.set(func() { w.revision++ })
	if a.Pin(ctx) != last {
		t.Error("a reading that brings nothing makes another policy")
	}
}

// TestAnotherGeneration checks that roles are read again when their generation changes, even if none was written.
func TestAnotherGeneration(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.put(clusterRole("pods", rule("get", "core", "pods", "")), clusterBinding("pods", "pods", "User/u"))
	a := follow(t, w, rbac.Options{})
	if !allowed(t.Context(), a, "u") {
		t.Error("the role does not allow")
	}
	w.set(func() {
		roles := w.kinds["ClusterRole"]
		roles.log[0].Object = clusterRole("pods", rule("get", "core", "secrets", ""))
		roles.floor = w.revision
		roles.generation.Add(1)
	})
	if allowed(t.Context(), a, "u") {
		t.Error("the role allows as it was made before")
	}
}

// TestOldPoliciesAreLetGo checks that policies share unchanged parts, and that these parts do not keep old policies in memory.
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
	w.notReady = fmt.Errorf("loading: %w", runtime.ErrNotReady)
	for _, k := range w.kinds {
		k.changed.Store(0)
	}
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
	contains(t, a.Ready(ctx), "ClusterRole: loading: the objects cannot be read yet\nRole: loading: ")
	w.set(func() { w.notReady = nil })
	for _, k := range w.kinds {
		k.changed.Store(w.revision)
	}
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

// TestFailuresDecideNothing checks that there is no opinion while the changes cannot be read, and that not every request waits
// for a storage that does not respond.
func TestFailuresDecideNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.put(clusterRole("pods", rule("get", "core", "pods", "")), clusterBinding("pods", "pods", "User/u"))
		var failures []error
		a, ctx := follow(t, w, rbac.Options{Hooks: rbac.Hooks{Failed: func(err error) { failures = append(failures, err) }}}), t.Context()
		known := a.Pin(ctx)
		w.drop(clusterBinding("pods", "pods", "User/u"))
		w.set(func() { w.fail = errors.New("the disk is gone") })
		for range 5 {
			verdict, reason, err := a.Authorize(ctx, request("u", "", "get core/pods"))
			if verdict != authz.NoOpinion || reason != "RBAC: roles and bindings cannot be read" || err != nil {
				t.Errorf("%v %q %v", verdict, reason, err)
			}
		}
		if rules, err := a.RulesFor(ctx, request("u", "", "get core/pods").User, ""); err == nil || !rules.Incomplete {
			t.Errorf("rules %+v, %v", rules, err)
		}
		if !allowed(ctx, known, "u") {
			t.Error("what was pinned before has changed")
		}
		if len(failures) != 1 || !strings.Contains(failures[0].Error(), "the disk is gone") {
			t.Errorf("%d readings failed: %v", len(failures), failures)
		}
		contains(t, a.Ready(ctx), "roles and bindings: ClusterRole: the disk is gone")
		time.Sleep(time.Second)
		if allowed(ctx, a, "u") || len(failures) != 2 {
			t.Errorf("after a while %d readings failed", len(failures))
		}
		w.put(clusterBinding("more", "pods", "User/v"))
		w.set(func() { w.fail = nil })
		time.Sleep(time.Second)
		if !allowed(ctx, a, "v") || allowed(ctx, a, "u") || a.Ready(ctx) != nil {
			t.Errorf("the objects can be read again: %v", a.Ready(ctx))
		}
	})
}

// TestNotLoadedAnyMore checks that the known state is not current when a kind is being loaded again, because the kind then does
// not report changes that this server has acknowledged.
func TestNotLoadedAnyMore(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"ClusterRole", "ClusterRoleBinding"} {
		w := newWorld()
		role, to := clusterRole("pods", rule("get", "core", "pods", "")), clusterBinding("pods", "pods", "User/u")
		w.put(role, to)
		a, ctx := follow(t, w, rbac.Options{}), t.Context()
		if !allowed(ctx, a, "u") {
			t.Fatal("not allowed")
		}
		if kind == "ClusterRole" {
			w.drop(role)
		} else {
			w.drop(to)
		}
		w.kinds[kind].changed.Store(0)
		if allowed(ctx, a, "u") {
			t.Errorf("%s: deleted, but it allows while the kind is not loaded", kind)
		}
		before := w.reads()[kind]
		if a.Pin(ctx); w.reads()[kind] == before {
			t.Errorf("%s: it is taken for current while the kind is not loaded", kind)
		}
		// The kind is loaded during the reading, so it is not known which changes the reading has missed.
		again := w.put(role, to)
		w.kinds[kind].changed.Store(0)
		w.kinds[kind].asked = func() {
			w.kinds[kind].asked = nil
			w.drop(role, to)
		}
		if p := a.Pin(ctx).(*rbac.Policy); p.Revision() < again {
			t.Errorf("%s: the policy of %d, want %d or later", kind, p.Revision(), again)
		}
		if allowed(ctx, a, "u") {
			t.Errorf("%s: deleted while it was read, and it allows", kind)
		}
	}
}

// TestSetBack checks that a store that was reset to an older state, such as a backup, is noticed whatever the revisions of the
// other kinds are.
func TestSetBack(t *testing.T) {
	t.Parallel()
	w := newWorld()
	role, to := clusterRole("pods", rule("get", "core", "pods", "")), clusterBinding("pods", "pods", "User/u")
	old := w.put(role)
	w.put(to)
	w.put(clusterBinding("other", "pods", "User/v"))
	a, ctx := follow(t, w, rbac.Options{}), t.Context()
	if !allowed(ctx, a, "u") {
		t.Fatal("not allowed")
	}
	w.setBack(old)
	if allowed(ctx, a, "u") || a.Ready(ctx) != nil {
		t.Errorf("the binding of after the backup still allows: %v", a.Ready(ctx))
	}
	w.put(to)
	if !allowed(ctx, a, "u") {
		t.Error("not allowed after the binding was made again")
	}
	// One kind is reset, and another kind has the highest revision.
	w.put(role)
	before := w.put(clusterBinding("other", "pods", "User/w"))
	if !allowed(ctx, a, "u") {
		t.Fatal("not allowed")
	}
	w.kinds["ClusterRole"].log, w.kinds["ClusterRole"].floor = nil, before
	w.kinds["ClusterRole"].changed.Store(1)
	if allowed(ctx, a, "u") {
		t.Error("the role of after the backup still allows")
	}
	// A kind that has not noticed the reset reports a revision that the store does not have.
	w.put(role, to)
	if !allowed(ctx, a, "u") {
		t.Fatal("not allowed")
	}
	ahead := w.kinds["ClusterRoleBinding"].changed.Load()
	w.setBack(old)
	w.kinds["ClusterRoleBinding"].changed.Store(ahead + 1)
	if allowed(ctx, a, "u") || a.Ready(ctx) != nil {
		t.Errorf("the binding of after the backup still allows: %v", a.Ready(ctx))
	}
}

// TestUnreadable checks that an object that cannot be decoded is left out, and that the changes of all other objects have effect.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	w := newWorld()
	role, to := clusterRole("pods", rule("get", "core", "pods", "")), clusterBinding("pods", "pods", "User/u")
	bad := clusterBinding("bad", "pods", "User/v")
	w.put(role, to, bad)
	var unreadable []error
	a, ctx := follow(t, w, rbac.Options{Hooks: rbac.Hooks{
		Failed:     func(err error) { t.Errorf("failed: %v", err) },
		Unreadable: func(err error) { unreadable = append(unreadable, err) },
	}}), t.Context()
	if !allowed(ctx, a, "v") || len(unreadable) != 0 {
		t.Fatal("not allowed")
	}
	w.spoil(bad)
	if allowed(ctx, a, "v") || !allowed(ctx, a, "u") {
		t.Error("what cannot be read allows, or what can does not")
	}
	w.drop(to)
	if allowed(ctx, a, "u") || a.Ready(ctx) != nil {
		t.Errorf("deleted, but it allows beside an object that cannot be read: %v", a.Ready(ctx))
	}
	if len(unreadable) != 1 {
		t.Errorf("%d times unreadable, want once: %v", len(unreadable), unreadable)
	}
	contains(t, errors.Join(unreadable...), `ClusterRoleBinding: stored objects cannot be read: "bad"`)
	w.put(bad)
	if !allowed(ctx, a, "v") {
		t.Error("repaired, and it does not allow")
	}
}

// TestEndedRequest checks that a request that has ended gets no old policy and does not read.
func TestEndedRequest(t *testing.T) {
	t.Parallel()
	w := newWorld()
	role, to := clusterRole("pods", rule("get", "core", "pods", "")), clusterBinding("pods", "pods", "User/u")
	w.put(role, to)
	a := follow(t, w, rbac.Options{Hooks: rbac.Hooks{Failed: func(err error) { t.Errorf("failed: %v", err) }}})
	if !allowed(t.Context(), a, "u") {
		t.Fatal("not allowed")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if !allowed(ctx, a, "u") {
		t.Error("without a change nothing is to be read")
	}
	w.drop(to)
	for range 20 { // select chooses randomly if two cases are ready
		if allowed(ctx, a, "u") {
			t.Fatal("a request that has ended is decided by the policy of before")
		}
	}
	if err := a.Ready(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Ready: %v", err)
	}
	if allowed(t.Context(), a, "u") {
		t.Error("the deleted binding allows")
	}
}

// TestExpired checks that a state that is no longer retained is read again, at a revision that is retained.
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
	// The kinds report older revisions than they have, so the first requested state is not retained.
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
	// If no state is retained, the hook reports it.
	known := a.Pin(ctx)
	w.put(clusterBinding("other", "pods", "User/w"))
	w.kinds["ClusterRole"].expired = func() {}
	w.set(func() { w.compacted = w.revision + 1 })
	contains(t, a.Ready(ctx), "the state at one revision could not be read 4 times, the last time because of: ClusterRole: too old")
	if !allowed(ctx, known, "v") || allowed(ctx, a, "v") {
		t.Error("what was pinned has changed, or it is still the policy")
	}
}

// TestOneReadingForMany checks that one of many requests reads a change and the others wait. The reading continues when that one
// request ends, and is cancelled when all have ended.
func TestOneReadingForMany(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.put(clusterRole("pods", rule("get", "core", "pods", "")), clusterBinding("pods", "pods", "User/u"))
		a := follow(t, w, rbac.Options{Hooks: rbac.Hooks{Failed: func(err error) { t.Errorf("failed: %v", err) }}})
		a.Pin(t.Context())
		w.drop(clusterBinding("pods", "pods", "User/u"))
		w.put(clusterBinding("more", "pods", "User/v"))
		before := w.reads()["ClusterRole"]
		free, hold := make(chan struct{}, 1), make(chan struct{})
		w.set(func() { w.hold = free })

		var all sync.WaitGroup
		short := func() context.CancelFunc { // begins a request that ends before anything is read
			ctx, cancel := context.WithCancel(t.Context())
			all.Go(func() {
				_, reason, _ := a.Authorize(ctx, request("u", "", "get core/pods ns"))
				if !strings.HasPrefix(reason, "RBAC: the request ended before roles and bindings were read") {
					t.Errorf("a request that has ended: %q", reason)
				}
			})
			synctest.Wait()
			return cancel
		}
		reads := short() // for this request only
		waits := short() // for the next reading
		reads()
		synctest.Wait() // the second reads
		w.set(func() { w.hold = hold })
		waits()
		synctest.Wait()
		if n := w.reads()["ClusterRole"] - before; n != 2 {
			t.Errorf("%d readings, want two that were broken off", n)
		}

		first, end := context.WithCancel(t.Context())
		all.Go(func() { a.Pin(first) })
		synctest.Wait() // this reading began before later changes, so later requests must not use it
		leader, endLeader := context.WithCancel(t.Context())
		for i := range 20 {
			ctx := t.Context()
			if i == 0 {
				ctx = leader // the first request to join the next reading
			}
			all.Go(func() {
				if !allowed(ctx, a, "v") || allowed(t.Context(), a, "u") {
					t.Error("a request that began after the change is decided without it")
				}
			})
			synctest.Wait()
		}
		end() // the first reading is cancelled, and the next begins
		synctest.Wait()
		endLeader() // other requests wait for this reading
		synctest.Wait()
		close(hold)
		all.Wait()
		if n := w.reads()["ClusterRole"] - before; n != 4 {
			t.Errorf("%d readings, want three that were broken off and one for all", n)
		}
	})
}

// TestPinUnderChanges checks that every decision under changes is that of a state that existed, and that is not older than the
// request.
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

// many returns n bindings of 1,000 roles: half of them ClusterRoleBindings, the others in 100 namespaces, each with one user; and
// the bindings of a user in three groups with ten bindings.
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

// BenchmarkAuthorize measures a decision for a user with eleven bindings in three groups, the last of which allows, and a
// decision that nothing allows.
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

// BenchmarkChange measures a changed binding or role, and the Pin that reads it.
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

// BenchmarkLoad measures the first reading.
func BenchmarkLoad(b *testing.B) {
	w := newWorld()
	w.put(many(10_000)...)
	b.ReportAllocs()
	for b.Loop() {
		follow(b, w, rbac.Options{}).Pin(b.Context())
	}
}

// TestDecisionAllocates bounds the allocations of a decision.
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

// TestChangeAllocates checks that a change of a binding costs about the same at 10 bindings as at 10,000: the depth of the trees is
// the only difference.
func TestChangeAllocates(t *testing.T) {
	cost := func(n int) float64 {
		w := newWorld()
		w.put(many(n)...)
		a := follow(t, w, rbac.Options{})
		a.Pin(t.Context())
		w.forget()
		i := 0
		return testing.AllocsPerRun(50, func() {
			i++
			w.put(clusterBinding("team-1", "role-1", fmt.Sprint("Group/", strings.Fields("dev ops")[i%2])))
			if a.Pin(t.Context()).(*rbac.Policy).Revision() != w.revision {
				t.Error("the change was not read")
			}
			w.forget()
		})
	}
	few, lots := cost(10), cost(10_000)
	if few > 100 || lots > 2*few {
		t.Errorf("%v allocations with 10 bindings, %v with 10,000", few, lots)
	}
}
