package server_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// shared is a backend of several servers. Close does nothing: the test closes the backend.
type shared struct{ *memory.Backend }

func (shared) Close() error { return nil }

// twins are two servers of one storage, one with a cache and one without. Both must give the same answer to every request.
type twins struct {
	t       *testing.T
	rand    *rand.Rand
	backend *memory.Backend
	servers [2]*wire // with a cache, without one
	http1   [2]*http.Client
	oldest  int64    // oldest revision for requests: a few revisions before it are forgotten
	tokens  []string // continue tokens of pages
	made    int
}

func newTwins(t *testing.T, seed uint64, change func(*server.KindOptions[*Sail])) *twins {
	t.Helper()
	tw := &twins{t: t, rand: rand.New(rand.NewPCG(seed, 0)), backend: memory.New(memory.Options{}), oldest: 1}
	t.Cleanup(func() { _ = tw.backend.Close() })
	tw.startBoth(change)
	return tw
}

func (tw *twins) startBoth(change func(*server.KindOptions[*Sail])) {
	tw.t.Helper()
	tw.servers[0], tw.http1[0] = tw.start(change, server.Options{})
	tw.servers[1], tw.http1[1] = tw.start(func(o *server.KindOptions[*Sail]) { o.NoCache = true }, server.Options{})
}

// start serves sails from the storage of the twins.
func (tw *twins) start(change func(*server.KindOptions[*Sail]), opts server.Options) (*wire, *http.Client) {
	tw.t.Helper()
	g := sails()
	o := server.KindOptions[*Sail]{
		Hub: true, SelectableFields: []string{"spec.color"},
		Columns: []server.Column[*Sail]{{Name: "Area", Type: "integer", Value: func(s *Sail) any { return s.Spec.Area }}, server.AgeColumn[*Sail]()},
	}
	change(&o)
	g.Versions[1].Resources[0] = server.Kind("Sail", o)
	opts.Storage, opts.Groups = storage.Opened(shared{tw.backend}), []server.Group{g}
	srv := servertest.Start(tw.t, opts)
	w := &wire{srv, srv.Client()}
	tr := srv.Transport()
	tr.ForceAttemptHTTP2 = false
	tw.t.Cleanup(tr.CloseIdleConnections)
	tw.t.Cleanup(w.client.CloseIdleConnections)
	return w, &http.Client{Transport: tr}
}

func (tw *twins) pick(of ...string) string { return of[tw.rand.IntN(len(of))] }

// now is the revision of the store.
func (tw *twins) now() int64 {
	tw.t.Helper()
	now, ok := tw.backend.Known()
	if !ok {
		tw.t.Fatal("the backend does not know its revision")
	}
	return now
}

func sailsIn(version, ns string) string {
	if ns == "" {
		return "/apis/sea.example.com/" + version + "/sails"
	}
	return "/apis/sea.example.com/" + version + "/namespaces/" + ns + "/sails"
}

const (
	tableForm   = "application/json;as=Table;v=v1;g=meta.k8s.io"
	partialForm = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	partialList = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
)

func (tw *twins) namespace() string { return tw.pick("a", "a", "b", "c", "") }
func (tw *twins) version() string   { return tw.pick("v1", "v1", "v1beta1", "v1alpha1") }
func (tw *twins) name() string      { return tw.pick("s1", "s2", "s3", "s4", "s5", "s6") }

