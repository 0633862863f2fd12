package cacher_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/cacher"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// BenchmarkGet gets objects of 10,000, one after the other, from the store and from the cache over it.
func BenchmarkGet(b *testing.B) {
	objects := crowd{n: 10_000}
	crowded(b, objects, func(b *testing.B, s *storage.Store) {
		c := newCache(b, s, cacher.Options{})
		defer c.Close()
		keys := make([]string, objects.n)
		for i := range keys {
			keys[i] = objects.key(i * 7919 % objects.n)
		}
		for _, of := range []struct {
			name string
			from storage.Interface
			at   storage.Read
		}{
			{"store", s, storage.Read{}},
			{"cache", c, storage.Read{}},
			{"cache, any state", c, storage.Read{Match: storage.Any}},
		} {
			b.Run(of.name, func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					r, err := of.from.Get(b.Context(), keys[i%len(keys)], of.at)
					if err != nil || r.Revision == 0 {
						b.Fatal(r, err)
					}
				}
			})
		}
	})
}

// chunk is the number of bytes that a response buffers before it writes.
const chunk = 128 << 10

// response is the body of a list as it is written: a buffer that is emptied whenever it is full.
type response struct {
	buf   []byte
	total int
}

func newResponse() *response { return &response{buf: make([]byte, 0, chunk+(64<<10))} }

func (r *response) add(rec storage.Record) {
	r.buf = append(rec.Body.AppendItem(r.buf, rec.Revision), ',')
	if len(r.buf) >= chunk {
		r.flush()
	}
}

func (r *response) flush() {
	r.total += len(r.buf)
	r.buf = r.buf[:0]
}

// list writes a page, and returns its size in bytes.
func (r *response) list(b *testing.B, s storage.Interface, opts storage.ListOptions) int {
	page, err := s.List(b.Context(), opts)
	if err != nil {
		b.Fatal(err)
	}
	before := r.total
	for rec := range page.Records {
		r.add(rec)
	}
	r.flush()
	return r.total - before
}

// BenchmarkList appends all objects to a buffer of 128 KiB that is emptied when it is full. It compares this with copying the
// same bytes from one slice into such a buffer.
func BenchmarkList(b *testing.B) {
	for _, n := range []int{100, 10_000, 100_000} {
		backend := openBackend(b, "memory", "")
		objects := crowd{n: n}
		objects.loadInto(b, backend)
		s := benchStore(b, backend)
		c := newCache(b, s, cacher.Options{})
		out := newResponse()
		size := out.list(b, c, storage.ListOptions{})
		b.Run(fmt.Sprint("one slice/", n), func(b *testing.B) {
			whole := make([]byte, size)
			for i := range whole {
				whole[i] = byte(i)
			}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				for rest := whole; len(rest) > 0; {
					part := min(len(rest), chunk)
					out.buf = append(out.buf, rest[:part]...)
					out.flush()
					rest = rest[part:]
				}
			}
		})
		for _, of := range []struct {
			name string
			from storage.Interface
		}{{"cache", c}, {"store", s}} {
			b.Run(fmt.Sprint(of.name, "/", n), func(b *testing.B) {
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					out.list(b, of.from, storage.ListOptions{})
				}
			})
		}
		c.Close()
		backend.Close()
	}
}

// BenchmarkSelect lists the one in a hundred of 10,000 objects that a label selects. It compares this with evaluating the
// selector over a slice of label maps and appending the selected objects.
func BenchmarkSelect(b *testing.B) {
	sel, err := labels.Parse("app=app07")
	if err != nil {
		b.Fatal(err)
	}
	for _, own := range []bool{false, true} {
		name := "100 label sets"
		if own {
			name = "a label set each"
		}
		b.Run(name, func(b *testing.B) { selectIn(b, crowd{n: 10_000, ownLabels: own}, sel) })
	}
}

func selectIn(b *testing.B, objects crowd, sel labels.Selector) {
	backend := openBackend(b, "memory", "")
	defer backend.Close()
	objects.loadInto(b, backend)
	s := benchStore(b, backend)
	var sets []labels.Set
	var records []storage.Record
	page, err := s.List(b.Context(), storage.ListOptions{})
	if err != nil {
		b.Fatal(err)
	}
	for rec := range page.Records {
		sets = append(sets, rec.Body.Labels())
		records = append(records, rec)
	}
	out := newResponse()
	b.Run("slice of maps", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for i, set := range sets {
				if sel.Matches(set) {
					out.add(records[i])
				}
			}
			out.flush()
		}
	})
	for name, o := range map[string]cacher.Options{"cache": {}, "indexed cache": {IndexLabels: []string{"app"}}} {
		b.Run(name, func(b *testing.B) {
			c := newCache(b, s, o)
			defer c.Close()
			b.ReportAllocs()
			for b.Loop() {
				out.list(b, c, storage.ListOptions{Selection: storage.Selection{Labels: sel}})
			}
		})
	}
}

// BenchmarkIndexed lists the ten objects that have one value of an indexed field, among increasing numbers of other objects.
func BenchmarkIndexed(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		objects := crowd{n: n, colors: n / 10}
		backend := openBackend(b, "memory", "")
		objects.loadInto(b, backend)
		c := newCache(b, benchStore(b, backend), cacher.Options{IndexFields: []string{"spec.color"}})
		out := newResponse()
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			sel := storage.Selection{Fields: fields.OneTermEqualSelector("spec.color", "color00007")}
			b.ReportAllocs()
			for b.Loop() {
				out.list(b, c, storage.ListOptions{Selection: sel})
			}
		})
		c.Close()
		backend.Close()
	}
}

// BenchmarkSelectOf lists one in a hundred of increasing numbers of objects by a label.
func BenchmarkSelectOf(b *testing.B) {
	sel, err := labels.Parse("app=app07")
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{10_000, 100_000} {
		for _, own := range []bool{false, true} {
			name := fmt.Sprintf("%d, 100 label sets", n)
			if own {
				name = fmt.Sprintf("%d, a label set each", n)
			}
			b.Run(name, func(b *testing.B) {
				backend := openBackend(b, "memory", "")
				defer backend.Close()
				crowd{n: n, ownLabels: own}.loadInto(b, backend)
				c := newCache(b, benchStore(b, backend), cacher.Options{})
				defer c.Close()
				b.ReportAllocs()
				for b.Loop() {
					page, err := c.List(b.Context(), storage.ListOptions{Selection: storage.Selection{Labels: sel}})
					if err != nil || page.Count == 0 {
						b.Fatal(page.Count, err)
					}
				}
			})
		}
	}
}
