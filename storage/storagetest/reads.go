package storagetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
)

var readTests = []backendTest{
	{"a missing key says when", func(t *testing.T, b *backend) {
		r := b.put("a", "1")
		if res := b.get("b", 0); res.Found || res.Revision != r {
			t.Errorf("Get = %+v, want nothing at %d", res, r)
		}
	}},
	{"at every revision", func(t *testing.T, b *backend) {
		start := b.revision()
		r1 := b.put("a", "1")
		r2 := b.put("b", "1")
		r3 := b.put("a", "2")
		r4 := b.del("a")
		r5 := b.put("a", "3")
		b.wantMissing("a", start)
		b.wantGet("a", r1, "1", r1)
		b.wantGet("a", r2, "1", r1)
		b.wantGet("a", r3, "2", r3)
		b.wantMissing("a", r4)
		b.wantGet("a", r5, "3", r5)
		b.wantGet("a", 0, "3", r5)
		for at, want := range map[int64]string{start: "", r1: "a=1", r2: "a=1 b=1", r3: "a=2 b=1", r4: "b=1", r5: "a=3 b=1", 0: "a=3 b=1"} {
			res := b.list(storage.Range{At: at})
			if got := pairs(res.KVs); got != want || res.Count != int64(len(res.KVs)) {
				t.Errorf("Range at %d = %q, count %d; want %q", at, got, res.Count, want)
			}
			if at != 0 && res.Revision != at {
				t.Errorf("Range at %d says it is at %d", at, res.Revision)
			}
		}
	}},
	{"the future", func(t *testing.T, b *backend) {
		now := b.put("a", "1")
		if _, err := b.Get(b.ctx, "a", now+1); !errors.Is(err, storage.ErrFuture) {
			t.Errorf("Get: %v, want ErrFuture", err)
		}
		if _, err := b.Range(b.ctx, storage.Range{At: now + 1}); !errors.Is(err, storage.ErrFuture) {
			t.Errorf("Range: %v, want ErrFuture", err)
		}
	}},
	{"intervals", func(t *testing.T, b *backend) {
		for _, k := range []string{"a", "a/", "a/b", "a/b/c", "a0", "aa", "b", "\xff"} {
			b.put(k, "v")
		}
		for _, test := range []struct {
			from, to string
			want     []string
		}{
			{"", "", []string{"a", "a/", "a/b", "a/b/c", "a0", "aa", "b", "\xff"}},
			{"a/", "a0", []string{"a/", "a/b", "a/b/c"}},
			{"a/b", "a/b\x00", []string{"a/b"}},
			{"a/b\x00", "a0", []string{"a/b/c"}},
			{"a/b\x00", "", []string{"a/b/c", "a0", "aa", "b", "\xff"}},
			{"", "a", nil},
			{"", "a\x00", []string{"a"}},
			{"b", "a", nil},
			{"a", "a", nil},
			{"c", "d", nil},
			{"\xff\xff", "", nil},
		} {
			for _, at := range []int64{0, b.revision()} {
				res := b.list(storage.Range{From: test.from, To: test.to, At: at})
				if got := keys(res.KVs); !slices.Equal(got, test.want) || res.Count != int64(len(test.want)) {
					t.Errorf("[%q, %q) = %q, count %d; want %q", test.from, test.to, got, res.Count, test.want)
				}
			}
		}
	}},
	{"limit and count", func(t *testing.T, b *backend) {
		for i := range 10 {
			b.put(fmt.Sprint("k", i), "v")
		}
		at := b.revision()
		b.put("k99", "later")
		b.del("k3")
		for _, limit := range []int{1, 4, 9, 10, 11, 1000} {
			res := b.list(storage.Range{From: "k", To: "l", Limit: limit})
			if len(res.KVs) != min(limit, 10) || res.Count != 10 {
				t.Errorf("limit %d: %d keys, count %d; want %d of 10", limit, len(res.KVs), res.Count, min(limit, 10))
			}
			res = b.list(storage.Range{From: "k5", At: at, Limit: limit})
			if len(res.KVs) != min(limit, 5) || res.Count != 5 {
				t.Errorf("limit %d at %d: %d keys, count %d; want %d of 5", limit, at, len(res.KVs), res.Count, min(limit, 5))
			}
		}
		for _, at := range []int64{0, at} {
			res := b.list(storage.Range{From: "k2", To: "k5", At: at, CountOnly: true})
			want := int64(2)
			if at != 0 {
				want = 3
			}
			if len(res.KVs) != 0 || res.Count != want {
				t.Errorf("count only at %d: %d keys, count %d; want %d", at, len(res.KVs), res.Count, want)
			}
		}
	}},
	{"a count that need not be exact", func(t *testing.T, b *backend) {
		for i := range 10 {
			b.put(fmt.Sprint("k", i), "v")
		}
		at := b.revision()
		b.del("k9")
		b.put("k91", "v")
		b.put("k92", "v")
		for _, at := range []int64{0, at} {
			for _, limit := range []int{0, 1, 4, 9, 10, 11, 12, 1000} {
				for _, from := range []string{"", "k", "k4", "k8\x00", "l"} {
					r := storage.Range{From: from, At: at, Limit: limit}
					exact := b.list(r)
					r.Uncounted = true
					got := b.list(r)
					if versions(got.KVs) != versions(exact.KVs) || !counted(r, got.Count, exact.Count) {
						t.Errorf("Range(%+v) = %s, count %d; counted it is %s, count %d", r, versions(got.KVs), got.Count, versions(exact.KVs), exact.Count)
					}
				}
			}
			if got := b.list(storage.Range{At: at, CountOnly: true, Limit: 1, Uncounted: true}); got.Count < 10 {
				t.Errorf("count only at %d is %d", at, got.Count)
			}
		}
	}},
	{"values of so many bytes", func(t *testing.T, b *backend) {
		for i := range 12 {
			b.put(fmt.Sprintf("k%02d", i), strings.Repeat("v", 100*(1+i%3)))
		}
		at := b.revision()
		b.del("k11")
		b.put("k03", strings.Repeat("w", 1000))
		for _, at := range []int64{0, at} {
			all := b.list(storage.Range{At: at})
			for _, bytes := range []int64{1, 100, 101, 350, 1999, 2400, 5000} {
				for _, r := range []storage.Range{{}, {Uncounted: true}, {Limit: 4}, {Limit: 100, Uncounted: true}} {
					r.At, r.Bytes = at, bytes
					var got []storage.KV
					for rest := len(all.KVs); rest > 0; rest = len(all.KVs) - len(got) {
						part := b.list(r)
						if part.Revision != all.Revision || len(part.KVs) == 0 || !bounded(r, part, rest) {
							t.Fatalf("Range(%+v) = %s, count %d at %d, of %d values that are left", r, versions(part.KVs), part.Count, part.Revision, rest)
						}
						got = append(got, part.KVs...)
						r.From = part.KVs[len(part.KVs)-1].Key + "\x00"
					}
					if versions(got) != versions(all.KVs) {
						t.Errorf("by %d bytes, %+v: %s; want %s", bytes, r, versions(got), versions(all.KVs))
					}
				}
			}
			if got := b.list(storage.Range{At: at, CountOnly: true, Bytes: 1}); got.Count != all.Count {
				t.Errorf("count only at %d is %d, want %d", at, got.Count, all.Count)
			}
		}
	}},
	{"values carry their own revisions", func(t *testing.T, b *backend) {
		want := map[string]int64{}
		for i := range 5 {
			k := fmt.Sprint("k", i)
			want[k] = b.put(k, "v")
		}
		for _, kv := range b.list(storage.Range{}).KVs {
			if kv.Revision != want[kv.Key] {
				t.Errorf("%q has revision %d, want %d", kv.Key, kv.Revision, want[kv.Key])
			}
		}
	}},
	{"an answer at a revision is true at it", func(t *testing.T, b *backend) {
		r1 := b.put("a", "1")
		r2 := b.put("b", "1")
		b.put("a", "2")
		for _, at := range []int64{r1, r2} {
			for _, key := range []string{"a", "missing"} {
				if res := b.get(key, at); res.Revision != at {
					t.Errorf("Get(%q, %d) says it is at %d", key, at, res.Revision)
				}
			}
			for _, r := range []storage.Range{{}, {CountOnly: true}, {Limit: 1}, {From: "c"}} {
				r.At = at
				if res := b.list(r); res.Revision != at {
					t.Errorf("Range(%+v) says it is at %d", r, res.Revision)
				}
			}
		}
	}},
	{"a context that has ended", func(t *testing.T, b *backend) {
		r := b.put("a", "1")
		ctx, cancel := context.WithCancel(b.ctx)
		cancel()
		_, get := b.Get(ctx, "a", 0)
		_, old := b.Get(ctx, "a", r)
		_, list := b.Range(ctx, storage.Range{})
		for name, err := range map[string]error{"Get": get, "Get at a revision": old, "Range": list} {
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v, want success or context.Canceled", name, err)
			}
		}
		b.wantGet("a", 0, "1", r)
	}},
	{"more than ten thousand keys", func(t *testing.T, b *backend) {
		n := b.fill(10_500)
		at := b.revision()
		res := b.list(storage.Range{From: "fill/", To: "fill0"})
		if len(res.KVs) != n || res.Count != int64(n) || res.Revision != at {
			t.Fatalf("%d keys, count %d at %d; want %d at %d", len(res.KVs), res.Count, res.Revision, n, at)
		}
		all := keys(res.KVs)
		if !slices.IsSorted(all) || len(slices.Compact(slices.Clone(all))) != n {
			t.Error("the keys are not in order")
		}
		var paged []string
		for from := "fill/"; ; {
			res := b.list(storage.Range{From: from, To: "fill0", At: at, Limit: 3000})
			paged = append(paged, keys(res.KVs)...)
			if res.Count != int64(n-len(paged)+len(res.KVs)) || res.Revision != at {
				t.Fatalf("a page from %q: count %d at %d, want %d at %d", from, res.Count, res.Revision, n-len(paged)+len(res.KVs), at)
			}
			if int64(len(res.KVs)) == res.Count {
				break
			}
			from = paged[len(paged)-1] + "\x00"
			b.put(from[:len(from)-1]+"-later", "x") // is in no page of this state
			b.del(all[len(all)-1])
			all = all[:len(all)-1]
		}
		if !slices.Equal(paged, keys(res.KVs)) {
			t.Errorf("the pages have %d keys, want the %d of their revision", len(paged), n)
		}
	}},
	{"large values in one answer", func(t *testing.T, b *backend) {
		const n = 16
		value := strings.Repeat("0123456789abcdef", 1<<16-1)
		f := b.watch(storage.WatchRange{From: b.revision()})
		for i := range n {
			b.put(fmt.Sprintf("k%02d", i), value+fmt.Sprint(i))
		}
		res := b.list(storage.Range{})
		if len(res.KVs) != n || res.Count != n {
			t.Fatalf("%d keys, count %d; want %d", len(res.KVs), res.Count, n)
		}
		for i, kv := range res.KVs {
			if string(kv.Value) != value+fmt.Sprint(i) {
				t.Errorf("%q has %d bytes, want %d", kv.Key, len(kv.Value), len(value)+1)
			}
			if c := f.next(); c.Key != kv.Key || string(c.Value) != string(kv.Value) || c.Revision != kv.Revision {
				t.Errorf("the watch shows %d bytes of %q at %d", len(c.Value), c.Key, c.Revision)
			}
		}
	}},
	{"slices stay as they are", func(t *testing.T, b *backend) {
		b.put("a", "first")
		got := b.get("a", 0).KV.Value
		listed := b.list(storage.Range{}).KVs[0].Value
		for range 50 {
			b.put("a", "other")
			b.put("b", "other")
		}
		b.del("a")
		if string(got) != "first" || string(listed) != "first" {
			t.Errorf("the values changed to %q and %q", got, listed)
		}
	}},
}

