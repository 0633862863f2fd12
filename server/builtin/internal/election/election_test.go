package election_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/server/builtin/internal/election"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const namespace, name = "kube-system", "leader"

// newLeases returns Leases in memory, with the rules of their registry.
func newLeases(t *testing.T) *registry.Typed[*coordinationv1.Lease] {
	t.Helper()
	kind := coordinationv1.SchemeGroupVersion.WithKind("Lease")
	scheme := runtime.NewScheme()
	check(t, runtime.Register[*coordinationv1.Lease](scheme, kind, runtime.KindOptions[*coordinationv1.Lease]{}))
	backend := memory.New(memory.Options{})
	t.Cleanup(func() { check(t, backend.Close()) })
	typed, err := codec.NewTyped(scheme, kind)
	check(t, err)
	store, err := storage.NewStore(backend, storage.StoreOptions{Prefix: "/registry/leases", Codec: typed, Namespaced: true})
	check(t, err)
	reg, err := registry.New(registry.Options{
		Scheme: scheme, Kind: kind, Resource: schema.GroupResource{Group: kind.Group, Resource: "leases"}, Namespaced: true, Storage: store,
	})
	check(t, err)
	leases, err := registry.For[*coordinationv1.Lease](reg, authn.System())
	check(t, err)
	return leases
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func candidate(identity string) election.Options {
	return election.Options{Namespace: namespace, Name: name, Identity: identity}
}

// flaky is the access of one candidate to the Leases. Requests and answers are late or lost, and requests that the candidate has
// given up may still arrive.
type flaky struct {
	to    election.Leases
	under *sync.WaitGroup // requests in flight

	mu   sync.Mutex // guards what follows
	rnd  *rand.Rand
	calm bool
}

var errLost = errors.New("lost")

func (f *flaky) plan() (before, after time.Duration, lost, deaf bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calm {
		return 0, 0, false, false
	}
	late := func() time.Duration {
		switch n := f.rnd.IntN(100); {
		case n < 70:
			return time.Duration(f.rnd.IntN(int(100 * time.Millisecond)))
		case n < 90:
			return time.Duration(f.rnd.IntN(int(4 * time.Second)))
		}
		return time.Duration(f.rnd.IntN(int(25 * time.Second)))
	}
	return late(), late(), f.rnd.IntN(8) == 0, f.rnd.IntN(4) == 0
}

func (f *flaky) call(ctx context.Context, do func(ctx context.Context) (*coordinationv1.Lease, error)) (*coordinationv1.Lease, error) {
	type answer struct {
		lease *coordinationv1.Lease
		err   error
	}
	before, after, lost, deaf := f.plan()
	got := make(chan answer, 1)
	f.under.Go(func() {
		time.Sleep(before)
		lease, err := do(context.WithoutCancel(ctx))
		time.Sleep(after)
		if lost {
			lease, err = nil, errLost
		}
		got <- answer{lease, err}
	})
	if deaf { // until the end of ctx
		a := <-got
		return a.lease, a.err
	}
	select {
	case a := <-got:
		return a.lease, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (f *flaky) Get(ctx context.Context, namespace, name string) (*coordinationv1.Lease, error) {
	return f.call(ctx, func(ctx context.Context) (*coordinationv1.Lease, error) { return f.to.Get(ctx, namespace, name) })
}

func (f *flaky) Create(ctx context.Context, namespace string, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	return f.call(ctx, func(ctx context.Context) (*coordinationv1.Lease, error) { return f.to.Create(ctx, namespace, lease) })
}

func (f *flaky) Update(ctx context.Context, namespace string, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	return f.call(ctx, func(ctx context.Context) (*coordinationv1.Lease, error) { return f.to.Update(ctx, namespace, lease) })
}

// throne checks that only one candidate leads at a time.
type throne struct {
	t *testing.T

	mu      sync.Mutex // guards what follows
	leading map[string]context.Context
	turns   int
}

func (th *throne) lead(ctx context.Context, who string) {
	th.mu.Lock()
	defer th.mu.Unlock()
	for other, otherCtx := range th.leading {
		if otherCtx.Err() == nil {
			th.t.Errorf("%s leads while %s does", who, other)
		}
	}
	th.turns++
	th.leading[who] = ctx
}

func (th *throne) leader() string {
	th.mu.Lock()
	defer th.mu.Unlock()
	for who, ctx := range th.leading {
		if ctx.Err() == nil {
			return who
		}
	}
	return ""
}

// Candidates have unreliable access to the Lease, and are stopped and started. There are never two leaders, and there is a leader
// when the faults have ended.
func TestNeverTwoLeaders(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) { runTrouble(t, seed) })
	}
}