// write changes something by one of the servers, or in the backend.
func (tw *twins) write() {
	w := tw.servers[tw.rand.IntN(2)]
	ns, name := tw.pick("a", "a", "b", "c"), tw.name()
	list := sailsIn("v1", ns)
	labels := tw.pick(`{}`, `{"app":"x"}`, `{"app":"y"}`, `{"app":"x","tier":"1"}`, `{"n":"5"}`)
	color, area := tw.pick("red", "blue", "green"), tw.pick("1", "2", "3")
	note := strings.Repeat("n", tw.rand.IntN(2)*20<<10) // so that some lists are worth compressing
	finalizers := tw.pick(`[]`, `[]`, `[]`, `["example.com/f"]`)
	switch n := tw.rand.IntN(100); {
	case n < 40:
		body := fmt.Sprintf(`{"metadata":{"name":%q,"labels":%s,"finalizers":%s,"annotations":{"note":%q}},"spec":{"area":%s,"color":%q}}`, name, labels, finalizers, note, area, color)
		if a := w.ask(tw.t, "POST", list, body); a.code != 201 && a.code != 409 {
			tw.t.Fatalf("create: %d %s", a.code, a.body)
		}
	case n < 60:
		patch := fmt.Sprintf(`{"metadata":{"labels":null,"finalizers":%s},"spec":{"color":%q}}`, finalizers, color)
		w.ask(tw.t, "PATCH", list+"/"+name, patch, "Content-Type", mergePatch)
		w.ask(tw.t, "PATCH", list+"/"+name, `{"metadata":{"labels":`+labels+`}}`, "Content-Type", mergePatch)
	case n < 70:
		w.ask(tw.t, "DELETE", list+"/"+name, "")
	case n < 73:
		w.ask(tw.t, "DELETE", list+"?labelSelector="+url.QueryEscape(tw.pick("app=x", "!app", "tier")), "")
	case n < 83:
		tw.plant(ns, name, tw.pick("\x01", "{", `k8s:enc:aescbc:v1:key1:`))
	case n < 85:
		tw.plant(ns, name, "")
	case n < 95: // something else
		if _, err := tw.backend.Commit(tw.t.Context(), storage.Commit{Key: "/registry/other", Expect: storage.AnyRevision, Value: []byte("x")}); err != nil {
			tw.t.Fatal(err)
		}
	case n < 98:
		tw.heal()
	default:
		w.ask(tw.t, "PATCH", list+"/"+name, `{"spec":{"area":101}}`, "Content-Type", mergePatch) // has no form in v1alpha1
	}
}

// plant stores a value that the servers would not write; "" deletes the key.
func (tw *twins) plant(ns, name, value string) {
	tw.t.Helper()
	c := storage.Commit{Key: "/registry/sea.example.com/sails/" + ns + "/" + name, Expect: storage.AnyRevision, Value: []byte(value), Delete: value == ""}
	if _, err := tw.backend.Commit(tw.t.Context(), c); err != nil {
		tw.t.Fatal(err)
	}
}

// forget drops older states now and then, unless a cache may still have them.
func (tw *twins) forget() {
	tw.t.Helper()
	floor := tw.now() - tw.rand.Int64N(100)
	if tw.rand.IntN(3) > 0 || floor <= tw.oldest+20 {
		return
	}
	if err := tw.backend.Compact(tw.t.Context(), floor); err != nil {
		tw.t.Fatal(err)
	}
	tw.oldest = floor - 10
}

// heal deletes values that cannot be read.
func (tw *twins) heal() {
	tw.t.Helper()
	for _, ns := range []string{"a", "b", "c"} {
		for _, name := range []string{"s1", "s2", "s3", "s4", "s5", "s6"} {
			if a := tw.servers[0].ask(tw.t, "GET", sailsIn("v1", ns)+"/"+name, ""); a.code == 500 {
				tw.servers[tw.rand.IntN(2)].ask(tw.t, "DELETE", sailsIn("v1", ns)+"/"+name+unsafely, "")
			}
		}
	}
}

func (tw *twins) labelSelector() string {
	return tw.pick("", "", "", "app=x", "app!=x", "!app", "app", "app in (x,y)", "app=x,tier=1", "tier notin (2)", "n>4", "app=none")
}

func (tw *twins) fieldSelector() string {
	return tw.pick("", "", "", "", "spec.color=red", "spec.color!=red", "metadata.name=s1", "metadata.namespace=a", "metadata.namespace=b,metadata.name=s2",
		"spec.color=red,metadata.name=s1", "spec.color=", "metadata.name=..")
}

// revision returns a revision for a request. It is not in the future, for which a request would wait.
func (tw *twins) revision() string {
	now := tw.now()
	return tw.pick("", "", "", "0", strconv.FormatInt(now, 10), strconv.FormatInt(tw.oldest+tw.rand.Int64N(max(now-tw.oldest, 1)), 10))
}

func (tw *twins) accept() string {
	return tw.pick("", "", "application/json", "application/yaml", tableForm, partialForm, partialList, "application/json;pretty=1")
}