// fill makes up to n keys "fill/...", as many as the budget allows but at least a thousand, and returns how many.
func (b *backend) fill(n int) int {
	b.t.Helper()
	var all sync.WaitGroup
	var made atomic.Int64
	next, end := atomic.Int64{}, time.Now().Add(budget())
	for range 32 {
		all.Go(func() {
			for {
				i := next.Add(1)
				if i > int64(n) || i > 1000 && time.Now().After(end) {
					return
				}
				c := storage.Commit{Key: fmt.Sprintf("fill/%06d", i*7919%1_000_003), Value: []byte(fmt.Sprint(i))}
				if _, err := b.Commit(b.ctx, c); err != nil {
					b.t.Errorf("Commit(%s): %v", describe(c), err)
					return
				}
				made.Add(1)
			}
		})
	}
	all.Wait()
	if b.t.Failed() {
		b.t.FailNow()
	}
	return int(made.Load())
}

// bounded reports whether part may be the result of r, which has Bytes, if so many values are left.
func bounded(r storage.Range, part storage.RangeResult, left int) bool {
	n, bytes := len(part.KVs), int64(0)
	for i, kv := range part.KVs {
		if i > 0 && bytes >= r.Bytes {
			return false // one more than wanted
		}
		bytes += int64(len(kv.Value))
	}
	full := n == r.Limit || bytes >= r.Bytes
	switch {
	case n == left:
		return part.Count == int64(n)
	case r.Uncounted:
		return full && part.Count > int64(n) && part.Count <= int64(left)
	}
	return full && part.Count == int64(left)
}

// counted reports whether the result of a range may have this count when the exact count is known.
func counted(r storage.Range, count, exact int64) bool {
	if r.Uncounted && !r.CountOnly && r.Limit > 0 && exact > int64(r.Limit) {
		return count > int64(r.Limit) && count <= exact
	}
	return count == exact
}

func keys(kvs []storage.KV) []string {
	var out []string
	for _, kv := range kvs {
		out = append(out, kv.Key)
	}
	return out
}

func pairs(kvs []storage.KV) string {
	s := ""
	for i, kv := range kvs {
		if i > 0 {
			s += " "
		}
		s += fmt.Sprintf("%s=%s", kv.Key, kv.Value)
	}
	return s
}
