package live_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/runtime/live"
)

// show returns the names and values of the members.
func show(m *live.Members[int]) string {
	var out []string
	for _, one := range *m.Now() {
		out = append(out, fmt.Sprint(one.Name, one.Value))
	}
	return strings.Join(out, " ")
}

func TestMembers(t *testing.T) {
	var m live.Members[int]
	before := m.Now()
	if before != m.Now() || len(*before) != 0 {
		t.Error("without a change it is not the same empty list")
	}
	byLength := func(a, b string) int { return len(a) - len(b) }
	for i, name := range []string{"bb", "a", "cc", "ddd", "b"} {
		m.Set(name, i, byLength)
	}
	if got := show(&m); got != "a1 b4 bb0 cc2 ddd3" {
		t.Errorf("in order: %s", got)
	}
	m.Set("cc", 9, nil)
	m.Set("z", 7, nil)
	if got := show(&m); got != "a1 b4 bb0 cc9 ddd3 z7" {
		t.Errorf("replaced, and without an order: %s", got)
	}
	if !m.Remove("bb") || m.Remove("bb") || !slices.Equal(m.Names(), []string{"a", "b", "cc", "ddd", "z"}) {
		t.Errorf("removed: %s", show(&m))
	}
	if len(*before) != 0 || before == m.Now() {
		t.Error("what was read before has changed, or is still read")
	}
}

func TestMembersConcurrently(t *testing.T) {
	var m live.Members[int]
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			name := fmt.Sprint(i)
			for j := range 200 {
				m.Set(name, j, strings.Compare)
				if now := m.Names(); !slices.IsSorted(now) {
					t.Errorf("out of order: %q", now)
				}
			}
		})
	}
	all.Wait()
	if got := show(&m); got != "0199 1199 2199 3199 4199 5199 6199 7199" {
		t.Error(got)
	}
}