// token returns the continue token of a page, sometimes changed.
func (tw *twins) token() string {
	if len(tw.tokens) == 0 {
		return ""
	}
	token := tw.pick(tw.tokens...)
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		tw.t.Fatalf("token %q: %v", token, err)
	}
	for old, now := range map[string]string{
		`"rv":`:    tw.pick(`"rv":`, `"rv":`, `"rv":`, `"rv":`, `"rv":`, `"rv":-1,"was":`, `"rv":0,"was":`, `"rv":-2,"was":`, `"rv":1,"was":`),
		`"start":`: tw.pick(`"start":`, `"start":`, `"start":`, `"start":`, `"start":"/s2\u0000","was":`, `"start":"../b/s1","was":`, `"start":"zz","was":`, `"start":"","was":`),
	} {
		text = []byte(strings.Replace(string(text), old, now, 1))
	}
	if tw.rand.IntN(20) == 0 {
		text = text[:tw.rand.IntN(len(text))]
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// read returns a request that changes nothing.
func (tw *twins) read() (method, path string, header []string) {
	q := url.Values{}
	set := func(name, value string) {
		if value != "" {
			q.Set(name, value)
		}
	}
	method = tw.pick("GET", "GET", "GET", "GET", "GET", "GET", "GET", "HEAD")
	set("resourceVersion", tw.revision())
	header = nil
	if accept := tw.accept(); accept != "" {
		header = append(header, "Accept", accept)
	}
	header = append(header, "Accept-Encoding", tw.pick("identity", "gzip"))
	version, ns := tw.version(), tw.namespace()
	if ns != "" && tw.rand.IntN(4) == 0 {
		return method, sailsIn(version, ns) + "/" + tw.pick(tw.name(), "none", "s1/status") + "?" + q.Encode(), header
	}
	set("labelSelector", tw.labelSelector())
	set("fieldSelector", tw.fieldSelector())
	if q.Has("resourceVersion") {
		set("resourceVersionMatch", tw.pick("", "", "Exact", "NotOlderThan"))
	}
	if method == "GET" { // the Content-Length of a HEAD is that with the token, or without
		set("limit", tw.pick("", "", "1", "2", "3", "500", "0", "-1"))
	}
	set("includeObject", tw.pick("", "", "", "None", "Object", "Metadata"))
	set("pretty", tw.pick("", "", "", "true"))
	if tw.rand.IntN(3) == 0 {
		set("continue", tw.token())
		q.Del("resourceVersion")
		q.Del("resourceVersionMatch")
	}
	if tw.rand.IntN(8) == 0 {
		name, value, _ := strings.Cut(tw.pick("labelSelector=a in", "fieldSelector=foo", "fieldSelector=spec.hue=red", "resourceVersion=-1", "resourceVersion=x", "resourceVersion=1",
			"resourceVersionMatch=Maybe", "resourceVersionMatch=Exact", "limit=x", "continue=x", "sendInitialEvents=true", "includeObject=x"), "=")
		set(name, value)
	}
	return method, sailsIn(version, ns) + "?" + q.Encode(), header
}

var ages = regexp.MustCompile(`"(\d+[smhd])+"`)

// plainly returns an answer without the parts that depend on the clock, or on compression.
func plainly(t *testing.T, a answer) answer {
	t.Helper()
	a.header = maps.Clone(a.header)
	a.header.Del("Date")
	a.header.Del("Audit-Id")
	if a.header.Get("Content-Encoding") == "gzip" && a.body != "" {
		a.header.Del("Content-Length") // only a small body has it, and the compressed size may differ
		r, err := gzip.NewReader(strings.NewReader(a.body))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		a.body = string(text)
	}
	a.body = ages.ReplaceAllString(a.body, `"now"`)
	return a
}

// compare sends a request to both servers, and fails the test if the answers differ.
func (tw *twins) compare(method, path string, header []string) answer {
	tw.t.Helper()
	clients := []*http.Client{tw.servers[0].client, tw.servers[1].client}
	if tw.rand.IntN(4) == 0 {
		clients = tw.http1[:]
	}
	var got [2]answer
	for i, w := range tw.servers {
		a := plainly(tw.t, roundTrip(tw.t, clients[i], method, w.URL+path, "", append(slices.Clone(header), "Authorization", "Bearer "+w.Token)...))
		if slices.Contains(header, tableForm) { // of ages
			a.header.Del("Content-Length")
		}
		got[i] = a
	}
	if strings.Contains(path, "Selector=") {
		tw.nothingFollows(path, header, &got)
	}
	if got[0].code != got[1].code || got[0].body != got[1].body || !maps.EqualFunc(got[0].header, got[1].header, slices.Equal[[]string]) {
		tw.t.Errorf("%s %s %q at %d:\ncached:   %d %v %s\nuncached: %d %v %s", method, path, header, tw.now(),
			got[0].code, got[0].header, got[0].body, got[1].code, got[1].header, got[1].body)
	}
	var list metav1.PartialObjectMetadataList
	for _, a := range got {
		if json.Unmarshal([]byte(a.body), &list) == nil && list.Continue != "" {
			tw.tokens = append(tw.tokens, list.Continue)
		}
	}
	if len(tw.tokens) > 50 {
		tw.tokens = tw.tokens[len(tw.tokens)-50:]
	}
	return got[0]
}

var continued = regexp.MustCompile(`(?m),\s*"continue": ?"([^"]+)"|^  continue: (.+)\n`)

// nothingFollows allows a difference. The last page without a cache may have a continue token where the cache sees that no other
// object matches. Then the next page must be empty.
func (tw *twins) nothingFollows(path string, header []string, got *[2]answer) {
	tw.t.Helper()
	const broken = "StorageReadError"
	if strings.Contains(got[0].body, broken) && strings.Contains(path, "limit=") &&
		(strings.Contains(got[1].body, broken) || got[1].code == 500 && notConverted(tw.t, got[1].body)) {
		got[1] = got[0] // the cache has looked at more objects, and its error names more; or the objects of the page cannot be converted either
		return
	}
	found := continued.FindStringSubmatch(got[1].body)
	if found == nil || continued.MatchString(got[0].body) {
		return
	}
	u, err := url.Parse(path)
	if err != nil {
		tw.t.Fatal(err)
	}
	q := u.Query()
	q.Set("continue", found[1]+found[2])
	q.Del("resourceVersion")
	q.Del("resourceVersionMatch")
	q.Del("limit")
	w := tw.servers[1]
	next := plainly(tw.t, w.ask(tw.t, "GET", u.Path+"?"+q.Encode(), "", "Accept", partialList))
	var list metav1.PartialObjectMetadataList
	if strings.Contains(got[0].body, broken) && next.code == 500 { // no object follows that can be read
		got[1] = got[0]
		return
	}
	if err := json.Unmarshal([]byte(next.body), &list); err != nil || next.code != 200 || len(list.Items) > 0 {
		tw.t.Errorf("GET %s %q: the cache says it is the end; what follows without it: %d %s", path, header, next.code, next.body)
	}
	got[1].body = continued.ReplaceAllString(got[1].body, "")
	for i := range got {
		got[i].header.Del("Content-Length")
	}
}

// notConverted reports whether a Status, in JSON or YAML, is about an object that has no form in the requested version.
func notConverted(t *testing.T, body string) bool {
	t.Helper()
	var status metav1.Status
	if err := yaml.Unmarshal([]byte(body), &status); err != nil {
		t.Errorf("not a Status: %v: %s", err, body)
	}
	return strings.HasPrefix(status.Message, "converting ")
}

// settle waits until the cache has the present state, so that reads at any revision have the same answer.
func (tw *twins) settle() {
	tw.t.Helper()
	tw.servers[0].ask(tw.t, "GET", sailsIn("v1", "")+"?limit=1", "")
}

// Servers of one storage give the same answers, with or without a cache, and whichever server has written.
func TestCacheChangesNoAnswer(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*server.KindOptions[*Sail]){
		"plain": func(*server.KindOptions[*Sail]) {},
		"indexed": func(o *server.KindOptions[*Sail]) {
			o.IndexFields, o.IndexLabels = []string{"spec.color", "metadata.namespace"}, []string{"app"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			tw := newTwins(t, seed, change)
			for end := time.Now().Add(soak(tw.t, 3*time.Second)); time.Now().Before(end) && !t.Failed(); {
				for range tw.rand.IntN(6) {
					tw.write()
				}
				// What was written is seen at once.
				tw.compare("GET", sailsIn("v1", tw.namespace()), nil)
				tw.compare("GET", sailsIn("v1", "a")+"/"+tw.name(), nil)
				if tw.rand.IntN(3) == 0 {
					// The other one may still hold parts of states that are forgotten, for readers to share.
					_, _ = tw.servers[0].Close(), tw.servers[1].Close()
					tw.forget()
					tw.startBoth(change)
				} else {
					tw.settle()
				}
				for range 30 {
					tw.compare(tw.read())
				}
				tw.watches()
			}
			tw.future()
		})
	}
}

