package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

// options are the options of a run.
type options struct {
	seed     uint64
	requests int
	workers  int
	only     int // the number of the only case, or -1
	limit    time.Duration
	note     string // a paragraph of the report
}

// compareServers runs cases until the number of requests is reached.
func compareServers(ctx context.Context, both [2]*endpoint, o options) (*report, error) {
	group := fmt.Sprintf("s%d.differ.example.com", o.seed)
	c := &comparer{both: both, report: newReport(o), kinds: append(typedKinds(), customKinds(group)...)}
	for i, e := range both {
		a := e.send(ctx, "GET", "/version", nil, nil)
		if a.code != http.StatusOK {
			return nil, fmt.Errorf("%s: GET /version: %d %s", e.url, a.code, a.failed)
		}
		v, err := decodeJSON(a.body)
		if err != nil {
			return nil, err
		}
		c.report.versions[i] = fmt.Sprint(v.(obj)["gitVersion"], ", emulating ", v.(obj)["major"], ".", v.(obj)["minor"])
	}
	defer c.removeDefinitions(group)
	for name, text := range definitions(group) {
		if err := c.define(ctx, name, text); err != nil {
			return nil, err
		}
	}
	numbers := make(chan int)
	var workers sync.WaitGroup
	for range o.workers {
		workers.Go(func() {
			for number := range numbers {
				c.runCase(ctx, o, number)
			}
		})
	}
	began := time.Now()
	for number, sum := 0, 0; sum < o.requests && ctx.Err() == nil && time.Since(began) < o.limit; number++ {
		length := caseLength(newGrammar(o.seed, number, c.kinds), o.requests-sum)
		sum += length
		if o.only < 0 || o.only == number {
			numbers <- number
		}
	}
	close(numbers)
	workers.Wait()
	return c.report, nil
}

// caseLength returns the number of requests in a case.
func caseLength(g *grammar, atMost int) int { return min(10+g.IntN(31), max(atMost, 1)) }

// comparer sends requests to both servers. Its methods may be called concurrently.
type comparer struct {
	both   [2]*endpoint
	kinds  []*kind
	report *report
}

// each calls a function for both servers at once.
func (c *comparer) each(f func(i int, e *endpoint)) {
	var wait sync.WaitGroup
	for i, e := range c.both {
		wait.Go(func() { f(i, e) })
	}
	wait.Wait()
}

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

var jsonBody = [][2]string{{"Content-Type", "application/json"}}

