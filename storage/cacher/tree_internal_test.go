package cacher

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"
)

// TestTreeModel applies random writes, states, returns to earlier states and builds to trees, and compares them with a sorted
// slice.
func TestTreeModel(t *testing.T) {
	t.Parallel()
	rounds, first := uint64(12), uint64(1)
	if testing.Short() {
		rounds = 5
	}
	end := time.Now()
	if s := os.Getenv("KEELSON_SOAK"); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil {
			t.Fatalf("KEELSON_SOAK: %v", err)
		}
		first, end = rand.Uint64(), end.Add(d)
	}
	for seed := first; seed < first+rounds || time.Now().Before(end); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			runTree(t, randomOperations(seed))
		})
		if t.Failed() {
			return
		}
	}
}

func FuzzTree(f *testing.F) {
	f.Add([]byte{})
	for seed := range uint64(8) {
		f.Add(randomOperations(seed)[:400])
	}
	f.Fuzz(func(t *testing.T, operations []byte) {
		runTree(t, operations[:min(len(operations), 1800)])
	})
}

// randomOperations returns a stream for runTree in which trees grow and shrink in turns.
func randomOperations(seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, seed))
	var out []byte
	weights := [][]byte{
		{0, 0, 0, 0, 1, 2, 2, 5, 6, 7, 8},                                              // grow
		{0, 1, 1, 1, 1, 3, 5, 6, 7, 8},                                                 // shrink
		{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 3, 4, 5, 5, 5, 6, 7, 8, 9}, // all
	}
	for len(out) < 3000 {
		w := weights[r.IntN(len(weights))]
		for range r.IntN(150) {
			out = append(out, w[r.IntN(len(w))], byte(r.Uint32()), byte(r.Uint32()))
		}
	}
	return out
}

// treeState is a state and its expected content.
type treeState struct {
	tree  tree[keyed]
	want  []*keyed
	nodes []nodeCopy
}

// treeRun is a tree, the same content as a sorted slice, and earlier states of the tree.
type treeRun struct {
	t      testing.TB
	tree   tree[keyed]
	want   []*keyed
	ed     *edition
	states []treeState
	sets   int
}

// runTree executes operations of three bytes each, and compares everything with the slice.
func runTree(t testing.TB, operations []byte) {
	r := &treeRun{t: t, tree: newTree(byKeyed), ed: new(edition)}
	r.keep()
	for len(operations) >= 3 && !t.Failed() {
		op, a, b := operations[0], int(operations[1]), int(operations[2])
		operations = operations[3:]
		key := a<<8 | b
		switch op % 10 {
		case 0:
			r.set(key)
		case 1:
			r.delete(r.near(key))
		case 2: // some neighbours, upwards or downwards
			for i := range 1 + b {
				r.set(key + i - 2*i*(a%2))
			}
		case 3: // some neighbours are deleted
			for range 1 + b {
				r.delete(r.near(key))
			}
		case 4:
			r.build(key)
		case 5:
			r.keep()
		case 6:
			r.read(a, b)
		case 7:
			r.diff(a, b)
		case 8:
			checkTree(t, r.tree)
		case 9: // continue from an earlier state
			s := r.states[key%len(r.states)]
			r.tree, r.want, r.ed = s.tree, slices.Clone(s.want), new(edition)
		}
	}
	r.keep()
	r.diff(0, len(r.states)-1)
	for _, s := range r.states {
		s.check(t)
	}
}

func treeKey(n int) string { return fmt.Sprintf("%06d", 100_000+n) }

func (r *treeRun) search(key string) (int, bool) {
	return slices.BinarySearchFunc(r.want, key, func(e *keyed, key string) int { return cmp.Compare(e.key, key) })
}

// near returns a key that the tree has in most cases.
func (r *treeRun) near(n int) string {
	if len(r.want) == 0 || n%16 == 0 {
		return treeKey(n)
	}
	return r.want[n%len(r.want)].key
}

func (r *treeRun) set(n int) {
	r.sets++
	e := &keyed{treeKey(n), r.sets}
	i, found := r.search(e.key)
	var want *keyed
	if found {
		want, r.want[i] = r.want[i], e
	} else {
		r.want = slices.Insert(r.want, i, e)
	}
	if old := r.tree.set(r.ed, e); old != want {
		r.t.Fatalf("set %v returned %v, want %v", e, old, want)
	}
}

