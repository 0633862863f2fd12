package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
	"github.com/keelson-dev/keelson/storage/bolt"
)

const olderIsLong = "the programs of older releases take minutes to build"

// The kubectl of each older release can do what the present one can.
func TestOlderKubectl(t *testing.T) {
	harness.Long(t, olderIsLong)
	t.Parallel()
	for _, release := range harness.OlderReleases {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			runScripts(t, release, strings.TrimPrefix(release, "v1"))
		})
	}
}

// told is a line of the program informers; see the type line there.
type told struct {
	Informer, Event, Object, Value string
	Request, Path                  string
	Status                         int
}

// informers is the running program of a release.
type informers struct {
	t    *testing.T
	what string
	*harness.Process
	seen map[string]int // the number of events per informer that tells has checked
}

var informerNames = []string{"configmaps", "namespaces", "dynamic", "metadata"}

// lines returns what the program has printed so far.
func (i *informers) lines() []told {
	i.t.Helper()
	if i.Exited() {
		i.t.Fatalf("the informers %s ended: %s", i.what, i.Stderr)
	}
	var all []told
	for line := range strings.Lines(i.Stdout.String()) {
		if !strings.HasSuffix(line, "\n") {
			break // the rest is yet to come
		}
		var l told
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			i.t.Fatalf("%v in %s", err, line)
		}
		all = append(all, l)
	}
	return all
}

// told returns the events of an informer after those that tells has checked, each as EVENT OBJECT VALUE.
func (i *informers) told(informer string) []string {
	var all []string
	for _, l := range i.lines() {
		if l.Informer == informer {
			all = append(all, strings.TrimSpace(strings.Join([]string{l.Event, l.Object, l.Value}, " ")))
		}
	}
	return all[i.seen[informer]:]
}

// tells waits until each informer has told exactly these further events, in any order for those of several objects.
func (i *informers) tells(want map[string][]string) {
	i.t.Helper()
	for _, informer := range informerNames {
		events := slices.Sorted(slices.Values(want[informer]))
		harness.Eventually(i.t, fmt.Sprintf("%s of the informers %s tells %q", informer, i.what, events), func() bool {
			return slices.Equal(slices.Sorted(slices.Values(i.told(informer))), events)
		})
	}
	for _, informer := range informerNames {
		i.seen[informer] += len(want[informer])
	}
}

// requests returns the number of requests of a kind that were answered with a status.
func (i *informers) requests(kind string, status int) int {
	n := 0
	for _, l := range i.lines() {
		if l.Request == kind && l.Status == status {
			n++
		}
	}
	return n
}

// Typed, dynamic and metadata informers of each older release, with and without WatchList, follow what kubectl of that release
// writes. They outlive a restart of the server without a list, and a history that is gone with one.
func TestOlderInformers(t *testing.T) {
	harness.Long(t, olderIsLong)
	t.Parallel()
	for _, release := range harness.OlderReleases {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			followInformers(t, release)
		})
	}
}