// soak returns the time of a random test: the value of KEELSON_SOAK, or otherwise.
func soak(t *testing.T, otherwise time.Duration) time.Duration {
	t.Helper()
	text := os.Getenv("KEELSON_SOAK")
	if text == "" {
		return otherwise
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("KEELSON_SOAK: %v", err)
	}
	return d
}

// future requests states that do not exist yet.
func (tw *twins) future() {
	tw.t.Helper()
	n := strconv.FormatInt(tw.now()+100, 10)
	var all sync.WaitGroup
	for _, path := range []string{
		"?resourceVersion=" + n, "?resourceVersionMatch=NotOlderThan&resourceVersion=" + n, "?resourceVersionMatch=Exact&resourceVersion=" + n,
		"?limit=1&resourceVersion=" + n, "/none?resourceVersion=" + n,
		"?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=" + n,
		"?watch=1&timeoutSeconds=1&resourceVersion=" + n,
	} {
		path = sailsIn("v1", "a") + path
		all.Go(func() {
			var got [2]answer
			for i, w := range tw.servers {
				got[i] = plainly(tw.t, w.ask(tw.t, "GET", path, ""))
			}
			if fmt.Sprint(got[0]) != fmt.Sprint(got[1]) {
				tw.t.Errorf("%s\ncached:   %v\nuncached: %v", path, got[0], got[1])
			}
		})
	}
	all.Wait()
}

