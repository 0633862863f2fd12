package flowcontrol

import (
	"cmp"
	"fmt"
	"net/netip"
	"sync"
	"time"
)

// Bounds say how much of one thing may be held at the same time: in all, by one user, and from one address. A negative
// number is no bound. A function that takes Bounds says what 0 means: a default ([Bounds.WithDefaults]), or that nothing
// passes ([NewBudget]).
type Bounds struct {
	All, User, Address int64
}

// WithDefaults returns b with the numbers of defaults where b has 0.
func (b Bounds) WithDefaults(defaults Bounds) Bounds {
	return Bounds{All: cmp.Or(b.All, defaults.All), User: cmp.Or(b.User, defaults.User), Address: cmp.Or(b.Address, defaults.Address)}
}

// Bound is one of the numbers of Bounds; the zero Bound is none of them.
type Bound int

// The numbers of Bounds.
const (
	BoundAll Bound = iota + 1
	BoundUser
	BoundAddress
)

// Holder is who holds a part of a Budget. The zero Holder counts in all only.
type Holder struct {
	// User is the name of a user, or "": then the bound of users does not hold.
	User string
	// Address is where the user is, or the zero Addr: then the bound of addresses does not hold. Addresses of IPv6 count by their
	// first 64 bits, of which a site gives each of its hosts all others
	// (https://www.rfc-editor.org/rfc/rfc4291#section-2.5.1), and those of IPv4 mapped to IPv6 as what they are.
	Address netip.Addr
}

// Network returns what the address of h counts as, for which see Address.
func (h Holder) Network() netip.Addr { return network(h.Address) }

// Budget counts how much of one thing is held: bytes, watches or connections. Nobody waits: what would go beyond a bound is
// turned away. All methods may be called concurrently, and cost the same however many holders there are. Make a Budget with
// [NewBudget]; a nil *Budget has no bounds and counts nothing.
type Budget struct {
	what   string
	bounds Bounds

	mu        sync.Mutex // guards all below
	held      int64
	counted   int64 // of held, by Count
	peak      int64
	rejected  int64
	users     map[string]*tally
	addresses map[netip.Addr]*tally
}

// tally is what one user or one address holds. It is in its map while it has shares.
type tally struct {
	held   int64
	shares int
}

// NewBudget returns a budget of what, a plural noun such as "watches", that is held up to bounds. A bound of 0 lets nothing pass:
// see [Bounds.WithDefaults].
func NewBudget(what string, bounds Bounds) *Budget {
	return &Budget{what: what, bounds: bounds, users: map[string]*tally{}, addresses: map[netip.Addr]*tally{}}
}

// Take takes n for a holder, at least 0. The share is given back with its method Release. The error is a *RejectedError that
// names the bound; then nothing is held.
func (b *Budget) Take(h Holder, n int64) (Share, error) {
	if b == nil {
		return Share{}, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.enter(h)
	if err := b.add(&s, n); err != nil {
		b.leave(&s)
		return Share{}, err
	}
	return s, nil
}

// Count counts n, at least 0, for nobody: for what many share, which takes from the room of all that comes after it. However much is
// held, up to the bound of all may be counted, so that at most twice that bound is held. The error is as that of Take.
func (b *Budget) Count(n int64) (Share, error) {
	if b == nil {
		return Share{}, nil
	}
	s := Share{budget: b, counted: true}
	b.mu.Lock()
	defer b.mu.Unlock()
	if beyond(b.counted, n, b.bounds.All) {
		b.rejected++
		return Share{}, b.reject("in all", BoundAll, b.bounds.All)
	}
	b.change(&s, n)
	return s, nil
}

// Room returns the error that Take would return now, without counting it as a rejection: for a caller that can make room.
func (b *Budget) Room(h Holder, n int64) error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.enter(h)
	defer b.leave(&s)
	if err := b.fits(&s, n); err != nil {
		return err
	}
	return nil
}

// Bounds returns what NewBudget was given. A nil *Budget has none.
func (b *Budget) Bounds() Bounds {
	if b == nil {
		return Bounds{All: -1, User: -1, Address: -1}
	}
	return b.bounds
}

// Held returns how much is held.
func (b *Budget) Held() int64 {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}

// Peak returns the most that was held at the same time since it was asked last, and begins anew.
func (b *Budget) Peak() int64 {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	peak := b.peak
	b.peak = b.held
	return peak
}

