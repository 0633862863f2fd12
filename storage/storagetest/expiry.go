package storagetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
)

// ttlTest tests keys with a prefix of its own, so that all tests can wait at the same time. begin makes the commits that
// expire, and returns the check to run after that.
type ttlTest struct {
	name  string
	begin func(b *backend, prefix string) (check func(t *testing.T, b *backend))
}

// expiries tests the effect of a TTL, or that a TTL is refused.
func expiries(t *testing.T, b *backend) {
	_, err := b.Commit(b.ctx, storage.Commit{Key: "try", Value: []byte("1"), TTL: time.Second})
	if errors.Is(err, storage.ErrUnsupported) {
		b.wantMissing("try", 0)
		t.Skip("the backend has no TTL")
	}
	if err != nil {
		t.Fatalf("Commit: %v, want success or ErrUnsupported", err)
	}
	var checks []func(*testing.T, *backend)
	for i, test := range ttlTests {
		checks = append(checks, test.begin(b, fmt.Sprint(i, "/")))
	}
	// When the key that is to be deleted last is gone, the keys written before it are gone too.
	end := b.expiring(storage.Commit{Key: "end", Value: []byte("1")})
	f := b.watch(storage.WatchRange{Prefix: "end", From: end})
	if c := f.next(); !c.Deleted {
		t.Fatalf("got %q, want the deletion of the last key", text(c))
	}
	for i, test := range ttlTests {
		t.Run(test.name, func(t *testing.T) { checks[i](t, b.in(t)) })
	}
}

// expiring commits a value that is to be deleted after a second.
func (b *backend) expiring(c storage.Commit) int64 {
	b.t.Helper()
	c.TTL = time.Second
	return b.commit(c)
}

