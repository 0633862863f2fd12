package flowcontrol

import (
	"cmp"
	"fmt"
	"net/netip"
	"sync"
	"time"
)

// Bounds are the maximum amounts that may be held at the same time. A negative number means no bound. The meaning of 0 depends on
// the function that takes Bounds: a default ([Bounds.WithDefaults]), or that nothing may be held ([NewBudget]).
type Bounds struct {
	All, User, Address int64 // in total, by one user, and from one address
}

// WithDefaults returns b with the numbers of defaults in place of zeros.
func (b Bounds) WithDefaults(defaults Bounds) Bounds {
	return Bounds{All: cmp.Or(b.All, defaults.All), User: cmp.Or(b.User, defaults.User), Address: cmp.Or(b.Address, defaults.Address)}
}

// Bound identifies one of the numbers of Bounds. The zero Bound is none of them.
type Bound int

// The numbers of Bounds.
const (
	BoundAll     Bound = iota + 1 // Bounds.All
	BoundUser                     // Bounds.User
	BoundAddress                  // Bounds.Address
)

// Holder identifies the user and the address that hold a part of a Budget. The zero Holder counts only for the total.
type Holder struct {
	// User is the name of a user. If it is "", the bound of users does not apply.
	User string
	// Address is the address of the client. If it is the zero Addr, the bound of addresses does not apply. IPv6 addresses count
	// by their first 64 bits, because a site gives each of its hosts all addresses with the same 64 bits
	// (https://www.rfc-editor.org/rfc/rfc4291#section-2.5.1). IPv4 addresses that are mapped to IPv6 count as IPv4 addresses.
	Address netip.Addr
}

// Network returns the network by which the address of h counts; see Address.
func (h Holder) Network() netip.Addr { return network(h.Address) }

// Budget counts how much of a resource is held: bytes, watches or connections. Callers never wait: a call that would exceed a
// bound fails. All methods may be called concurrently, and their cost does not depend on the number of holders. Use [NewBudget]
// to make one. A nil *Budget has no bounds and counts nothing.
type Budget struct {
	what   string
	bounds Bounds

	mu        sync.Mutex // guards the fields below
	held      int64
	counted   int64 // the part of held that Count holds
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

// NewBudget returns a budget with the given bounds. what is a plural noun for error messages, such as "watches". A bound of 0
// allows nothing; see [Bounds.WithDefaults].
func NewBudget(what string, bounds Bounds) *Budget {
	return &Budget{what: what, bounds: bounds, users: map[string]*tally{}, addresses: map[netip.Addr]*tally{}}
}

// Take takes n, at least 0, for a holder. The caller must give the share back with its method Release. The error is a
// *RejectedError that names the bound; then nothing is held.
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

// Count takes n, at least 0, without a holder. It is for something that many clients share. The amount reduces the room for all
// later calls of Take. Count compares the bound All only with the amount that was taken by Count. So at most twice that bound is
// held in total. The error is like that of Take.
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

// Room returns the error that Take would return now, without counting it as a rejection. It is for callers that can release
// something first.
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

// Bounds returns the bounds of the budget. A nil *Budget has none.
func (b *Budget) Bounds() Bounds {
	if b == nil {
		return Bounds{All: -1, User: -1, Address: -1}
	}
	return b.bounds
}

// Held returns the amount that is held.
func (b *Budget) Held() int64 {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}

// Peak returns the maximum amount that was held at the same time since the last call of Peak.
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

// Holders returns the number of users and addresses with a share, including empty shares that may grow.
func (b *Budget) Holders() (users, addresses int) {
	if b == nil {
		return 0, 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.users), len(b.addresses)
}

// Rejected returns how often a call was rejected.
func (b *Budget) Rejected() int64 {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rejected
}

// Share is the part of a Budget that a holder holds. A Share must not be used concurrently, and must not be copied after the
// first call of a method. The zero Share holds nothing and has no bound.
type Share struct {
	budget        *Budget
	holder        Holder
	user, address *tally // nil: not counted
	held          int64
	counted       bool // taken by Count
}

// Grow takes n more. The error is like that of [Budget.Take]; then the share is unchanged.
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

// Held returns the amount that the share holds.
func (s *Share) Held() int64 { return s.held }

// Release gives everything back. Then the share is the zero Share, so that a second call does nothing.
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

// add takes n more for a share, or returns an error with the bound. The caller holds mu.
func (b *Budget) add(s *Share, n int64) error {
	if err := b.fits(s, n); err != nil {
		b.rejected++
		return err
	}
	b.change(s, n)
	return nil
}

// fits returns nil if n more are within the bounds. The caller holds mu.
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

// beyond reports whether held+n exceeds a bound. A negative bound is never exceeded, and n of 0 exceeds no bound.
func beyond(held, n, bound int64) bool { return bound >= 0 && n > 0 && n > bound-held }

// change adds n, which may be negative, to a share. The caller holds mu.
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

// enter returns a new share that holds nothing. The caller holds mu, and must call leave when the share ends.
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

// leave ends a share that holds nothing, and removes the tallies of holders without shares. The caller holds mu.
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

// network returns the network by which an address counts.
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