// Holders returns how many users and addresses hold something, or have a share that may grow.
func (b *Budget) Holders() (users, addresses int) {
	if b == nil {
		return 0, 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.users), len(b.addresses)
}

// Rejected returns how often somebody was turned away.
func (b *Budget) Rejected() int64 {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rejected
}

// Share is what a holder holds of a Budget. A Share is owned by one goroutine at a time, and must not be copied once its
// methods are called. The zero Share holds nothing, without a bound.
type Share struct {
	budget        *Budget
	holder        Holder
	user, address *tally // nil: not counted
	held          int64
	counted       bool // by Count
}

// Grow takes n more. The error is as that of [Budget.Take]; then the share is as it was.
func (s *Share) Grow(n int64) error {
	if s.budget == nil {
		return nil
	}
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	return s.budget.add(s, n)
}

// Shrink gives n back, at most what is held.
func (s *Share) Shrink(n int64) {
	if s.budget == nil {
		return
	}
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	s.budget.change(s, -min(n, s.held))
}

// Held returns how much the share holds.
func (s *Share) Held() int64 { return s.held }

// Release gives all back. The share is then a zero one, so that a second call does nothing.
func (s *Share) Release() {
	b := s.budget
	if b == nil {
		return
	}
	b.mu.Lock()
	b.change(s, -s.held)
	b.leave(s)
	b.mu.Unlock()
	*s = Share{}
}

// add counts n more for a share, or says which bound is in the way. The caller holds mu.
func (b *Budget) add(s *Share, n int64) error {
	if err := b.fits(s, n); err != nil {
		b.rejected++
		return err
	}
	b.change(s, n)
	return nil
}

// fits returns nil if n more fit for a share. The caller holds mu.
func (b *Budget) fits(s *Share, n int64) *RejectedError {
	switch {
	case beyond(b.held, n, b.bounds.All):
		return b.reject("in all", BoundAll, b.bounds.All)
	case s.user != nil && beyond(s.user.held, n, b.bounds.User):
		return b.reject("of one user", BoundUser, b.bounds.User)
	case s.address != nil && beyond(s.address.held, n, b.bounds.Address):
		return b.reject("from one address", BoundAddress, b.bounds.Address)
	}
	return nil
}

func (b *Budget) reject(whose string, which Bound, bound int64) *RejectedError {
	return &RejectedError{RetryAfter: time.Second, Bound: which, Reason: fmt.Sprintf("too many %s %s: the limit is %d", b.what, whose, bound)}
}

// beyond reports whether n more than held are more than a bound, of which a negative one is none. What takes nothing passes.
func beyond(held, n, bound int64) bool { return bound >= 0 && n > 0 && n > bound-held }

// change counts n more for a share, or less if it is negative. The caller holds mu.
func (b *Budget) change(s *Share, n int64) {
	b.held += n
	b.peak = max(b.peak, b.held)
	s.held += n
	if s.counted {
		b.counted += n
	}
	if s.user != nil {
		s.user.held += n
	}
	if s.address != nil {
		s.address.held += n
	}
}

// enter begins a share that holds nothing. The caller holds mu, and calls leave when the share ends.
func (b *Budget) enter(h Holder) Share {
	h.Address = network(h.Address)
	s := Share{budget: b, holder: h}
	if h.User != "" {
		s.user = tallyOf(b.users, h.User)
	}
	if h.Address.IsValid() {
		s.address = tallyOf(b.addresses, h.Address)
	}
	return s
}

// leave ends a share, which holds nothing, and forgets holders without one. The caller holds mu.
func (b *Budget) leave(s *Share) {
	if s.user != nil {
		forget(b.users, s.holder.User, s.user)
	}
	if s.address != nil {
		forget(b.addresses, s.holder.Address, s.address)
	}
}

func tallyOf[K comparable](tallies map[K]*tally, key K) *tally {
	t := tallies[key]
	if t == nil {
		t = &tally{}
		tallies[key] = t
	}
	t.shares++
	return t
}

func forget[K comparable](tallies map[K]*tally, key K, t *tally) {
	if t.shares--; t.shares == 0 {
		delete(tallies, key)
	}
}

// network is what an address counts as.
func network(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if !a.Is6() {
		return a
	}
	p, err := a.Prefix(64)
	if err != nil {
		return a
	}
	return p.Addr()
}