var ttlTests = []ttlTest{
	{"deleted after the time", func(b *backend, p string) func(*testing.T, *backend) {
		from := b.revision()
		r := b.expiring(storage.Commit{Key: p + "a", Value: []byte("1")})
		b.wantGet(p+"a", 0, "1", r)
		return func(t *testing.T, b *backend) {
			f := b.watch(storage.WatchRange{Prefix: p, From: from, Prev: true})
			f.want(fmt.Sprintf("put %sa=1@%d", p, r))
			c := f.next()
			if want := fmt.Sprintf("delete %sa@%d (was 1@%d)", p, c.Revision, r); text(c) != want || c.Revision <= r {
				t.Errorf("got %q, want %q", text(c), want)
			}
			b.wantMissing(p+"a", 0)
			b.wantGet(p+"a", r, "1", r)
			f.wantIdle()
		}
	}},
	{"a waiting watch sees the deletion", func(b *backend, p string) func(*testing.T, *backend) {
		r := b.expiring(storage.Commit{Key: p + "a", Value: []byte("1")})
		f := b.watch(storage.WatchRange{Prefix: p, From: r})
		seen := make(chan string, 1)
		go func() {
			got, err := f.Next(b.ctx)
			if err != nil || len(got.Changes) == 0 {
				seen <- fmt.Sprint(got, err)
				return
			}
			seen <- text(got.Changes[0])
		}()
		return func(t *testing.T, _ *backend) {
			if got := <-seen; !strings.HasPrefix(got, "delete "+p+"a@") {
				t.Errorf("got %q", got)
			}
		}
	}},
	{"what expires says so", func(b *backend, p string) func(*testing.T, *backend) {
		from := b.revision()
		live := b.watch(storage.WatchRange{Prefix: p, From: from, Prev: true})
		r1 := b.expiring(storage.Commit{Key: p + "a", Value: []byte("1")})
		now, then := b.get(p+"a", 0), b.get(p+"a", r1)
		listed := b.list(storage.Range{From: p, To: prefixEnd(p)})
		met := b.refused(storage.Commit{Key: p + "a", Value: []byte("x")})
		r2 := b.commit(storage.Commit{Key: p + "a", Expect: r1, Value: []byte("2")})
		b.commit(storage.Commit{Key: p + "b", Value: []byte("3")})
		b.expiring(storage.Commit{Key: p + "c", Value: []byte("4")})
		return func(t *testing.T, b *backend) {
			if !now.KV.Expiring || !then.KV.Expiring || !listed.KVs[0].Expiring {
				t.Error("a read does not show that the value expires")
			}
			if !met.Current.Expiring {
				t.Error("a conflict does not show that the value expires")
			}
			for _, kv := range b.list(storage.Range{From: p, To: prefixEnd(p)}).KVs {
				if kv.Expiring {
					t.Errorf("%q, written without a TTL, is shown as one that expires", kv.Key)
				}
			}
			earlier := b.list(storage.Range{From: p, To: prefixEnd(p), At: r1})
			if b.get(p+"a", r2).KV.Expiring || !b.get(p+"a", r1).KV.Expiring || len(earlier.KVs) != 1 || !earlier.KVs[0].Expiring {
				t.Error("a read of an earlier state does not show what was then")
			}
			live.b = b
			for name, f := range map[string]*feed{"that was there": live, "from the beginning": b.watch(storage.WatchRange{Prefix: p, From: from, Prev: true})} {
				for i, want := range []struct{ now, before bool }{{now: true}, {before: true}, {}, {now: true}, {before: true}} {
					c := f.next()
					if c.Expiring != want.now || (c.Prev != nil && c.Prev.Expiring) != want.before || c.Deleted != (i == 4) {
						t.Errorf("a watch %s shows %q with Expiring %v, before it %+v", name, text(c), c.Expiring, c.Prev)
					}
				}
			}
		}
	}},
	{"a later write without one stays", func(b *backend, p string) func(*testing.T, *backend) {
		r1 := b.expiring(storage.Commit{Key: p + "a", Value: []byte("1")})
		r2 := b.commit(storage.Commit{Key: p + "a", Expect: r1, Value: []byte("2")})
		return func(_ *testing.T, b *backend) { b.wantGet(p+"a", 0, "2", r2) }
	}},
	{"a later write with a longer one stays", func(b *backend, p string) func(*testing.T, *backend) {
		r1 := b.expiring(storage.Commit{Key: p + "a", Value: []byte("1")})
		r2 := b.commit(storage.Commit{Key: p + "a", Expect: r1, Value: []byte("2"), TTL: time.Hour})
		return func(_ *testing.T, b *backend) { b.wantGet(p+"a", 0, "2", r2) }
	}},
	{"a key that was deleted and made anew stays", func(b *backend, p string) func(*testing.T, *backend) {
		r1 := b.expiring(storage.Commit{Key: p + "a", Value: []byte("1")})
		b.commit(storage.Commit{Key: p + "a", Expect: r1, Delete: true})
		r3 := b.commit(storage.Commit{Key: p + "a", Value: []byte("1")})
		return func(_ *testing.T, b *backend) { b.wantGet(p+"a", 0, "1", r3) }
	}},
	{"many at once", func(b *backend, p string) func(*testing.T, *backend) {
		from := b.revision()
		var want []string
		for i := range 30 {
			key := fmt.Sprint(p, "k", i)
			r := b.expiring(storage.Commit{Key: key, Value: []byte("v")})
			want = append(want, fmt.Sprintf("put %s=v@%d", key, r), fmt.Sprintf("delete %s (was v@%d)", key, r))
		}
		return func(t *testing.T, b *backend) {
			// next checks that all changes of one revision come together.
			f := b.watch(storage.WatchRange{Prefix: p, From: from, Prev: true})
			var got []string
			for range want {
				c := f.next()
				if c.Deleted && c.Prev != nil {
					got = append(got, fmt.Sprintf("delete %s (was v@%d)", c.Key, c.Prev.Revision))
				} else {
					got = append(got, text(c))
				}
			}
			f.wantIdle()
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("the watch shows %q, want %q", got, want)
			}
		}
	}},
}
