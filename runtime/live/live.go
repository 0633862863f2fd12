// Package live holds named values that can be replaced while other goroutines use them, such as the members of authn.Live,
// authz.Live and admission.Live. Programs use those, and seldom this package.
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

// Members is an ordered list of named values. The zero Members is empty. All methods may be called concurrently. Members must not
// be copied.
type Members[T any] struct {
	mu  sync.Mutex // held by methods that replace now
	now atomic.Pointer[[]Member[T]]
}

// Member is a named value in Members.
type Member[T any] struct {
	Name  string // the name of the member
	Value T      // the value of the member
}

// Set adds a member, or replaces the value of the member with that name, which keeps its place. compare compares names as
// cmp.Compare does; a new member is placed after all members that are less or equal. If compare is nil, a new member becomes the
// last.
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

// Remove removes a member, and reports whether there was one with that name.
func (m *Members[T]) Remove(name string) (removed bool) {
	m.change(func(now []Member[T]) []Member[T] {
		left := slices.DeleteFunc(now, func(one Member[T]) bool { return one.Name == name })
		removed = len(left) < len(now)
		return left
	})
	return removed
}

// change calls f with a copy of the members, and publishes the result.
func (m *Members[T]) change(f func([]Member[T]) []Member[T]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := f(slices.Clone(*m.Now()))
	m.now.Store(&now)
}

// Now returns the present members, in order. The slice is never changed. The pointer stays the same until the next change and
// differs after it.
func (m *Members[T]) Now() *[]Member[T] {
	for {
		if now := m.now.Load(); now != nil {
			return now
		}
		m.now.CompareAndSwap(nil, new([]Member[T]))
	}
}

// Names returns the names of the members, in order.
func (m *Members[T]) Names() []string {
	var out []string
	for _, one := range *m.Now() {
		out = append(out, one.Name)
	}
	return out
}