// define creates a definition on both servers and waits until its kind is served.
func (c *comparer) define(ctx context.Context, name, text string) error {
	var failed [2]error
	c.each(func(i int, e *endpoint) {
		a := e.send(ctx, "POST", definitionsPath, jsonBody, []byte(text))
		if a.code != http.StatusCreated && a.code != http.StatusConflict {
			failed[i] = fmt.Errorf("%s: %d %s %s", name, a.code, a.failed, cut(string(a.body), 600))
			return
		}
		v, _ := decodeJSON([]byte(text))
		spec := v.(obj)["spec"].(obj)
		for range 100 {
			served := 0
			for _, version := range spec["versions"].([]any) {
				path := fmt.Sprintf("/apis/%s/%s/%s?limit=1", spec["group"], version.(obj)["name"], spec["names"].(obj)["plural"])
				if e.send(ctx, "GET", path, nil, nil).code == http.StatusOK {
					served++
				}
			}
			if served == len(spec["versions"].([]any)) {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		failed[i] = fmt.Errorf("%s: is not served", name)
	})
	return errors.Join(failed[:]...)
}

func (c *comparer) removeDefinitions(group string) {
	c.each(func(_ int, e *endpoint) {
		for name := range definitions(group) {
			e.send(context.Background(), "DELETE", definitionsPath+"/"+name, nil, nil)
		}
	})
}

// oneCase is a case while it runs.
type oneCase struct {
	*comparer
	number  int
	verbose bool
	states  [2]*state
	touched map[*kind]bool
	history []string // the requests so far, short
}

func (c *comparer) runCase(ctx context.Context, o options, number int) {
	g := newGrammar(o.seed, number, c.kinds)
	length := caseLength(g, 1<<30)
	namespace := fmt.Sprintf("differ-%d-%d", o.seed, number)
	run := &oneCase{comparer: c, number: number, verbose: o.only >= 0, touched: map[*kind]bool{}}
	c.each(func(i int, e *endpoint) {
		run.states[i] = newState(namespace)
		a := e.send(ctx, "POST", "/api/v1/namespaces", jsonBody, fmt.Appendf(nil, `{"metadata":{"name":%q}}`, namespace))
		if v, err := decodeJSON(a.body); err == nil && a.code == http.StatusCreated {
			meta := v.(obj)["metadata"].(obj)
			run.states[i].self = object{rv: meta["resourceVersion"].(string), uid: meta["uid"].(string)}
		}
	})
	for range length {
		if ctx.Err() != nil {
			break
		}
		run.do(ctx, g.next())
	}
	run.cleanUp(namespace)
	c.report.endCase()
}

// exchange sends a request to both servers.
func (c *oneCase) exchange(ctx context.Context, r *request) (both [2]side) {
	c.each(func(i int, e *endpoint) {
		s := c.states[i]
		body := []byte(s.expand(r.body))
		if r.protobuf {
			body = protobufOf(body)
		}
		var header [][2]string
		for _, h := range r.header {
			header = append(header, [2]string{h[0], s.expand(h[1])})
		}
		a := e.send(ctx, r.method, s.expand(r.target()), header, body)
		both[i].answer = a
		both[i].decoded = decode(a, r.watch)
		both[i].normal = normalizer{s, r}.body(both[i].decoded)
	})
	return both
}

// protobufOf returns an object in JSON as protobuf, or as it is if it is no object of a Go type.
func protobufOf(text []byte) []byte {
	o, _, err := scheme.Codecs.UniversalDeserializer().Decode(text, nil, nil)
	if err != nil {
		return text
	}
	var out bytes.Buffer
	if protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(o, &out) != nil {
		return text
	}
	return out.Bytes()
}

// do makes a request, compares the answers and records the result.
func (c *oneCase) do(ctx context.Context, r *request) {
	if r.kind != nil {
		c.touched[r.kind] = true
	}
	both := c.exchange(ctx, r)
	found := compare(r, both[0], both[1])
	// A read may come before a server has seen its own write, if it is answered from a cache.
	retried := false
	for attempt := 0; len(found) > 0 && r.read() && attempt < 2; attempt++ {
		retried = true
		time.Sleep(time.Duration(150*(attempt+1)) * time.Millisecond)
		both = c.exchange(ctx, r)
		found = compare(r, both[0], both[1])
	}
	if ctx.Err() != nil {
		return
	}
	left := c.report.record(c, r, both, found, retried)
	if c.verbose {
		fmt.Fprint(os.Stderr, c.show(r, both, left, 100000))
	}
	if both[0].code == both[1].code {
		for i := range both {
			c.states[i].learn(r, both[i].code, both[i].decoded)
		}
	}
	c.history = append(c.history, fmt.Sprintf("%s %s → %d/%d", r.verb, cut(r.target(), 90), both[0].code, both[1].code))
	c.settle(ctx, r, both, left)
}

// settle brings the servers to equal states: after a write with different answers, and after a deletion for which only one of the
// servers may have a controller.
func (c *oneCase) settle(ctx context.Context, r *request, both [2]side, left []difference) {
	if r.kind == nil || r.read() {
		return
	}
	succeeded := both[0].code < 300 || both[1].code < 300
	// With other codes one server may have written, and so may both with 406, for which only the answer can be the reason.
	unsure := both[0].code != both[1].code || both[0].code == http.StatusNotAcceptable || both[0].code >= 500 ||
		strings.Contains(r.verb, "with dryRun and a body") // the left one does not read dryRun then
	if r.kind.resource == "customresourcedefinitions" {
		if unsure || succeeded && !r.dryRun() {
			if len(left) > 0 || unsure || r.waitsForCollector() {
				c.wipe(ctx, r.kind)
			}
			c.await(ctx)
		}
		return
	}
	switch {
	case r.kind.resource == "namespaces" && r.method == "DELETE" && succeeded && !r.dryRun():
		c.endNamespace(c.states[0].expand(r.name))
	case len(left) > 0 && succeeded || unsure:
		c.wipe(ctx, r.kind)
	case succeeded && r.waitsForCollector():
		c.release(ctx, r.kind)
	}
}

// waitsForCollector reports whether a request is a deletion that a garbage collector completes.
func (r *request) waitsForCollector() bool {
	return r.method == "DELETE" && (strings.Contains(r.target()+r.body, "Foreground") || strings.Contains(r.target()+strings.ToLower(r.body), "rphan"))
}

// await waits until the definition of the case is in equal states on both servers, established or not there, and in effect.
func (c *oneCase) await(ctx context.Context) {
	for range 30 {
		both := c.exchange(ctx, &request{method: "GET", path: definitionsPath + "/" + ownName})
		ready := both[0].code == http.StatusNotFound
		if o, ok := both[0].normal.(obj); ok && both[0].code == http.StatusOK {
			status, _ := o["status"].(obj)
			meta, _ := o["metadata"].(obj)
			conditions, _ := status["conditions"].([]any)
			ready = len(conditions) > 1 && (meta["deletionTimestamp"] == nil || meta["finalizers"] != nil && len(meta["finalizers"].([]any)) > 0 && strings.Contains(fmt.Sprint(meta["finalizers"]), "example.com"))
		}
		if ready && both[0].code == both[1].code && compact(both[0].normal) == compact(both[1].normal) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	time.Sleep(250 * time.Millisecond)
}

// pool returns the paths of the objects that requests name.
func (c *oneCase) pool(k *kind) (paths []string) {
	root := k.root(k.versions[0])
	if k.resource == "customresourcedefinitions" {
		return []string{definitionsPath + "/" + ownName}
	}
	for _, name := range []string{"a", "b", "c", "other", "twice", "a.b"} {
		if k.namespaced {
			paths = append(paths, root+"/namespaces/${ns}/"+k.resource+"/"+name)
		} else {
			paths = append(paths, root+"/"+k.resource+"/${ns}-"+name)
		}
	}
	return paths
}

var noFinalizers = []byte(`{"metadata":{"finalizers":null}}`)
var mergeBody = [][2]string{{"Content-Type", "application/merge-patch+json"}}

// release deletes what is being deleted.
func (c *oneCase) release(ctx context.Context, k *kind) {
	c.each(func(i int, e *endpoint) {
		for _, path := range c.pool(k) {
			path = c.states[i].expand(path)
			a := e.send(ctx, "GET", path, nil, nil)
			if bytes.Contains(a.body, []byte(`"deletionTimestamp"`)) {
				e.send(ctx, "PATCH", path, mergeBody, noFinalizers)
			}
		}
	})
}

// wipe deletes the objects of a kind.
func (c *oneCase) wipe(ctx context.Context, k *kind) {
	if k.resource == "namespaces" {
		for _, name := range []string{"a", "b", "c"} {
			c.endNamespace(c.states[0].namespace + "-" + name)
		}
		return
	}
	if k.resource == "customresourcedefinitions" {
		for _, owned := range definitionKinds() {
			if owned.namespaced {
				c.wipe(ctx, owned)
			}
		}
	}
	c.each(func(i int, e *endpoint) {
		for _, path := range c.pool(k) {
			path = c.states[i].expand(path)
			a := e.send(ctx, "DELETE", path+"?gracePeriodSeconds=0&propagationPolicy=Background", nil, nil)
			if a.code == http.StatusOK && bytes.Contains(a.body, []byte(`"finalizers"`)) {
				e.send(ctx, "PATCH", path, mergeBody, noFinalizers)
			}
		}
		c.states[i].forget(ctx, k, e)
	})
}

// forget drops the values of a kind, so that later requests do not ask for the changes before.
func (s *state) forget(ctx context.Context, k *kind, e *endpoint) {
	for key := range s.objects {
		if strings.HasPrefix(key, k.resource+"/") {
			delete(s.objects, key)
		}
	}
	delete(s.listRV, k.resource)
	delete(s.pages, k.resource)
	v, err := decodeJSON(e.send(ctx, "GET", "/api/v1/namespaces/"+s.namespace+"/configmaps?limit=1", nil, nil).body)
	if err != nil {
		return
	}
	list, _ := v.(obj)
	meta, _ := list["metadata"].(obj)
	if rv, ok := meta["resourceVersion"].(string); ok {
		s.self.rv = rv
	}
}

// endNamespace deletes a namespace without waiting for a controller.
func (c *comparer) endNamespace(name string) {
	c.each(func(_ int, e *endpoint) {
		ctx := context.Background()
		path := "/api/v1/namespaces/" + name
		for range 20 {
			if a := e.send(ctx, "DELETE", path+"?propagationPolicy=Background", nil, nil); a.code == http.StatusNotFound {
				return
			}
			e.send(ctx, "PATCH", path, mergeBody, noFinalizers)
			e.send(ctx, "PUT", path+"/finalize", jsonBody, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q},"spec":{"finalizers":[]}}`, name))
			if a := e.send(ctx, "GET", path, nil, nil); a.code == http.StatusNotFound {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	})
}

// cleanUp deletes what the case may have left.
func (c *oneCase) cleanUp(namespace string) {
	for k := range c.touched {
		c.wipe(context.Background(), k)
	}
	c.endNamespace(namespace)
}
