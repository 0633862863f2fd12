package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/keelson-dev/keelson/examples/bench/internal/child"
	"github.com/keelson-dev/keelson/examples/bench/internal/load"
	"github.com/keelson-dev/keelson/examples/bench/internal/proc"
)

const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// more is the number of definitions that are added at the end.
const more = 20

// aggregated is the header Accept of clients for discovery.
const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"

// measuring is one run.
type measuring struct {
	config
	child  *child.Child // nil if the server was running before
	target load.Target
	log    io.Writer

	client   *load.Client
	served   []delays // by definition
	memory   []memory
	requests [2][]request // with one definition, and with all
	fetches  []fetch
}

// delays are durations since the beginning of a definition's creation.
type delays struct {
	created, served time.Duration
}

// memory is the memory of the server at one time.
type memory struct {
	when           string
	resident, heap float64 // bytes; heap is 0 if it is unknown
}

// request has the results for one kind of request.
type request struct {
	what     string
	cpu      time.Duration // of the server per request
	allocs   float64       // of the server per request; 0 if unknown
	p50, p99 time.Duration
}

// fetch has the results for one document.
type fetch struct {
	what  string
	bytes int64
	took  [4]time.Duration // first, again, after a new definition, and again
	cpu   [4]time.Duration
}

func (m *measuring) logf(format string, args ...any) {
	fmt.Fprintf(m.log, "%s %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, args...))
}

// all measures everything.
func (m *measuring) all(ctx context.Context) error {
	m.client = m.target.Dial()
	defer m.client.Close()
	n := m.definitions
	steps := []func() error{
		func() error { return m.define(ctx, 0) },
		func() error { return m.request(ctx, 0) },
		func() error { return m.remember(ctx, "with one definition", m.settle) },
		func() error {
			for i := 1; i < n; i++ {
				if err := m.define(ctx, i); err != nil {
					return err
				}
				if (i+1)%100 == 0 {
					m.logf("%d definitions, the last one served after %v", i+1, m.served[i].served)
				}
			}
			return nil
		},
		func() error { return m.established(ctx, n) },
		func() error { return m.remember(ctx, "all defined, none used", m.settle) },
		func() error {
			for i := range n {
				if err := m.make(ctx, i, "used"); err != nil {
					return err
				}
			}
			return nil
		},
		func() error { return m.remember(ctx, "all used once", m.settle) },
		func() error { return m.remember(ctx, fmt.Sprintf("all used once, %v later", m.rest), m.rest) },
		func() error { return m.request(ctx, 1) },
		func() error { return m.fetchAll(ctx, 0) },
		func() error { return m.fetchAll(ctx, 1) },
		func() error { return m.remember(ctx, "and all documents asked for", m.settle) },
		func() error { return errors.Join(m.define(ctx, n), m.shown(ctx, n)) },
		func() error { return m.fetchAll(ctx, 2) },
		func() error { return m.fetchAll(ctx, 3) },
		func() error {
			for i := n + 1; i < n+more; i++ {
				if err := m.define(ctx, i); err != nil {
					return err
				}
			}
			return nil
		},
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// tries is the maximum number of repeated requests. pause is the time between them.
const (
	tries = 60_000
	pause = time.Millisecond
)

// until repeats a request until ok returns true for the answer.
func (m *measuring) until(ctx context.Context, r load.Request, ok func(body []byte) bool) error {
	for range tries {
		answer, err := m.client.Do(ctx, r)
		refused := (*load.StatusError)(nil)
		switch {
		case err == nil && ok(answer.Head):
			return nil
		case err != nil && !errors.As(err, &refused):
			return err
		}
		time.Sleep(pause)
	}
	return fmt.Errorf("%s is not answered as it should be", r)
}

// define creates definition i and lists its objects until that succeeds.
func (m *measuring) define(ctx context.Context, i int) error {
	began := time.Now()
	_, err := m.client.Do(ctx, load.Request{Method: http.MethodPost, Path: definitions, Body: definition(i)})
	if err != nil {
		return err
	}
	d := delays{created: time.Since(began)}
	err = m.until(ctx, load.Request{Path: collection(i)}, func([]byte) bool { return true })
	d.served = time.Since(began)
	m.served = append(m.served, d)
	return err
}

// established waits until n definitions have the condition Established.
func (m *measuring) established(ctx context.Context, n int) error {
	for i := range n {
		err := m.until(ctx, load.Request{Path: definitions + "/" + name(i), Keep: load.KeepAll}, func(body []byte) bool {
			var d struct {
				Status struct {
					Conditions []struct{ Type, Status string }
				}
			}
			if json.Unmarshal(body, &d) != nil {
				return false
			}
			return slices.Contains(d.Status.Conditions, struct{ Type, Status string }{"Established", "True"})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// shown waits until discovery has definition i.
func (m *measuring) shown(ctx context.Context, i int) error {
	return m.until(ctx, load.Request{Path: "/apis/" + group(i) + "/v1", Keep: load.KeepAll}, func(body []byte) bool {
		var list struct {
			Resources []struct{ Name string }
		}
		return json.Unmarshal(body, &list) == nil && slices.Contains(list.Resources, struct{ Name string }{plural(i)})
	})
}

func (m *measuring) make(ctx context.Context, i int, name string) error {
	_, err := m.client.Do(ctx, load.Request{Method: http.MethodPost, Path: collection(i), Body: thing(i, name)})
	return err
}

// remember measures the memory of the server after a delay.
func (m *measuring) remember(ctx context.Context, when string, after time.Duration) error {
	select {
	case <-time.After(after):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	now := memory{when: when}
	if m.child != nil {
		if _, err := m.child.Heap(ctx); err != nil { // twice: objects with cleanups are freed by the second collection
			return err
		}
		heap, err := m.child.Heap(ctx)
		if err != nil {
			return err
		}
		now.heap = float64(heap.HeapLive)
	}
	used, err := proc.MemoryOf(m.pid)
	if err != nil {
		return err
	}
	now.resident = float64(used.Resident)
	m.memory = append(m.memory, now)
	m.logf("%s: %.1f MiB resident, %.1f MiB live heap", when, now.resident/(1<<20), now.heap/(1<<20))
	return nil
}

// request measures requests for objects of definition 0 by one client.
func (m *measuring) request(ctx context.Context, round int) error {
	prefix := fmt.Sprintf("made-%d-", round)
	if round == 0 {
		if err := m.make(ctx, 0, "first"); err != nil {
			return err
		}
	}
	one := collection(0) + "/first"
	for _, sort := range []struct {
		what string
		op   func(n int) error
	}{
		{"GET", func(int) error { _, err := m.client.Do(ctx, load.Request{Path: one}); return err }},
		{"LIST of one object by its name", func(int) error {
			_, err := m.client.Do(ctx, load.Request{Path: collection(0) + "?fieldSelector=metadata.name%3Dfirst"})
			return err
		}},
		{"CREATE", func(n int) error { return m.make(ctx, 0, fmt.Sprint(prefix, n)) }},
		{"PATCH", func(n int) error {
			_, err := m.client.Do(ctx, load.Request{
				Method: http.MethodPatch, Path: one, ContentType: "application/merge-patch+json", Body: fmt.Appendf(nil, `{"spec":{"field1":%d}}`, n%1000),
			})
			return err
		}},
		{"WATCH, until it is answered", func(int) error {
			crowd, err := m.target.Watch(ctx, load.Watching{Collection: "/apis/" + group(0) + "/v1/namespaces/none/" + plural(0), Watchers: 1, Events: 1})
			if err == nil {
				crowd.Close()
			}
			return err
		}},
	} {
		before, err := m.mallocs(ctx)
		if err != nil {
			return err
		}
		took, cpu, err := m.repeat(m.operations, sort.op)
		if err != nil {
			return fmt.Errorf("%s: %w", sort.what, err)
		}
		after, err := m.mallocs(ctx)
		if err != nil {
			return err
		}
		m.requests[round] = append(m.requests[round], request{
			sort.what, cpu, float64(after-before) / float64(m.operations), load.Quantile(took, 0.5), load.Quantile(took, 0.99),
		})
	}
	m.logf("requests: %v", m.requests[round])
	return nil
}

// mallocs returns the number of allocations of the server so far, 0 if unknown.
func (m *measuring) mallocs(ctx context.Context) (uint64, error) {
	if m.child == nil {
		return 0, nil
	}
	heap, err := m.child.Heap(ctx)
	return heap.Mallocs, err
}

// repeat calls op many times. It returns the sorted durations, and the server's CPU time per call.
func (m *measuring) repeat(times int, op func(n int) error) (took []time.Duration, cpu time.Duration, err error) {
	before, err := proc.CPU(m.pid)
	if err != nil {
		return nil, 0, err
	}
	for n := range times {
		began := time.Now()
		if err := op(n); err != nil {
			return nil, 0, err
		}
		took = append(took, time.Since(began))
	}
	after, err := proc.CPU(m.pid)
	slices.Sort(took)
	return took, (after - before) / time.Duration(times), err
}

// fetchAll gets the documents that describe the served kinds.
func (m *measuring) fetchAll(ctx context.Context, round int) error {
	for i, doc := range []struct {
		what string
		load.Request
	}{
		{"discovery, aggregated", load.Request{Path: "/apis", Accept: aggregated}},
		{"discovery, one group version", load.Request{Path: "/apis/" + group(m.definitions) + "/v1"}},
		{"/openapi/v3", load.Request{Path: "/openapi/v3"}},
		{"/openapi/v3, one group version", load.Request{Path: "/openapi/v3/apis/" + group(m.definitions-1) + "/v1"}},
		{"/openapi/v2, gzip", load.Request{Path: "/openapi/v2", Gzip: true}},
	} {
		if doc.what == "discovery, one group version" && round < 2 {
			doc.Path = "/apis/" + group(m.definitions-1) + "/v1"
		}
		var size int64
		took, cpu, err := m.repeat(1, func(int) error {
			answer, err := m.client.Do(ctx, doc.Request)
			size = answer.Size
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", doc.what, err)
		}
		if len(m.fetches) <= i {
			m.fetches = append(m.fetches, fetch{what: doc.what})
		}
		f := &m.fetches[i]
		f.bytes, f.took[round], f.cpu[round] = size, took[0], cpu
		m.logf("%s: %d bytes after %v", doc.what, size, took[0])
	}
	return nil
}
