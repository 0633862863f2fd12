package servertest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// script sends requests of all kinds.
func script(h harbour) {
	sloop := h.want(201, h.create("sloop"))
	h.want(201, h.do("POST", boats+"?fieldManager=mate", `{"apiVersion":"sea.example.com/v1","kind":"Boat","metadata":{"generateName":"dinghy-"},"spec":{"length":1}}`))
	h.want(200, h.do("PUT", boats+"/sloop", strings.Replace(sloop.body, `"length":3`, `"length":4`, 1)))
	h.want(200, h.merge("sloop", `{"metadata":{"annotations":{"at":"2026-01-02T03:04:05Z","html":"a < b & c"}}}`))
	h.want(200, h.do("PATCH", boats+"/sloop", `[{"op":"test","path":"/metadata/resourceVersion","value":"`+versionOf(h.t, h.get("sloop"))+`"},{"op":"replace","path":"/spec/length","value":5}]`, "Content-Type", "application/json-patch+json"))
	h.want(200, h.do("PATCH", boats+"/sloop/status?fieldManager=mate&force=true", "apiVersion: sea.example.com/v1\nkind: Boat\nmetadata: {name: sloop}\nstatus: {afloat: true}\n", "Content-Type", "application/apply-patch+yaml"))
	page := h.want(200, h.do("GET", boats+"?limit=1&labelSelector=a!%3Db", ""))
	token := page.body[strings.Index(page.body, `"continue":"`)+len(`"continue":"`):]
	h.want(200, h.do("GET", boats+"?labelSelector=a!%3Db&limit=1&continue="+token[:strings.Index(token, `"`)], ""))
	h.want(200, h.do("GET", "/apis/sea.example.com/v1/boats?resourceVersion=0", ""))
	h.want(200, h.do("GET", boats+"?watch=1&timeoutSeconds=1&resourceVersion="+versionOf(h.t, sloop), ""))
	remove := h.Inject(servertest.Fault{Match: on("delete"), Drop: true, Times: 1})
	h.wantDropped(h.do("DELETE", boats+"/sloop", ""))
	h.want(200, h.do("DELETE", boats+"/sloop", ""))
	h.want(404, h.do("DELETE", boats+"/sloop", ""))
	h.want(400, h.do("POST", boats, "no \x00 object"))
	remove()
}

// Two runs on two servers write the same file.
func TestGolden(t *testing.T) {
	t.Parallel()
	for range 2 {
		h := newHarbour(t, server.Options{})
		h.Inject(servertest.Fault{Match: on("watch"), Events: 1})
		rec := h.Record(servertest.Match{})
		script(h)
		rec.Golden(t, "testdata/everything.golden")
	}
}

func TestGoldenOptions(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, server.Options{})
	h.Inject(servertest.Fault{Match: on("create"), Error: apierrors.NewServiceUnavailable("not yet"), Times: 2})
	rec := h.Record(servertest.Match{})
	h.create("b")
	h.create("b")
	h.create("b")
	h.get("dinghy-x7k2p")
	h.get("dinghy-x7k2p")
	h.create("a")
	rec.GoldenWith(t, "testdata/options.golden", servertest.GoldenOptions{
		Sort: true, Collapse: true, Users: true, Generated: []string{"dinghy-"},
		Rewrite: func(p string) string { return strings.ReplaceAll(p, `"length": 3`, `"length": "<length>"`) },
	})
}

// Concurrent requests, and requests in flight, are sorted.
func TestGoldenOfConcurrentClients(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, server.Options{})
	rec := h.Record(servertest.Match{Verbs: []string{"create"}})
	var work sync.WaitGroup
	for i := range 4 {
		work.Go(func() { h.create(fmt.Sprint("boat", i)) })
	}
	if !until(func() bool { return len(rec.Requests()) >= 4 }) {
		t.Fatal("the requests do not come")
	}
	rec.GoldenWith(t, "testdata/concurrent.golden", servertest.GoldenOptions{Sort: true})
	work.Wait()
}

// failures is a testing.TB that records failures.
type failures struct {
	testing.TB
	reported []string
}

func (f *failures) Errorf(format string, args ...any) {
	f.reported = append(f.reported, fmt.Sprintf(format, args...))
}

// A recording without requests may be expected. It must not look the same as a missing file.
func TestGoldenOfNothing(t *testing.T) { // not parallel: it sets the environment
	h := newHarbour(t, server.Options{})
	rec := h.Record(servertest.Match{Name: "nobody"})
	h.want(201, h.create("sloop"))
	path := filepath.Join(t.TempDir(), "requests.golden")
	for _, update := range []string{"1", ""} {
		t.Setenv(servertest.UpdateVariable, update)
		rec.Golden(t, path)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "no requests\n" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestGoldenFailures(t *testing.T) { // not parallel: it sets the environment
	t.Setenv(servertest.UpdateVariable, "")
	h := newHarbour(t, server.Options{})
	rec := h.Record(servertest.Match{})
	for i := range 10 {
		h.want(201, h.create(fmt.Sprint("boat", i)))
	}
	path := filepath.Join(t.TempDir(), "new", "requests.golden")
	check := func() string {
		f := &failures{TB: t}
		rec.Golden(f, path)
		return strings.Join(f.reported, "\n")
	}
	how := "KEELSON_UPDATE=1 go test -run '^TestGoldenFailures$' ."
	if got := check(); !strings.Contains(got, "there is no golden file "+path) || !strings.Contains(got, how) {
		t.Errorf("of a file that is not there it said %q", got)
	}
	t.Run("a+b (c)", func(t *testing.T) { // the name must be quoted in the regular expression
		f := &failures{TB: t}
		if rec.Golden(f, path); len(f.reported) != 1 || !strings.Contains(f.reported[0], `'^TestGoldenFailures$/^a\+b_\(c\)$'`) {
			t.Errorf("it said %q", f.reported)
		}
	})
	t.Setenv(servertest.UpdateVariable, "1")
	if got := check(); got != "" {
		t.Errorf("writing it said %q", got)
	}
	t.Setenv(servertest.UpdateVariable, "")
	if got := check(); got != "" {
		t.Errorf("after it was written: %q", got)
	}

	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), `"name": "boat5"`, `"name": "barge"`, 1)
	changed = strings.Replace(changed, "create boats.sea.example.com/v1 port/boat8\n", "", 1)
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	got := check()
	want := `
  ...
      "apiVersion": "sea.example.com/v1",
      "kind": "Boat",
      "metadata": {
-       "name": "barge"
+       "name": "boat5"
      },
      "spec": {
        "length": 3
  ...
    }
  => 201
  
+ create boats.sea.example.com/v1 port/boat8
    {
      "apiVersion": "sea.example.com/v1",
      "kind": "Boat",
  ...
`
	if !strings.Contains(got, want) || !strings.Contains(got, how) {
		t.Errorf("of a change it said:\n%s\nwant in it:\n%s", got, want)
	}

	// The texts have nothing in common, and are too long to compare.
	if err := os.WriteFile(path, []byte(strings.Repeat("line\n", 1<<16)), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := check(); !strings.Contains(got, "\n- line\n") || !strings.Contains(got, "\n+ create boats.sea.example.com/v1 port/boat0\n") {
		t.Error("the difference is not shown")
	}
}
