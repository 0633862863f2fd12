package cacher

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
)

// keyed is an element: its key and, for the tests, its version.
type keyed struct {
	key     string
	version int
}

func byKeyed(a, b *keyed) int { return cmp.Compare(a.key, b.key) }

func keyedBefore(key string) func(*keyed) bool {
	return func(e *keyed) bool { return e.key < key }
}

func keyedOrder(key string) func(*keyed) int {
	return func(e *keyed) int { return cmp.Compare(e.key, key) }
}

const benchmarkSize = 100_000

// benchmarkKeys returns the keys of a collection in a hundred namespaces, in order.
func benchmarkKeys(n int) []*keyed {
	keys := make([]*keyed, n)
	for i := range keys {
		keys[i] = &keyed{key: fmt.Sprintf("/registry/pods/namespace-%02d/deployment-%06d", i*100/n, i)}
	}
	return keys
}

// randomTree returns a tree of elements that were added in random order.
func randomTree(elements []*keyed) tree[keyed] {
	t, ed := newTree(byKeyed), new(edition)
	for _, i := range rand.New(rand.NewPCG(1, 1)).Perm(len(elements)) {
		t.set(ed, elements[i])
	}
	return t
}

// BenchmarkTreeWrite replaces elements in one edition, which copies nothing. Then it makes a state after each replacement,
// which copies the path to the page. Then it deletes and adds elements, with a state after each.
func BenchmarkTreeWrite(b *testing.B) {
	run := func(name string, size int, write func(t *tree[keyed], ed *edition, e *keyed)) {
		b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
			elements := benchmarkKeys(size)
			t, ed := randomTree(elements), new(edition)
			for _, e := range elements {
				t.set(ed, e)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i = (i + 7919) % size {
				write(&t, ed, elements[i])
			}
		})
	}
	run("edition", benchmarkSize, func(t *tree[keyed], ed *edition, e *keyed) { t.set(ed, e) })
	for _, size := range []int{1000, 10_000, benchmarkSize, 10 * benchmarkSize} {
		run("state", size, func(t *tree[keyed], _ *edition, e *keyed) { t.set(new(edition), e) })
	}
	run("deleteAdd", benchmarkSize, func(t *tree[keyed], _ *edition, e *keyed) {
		t.delete(new(edition), e)
		t.set(new(edition), e)
	})
}

// BenchmarkTreeSize grows trees in three ways and reports the memory of an element besides its own, and how full the pages
// are.
func BenchmarkTreeSize(b *testing.B) {
	elements := benchmarkKeys(benchmarkSize)
	half := func(t tree[keyed], part int) tree[keyed] {
		ed := new(edition)
		for _, i := range rand.New(rand.NewPCG(2, 2)).Perm(len(elements))[:len(elements)/part*(part-1)] {
			t.delete(ed, elements[i])
		}
		return t
	}
	for name, grow := range map[string]func() tree[keyed]{
		"random": func() tree[keyed] { return randomTree(elements) },
		"build":  func() tree[keyed] { return build(byKeyed, new(edition), slices.Values(elements)) },
		"inOrder": func() tree[keyed] {
			t, ed := newTree(byKeyed), new(edition)
			for _, e := range elements {
				t.set(ed, e)
			}
			return t
		},
		"inReverse": func() tree[keyed] {
			t, ed := newTree(byKeyed), new(edition)
			for _, e := range slices.Backward(elements) {
				t.set(ed, e)
			}
			return t
		},
		"states": func() tree[keyed] {
			t := newTree(byKeyed)
			for _, i := range rand.Perm(len(elements)) {
				t.set(new(edition), elements[i])
			}
			return t
		},
		"halfDeleted": func() tree[keyed] { return half(randomTree(elements), 2) },
		"mostDeleted": func() tree[keyed] { return half(randomTree(elements), 20) },
	} {
		b.Run(name, func(b *testing.B) {
			var t tree[keyed]
			var before, after runtime.MemStats
			for b.Loop() {
				runtime.GC()
				runtime.ReadMemStats(&before)
				t = grow()
				runtime.GC()
				runtime.ReadMemStats(&after)
			}
			pages := 0
			t.pages(0, t.len(), func(*page[keyed], []*keyed) bool { pages++; return true })
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(t.len()), "heap-B/element")
			b.ReportMetric(float64(t.len())/float64(pages*pageRoom), "fill")
			b.ReportMetric(0, "ns/op")
			runtime.KeepAlive(elements)
		})
	}
}

func BenchmarkTreeWalk(b *testing.B) {
	t := randomTree(benchmarkKeys(benchmarkSize))
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		t.walk(0, t.len(), func(*keyed) bool { n++; return true })
		if n != t.len() {
			b.Fatal(n)
		}
	}
}

// BenchmarkTreeRead finds an element, computes its rank, and reads 500 elements from it on.
func BenchmarkTreeRead(b *testing.B) {
	elements := benchmarkKeys(benchmarkSize)
	t := randomTree(elements)
	for name, read := range map[string]func(i int) bool{
		"find": func(i int) bool { return t.find(keyedOrder(elements[i].key)) == elements[i] },
		"rank": func(i int) bool { return t.rank(keyedBefore(elements[i].key)) == i },
		"page": func(i int) bool {
			n, from := 0, t.rank(keyedBefore(elements[i].key))
			t.walk(from, from+500, func(*keyed) bool { n++; return true })
			return n == min(500, len(elements)-i)
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i = (i + 7919) % len(elements) {
				if !read(i) {
					b.Fatal(i)
				}
			}
		})
	}
}

// BenchmarkTreeDiff compares two states that differ in one element of a hundred, or in one element.
func BenchmarkTreeDiff(b *testing.B) {
	elements := benchmarkKeys(benchmarkSize)
	t := randomTree(elements)
	for _, changed := range []int{1, len(elements) / 100} {
		b.Run(fmt.Sprint(changed), func(b *testing.B) {
			now, ed := t, new(edition)
			for i := range changed {
				e := *elements[i*7919%len(elements)]
				now.set(ed, &e)
			}
			b.ReportAllocs()
			for b.Loop() {
				n := 0
				diff(t, now, func(_, _ *keyed) bool { n++; return true })
				if n != changed {
					b.Fatal(n)
				}
			}
		})
	}
}

func BenchmarkTreeBuild(b *testing.B) {
	elements := benchmarkKeys(benchmarkSize)
	b.ReportAllocs()
	for b.Loop() {
		build(byKeyed, new(edition), slices.Values(elements))
	}
}