func (r *treeRun) delete(key string) {
	i, found := r.search(key)
	var want *keyed
	if found {
		want = r.want[i]
		r.want = slices.Delete(r.want, i, i+1)
	}
	root := r.tree.root
	if old := r.tree.delete(r.ed, &keyed{key: key}); old != want {
		r.t.Fatalf("delete %v returned %v, want %v", key, old, want)
	}
	if !found && r.tree.root != root {
		r.t.Fatal("a delete of nothing changed the tree")
	}
}

// build makes the tree anew from all its elements, some out of order and some twice.
func (r *treeRun) build(seed int) {
	r.ed = new(edition)
	in := slices.Clone(r.want)
	rnd := rand.New(rand.NewPCG(uint64(seed), 0))
	if len(in) > 0 && seed%2 == 1 {
		for range rnd.IntN(10) {
			i, j := rnd.IntN(len(in)), rnd.IntN(len(in))
			other := *in[i]
			in[i], in = in[j], append(in, &other)
		}
	}
	for _, e := range in {
		if i, found := r.search(e.key); found {
			r.want[i] = e
		}
	}
	have := map[string]bool{}
	for _, e := range in {
		have[e.key] = true
	}
	r.want = slices.DeleteFunc(r.want, func(e *keyed) bool { return !have[e.key] })
	r.tree = build(byKeyed, r.ed, slices.Values(in))
	checkTree(r.t, r.tree)
}

// keep ends the edition and keeps its state.
func (r *treeRun) keep() {
	checkTree(r.t, r.tree)
	s := treeState{r.tree, slices.Clone(r.want), copyNodes(r.tree.root, nil)}
	if len(r.states) < 30 {
		r.states = append(r.states, s)
	} else {
		i := r.sets % len(r.states)
		r.states[i].check(r.t)
		r.states[i] = s
	}
	r.ed = new(edition)
}

// check compares a state with its expected content.
func (s treeState) check(t testing.TB) {
	t.Helper()
	if !slices.Equal(s.nodes, copyNodes(s.tree.root, nil)) {
		t.Fatal("a node of a state changed")
	}
	var got []*keyed
	s.tree.walk(0, s.tree.len(), func(e *keyed) bool { got = append(got, e); return true })
	if !slices.Equal(got, s.want) {
		t.Fatalf("a state has %d elements, want %d, or others", len(got), len(s.want))
	}
}

// nodeCopy is the content of a node.
type nodeCopy struct {
	self  *node[keyed]
	owner *edition
	first *keyed
	size  int
	items [pageRoom]*keyed
	kids  [branchRoom]*node[keyed]
}

func copyNodes(n *node[keyed], to []nodeCopy) []nodeCopy {
	if n == nil {
		return to
	}
	c := nodeCopy{self: n, owner: n.owner, first: n.first(), size: n.size}
	if n.page != nil {
		c.items = n.page.items
		return append(to, c)
	}
	c.kids = n.branch.kids
	to = append(to, c)
	for _, kid := range n.branch.used() {
		to = copyNodes(kid, to)
	}
	return to
}

// read compares all reads of a range of ranks and at its ends with the slice.
func (r *treeRun) read(a, b int) {
	t, n := r.t, len(r.want)
	from, to := a*(n+3)/255-1, b*(n+3)/255-1
	var want []*keyed
	if lo, hi := max(from, 0), min(to, n); lo < hi {
		want = r.want[lo:hi]
	}
	for _, stop := range []int{-1, 1, 1 + len(want)/2} {
		var got []*keyed
		r.tree.walk(from, to, func(e *keyed) bool { got = append(got, e); return len(got) != stop })
		if end := len(want); !slices.Equal(got, want[:min(end, cmp.Or(max(stop, 0), end))]) {
			t.Fatalf("walk [%d, %d) of %d to the %dth yielded %d", from, to, n, stop, len(got))
		}
	}
	r.readPages(from, to, want)
	for _, i := range []int{from, to} {
		if i < 0 || i >= n {
			continue
		}
		for _, key := range []string{r.want[i].key, r.want[i].key + "+"} {
			rank, found := r.search(key)
			if got := r.tree.rank(keyedBefore(key)); got != rank {
				t.Fatalf("rank of %q is %d, want %d", key, got, rank)
			}
			if e := r.tree.find(keyedOrder(key)); (e != nil) != found || found && e != r.want[rank] {
				t.Fatalf("find %q returned %v", key, e)
			}
		}
	}
	if rank := r.tree.rank(keyedBefore("")); rank != 0 {
		t.Fatalf("rank of what is before all is %d", rank)
	}
	if rank := r.tree.rank(func(*keyed) bool { return true }); rank != n || r.tree.len() != n {
		t.Fatalf("rank of what is after all is %d, len %d, want %d", rank, r.tree.len(), n)
	}
	if e := r.tree.find(keyedOrder("")); e != nil {
		t.Fatalf("found %v", e)
	}
}

