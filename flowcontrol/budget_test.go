package flowcontrol_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/flowcontrol"
)

func take(t *testing.T, b *flowcontrol.Budget, h flowcontrol.Holder, n int64, want string) flowcontrol.Share {
	t.Helper()
	s, err := b.Take(h, n)
	var rejected *flowcontrol.RejectedError
	switch {
	case want == "" && err != nil:
		t.Fatalf("%+v takes %d: %v", h, n, err)
	case want != "" && (!errors.As(err, &rejected) || rejected.Reason != want || rejected.RetryAfter <= 0):
		t.Fatalf("%+v takes %d: %v, want %q", h, n, err, want)
	}
	return s
}

func TestBudgetHasThreeBounds(t *testing.T) {
	b := flowcontrol.NewBudget("watches", flowcontrol.Bounds{All: 10, User: 4, Address: 7})
	here, there := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	alice := take(t, b, flowcontrol.Holder{User: "alice", Address: here}, 4, "")
	take(t, b, flowcontrol.Holder{User: "alice", Address: there}, 1, "too many watches of one user: the limit is 4")
	bob := take(t, b, flowcontrol.Holder{User: "bob", Address: here}, 3, "")
	take(t, b, flowcontrol.Holder{User: "carol", Address: here}, 1, "too many watches from one address: the limit is 7")
	carol := take(t, b, flowcontrol.Holder{User: "carol", Address: there}, 3, "")
	take(t, b, flowcontrol.Holder{}, 1, "too many watches in all: the limit is 10")
	if err := carol.Grow(1); err == nil {
		t.Error("a share grew beyond the bound in all")
	}
	if carol.Held() != 3 {
		t.Errorf("after a Grow that failed: %d", carol.Held())
	}
	alice.Shrink(3)
	if err := carol.Grow(1); err != nil {
		t.Error(err)
	}
	if err := carol.Grow(1); err == nil {
		t.Error("a share grew beyond the bound of its user")
	}
	alice.Release()
	alice.Release()
	bob.Release()
	carol.Release()
	if held := b.Held(); held != 0 {
		t.Errorf("%d held after all were released", held)
	}
	if peak, after := b.Peak(), b.Peak(); peak != 10 || after != 0 {
		t.Errorf("peaks %d and %d, want 10 and 0", peak, after)
	}
	if got := b.Rejected(); got != 5 {
		t.Errorf("%d rejected, want 5", got)
	}
}

func TestBudgetWithoutBounds(t *testing.T) {
	unbounded := flowcontrol.Bounds{All: -1, User: -1, Address: -1}
	if got := (*flowcontrol.Budget)(nil).Bounds(); got != unbounded {
		t.Errorf("the bounds of no budget are %+v", got)
	}
	if got := flowcontrol.NewBudget("bytes", flowcontrol.Bounds{User: 7}).Bounds(); got != (flowcontrol.Bounds{User: 7}) {
		t.Errorf("the bounds are %+v", got)
	}
	for _, b := range []*flowcontrol.Budget{nil, flowcontrol.NewBudget("bytes", flowcontrol.Bounds{All: -1, User: -1, Address: -1})} {
		s := take(t, b, flowcontrol.Holder{User: "alice"}, math.MaxInt64/2, "")
		if err := s.Grow(1); err != nil {
			t.Error(err)
		}
		s.Shrink(1)
		s.Release()
		if b.Held() != 0 {
			t.Errorf("%d held", b.Held())
		}
	}
	var none flowcontrol.Share
	none.Shrink(1)
	none.Release()
	if err := none.Grow(1); err != nil {
		t.Error(err)
	}
}

// TestBudgetDoesNotOverflow checks that a number for which the sum overflows exceeds every bound.
func TestBudgetDoesNotOverflow(t *testing.T) {
	b := flowcontrol.NewBudget("bytes", flowcontrol.Bounds{All: 10, User: -1, Address: -1})
	s := take(t, b, flowcontrol.Holder{}, 5, "")
	take(t, b, flowcontrol.Holder{}, math.MaxInt64, "too many bytes in all: the limit is 10")
	s.Release()
}