func followInformers(t *testing.T, release string) {
	dir := t.TempDir()
	o := harness.Options{Example: "crds", Dir: dir, Data: filepath.Join(dir, "crds.db"), Release: release}
	crds := harness.Start(t, o)
	o.Listen = strings.TrimPrefix(crds.URL, "https://")
	defineBoats(t, crds)
	write := func(what string, verb ...string) {
		t.Helper()
		for _, object := range strings.Fields(what) {
			name, value, _ := strings.Cut(object, "=")
			crds.KubectlWith(fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata: {name: %[1]s}
data: {value: %[2]s}
---
apiVersion: sea.example.com/v1
kind: Boat
metadata: {name: %[1]s, labels: {value: %[2]s}}
spec: {color: %[2]s}
`, name, value), append(verb, "-f", "-")...).OK()
		}
	}
	write("a=red b=red", "create")

	var all []*informers
	for _, enabled := range []string{"true", "false"} {
		program := harness.NewInformers(t, release, crds.Kubeconfig, "KUBE_FEATURE_WatchListClient="+enabled)
		all = append(all, &informers{t, "with WatchList " + enabled, program.Begin("-custom=boats.v1.sea.example.com"), map[string]int{}})
	}
	// same is what informers tell when both kinds of objects change in the same way.
	same := func(namespaces []string, events ...string) map[string][]string {
		return map[string][]string{"configmaps": events, "namespaces": namespaces, "dynamic": events, "metadata": events}
	}
	t.Cleanup(func() {
		for _, i := range all {
			if t.Failed() {
				t.Logf("the informers %s printed\n%s\n%s", i.what, i.Stdout, i.Stderr)
			}
		}
	})
	tell := func(want map[string][]string) {
		t.Helper()
		for _, i := range all {
			i.tells(want)
		}
	}
	tell(same([]string{"add default Active", "add kube-node-lease Active", "add kube-public Active", "add kube-system Active", "synced"},
		"add default/a red", "add default/b red", "synced"))
	write("a=blue", "apply", "--server-side", "--force-conflicts")
	write("c=white", "apply")
	write("b=red", "delete")
	crds.Kubectl("create", "namespace", "team").OK()
	tell(same([]string{"add team Active"}, "update default/a blue", "add default/c white", "delete default/b red"))
	crds.Kubectl("delete", "namespace", "team").OK()
	tell(map[string][]string{"namespaces": {"update team Terminating", "update team Terminating", "delete team Terminating"}})

	listed := func(when string, lists, watchLists int) {
		t.Helper()
		for i, want := range []struct {
			kind string
			n    int
		}{{"watchlist", watchLists}, {"list", lists}} {
			if n := all[i].requests(want.kind, 200); n != want.n {
				t.Errorf("%s, the informers %s have sent %d requests of %s, want %d:\n%s", when, all[i].what, n, want.kind, want.n, all[i].Stdout)
			}
		}
		if n := all[0].requests("list", 200) + all[1].requests("watchlist", 200); n != 0 {
			t.Errorf("%s, %d requests began in the other way", when, n)
		}
	}
	listed("at first", 4, 4)
	for _, i := range all {
		if i.Stderr.String() != "" {
			t.Errorf("the informers %s have logged %s", i.what, i.Stderr)
		}
	}

	// Another server changes the file while the first one is stopped. The informers get these changes from a watch, without a list.
	elsewhere := func(change func()) {
		t.Helper()
		crds.Stop()
		away := o
		away.Listen = ""
		crds = harness.Start(t, away)
		change()
		crds.Stop()
	}
	elsewhere(func() { write("a=white", "apply"); write("c=white", "delete"); write("d=red", "create") })
	crds = harness.Start(t, o)
	tell(same(nil, "update default/a white", "delete default/c white", "add default/d red"))
	listed("after a restart", 4, 4)

	// The file no longer has the history of the changes. The informers list, and find out what was deleted.
	elsewhere(func() { write("a=red", "apply"); write("d=red", "delete"); write("e=blue", "create") })
	forget(t, o.Data)
	crds = harness.Start(t, o)
	tell(same([]string{"update default Active", "update kube-node-lease Active", "update kube-public Active", "update kube-system Active"},
		"update default/a red", "gone default/d red", "add default/e blue"))
	listed("after a relist", 8, 8)
	write("e=red", "apply")
	tell(same(nil, "update default/e red"))
	for _, i := range all {
		i.Kill()
	}
}

// forget removes the history of a file that no server uses.
func forget(t *testing.T, file string) {
	t.Helper()
	if _, err := os.Stat(file); err != nil {
		t.Fatal(err)
	}
	b, err := bolt.Open(file, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	now, ok := b.Known()
	if !ok {
		t.Errorf("the revision of %s is unknown", file)
	}
	if err := b.Compact(t.Context(), now); err != nil {
		t.Error(err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}
