package cacher_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/cacher"
)

// Environment variables: the case for a child process, the directory of its bolt file, and a file for its heap profile.
const (
	memoryOf      = "KEELSON_MEMORY_OF"
	memoryDir     = "KEELSON_MEMORY_DIR"
	memoryProfile = "KEELSON_MEMORY_PROFILE"
)

// memoryCase is "backend/how/labels".
type memoryCase struct {
	backend string
	cold    bool // the objects exist when the process begins; it does not create them
	objects crowd
}

func memoryCaseOf(name string) memoryCase {
	words := strings.Split(name, "/")
	return memoryCase{backend: words[0], cold: words[1] == "cold", objects: crowd{n: 100_000, ownLabels: words[2] == "own labels"}}
}

// BenchmarkMemory fills a cache with 100,000 objects in a child process: by creating them through the cache, or by a cold
// start over a store that has them. All figures are ratios to the size of the objects' JSON.
//
//   - rss, anon: resident memory 10 s after the last object, with the default GOGC.
//   - live: live heap of the whole process. rest: the live heap without the cache, so that live-rest is what the cache alone
//     holds. That includes the values, if the backend has none in memory.
//   - watched: live, with 100 waiting watches.
func BenchmarkMemory(b *testing.B) {
	if name, ok := os.LookupEnv(memoryOf); ok {
		b.Run("child", func(b *testing.B) { measureMemory(b, name) })
		return
	}
	for _, backend := range benchBackends {
		for _, how := range []string{"created", "cold"} {
			for _, labels := range []string{"shared labels", "own labels"} {
				name := backend + "/" + how + "/" + labels
				b.Run(name, func(b *testing.B) {
					for b.Loop() {
						memoryInChild(b, name)
					}
				})
			}
		}
	}
}

// memoryInChild runs this program for one case and reports its figures.
func memoryInChild(b *testing.B, name string) {
	cmd := exec.CommandContext(b.Context(), os.Args[0], "-test.run=^$", "-test.bench=^BenchmarkMemory$", "-test.benchtime=1x")
	dir := b.TempDir()
	cmd.Env = append(os.Environ(), memoryOf+"="+name, memoryDir+"="+dir)
	if of := memoryCaseOf(name); of.backend == "bolt" && of.cold {
		backend := openBackend(b, "bolt", dir)
		of.objects.loadInto(b, backend)
		if err := backend.Close(); err != nil {
			b.Fatal(err)
		}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	_, row, ok := bytes.Cut(out, []byte("ns/op"))
	row, _, _ = bytes.Cut(row, []byte("\n"))
	words := strings.Fields(string(row))
	if !ok || len(words) == 0 {
		b.Fatalf("no figures in\n%s", out)
	}
	for i := 0; i+1 < len(words); i += 2 {
		v, err := strconv.ParseFloat(words[i], 64)
		if err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
		b.ReportMetric(v, words[i+1])
	}
	b.ReportMetric(0, "ns/op")
}

func measureMemory(b *testing.B, name string) {
	of := memoryCaseOf(name)
	share := func(bytes uint64) float64 { return float64(bytes) / float64(of.objects.n*objectBytes) }
	base := liveHeap()
	backend := openBackend(b, of.backend, os.Getenv(memoryDir))
	defer backend.Close()
	if of.cold && of.backend == "memory" {
		of.objects.loadInto(b, backend)
	}
	c := newCache(b, benchStore(b, backend), cacher.Options{})
	if !of.cold {
		of.objects.createIn(b, c)
		fillCache(b, c)
	}
	time.Sleep(10 * time.Second)
	b.ReportMetric(share(statusBytes(b, "VmRSS")), "rss")
	b.ReportMetric(share(statusBytes(b, "RssAnon")), "anon")

	b.ReportMetric(share(liveHeap()-base), "live")
	writeHeapProfile(b)
	watches := waitingWatches(b, c, 100)
	b.ReportMetric(share(liveHeap()-base), "watched")
	for _, w := range watches {
		w.Close()
	}
	c.Close()
	b.ReportMetric(share(liveHeap()-base), "rest")
}

func waitingWatches(b *testing.B, c *cacher.Cacher, n int) []storage.Watch {
	now, err := c.Revision(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	all := make([]storage.Watch, n)
	for i := range all {
		w, err := c.Watch(b.Context(), storage.WatchOptions{From: now})
		if err != nil {
			b.Fatal(err)
		}
		go w.Next(b.Context())
		all[i] = w
	}
	return all
}

func liveHeap() uint64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// statusBytes reads a figure about this process from the system; 0 if the system does not have it.
func statusBytes(b *testing.B, name string) uint64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			var kib uint64
			if _, err := fmt.Sscan(rest, &kib); err != nil {
				b.Fatal(err)
			}
			return kib << 10
		}
	}
	return 0
}

func writeHeapProfile(b *testing.B) {
	path := os.Getenv(memoryProfile)
	if path == "" {
		return
	}
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	if err := pprof.Lookup("heap").WriteTo(f, 0); err != nil {
		b.Fatal(err)
	}
}