// watches runs watches on both servers beside writes, and compares their events.
func (tw *twins) watches() {
	tw.t.Helper()
	type pair struct {
		path   string
		header []string
		got    [2]chan []string
	}
	var pairs []pair
	until := make(chan int64) // closed once last is set
	last := int64(0)
	ctx, cancel := context.WithTimeout(tw.t.Context(), 20*time.Second)
	defer cancel()
	for range 12 {
		p := pair{}
		p.path, p.header = tw.watchRequest()
		for i, w := range tw.servers {
			req, err := http.NewRequestWithContext(ctx, "GET", w.URL+p.path, http.NoBody)
			if err != nil {
				tw.t.Fatal(err)
			}
			for j := 0; j < len(p.header); j += 2 {
				req.Header.Set(p.header[j], p.header[j+1])
			}
			resp, err := w.client.Do(req)
			if err != nil {
				tw.t.Fatal(err)
			}
			out := make(chan []string, 1)
			p.got[i] = out
			go func() {
				defer func() { _ = resp.Body.Close() }()
				header := maps.Clone(resp.Header)
				header.Del("Date")
				header.Del("Audit-Id")
				lines := []string{fmt.Sprint(resp.StatusCode, header)}
				in := make(chan string)
				go func() {
					defer close(in)
					s := bufio.NewScanner(resp.Body)
					s.Buffer(nil, 4<<20)
					for s.Scan() {
						in <- s.Text()
					}
				}()
				defer func() {
					_ = resp.Body.Close()
					for range in { // until its reader ends
					}
				}()
				ready := until
				most := int64(0)
				for {
					select {
					case line, ok := <-in:
						if !ok {
							lines = append(lines, "the end")
							out <- lines
							return
						}
						kind, rv := eventOf(line)
						if kind == "BOOKMARK" && !strings.Contains(line, "initial-events-end") {
							continue
						}
						lines = append(lines, fmt.Sprintf("%d %s", rv, ages.ReplaceAllString(line, `"now"`)))
						most = max(most, rv)
					case <-ready:
						ready = nil
					}
					if ready == nil && most > last {
						lines = slices.DeleteFunc(lines, func(line string) bool {
							var rv int64
							_, err := fmt.Sscan(line, &rv)
							return err == nil && rv > last && !strings.HasPrefix(line, "200 ")
						})
						out <- lines
						return
					}
				}
			}()
		}
		pairs = append(pairs, p)
	}
	for range tw.rand.IntN(12) {
		tw.write()
	}
	tw.heal()
	last = tw.now()
	close(until)
	tw.touch()
	for _, p := range pairs {
		a, b := <-p.got[0], <-p.got[1]
		if refused(a) && len(b) > 2 && refused(b[:1:1], b[len(b)-2:]...) {
			b = slices.Concat(b[:1], a[1:]) // the storage finds the first while it sends the initial state, the cache has all from before
		}
		if !slices.Equal(a, b) {
			tw.t.Errorf("GET %s %q until %d:\ncached:\n%s\nuncached:\n%s", p.path, p.header, last, strings.Join(a, "\n"), strings.Join(b, "\n"))
		}
	}
}