func runTrouble(t *testing.T, seed uint64) {
	leases := newLeases(t)
	rnd := rand.New(rand.NewPCG(seed, 2))
	th := &throne{t: t, leading: map[string]context.Context{}}
	ctx, stop := context.WithCancel(t.Context())
	var under, candidates sync.WaitGroup
	var ways []*flaky
	for i := range 4 {
		way := &flaky{to: leases, under: &under, rnd: rand.New(rand.NewPCG(seed, uint64(10+i)))}
		ways = append(ways, way)
		lives, pauses := make([]time.Duration, 20), make([]time.Duration, 20)
		for j := range lives {
			lives[j], pauses[j] = time.Duration(rnd.IntN(int(3*time.Minute))), time.Duration(rnd.IntN(int(40*time.Second)))
		}
		candidates.Go(func() {
			for life := 0; ctx.Err() == nil; life++ {
				who := fmt.Sprintf("candidate-%d-%d", i, life)
				alive, die := context.WithCancel(ctx)
				if life < len(lives) {
					time.AfterFunc(lives[life], die)
				}
				err := election.Run(alive, way, candidate(who), func(ctx context.Context) {
					th.lead(ctx, who)
					if life%3 == 2 {
						time.Sleep(pauses[life%20] / 4) // work that ends by itself
						return
					}
					<-ctx.Done()
					time.Sleep(pauses[life%20] / 2) // work that ends late
				})
				die()
				if err != nil {
					t.Error(err)
				}
				time.Sleep(pauses[life%20])
			}
		})
	}
	time.Sleep(30 * time.Minute)
	for _, w := range ways {
		w.mu.Lock()
		w.calm = true
		w.mu.Unlock()
	}
	th.mu.Lock()
	turns := th.turns
	th.mu.Unlock()
	time.Sleep(3 * time.Minute)
	led := 0
	for range 60 {
		time.Sleep(5 * time.Second)
		if th.leader() != "" {
			led++
		}
	}
	if turns < 10 || led == 0 {
		t.Errorf("seed %d: %d turns, and a leader at %d of 60 looks after the trouble", seed, turns, led)
	}
	stop()
	candidates.Wait()
	under.Wait()
}

// start runs a candidate, and returns when it begins to lead.
func start(ctx context.Context, t *testing.T, leases election.Leases, opts election.Options, wg *sync.WaitGroup) (leads <-chan time.Time) {
	t.Helper()
	out := make(chan time.Time, 100)
	wg.Go(func() {
		err := election.Run(ctx, leases, opts, func(ctx context.Context) {
			out <- time.Now()
			<-ctx.Done()
		})
		if err != nil {
			t.Error(err)
		}
	})
	return out
}

func TestFirstLeadsAndNextFollowsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leases := newLeases(t)
		var wg sync.WaitGroup
		first, stopFirst := context.WithCancel(t.Context())
		second, stopSecond := context.WithCancel(t.Context())
		a := start(first, t, leases, candidate("a"), &wg)
		<-a
		b := start(second, t, leases, candidate("b"), &wg)
		time.Sleep(time.Hour)
		if len(b) > 0 {
			t.Fatal("b leads while a renews")
		}
		lease, err := leases.Get(t.Context(), namespace, name)
		check(t, err)
		if got := lease.Spec; *got.HolderIdentity != "a" || *got.LeaseDurationSeconds != 15 || *got.LeaseTransitions != 0 || time.Since(got.RenewTime.Time) > 3*time.Second {
			t.Errorf("Lease while a leads: %+v", got)
		}
		released := time.Now()
		stopFirst()
		if took := (<-b).Sub(released); took > 3*time.Second {
			t.Errorf("b leads %v after a gave the Lease back", took)
		}
		lease, err = leases.Get(t.Context(), namespace, name)
		check(t, err)
		if got := lease.Spec; *got.HolderIdentity != "b" || *got.LeaseTransitions != 1 {
			t.Errorf("Lease while b leads: %+v", got)
		}
		stopSecond()
		wg.Wait()
		lease, err = leases.Get(t.Context(), namespace, name)
		check(t, err)
		if got := lease.Spec; *got.HolderIdentity != "" || *got.LeaseDurationSeconds != 1 {
			t.Errorf("Lease when all have ended: %+v", got)
		}
	})
}

// The Lease is released when the work has ended, not when its context has.
func TestLeaseIsKeptWhileTheWorkEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leases := newLeases(t)
		var wg sync.WaitGroup
		ctx, stop := context.WithCancel(t.Context())
		leads, ended := make(chan time.Time, 1), make(chan time.Time, 1)
		wg.Go(func() {
			check(t, election.Run(ctx, leases, candidate("a"), func(ctx context.Context) {
				leads <- time.Now()
				<-ctx.Done()
				time.Sleep(5 * time.Second)
				ended <- time.Now()
			}))
		})
		<-leads
		next, stopNext := context.WithCancel(t.Context())
		b := start(next, t, leases, candidate("b"), &wg)
		time.Sleep(time.Minute)
		stop()
		if took := (<-b).Sub(<-ended); took < 0 {
			t.Errorf("b leads %v before the work of a has ended", -took)
		}
		stopNext()
		wg.Wait()
	})
}

// The time to wait for a holder counts from when the Lease was first seen, whatever times are in the Lease.
func TestTimesOfOthersDoNotCount(t *testing.T) {
	t.Parallel()
	for what, skew := range map[string]time.Duration{"behind": -24 * time.Hour, "ahead": 24 * time.Hour} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				leases := newLeases(t)
				holder, seconds, renewed := "gone", int32(30), metav1.NewMicroTime(time.Now().Add(skew))
				_, err := leases.Create(t.Context(), namespace, &coordinationv1.Lease{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
					Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &renewed, AcquireTime: &renewed},
				})
				check(t, err)
				var wg sync.WaitGroup
				ctx, stop := context.WithCancel(t.Context())
				began := time.Now()
				if took := (<-start(ctx, t, leases, candidate("a"), &wg)).Sub(began); took < 30*time.Second || took > 33*time.Second {
					t.Errorf("the Lease was taken after %v, want 30 s and a look more", took)
				}
				stop()
				wg.Wait()
			})
		})
	}
}

// gate is an access to Leases that fails while it is closed.
type gate struct {
	election.Leases
	mu     sync.Mutex // guards closed
	closed bool
}

func (g *gate) set(closed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = closed
}

func (g *gate) err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return errLost
	}
	return nil
}

func (g *gate) Get(ctx context.Context, namespace, name string) (*coordinationv1.Lease, error) {
	if err := g.err(); err != nil {
		return nil, err
	}
	return g.Leases.Get(ctx, namespace, name)
}

func (g *gate) Update(ctx context.Context, namespace string, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	if err := g.err(); err != nil {
		return nil, err
	}
	return g.Leases.Update(ctx, namespace, lease)
}

func TestLeaderGivesUpAtDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &gate{Leases: newLeases(t)}
		var wg sync.WaitGroup
		ctx, stop := context.WithCancel(t.Context())
		leads, ends := make(chan time.Time, 9), make(chan time.Time, 9)
		wg.Go(func() {
			check(t, election.Run(ctx, g, candidate("a"), func(ctx context.Context) {
				leads <- time.Now()
				<-ctx.Done()
				ends <- time.Now()
			}))
		})
		<-leads
		time.Sleep(time.Minute)
		synctest.Wait()
		g.set(true)
		closed := time.Now()
		if lasted := (<-ends).Sub(closed); lasted < 8*time.Second || lasted > 10*time.Second {
			t.Errorf("it leads for %v without a renewal, want 10 s from the last one", lasted)
		}
		time.Sleep(time.Minute)
		g.set(false)
		opened := time.Now()
		if took := (<-leads).Sub(opened); took > 5*time.Second {
			t.Errorf("it leads again after %v", took)
		}
		stop()
		wg.Wait()
	})
}

func TestLeaderSeesThatAnotherHoldsTheLease(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(ctx context.Context, leases *registry.Typed[*coordinationv1.Lease]) error{
		"taken": func(ctx context.Context, leases *registry.Typed[*coordinationv1.Lease]) error {
			_, err := leases.Change(ctx, namespace, name, func(l *coordinationv1.Lease) error {
				other := "other"
				l.Spec.HolderIdentity = &other
				return nil
			})
			return err
		},
		"deleted": func(ctx context.Context, leases *registry.Typed[*coordinationv1.Lease]) error {
			_, _, err := leases.Delete(ctx, namespace, name, nil)
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				leases := newLeases(t)
				var wg sync.WaitGroup
				ctx, stop := context.WithCancel(t.Context())
				leads, ends := make(chan time.Time, 9), make(chan time.Time, 9)
				wg.Go(func() {
					check(t, election.Run(ctx, leases, candidate("a"), func(ctx context.Context) {
						leads <- time.Now()
						<-ctx.Done()
						ends <- time.Now()
					}))
				})
				<-leads
				time.Sleep(time.Minute)
				check(t, change(ctx, leases))
				changed := time.Now()
				if took := (<-ends).Sub(changed); took > 2*time.Second {
					t.Errorf("it has led on for %v", took)
				}
				stop()
				wg.Wait()
			})
		})
	}
}

// A write of another client to the Lease, such as of a label, does not end the leadership.
func TestLeaderOutlivesConflicts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leases := newLeases(t)
		var wg sync.WaitGroup
		ctx, stop := context.WithCancel(t.Context())
		leads := start(ctx, t, leases, candidate("a"), &wg)
		<-leads
		for i := range 60 {
			time.Sleep(time.Second)
			_, err := leases.Change(ctx, namespace, name, func(l *coordinationv1.Lease) error {
				l.Labels = map[string]string{"look": fmt.Sprint(i)}
				return nil
			})
			check(t, err)
		}
		if len(leads) > 0 {
			t.Error("the leadership was lost")
		}
		stop()
		wg.Wait()
	})
}

func TestRunEndsWithItsWork(t *testing.T) {
	t.Parallel()
	leases := newLeases(t)
	check(t, election.Run(t.Context(), leases, candidate(""), func(context.Context) {}))
	lease, err := leases.Get(t.Context(), namespace, name)
	check(t, err)
	if got := *lease.Spec.HolderIdentity; got != "" {
		t.Errorf("the Lease is still held by %q", got)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for want, opts := range map[string]election.Options{
		"Namespace and Options.Name are required": {Namespace: "a"},
		"LeaseDuration is 1.5s":                   {Namespace: "a", Name: "b", LeaseDuration: 1500 * time.Millisecond},
		"RenewDeadline is 15s":                    {Namespace: "a", Name: "b", RenewDeadline: 15 * time.Second},
		"RetryPeriod is 10s":                      {Namespace: "a", Name: "b", RetryPeriod: 10 * time.Second},
	} {
		err := election.Run(t.Context(), newLeases(t), opts, func(context.Context) {})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

var _ election.Leases = (*registry.Typed[*coordinationv1.Lease])(nil)
