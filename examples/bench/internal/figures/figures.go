// Package figures stores measured values: samples of metrics, which are reported by their median.
package figures

import (
	"fmt"
	"slices"
	"sync"
)

// These are the servers that are compared.
const (
	// KeelsonMemory is keelson with its objects in memory.
	KeelsonMemory = "keelson-memory"
	// KeelsonBolt is keelson with its objects in a bolt file.
	KeelsonBolt = "keelson-bolt"
	// KeelsonEtcd is keelson with its objects in etcd.
	KeelsonEtcd = "keelson-etcd"
	Peer        = "apiserver-etcd" // a server built on k8s.io/apiserver
	Floor       = "floor"          // net/http with prepared bytes
)

// Servers returns all servers, in the order of the report.
func Servers() []string {
	return []string{KeelsonMemory, KeelsonBolt, KeelsonEtcd, Peer, Floor}
}

// Metric is a metric with its unit.
type Metric string

// These are the metrics. Operations are requests, or deliveries of an event to a watcher.
const (
	CPU        Metric = "cpu"        // CPU time of the server per operation, seconds
	EtcdCPU    Metric = "etcd cpu"   // CPU time of etcd per operation, seconds
	Throughput Metric = "throughput" // operations per second
	P50        Metric = "p50"        // median of the latency, seconds
	P99        Metric = "p99"        // 99th percentile of the latency, seconds
	Mallocs    Metric = "mallocs"    // number of allocations per operation
	AllocBytes Metric = "bytes"      // allocated bytes per operation
	Resumes    Metric = "resumes"    // number of streams that the server ended early
	Time       Metric = "time"       // seconds
	Size       Metric = "size"       // size of a file, bytes
	RSS        Metric = "rss"        // resident memory, bytes
	Anonymous  Metric = "anon"       // part of RSS that belongs to no file, bytes
	HeapLive   Metric = "heap"       // live heap, bytes

	Peak          Metric = "peak"       // maximum RSS, bytes
	PeakAnonymous Metric = "peak anon"  // maximum of Anonymous, bytes
	Asked         Metric = "asked"      // requests of a client until it had everything, on average
	MostAsked     Metric = "most asked" // requests of the client that made the most

	RSSPerObject       Metric = "rss per object"  // RSS beyond that of the idle server, bytes per object
	AnonymousPerObject Metric = "anon per object" // the same for Anonymous
	HeapPerObject      Metric = "heap per object" // the same for HeapLive
)

// Key identifies a figure.
type Key struct {
	// Scenario is the name of the scenario.
	Scenario string
	Objects  int // number of objects in the server
	// Server is the name of the server.
	Server string
	// Metric is the metric.
	Metric Metric
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

// Fail records something that could not be measured.
func (r *Results) Fail(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

// Failures returns the texts of Fail.
func (r *Results) Failures() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.failures)
}

// Median returns the median of the samples, and false if there are none. For an even number it is the mean of the two in the
// middle.
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

// Ratio returns the quotient of the medians of one metric for two servers, and false if one was not measured.
func (r *Results) Ratio(k Key, against string) (float64, bool) {
	a, ok := r.Median(k)
	k.Server = against
	b, okAgainst := r.Median(k)
	if !ok || !okAgainst || b == 0 {
		return 0, false
	}
	return a / b, true
}
