package bolt_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
)

// Under steady writes the file stays within three times the live data plus the window, counted in bytes of keys and values.
func TestTheFileStaysSmall(t *testing.T) {
	t.Parallel()
	for name, load := range map[string]struct {
		live int
		size func(*rand.Rand) int
	}{
		"mixed": {20 << 20, func(r *rand.Rand) int { // most small, a few large
			if r.IntN(50) == 0 {
				return 20_000 + r.IntN(200_000)
			}
			return 100 + r.IntN(3000)
		}},
		"huge": {40 << 20, func(r *rand.Rand) int { // among small ones, a few as large as can be
			if r.IntN(200) == 0 {
				return 1<<20 + r.IntN(1<<19)
			}
			return 200 + r.IntN(3000)
		}},
		"objects": {10 << 20, func(r *rand.Rand) int { return 500 + r.IntN(2000) }},
		"large":   {20 << 20, func(r *rand.Rand) int { return 1 + r.IntN(100_000) }},
		"small":   {2 << 20, func(r *rand.Rand) int { return 100 + r.IntN(200) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			churn := 20
			switch {
			case testing.Short():
				load.live, churn = load.live/4, 5
			case os.Getenv("KEELSON_SOAK") == "":
				load.live, churn = load.live/2, 8
			}
			keepWriting(t, load.size, load.live, churn)
		})
	}
}

func keepWriting(t *testing.T, size func(*rand.Rand) int, live, churn int) {
	path := filepath.Join(t.TempDir(), "test.db")
	const window = 1 << 20
	b := open(t, path, bolt.Options{Sync: bolt.NoSync, WindowBytes: window})
	const writers = 32
	keys := 2 * live / writers / meanSize(size)
	sizes := make([]map[string]int, writers)
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(w)))
			mine, total, written := map[string]int{}, 0, 0
			for written < churn*live/writers {
				key := fmt.Sprintf("/registry/widgets/namespace-%d/object-%06d", w, r.IntN(keys))
				before, there := mine[key]
				c := storage.Commit{Key: key, Expect: storage.AnyRevision}
				if c.Delete = there && (total > live/writers || r.IntN(10) == 0); !c.Delete {
					c.Value = make([]byte, size(r))
				}
				if _, err := b.Commit(t.Context(), c); err != nil {
					t.Error(err)
					return
				}
				if total -= before; there {
					total -= len(key)
				}
				delete(mine, key)
				if !c.Delete {
					mine[key] = len(c.Value)
					total += len(key) + len(c.Value)
					written += len(key) + len(c.Value)
				}
			}
			sizes[w] = mine
		})
	}
	all.Wait()
	data := int64(0)
	for _, mine := range sizes {
		for key, n := range mine {
			data += int64(len(key) + n)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d MiB live, file of %d MiB: %.2f", data>>20, info.Size()>>20, float64(info.Size())/float64(data+window))
	if info.Size() > 3*(data+window) {
		t.Errorf("the file has %d bytes for %d bytes of data and %d of history", info.Size(), data, window)
	}
	if err := b.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if err := bolt.Verify(path); err != nil {
		t.Error(err)
	}
}

func meanSize(size func(*rand.Rand) int) int {
	r := rand.New(rand.NewPCG(2, 3))
	total := 0
	for range 10_000 {
		total += size(r)
	}
	return total/10_000 + 40
}
