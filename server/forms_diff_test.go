package server_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/storage/memory"
)

// forms are the forms in which lists and objects are requested, each with its form for a list.
var forms = []struct{ one, list string }{
	{"application/json", "application/json"},
	{"application/yaml", "application/yaml"},
	{"application/cbor", "application/cbor"},
	{partialForm, partialList},
	{"application/yaml;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "application/yaml;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"},
	{"application/cbor;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "application/cbor;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"},
	{"application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"},
	{"application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1beta1;g=meta.k8s.io", "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1beta1;g=meta.k8s.io"},
}

// newFormTwins returns two servers of one storage. The first keeps forms, and the second keeps none.
func newFormTwins(t *testing.T, seed uint64, bytes int64, change func(*server.KindOptions[*Sail])) *twins {
	t.Helper()
	tw := &twins{t: t, rand: rand.New(rand.NewPCG(seed, 0)), backend: memory.New(memory.Options{}), oldest: 1}
	t.Cleanup(func() { _ = tw.backend.Close() })
	for i, most := range []int64{bytes, -1} {
		tw.servers[i], tw.http1[i] = tw.start(change, server.Options{CBOR: true, Limits: server.Limits{FormBytes: most}})
	}
	return tw
}

// formRead is a request for an object or a list in some form.
func (tw *twins) formRead() (path string, header []string) {
	form := forms[tw.rand.IntN(len(forms))]
	header = []string{"Accept-Encoding", tw.pick("identity", "gzip"), "Accept"}
	version := tw.version()
	q := url.Values{}
	if rv := tw.revision(); rv != "" {
		q.Set("resourceVersion", rv)
	}
	if tw.rand.IntN(2) == 0 {
		return sailsIn(version, tw.pick("a", "b", "c")) + "/" + tw.name() + "?" + q.Encode(), append(header, form.one)
	}
	if q.Has("resourceVersion") && tw.rand.IntN(2) == 0 {
		q.Set("resourceVersionMatch", "Exact")
	}
	if limit := tw.pick("", "", "", "5", "40"); limit != "" {
		q.Set("limit", limit)
	}
	if token := tw.token(); token != "" && tw.rand.IntN(5) == 0 {
		q = url.Values{"continue": {token}}
	}
	return sailsIn(version, tw.namespace()) + "?" + q.Encode(), append(header, form.list)
}

// many creates so many objects that the tree has several pages.
func (tw *twins) many(n int) {
	tw.t.Helper()
	for i := range n {
		body := fmt.Sprintf(`{"metadata":{"name":"m%d","labels":{"app":"x"},"annotations":{"note":"%01000d"}},"spec":{"area":%d}}`, i, i, 1+i%100)
		tw.servers[i%2].ask(tw.t, "POST", sailsIn("v1", tw.pick("a", "b", "c")), body).want(tw.t, 201)
	}
}

// bystander writes an object by the first server, or tries to in a dry run, whose answer is not stored, and reads the object.
func (tw *twins) bystander() {
	form := forms[tw.rand.IntN(len(forms))].one
	path := sailsIn(tw.version(), tw.pick("a", "b", "c")) + "/" + tw.pick(tw.name(), "m1", "m2", "m30", "m31")
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"dry":"%d"}}}`, tw.rand.IntN(100))
	dry := tw.pick("", "?dryRun=All")
	tw.servers[0].ask(tw.t, "PATCH", path+dry, patch, "Content-Type", mergePatch, "Accept", form)
	if tw.rand.IntN(4) == 0 {
		tw.servers[0].ask(tw.t, "DELETE", path+dry, "", "Accept", form)
	}
	tw.compare("GET", path, []string{"Accept", form})
}

// Answers are the same with and without kept forms, within any budget: with reads beside the writes, dry runs, objects that are
// created and deleted, conversions, and states of the past.
func TestFormsChangeNoAnswer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		bytes  int64
		change func(*server.KindOptions[*Sail])
	}{
		"cached":           {0, func(*server.KindOptions[*Sail]) {}},
		"cached, little":   {60 << 10, func(*server.KindOptions[*Sail]) {}},
		"uncached":         {0, func(o *server.KindOptions[*Sail]) { o.NoCache = true }},
		"uncached, little": {20 << 10, func(o *server.KindOptions[*Sail]) { o.NoCache = true }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			tw := newFormTwins(t, seed, tc.bytes, tc.change)
			tw.many(200)
			for end := time.Now().Add(soak(t, 2*time.Second)); time.Now().Before(end) && !t.Failed(); {
				tw.storm()
				for _, w := range tw.servers { // wait until both have the present state
					w.ask(t, "GET", sailsIn("v1", "")+"?limit=1", "")
				}
				for _, form := range forms {
					tw.compare("GET", sailsIn(tw.version(), ""), []string{"Accept", form.list, "Accept-Encoding", tw.pick("gzip", "identity")})
				}
				for range 40 {
					path, header := tw.formRead()
					tw.compare("GET", path, header)
				}
			}
			// Few of the reads may be of an existing object in a form that is kept.
			tw.servers[0].ask(t, "POST", sailsIn("v1", "a"), `{"metadata":{"name":"kept"},"spec":{"area":1}}`).want(t, 201)
			tw.servers[0].ask(t, "GET", sailsIn("v1", "a")+"/kept", "", "Accept", "application/yaml").want(t, 200)
			most := tc.bytes
			if most == 0 {
				most = 64 << 20
			}
			if kept := scrape(t, tw.servers[0].Server)["keelson_form_cache_bytes"]; kept <= 0 || kept > float64(most) {
				t.Errorf("%v bytes are kept, want some, and %d at most", kept, most)
			}
		})
	}
}

// storm makes concurrent reads of many forms beside writes, by the server that keeps forms.
func (tw *twins) storm() {
	tw.t.Helper()
	var readers sync.WaitGroup
	now := tw.now()
	for i := range 3 {
		readers.Go(func() {
			for j := range 6 {
				form := forms[(i*6+j+int(now))%len(forms)]
				rv := []string{"", "?resourceVersion=0", "?resourceVersionMatch=Exact&resourceVersion=" + strconv.FormatInt(now, 10)}[(i+j)%3]
				tw.servers[0].ask(tw.t, "GET", sailsIn("v1", "")+rv, "", "Accept", form.list, "Accept-Encoding", "gzip")
			}
		})
	}
	for range 6 {
		tw.write()
		tw.bystander()
	}
	tw.heal()
	readers.Wait()
}