func (r *treeRun) readPages(from, to int, want []*keyed) {
	var got []*keyed
	seen := map[*page[keyed]]bool{}
	parts := 0
	r.tree.pages(from, to, func(p *page[keyed], items []*keyed) bool {
		i := slices.Index(p.used(), items[0])
		if i < 0 || seen[p] || cap(items) != len(items) || !slices.Equal(items, p.used()[i:i+len(items)]) {
			r.t.Fatalf("items are not a part of their page, seen before: %v", seen[p])
		}
		if len(items) < p.len() {
			parts++
		}
		seen[p] = true
		got = append(got, items...)
		return true
	})
	if !slices.Equal(got, want) || parts > 2 {
		r.t.Fatalf("pages [%d, %d) yielded %d elements, want %d; %d pages in parts", from, to, len(got), len(want), parts)
	}
	calls := 0
	r.tree.pages(from, to, func(*page[keyed], []*keyed) bool { calls++; return calls < 2 })
	if calls != min(2, len(seen)) {
		r.t.Fatalf("pages went on after a stop: %d calls", calls)
	}
}

// diff compares two states.
func (r *treeRun) diff(i, j int) {
	a, b := r.states[i%len(r.states)], r.states[j%len(r.states)]
	want := sliceDiff(a.want, b.want)
	for _, stop := range []int{-1, 1, 1 + len(want)/2} {
		var got [][2]*keyed
		diff(a.tree, b.tree, func(was, is *keyed) bool {
			got = append(got, [2]*keyed{was, is})
			return len(got) != stop
		})
		if end := len(want); !slices.Equal(got, want[:min(end, cmp.Or(max(stop, 0), end))]) {
			r.t.Fatalf("diff to the %dth yielded %d, want %d, or others", stop, len(got), len(want))
		}
	}
}

func sliceDiff(a, b []*keyed) (out [][2]*keyed) {
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].key < b[0].key:
			out = append(out, [2]*keyed{a[0], nil})
			a = a[1:]
		case len(a) == 0 || b[0].key < a[0].key:
			out = append(out, [2]*keyed{nil, b[0]})
			b = b[1:]
		default:
			if a[0] != b[0] {
				out = append(out, [2]*keyed{a[0], b[0]})
			}
			a, b = a[1:], b[1:]
		}
	}
	return out
}

// checkTree checks the rules for the nodes of every tree.
func checkTree(t testing.TB, tr tree[keyed]) {
	t.Helper()
	if tr.root == nil {
		return
	}
	var last *keyed
	var check func(n *node[keyed], root bool) (size, height int)
	check = func(n *node[keyed], root bool) (size, height int) {
		used, room := n.fill()
		switch {
		case (n.page == nil) == (n.branch == nil):
			t.Fatal("a node is of one kind")
		case n.page != nil && &n.page.node != n, n.branch != nil && &n.branch.node != n:
			t.Fatal("a node is another's")
		case n.owner == nil:
			t.Fatal("a node is nobody's")
		case used > room, !root && used < leastFill(room), root && n.page == nil && used < 2, used == 0:
			t.Fatalf("%d of %d used", used, room)
		}
		if p := n.page; p != nil {
			for i, e := range p.items {
				if (e != nil) != (i < used) || e != nil && last != nil && last.key >= e.key {
					t.Fatalf("element %d of %d: %v after %v", i, used, e, last)
				}
				if e != nil {
					last = e
				}
			}
			return used, 0
		}
		first := n.branch.kids[0].first()
		for i, kid := range n.branch.kids {
			if (kid != nil) != (i < used) {
				t.Fatalf("kid %d of %d: %v", i, used, kid)
			}
			if kid == nil {
				continue
			}
			s, h := check(kid, false)
			if i > 0 && h != height {
				t.Fatal("kids of different heights")
			}
			size, height = size+s, h
		}
		if size != n.size || n.branch.first != first {
			t.Fatalf("size %d, want %d; first %v, want %v", n.size, size, n.branch.first, first)
		}
		return size, height + 1
	}
	check(tr.root, true)
}