func TestBudgetCountsNetworks(t *testing.T) {
	for _, test := range []struct {
		a, b string
		same bool
	}{
		{"192.0.2.1", "::ffff:192.0.2.1", true},
		{"192.0.2.1", "192.0.2.2", false},
		{"2001:db8::1", "2001:db8::ffff:2", true},
		{"2001:db8::1", "2001:db8:0:1::1", false},
		{"fe80::1%eth0", "fe80::1%eth1", true},
	} {
		b := flowcontrol.NewBudget("connections", flowcontrol.Bounds{All: -1, User: -1, Address: 1})
		s := take(t, b, flowcontrol.Holder{Address: netip.MustParseAddr(test.a)}, 1, "")
		other, err := b.Take(flowcontrol.Holder{Address: netip.MustParseAddr(test.b)}, 1)
		if (err != nil) != test.same {
			t.Errorf("%s and %s: %v, want one address: %t", test.a, test.b, err, test.same)
		}
		other.Release()
		s.Release()
	}
}

// TestBudgetModel has many holders that take and give back at random. No bound is ever exceeded, and nothing remains.
func TestBudgetModel(t *testing.T) {
	bounds := flowcontrol.Bounds{All: 200, User: 60, Address: 50}
	b := flowcontrol.NewBudget("bytes", bounds)
	var (
		mu        sync.Mutex
		users     [5]int64
		addresses [7]int64
	)
	count := func(u, a int, n int64, surely bool) {
		mu.Lock()
		defer mu.Unlock()
		users[u] += n
		addresses[a] += n
		if surely && (users[u] > bounds.User || addresses[a] > bounds.Address) {
			t.Errorf("user %d, address %d", users[u], addresses[a])
		}
	}
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), 1))
			for range 2000 {
				u, a := random.IntN(len(users)), random.IntN(len(addresses))
				h := flowcontrol.Holder{User: fmt.Sprint(u), Address: netip.AddrFrom4([4]byte{192, 0, 2, byte(a)})}
				s, err := b.Take(h, random.Int64N(20))
				if err != nil {
					continue
				}
				count(u, a, s.Held(), true)
				runtime.Gosched() // without this, one worker may be done before the next begins on a busy machine
				for range random.IntN(4) {
					n := random.Int64N(10)
					if random.IntN(2) == 0 {
						if s.Grow(n) == nil {
							count(u, a, n, true)
						}
						continue
					}
					count(u, a, -min(n, s.Held()), false) // before it is given back: the count is too low for a moment, never too high
					s.Shrink(n)
				}
				count(u, a, -s.Held(), false)
				s.Release()
			}
		})
	}
	all.Wait()
	if b.Held() != 0 || b.Peak() > bounds.All || b.Rejected() == 0 {
		t.Errorf("%d held, peak %d, %d rejected", b.Held(), b.Peak(), b.Rejected())
	}
}

// TestBudgetForgets checks that a budget removes holders that hold nothing, so that its memory is bounded by the number of
// holders.
func TestBudgetForgets(t *testing.T) {
	b := flowcontrol.NewBudget("watches", flowcontrol.Bounds{All: 10, User: 1, Address: -1})
	kept := take(t, b, flowcontrol.Holder{User: "kept"}, 1, "")
	for i := range 1000 {
		h := flowcontrol.Holder{User: fmt.Sprint(i), Address: netip.AddrFrom4([4]byte{192, 0, byte(i >> 8), byte(i)})}
		s := take(t, b, h, 1, "")
		take(t, b, h, 1, "too many watches of one user: the limit is 1")
		s.Release()
	}
	if users, addresses := b.Holders(); users != 1 || addresses != 0 {
		t.Errorf("%d users and %d addresses, want 1 and 0", users, addresses)
	}
	kept.Release()
}

func TestBoundsWithDefaults(t *testing.T) {
	got := flowcontrol.Bounds{All: 5, User: -1}.WithDefaults(flowcontrol.Bounds{All: 1, User: 2, Address: 3})
	if want := (flowcontrol.Bounds{All: 5, User: -1, Address: 3}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestBudgetAllocates(t *testing.T) {
	b := flowcontrol.NewBudget("bytes", flowcontrol.Bounds{All: 10, User: 10, Address: 10})
	h := flowcontrol.Holder{User: "alice", Address: netip.MustParseAddr("192.0.2.1")}
	first := take(t, b, h, 1, "")
	defer first.Release()
	if n := testing.AllocsPerRun(100, func() {
		s, _ := b.Take(h, 1)
		s.Release()
	}); n > 0 {
		t.Errorf("%v allocations for a share of who holds one already", n)
	}
}

func BenchmarkBudget(b *testing.B) {
	budget := flowcontrol.NewBudget("bytes", flowcontrol.Bounds{All: -1, User: -1, Address: -1})
	h := flowcontrol.Holder{User: "alice", Address: netip.MustParseAddr("192.0.2.1")}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			s, err := budget.Take(h, 1)
			if err != nil {
				b.Fatal(err)
			}
			s.Release()
		}
	})
}