// refused reports whether a watch had no events, except one for objects that cannot be read.
func refused(lines []string, more ...string) bool {
	lines = append(lines, more...)
	return len(lines) == 3 && strings.Contains(lines[1], `{"type":"ERROR"`) && strings.Contains(lines[1], `"StorageReadError"`)
}

// eventOf returns the type of an event and the resourceVersion in it.
func eventOf(line string) (kind string, rv int64) {
	var e struct {
		Type   string
		Object metav1.PartialObjectMetadata
	}
	if json.Unmarshal([]byte(line), &e) != nil {
		return "", 0
	}
	rv, _ = strconv.ParseInt(e.Object.ResourceVersion, 10, 64)
	return e.Type, rv
}

// watchRequest returns a watch that ends after events for the objects of touch.
func (tw *twins) watchRequest() (path string, header []string) {
	q := url.Values{}
	set := func(name, value string) {
		if value != "" {
			q.Set(name, value)
		}
	}
	set("labelSelector", tw.pick("", "", "app=x", "app!=x", "!app", "app in (x,y)", "app=x,tier=1"))
	ns := tw.pick("a", "b", "")
	switch tw.rand.IntN(6) {
	case 0:
		set("fieldSelector", tw.pick("metadata.name=s1", "spec.color=red", "spec.color!=red", "spec.color=red,metadata.name=s2"))
	case 1:
		set("fieldSelector", "metadata.namespace="+tw.pick("a", "b"))
		ns = ""
	}
	rv := tw.pick("", "0", strconv.FormatInt(tw.now(), 10), strconv.FormatInt(max(tw.oldest, tw.now()-tw.rand.Int64N(20)), 10))
	set("resourceVersion", rv)
	set("allowWatchBookmarks", tw.pick("", "true"))
	switch initial := tw.pick("", "true", "false"); initial {
	case "":
	default:
		set("sendInitialEvents", initial)
		set("resourceVersionMatch", "NotOlderThan")
	}
	set("includeObject", tw.pick("", "", "None", "Object", "Metadata"))
	header = []string{"Accept", tw.pick("application/json", "application/json", tableForm, partialForm)}
	path = sailsIn(tw.pick("v1", "v1", "v1beta1"), ns)
	if tw.rand.IntN(5) == 0 {
		if !q.Has("fieldSelector") && ns != "" && tw.rand.IntN(2) == 0 {
			path += "/s1"
		}
		return deprecatedWatch(path) + "?" + q.Encode(), header
	}
	set("watch", tw.pick("1", "true"))
	return path + "?" + q.Encode(), header
}

// deprecatedWatch returns the old form of the path of a watch.
func deprecatedWatch(path string) string {
	parts := strings.SplitN(path, "/", 5) // "", apis, group, version, rest
	return strings.Join(parts[:4], "/") + "/watch/" + parts[4]
}

// touch changes objects so that each watch of watchRequest gets at least one event.
func (tw *twins) touch() {
	tw.t.Helper()
	for _, ns := range []string{"a", "b"} {
		for _, name := range []string{"s1", "s2"} {
			for _, labels := range []string{`{"app":null,"tier":null,"n":null}`, `{"app":"x","tier":null}`, `{"app":"y","tier":null}`, `{"app":"x","tier":"1"}`} {
				for _, color := range []string{"red", "blue"} {
					tw.made++
					w := tw.servers[tw.made%2]
					patch := fmt.Sprintf(`{"metadata":{"labels":%s,"annotations":{"made":"%d"}},"spec":{"color":%q,"area":1}}`, labels, tw.made, color)
					a := w.ask(tw.t, "PATCH", sailsIn("v1", ns)+"/"+name, patch, "Content-Type", mergePatch)
					if a.code == 404 {
						w.make(tw.t, sailsIn("v1", ns), fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"area":1}}`, name))
						a = w.ask(tw.t, "PATCH", sailsIn("v1", ns)+"/"+name, patch, "Content-Type", mergePatch)
					}
					a.want(tw.t, 200)
				}
			}
		}
	}
}
