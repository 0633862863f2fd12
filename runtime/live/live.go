// Package live holds named values that are replaced while others use them: the members of authn.Live, authz.Live and
// admission.Live.
//
//	var plugins live.Members[Plugin]
//	plugins.Set("quota", quota, nil)
//	for _, m := range *plugins.Now() { ... } // one state, whatever is set meanwhile
package live

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Members are named values in an order. The zero Members is empty. All methods may be called concurrently; Members must
// not be copied.
type Members[T any] struct {
	mu  sync.Mutex // held by writers, who replace now
	now atomic.Pointer[[]Member[T]]
}

// Member is one of Members.
type Member[T any] struct {
	Name  string
	Value T
}

// Set adds a member, or replaces the value of the one of that name, which keeps its place. A new one goes where compare,
// which compares names as cmp.Compare does, puts it: behind those that are less or equal. Without compare it is the last.
func (m *Members[T]) Set(name string, value T, compare func(a, b string) int) {
	m.change(func(now []Member[T]) []Member[T] {
		at := len(now)
		for i, one := range now {
			if one.Name == name {
				now[i].Value = value
				return now
			}
			if compare != nil && at == len(now) && compare(name, one.Name) < 0 {
				at = i
			}
		}
		return slices.Insert(now, at, Member[T]{name, value})
	})
}

// Remove takes a member away, and reports whether there was one of that name.
func (m *Members[T]) Remove(name string) (removed bool) {
	m.change(func(now []Member[T]) []Member[T] {
		left := slices.DeleteFunc(now, func(one Member[T]) bool { return one.Name == name })
		removed = len(left) < len(now)
		return left
	})
	return removed
}

// change publishes what f makes of a copy of the members.
func (m *Members[T]) change(f func([]Member[T]) []Member[T]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := f(slices.Clone(*m.Now()))
	m.now.Store(&now)
}

// Now returns the members as they are now, in their order. The slice never changes, and the pointer is another after each
// change, and the same between two.
func (m *Members[T]) Now() *[]Member[T] {
	for {
		if now := m.now.Load(); now != nil {
			return now
		}
		m.now.CompareAndSwap(nil, new([]Member[T]))
	}
}

// Names lists the members, in their order.
func (m *Members[T]) Names() []string {
	var out []string
	for _, one := range *m.Now() {
		out = append(out, one.Name)
	}
	return out
}