// TestRoom checks that Room returns the result of Take and counts nothing.
func TestRoom(t *testing.T) {
	b := flowcontrol.NewBudget("things", flowcontrol.Bounds{All: 5, User: 3, Address: 2})
	one, other := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	first, err := b.Take(flowcontrol.Holder{User: "a", Address: one}, 2)
	if err != nil {
		t.Fatal(err)
	}
	second, err := b.Take(flowcontrol.Holder{User: "b"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		h    flowcontrol.Holder
		n    int64
		want flowcontrol.Bound
	}{
		{flowcontrol.Holder{}, 2, 0},
		{flowcontrol.Holder{}, 3, flowcontrol.BoundAll},
		{flowcontrol.Holder{User: "a", Address: other}, 1, 0},
		{flowcontrol.Holder{User: "a", Address: other}, 2, flowcontrol.BoundUser},
		{flowcontrol.Holder{User: "c", Address: one}, 1, flowcontrol.BoundAddress},
		{flowcontrol.Holder{User: "c", Address: one}, 0, 0},
		{flowcontrol.Holder{User: "c", Address: other}, 2, 0},
	} {
		var full *flowcontrol.RejectedError
		if errors.As(b.Room(tc.h, tc.n), &full) != (tc.want != 0) || full != nil && full.Bound != tc.want {
			t.Errorf("%d for %+v: %v, want bound %d", tc.n, tc.h, full, tc.want)
		}
	}
	users, addresses := b.Holders()
	if b.Held() != 3 || b.Rejected() != 0 || users != 2 || addresses != 1 {
		t.Errorf("%d held, %d rejected, %d users, %d addresses", b.Held(), b.Rejected(), users, addresses)
	}
	first.Release()
	second.Release()
	if err := (*flowcontrol.Budget)(nil).Room(flowcontrol.Holder{}, 1); err != nil {
		t.Error(err)
	}
}

// TestCount checks that Count uses the bound of all for itself, leaves no room for Take, and that its shares are given back like
// others.
func TestCount(t *testing.T) {
	b := flowcontrol.NewBudget("bytes", flowcontrol.Bounds{All: 10, User: 4, Address: -1})
	alice, bob := flowcontrol.Holder{User: "alice"}, flowcontrol.Holder{User: "bob"}
	count := func(n int64) flowcontrol.Share {
		t.Helper()
		s, err := b.Count(n)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	bobs := take(t, b, bob, 4, "")
	first, second := count(3), count(7)
	if _, err := b.Count(1); err == nil || err.Error() != "too many requests: too many bytes in all: the limit is 10" || b.Rejected() != 1 {
		t.Errorf("%v; %d rejected", err, b.Rejected())
	}
	bobs.Release()
	take(t, b, alice, 1, "too many bytes in all: the limit is 10")
	none := take(t, b, alice, 0, "")
	if err := none.Grow(1); err == nil || b.Held() != 10 || b.Peak() != 14 {
		t.Errorf("%v; %d held", err, b.Held())
	}
	first.Release()
	first.Release()
	if err := none.Grow(3); err != nil || second.Held() != 7 {
		t.Errorf("%v; %d held", err, second.Held())
	}
	second.Shrink(7)
	again := count(10)
	again.Release()
	second.Release()
	none.Release()
	if users, _ := b.Holders(); b.Held() != 0 || users != 0 {
		t.Errorf("%d held by %d users", b.Held(), users)
	}
	var unbounded *flowcontrol.Budget
	share, err := unbounded.Count(1)
	if share.Release(); share.Held() != 0 || err != nil {
		t.Errorf("nothing is counted, and something is held: %v", err)
	}
	open := flowcontrol.NewBudget("bytes", flowcontrol.Bounds{All: -1, User: -1, Address: -1})
	if share, err = open.Count(1 << 40); err != nil || open.Held() != 1<<40 {
		t.Errorf("without a bound: %v", err)
	}
	share.Release()
}
