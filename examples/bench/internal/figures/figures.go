// Package figures keeps what was measured: samples of metrics, of which the median counts.
package figures

import (
	"fmt"
	"slices"
	"sync"
)

// The servers that are compared.
const (
	KeelsonMemory = "keelson-memory"
	KeelsonBolt   = "keelson-bolt"
	KeelsonEtcd   = "keelson-etcd"
	Peer          = "apiserver-etcd" // built on k8s.io/apiserver
	Floor         = "floor"          // net/http over prepared bytes
)

// Servers returns all of them, in the order in which they are shown.
func Servers() []string {
	return []string{KeelsonMemory, KeelsonBolt, KeelsonEtcd, Peer, Floor}
}

// Metric is what a figure says, and in which unit.
type Metric string

// The metrics. Operations are requests, or deliveries of an event to a watcher.
const (
	CPU        Metric = "cpu"      // of the server for one operation, seconds
	EtcdCPU    Metric = "etcd cpu" // of etcd for one operation, seconds
	Throughput Metric = "throughput"
	P50        Metric = "p50"     // of the latency, seconds
	P99        Metric = "p99"     // of the latency, seconds
	Mallocs    Metric = "mallocs" // for one operation
	AllocBytes Metric = "bytes"   // allocated for one operation
	Resumes    Metric = "resumes" // streams that the server ended though it should not have
	Time       Metric = "time"    // seconds
	Size       Metric = "size"    // of a file, bytes
	RSS        Metric = "rss"     // bytes
	Anonymous  Metric = "anon"    // bytes of RSS that are no file's
	HeapLive   Metric = "heap"    // bytes

	Peak          Metric = "peak"       // most bytes of RSS
	PeakAnonymous Metric = "peak anon"  // of RSS that is no file's
	Asked         Metric = "asked"      // requests of a client until it had what it wanted, on average
	MostAsked     Metric = "most asked" // requests of the client that made the most

	RSSPerObject       Metric = "rss per object" // bytes beyond those of the idle server
	AnonymousPerObject Metric = "anon per object"
	HeapPerObject      Metric = "heap per object"
)

// Key says of what a figure is.
type Key struct {
	Scenario string
	Objects  int // that the server holds
	Server   string
	Metric   Metric
}

// Results has the samples of a run. The zero Results is empty. Its methods may be called concurrently.
type Results struct {
	mu       sync.Mutex
	samples  map[Key][]float64 // guarded by mu
	failures []string          // guarded by mu
}

// Add adds a sample.
func (r *Results) Add(k Key, value float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.samples == nil {
		r.samples = make(map[Key][]float64)
	}
	r.samples[k] = append(r.samples[k], value)
}

// Fail notes what could not be measured.
func (r *Results) Fail(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

// Failures returns what could not be measured.
func (r *Results) Failures() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.failures)
}

// Median returns the median of the samples, and false when there are none. Of an even number it is the mean of the
// two in the middle.
func (r *Results) Median(k Key) (float64, bool) {
	r.mu.Lock()
	sorted := slices.Sorted(slices.Values(r.samples[k]))
	r.mu.Unlock()
	n := len(sorted)
	if n == 0 {
		return 0, false
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2, true
}

// Ratio returns the quotient of the medians of one metric for two servers, and false when one was not measured.
func (r *Results) Ratio(k Key, against string) (float64, bool) {
	a, ok := r.Median(k)
	k.Server = against
	b, okAgainst := r.Median(k)
	if !ok || !okAgainst || b == 0 {
		return 0, false
	}
	return a / b, true
}
