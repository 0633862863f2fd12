package storagetest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/storage"
)

var commitTests = []backendTest{
	{"an empty store has a positive revision", func(t *testing.T, b *backend) {
		if r := b.revision(); r <= 0 {
			t.Errorf("the revision is %d", r)
		}
		if r := b.list(storage.Range{}).Revision; r != b.revision() {
			t.Errorf("Range is at revision %d, Get at %d", r, b.revision())
		}
	}},
	{"every commit has a revision of its own", func(t *testing.T, b *backend) {
		last := b.revision()
		for i := range 20 {
			r := b.put("k"+strconv.Itoa(i%3), "v")
			if r <= last {
				t.Fatalf("revision %d after %d", r, last)
			}
			last = r
			if now := b.revision(); now != r {
				t.Fatalf("after the commit of revision %d the store is at %d", r, now)
			}
		}
	}},
	{"create only if absent", func(t *testing.T, b *backend) {
		r := b.commit(storage.Commit{Key: "a", Value: []byte("1")})
		b.wantGet("a", 0, "1", r)
		res := b.refused(storage.Commit{Key: "a", Value: []byte("2")})
		wantCurrent(t, res, "1", r)
		b.wantGet("a", 0, "1", r)
	}},
	{"change only at the expected revision", func(t *testing.T, b *backend) {
		r1 := b.put("a", "1")
		r2 := b.commit(storage.Commit{Key: "a", Expect: r1, Value: []byte("2")})
		wantCurrent(t, b.refused(storage.Commit{Key: "a", Expect: r1, Value: []byte("3")}), "2", r2)
		wantCurrent(t, b.refused(storage.Commit{Key: "a", Expect: r2 + 1, Value: []byte("3")}), "2", r2)
		other := b.put("b", "x")
		wantCurrent(t, b.refused(storage.Commit{Key: "a", Expect: other, Value: []byte("3")}), "2", r2)
		b.wantGet("a", 0, "2", r2)
	}},
	{"change of an absent key", func(t *testing.T, b *backend) {
		if res := b.refused(storage.Commit{Key: "a", Expect: 7, Value: []byte("1")}); res.Found {
			t.Errorf("found %+v", res.Current)
		}
		b.wantMissing("a", 0)
	}},
	{"delete only at the expected revision", func(t *testing.T, b *backend) {
		r1 := b.put("a", "1")
		r2 := b.put("a", "2")
		wantCurrent(t, b.refused(storage.Commit{Key: "a", Expect: r1, Delete: true}), "2", r2)
		wantCurrent(t, b.refused(storage.Commit{Key: "a", Expect: 0, Delete: true}), "2", r2)
		if r3 := b.commit(storage.Commit{Key: "a", Expect: r2, Delete: true}); r3 <= r2 {
			t.Errorf("the deletion has revision %d, the value %d", r3, r2)
		}
		b.wantMissing("a", 0)
	}},
	{"delete of an absent key", func(t *testing.T, b *backend) {
		f := b.watch(storage.WatchRange{From: b.revision()})
		for _, expect := range []int64{0, 5} {
			if res := b.refused(storage.Commit{Key: "a", Expect: expect, Delete: true}); res.Found {
				t.Errorf("found %+v", res.Current)
			}
		}
		b.commit(storage.Commit{Key: "a", Expect: storage.AnyRevision, Delete: true})
		f.wantIdle()
	}},
	{"delete and create anew", func(t *testing.T, b *backend) {
		r1 := b.put("a", "1")
		b.del("a")
		if res := b.refused(storage.Commit{Key: "a", Expect: r1, Value: []byte("2")}); res.Found {
			t.Errorf("found %+v", res.Current)
		}
		r3 := b.commit(storage.Commit{Key: "a", Value: []byte("3")})
		b.wantGet("a", 0, "3", r3)
		b.wantGet("a", r1, "1", r1)
	}},
	{"a refused commit changes nothing", func(t *testing.T, b *backend) {
		b.put("a", "1")
		f := b.watch(storage.WatchRange{From: b.revision()})
		b.refused(storage.Commit{Key: "a", Value: []byte("2")})
		f.wantIdle()
	}},
	{"an equal value is a change too", func(t *testing.T, b *backend) {
		r1 := b.put("a", "1")
		if r2 := b.put("a", "1"); r2 <= r1 {
			t.Errorf("revision %d after %d", r2, r1)
		}
	}},
	{"any key and value", func(t *testing.T, b *backend) {
		values := map[string]string{
			"/registry/x/" + strings.Repeat("k", 300): "long key",
			"\x01\xff\xfe":   "not UTF-8",
			"empty":          "",
			"binary":         "\x00\x01\xff",
			"large":          strings.Repeat("0123456789abcdef", 1<<16),
			"ключ/名前":        "unicode",
			" ":              "space",
			"a//b/../c":      "not our business",
			"k8s:enc:aescbc": "k8s\x00\n",
		}
		revisions := map[string]int64{}
		for k, v := range values {
			revisions[k] = b.put(k, v)
		}
		for k, v := range values {
			b.wantGet(k, 0, v, revisions[k])
		}
		if res := b.list(storage.Range{}); len(res.KVs) != len(values) {
			t.Errorf("%d keys, want %d", len(res.KVs), len(values))
		}
	}},
	{"a deletion's value is ignored", func(t *testing.T, b *backend) {
		r1 := b.put("a", "1")
		f := b.watch(storage.WatchRange{From: r1, Prev: true})
		r2 := b.commit(storage.Commit{Key: "a", Expect: r1, Value: []byte("ignored"), Delete: true})
		f.want(fmt.Sprintf("delete a@%d (was 1@%d)", r2, r1))
		b.wantMissing("a", 0)
	}},
	{"whatever is there", func(t *testing.T, b *backend) {
		any := storage.Commit{Key: "a", Expect: storage.AnyRevision, Value: []byte("1")}
		r1 := b.commit(any)
		b.wantGet("a", 0, "1", r1)
		any.Value = []byte("2")
		r2 := b.commit(any)
		b.wantGet("a", 0, "2", r2)
		any.Delete = true
		r3 := b.commit(any)
		b.wantMissing("a", r3)
		b.wantGet("a", r2, "2", r2)
		if !(r1 < r2 && r2 < r3) {
			t.Errorf("the revisions are %d, %d, %d", r1, r2, r3)
		}
	}},
	{"a huge value is stored or refused", func(t *testing.T, b *backend) {
		huge := strings.Repeat("0123456789abcdef", 1<<19)
		r1 := b.put("a", "small")
		f := b.watch(storage.WatchRange{From: r1})
		res, err := b.Commit(b.ctx, storage.Commit{Key: "a", Expect: r1, Value: []byte(huge)})
		switch {
		case errors.Is(err, storage.ErrTooLarge):
			b.wantGet("a", 0, "small", r1)
			f.wantIdle()
			b.put("a", "works")
		case err != nil:
			t.Errorf("Commit: %v, want success or ErrTooLarge", err)
		default:
			if got := b.get("a", 0); string(got.KV.Value) != huge || got.KV.Revision != res.Revision {
				t.Errorf("Get: %d bytes of revision %d, want %d of %d", len(got.KV.Value), got.KV.Revision, len(huge), res.Revision)
			}
		}
	}},
	{"a context that has ended", func(t *testing.T, b *backend) {
		ctx, cancel := context.WithCancel(b.ctx)
		cancel()
		_, err := b.Commit(ctx, storage.Commit{Key: "a", Value: []byte("1")})
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("Commit: %v", err)
		}
		if err == nil {
			return // the deletion was in time
		}
		b.put("b", "2") // the backend must still work
	}},
	{"counters of concurrent writers", func(t *testing.T, b *backend) {
		const writers, rounds, keys = 8, 25, 3
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() {
				for i := range rounds {
					if err := increment(b, "counter/"+strconv.Itoa((w+i)%keys)); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		sum := 0
		for _, kv := range b.list(storage.Range{}).KVs {
			n, _ := strconv.Atoi(string(kv.Value))
			sum += n
		}
		if sum != writers*rounds {
			t.Errorf("the counters sum up to %d, want %d", sum, writers*rounds)
		}
	}},
	{"reads never go back", func(t *testing.T, b *backend) {
		var all sync.WaitGroup
		for w := range 3 {
			key := fmt.Sprint("k", w)
			all.Go(func() {
				for i := range 50 {
					c := storage.Commit{Key: key, Expect: storage.AnyRevision, Value: []byte(fmt.Sprint(i))}
					done, err := b.Commit(b.ctx, c)
					if err != nil {
						t.Error(err)
						return
					}
					got, err := b.Get(b.ctx, key, 0)
					if err != nil || got.Revision < done.Revision || got.KV.Revision != done.Revision {
						t.Errorf("after the commit of revision %d: %+v, %v", done.Revision, got, err)
						return
					}
				}
			})
			all.Go(func() {
				last := int64(0)
				for range 100 {
					got, err := b.Range(b.ctx, storage.Range{})
					if err != nil || got.Revision < last {
						t.Errorf("after a read at revision %d: %+v, %v", last, got, err)
						return
					}
					last = got.Revision
					for _, kv := range got.KVs {
						if kv.Revision > got.Revision {
							t.Errorf("a read at revision %d has %q of revision %d", got.Revision, kv.Key, kv.Revision)
							return
						}
					}
				}
			})
		}
		all.Wait()
	}},
	{"concurrent creates have one winner", func(t *testing.T, b *backend) {
		for round := range 10 {
			key := fmt.Sprint("k", round)
			var all sync.WaitGroup
			won := make(chan string, 8)
			for w := range 8 {
				all.Go(func() {
					value := strconv.Itoa(w)
					_, err := b.Commit(b.ctx, storage.Commit{Key: key, Value: []byte(value)})
					switch {
					case err == nil:
						won <- value
					case !errors.Is(err, storage.ErrConflict):
						t.Errorf("Commit: %v", err)
					}
				})
			}
			all.Wait()
			close(won)
			winner := <-won
			if more, ok := <-won; ok {
				t.Fatalf("both %s and %s created the key", winner, more)
			}
			if got := string(b.get(key, 0).KV.Value); got != winner {
				t.Fatalf("the value is %q, the winner wrote %q", got, winner)
			}
		}
	}},
}

// increment adds one to the number under a key, and tries again on conflicts.
func increment(b *backend, key string) error {
	res, err := b.Get(b.ctx, key, 0)
	if err != nil {
		return err
	}
	at, found := res.KV, res.Found
	for {
		n := 0
		if found {
			if n, err = strconv.Atoi(string(at.Value)); err != nil {
				return err
			}
		}
		c := storage.Commit{Key: key, Expect: at.Revision, Value: []byte(strconv.Itoa(n + 1))}
		res, err := b.Commit(b.ctx, c)
		if !errors.Is(err, storage.ErrConflict) {
			return err
		}
		at, found = res.Current, res.Found
	}
}

func wantCurrent(t *testing.T, res storage.CommitResult, value string, revision int64) {
	t.Helper()
	if !res.Found || string(res.Current.Value) != value || res.Current.Revision != revision {
		t.Errorf("the conflict shows %+v, want %q of revision %d", res, value, revision)
	}
	if res.Revision < revision {
		t.Errorf("the conflict is true at %d, before what it shows at %d", res.Revision, revision)
	}
}
