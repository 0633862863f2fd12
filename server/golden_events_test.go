package server_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/audit"
	"github.com/keelson-dev/keelson/server/builtin/rbac"
	"github.com/keelson-dev/keelson/server/crd"
	"github.com/keelson-dev/keelson/server/internal/audittest"
	"github.com/keelson-dev/keelson/server/servertest"
)

// goldenEvents has audit policies, and the events that kube-apiserver 1.37.1 recorded under each of them while TestGoldenAtAddress
// ran against it. To record them again, start a kube-apiserver with the flags
//
//	--audit-policy-file=testdata/audit/NAME.yaml --audit-log-path=DIR/NAME.log --audit-log-maxsize=2000
//	--disable-admission-plugins=ServiceAccount
//
// for each policy, run the test against it, and then run TestGoldenEvents with KEELSON_WIRE_EVENTS=DIR.
//
// cbor.jsonl.gz has the events of the files below cbor, recorded with --feature-gates=CBORServingAndStorage=true and the policy
// everything. With DIR/cbor.log, TestGoldenEventsOfCBOR makes it.
const goldenEvents = "testdata/audit"

// goldenPolicies are the names of the policies.
var goldenPolicies = []string{"everything", "metadata", "mixed"}

// TestGoldenEvents makes the requests of the golden files that hold for kube-apiserver and for Keelson, and compares the audit
// events with those of kube-apiserver.
func TestGoldenEvents(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("thousands of requests take minutes with the race detector; TestGolden makes them too")
	}
	if dir := os.Getenv("KEELSON_WIRE_EVENTS"); dir != "" {
		for _, name := range goldenPolicies {
			keepEvents(t, filepath.Join(dir, name+".log"), filepath.Join(goldenEvents, name+".jsonl.gz"))
		}
	}
	logs := runGoldenRecorded(t, server.Options{}, "", goldenPolicies...)
	steps, met := goldenSteps(t), map[*ownEvent]bool{}
	for _, name := range goldenPolicies {
		if compared := compareEvents(t, name, steps, logs[name].Events(), met); compared < 200 {
			t.Errorf("%s: the events of only %d requests are compared", name, compared)
		}
	}
	wantMet(t, met, func(id string) bool { return !strings.HasPrefix(id, "cbor/") })
}

// wantMet checks that the events of these requests have all differences of ownEvents.
func wantMet(t *testing.T, met map[*ownEvent]bool, of func(id string) bool) {
	t.Helper()
	for i := range ownEvents {
		if d := &ownEvents[i]; of(d.id) && !met[d] {
			t.Errorf("%s does not differ in %s", d.id, d.path)
		}
	}
}

// TestGoldenEventsOfCBOR is TestGoldenEvents for requests and answers in CBOR, whose objects are in the events as JSON.
func TestGoldenEventsOfCBOR(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv("KEELSON_WIRE_EVENTS"); dir != "" {
		keepEvents(t, filepath.Join(dir, "cbor.log"), filepath.Join(goldenEvents, "cbor.jsonl.gz"))
	}
	logs := runGoldenRecorded(t, server.Options{CBOR: true}, withCBOR, "everything")
	met := map[*ownEvent]bool{}
	if compared := compareEvents(t, "cbor", goldenSteps(t), logs["everything"].Events(), met); compared < 40 {
		t.Errorf("the events of only %d requests are compared", compared)
	}
	wantMet(t, met, func(id string) bool { return strings.HasPrefix(id, "cbor/") })
}

// runGoldenRecorded makes the requests of the golden files, or of those that name the property only, and returns the audit events
// under each of the policies.
func runGoldenRecorded(t *testing.T, o server.Options, only string, policies ...string) map[string]*audittest.Log {
	t.Helper()
	o.Groups = goldenGroups()[2:] // the others are custom resources, as in kube-apiserver
	logs := map[string]*audittest.Log{}
	for _, name := range policies {
		text, err := os.ReadFile(filepath.Join(goldenEvents, name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		policy, err := audit.ParsePolicy(text)
		if err != nil {
			t.Fatal(err)
		}
		logs[name] = &audittest.Log{}
		o.Policy.Audit = append(o.Policy.Audit, audit.Backend{Name: name, Policy: policy, Sink: logs[name]})
	}
	srv := servertest.Start(t, o)
	installBuiltin(t, srv)
	collectGarbage(t, srv)
	if err := srv.Install(rbac.New(rbac.Options{})); err != nil {
		t.Fatal(err)
	}
	if err := srv.Install(crd.New(crd.Options{})); err != nil {
		t.Fatal(err)
	}
	servertest.InstallCRDs(t, srv, goldenFiles+"/widget.crd.yaml", goldenFiles+"/untyped.crd.yaml")
	admin := srv.AddUser(authn.User{Name: "admin", UID: "admin", Groups: []string{"system:masters"}})
	is := map[string]bool{keelsonServer: true, customWidgets: true, withCBOR: o.CBOR, withoutCBOR: !o.CBOR, withCRDs: true}
	t.Run("files", func(t *testing.T) {
		runGolden(t, &goldenServer{url: srv.URL, client: srv.Anonymous(), token: admin, is: is, only: only})
	})
	return logs
}

// ownEvent is a difference from kube-apiserver: in the events of requests whose IDs begin with id, the members whose paths begin
// with path.
type ownEvent struct{ id, path string }

// ownEvents are the differences.
var ownEvents = []ownEvent{
	// kube-apiserver knows the defaults of a Deployment, and sets them while it decodes one.
	{"patch/deployment#0", ".requestObject.spec."},
	// It has the admission plug-in PodSecurity.
	{"apply/pod#", ".annotations.pod-security.kubernetes.io/enforce-policy"},
	// It keeps a null among the values of a Secret or ConfigMap until the object is stored.
	{"builtin/null-values#0", ".requestObject.data.k"},
	{"builtin/null-values#3", ".requestObject.binaryData.l"},
	// It reads -0 as a floating-point number.
	{"untyped/create#2", ".requestObject.spec.zero"},
	// It has other groups.
	{"discovery/aggregated#10", ".responseObject.items"},
	{"cbor/discovery#2", ".responseObject.items"},
	// It tries the mode first in which the requestor has impersonated before: see package impersonation.
	{"audit/sources#4", ".authenticationMetadata"},
}

// goldenSteps returns the steps of the golden files by audit ID.
func goldenSteps(t *testing.T) map[string]*step {
	t.Helper()
	steps := map[string]*step{}
	for _, path := range goldenPaths(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parseScenario(string(text))
		if err != nil {
			t.Fatal(err)
		}
		for i, st := range file.steps {
			steps[auditIDOf(goldenName(path), i)] = st
		}
	}
	return steps
}

// compareEvents compares the events of a server under a policy with those of kube-apiserver. It sets met for the members of
// ownEvents that it finds, and returns how many requests it has compared.
func compareEvents(t *testing.T, policy string, steps map[string]*step, events []*audit.Event, met map[*ownEvent]bool) (compared int) {
	t.Helper()
	ours := map[string]eventsOf{}
	for _, e := range events {
		if text, err := json.Marshal(e.WithKind()); err != nil {
			t.Error(err)
		} else if err := addEvent(ours, text); err != nil {
			t.Error(err)
		}
	}
	theirs := map[string]eventsOf{}
	if err := readEvents(filepath.Join(goldenEvents, policy+".jsonl.gz"), theirs); err != nil {
		t.Fatal(err)
	}
	for _, id := range slices.Sorted(maps.Keys(ours)) {
		want, known := theirs[id]
		if !known {
			continue
		}
		compared++
		got := ours[id]
		if stages := slices.Sorted(maps.Keys(want)); !slices.Equal(stages, slices.Sorted(maps.Keys(got))) {
			t.Errorf("%s: %s: the stages are %q, want %q", policy, id, slices.Sorted(maps.Keys(got)), stages)
			continue
		}
		for _, stage := range slices.Sorted(maps.Keys(want)) {
			for _, wrong := range compareEvent(steps[id], want[stage], got[stage]) {
				is := func(d ownEvent) bool { return strings.HasPrefix(id, d.id) && strings.HasPrefix(wrong, d.path) }
				if i := slices.IndexFunc(ownEvents, is); i >= 0 {
					met[&ownEvents[i]] = true
				} else {
					t.Errorf("%s: %s: %s: %s", policy, id, stage, wrong)
				}
			}
		}
	}
	t.Logf("%s: the events of %d requests are compared", policy, compared)
	return compared
}

// compareEvent returns the differences of an event. The answer of a golden file may leave some of an object or a Status open: where
// what kube-apiserver recorded is what the file has, that is compared with the file.
func compareEvent(st *step, want, got *members) []string {
	answer := answerOf(st)
	if status, _ := want.get("responseStatus"); (st.wantBody == "" || strings.Trim(st.wantBody, `"`) == "<any>") && memberText(status, "status") != "" {
		answer = &members{list: []member{{"kind", "Status"}, {"<any>", "<any>"}}}
	}
	if object, _ := want.get("responseObject"); answer != nil && !strings.Contains(compact(object), `"managedFields"`) {
		answer = unmanaged(answer).(*members)
	}
	c := &comparison{values: map[string]string{}, untimed: true}
	expect := &members{}
	for _, m := range want.list {
		switch {
		case m.name == "responseObject" && isAllowed(answer, m.value):
			m.value = answer
		case m.name == "responseStatus" && isAllowed(statusOf(answer), m.value):
			m.value = statusOf(answer)
		}
		expect.list = append(expect.list, m)
	}
	c.json("", expect, got)
	return c.wrong
}

// unmanaged returns a value without managedFields.
func unmanaged(v any) any {
	switch v := v.(type) {
	case *members:
		out := &members{}
		for _, m := range v.list {
			if m.name != "managedFields" {
				out.list = append(out.list, member{m.name, unmanaged(m.value)})
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = unmanaged(v[i])
		}
		return out
	}
	return v
}

// isAllowed reports whether the answer of a golden file, which may be nil, allows what was recorded.
func isAllowed(answer *members, recorded any) bool {
	if answer == nil {
		return false
	}
	c := &comparison{values: map[string]string{}, untimed: true}
	c.json("", answer, recorded)
	return len(c.wrong) == 0
}

// answerOf returns the answer of a step as it is in events, or nil if it is no object in JSON.
func answerOf(st *step) *members {
	docs, err := decodeAll(neutral(placeholder.ReplaceAllStringFunc(st.wantBody, neutralPlaceholder)))
	if err != nil || len(docs) != 1 {
		return nil
	}
	answer, _ := docs[0].(*members)
	return answer
}

// statusOf returns what an event has of an answer that is a Status.
func statusOf(answer *members) *members {
	if answer == nil || memberText(answer, "kind") != "Status" {
		return nil
	}
	return &members{list: slices.DeleteFunc(slices.Clone(answer.list), func(m member) bool { return m.name == "kind" || m.name == "apiVersion" })}
}

// eventsOf are the events of one request by stage. If the request was repeated, they are those of the last time.
type eventsOf map[string]*members

// addEvent adds an event in its neutral form, if it is one of a golden file.
func addEvent(to map[string]eventsOf, text []byte) error {
	docs, err := decodeAll(neutral(string(text)))
	if err != nil || len(docs) != 1 {
		return fmt.Errorf("the event cannot be read: %w: %s", err, text)
	}
	event := shorter(docs[0]).(*members)
	id, stage := memberText(event, "auditID"), memberText(event, "stage")
	if !strings.Contains(id, "#") {
		return nil
	}
	if to[id] == nil || to[id][stage] != nil {
		to[id] = eventsOf{}
	}
	to[id][stage] = event
	return nil
}

// varying are the parts of events that differ between runs, and what stands for them.
var varying = []struct {
	form *regexp.Regexp
	is   string
}{
	{regexp.MustCompile(`wire-[0-9a-f]{8}`), "{ns}"},
	{regexp.MustCompile(uidForm), "{uid}"},
	{regexp.MustCompile(`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z`), "{time}"},
	{regexp.MustCompile(`(resourceVersion\\*"?(?:=|: ?)\\*"?)[1-9][0-9]{0,7}\b`), "$1{rv}"},
	{regexp.MustCompile(`(continue\\*"?(?:=|: ?)\\*"?)[A-Za-z0-9_%=-]{20,}`), "$1{continue}"},
	{regexp.MustCompile(`(hash=)[0-9A-F]{128}`), "$1{hash}"},
	{regexp.MustCompile(`(ResourceVersion in (?:object meta: |record \())[1-9][0-9]*`), "$1{rv}"},
	{regexp.MustCompile(`(Too large resource version: 999999999999, current: )[0-9]+`), "${1}{rv}"},
	{regexp.MustCompile(`"[0-9]s"`), `"{age}"`},
	{regexp.MustCompile(`"status":\s*"(?:True|False)",\s*"lastTransitionTime":\s*"\{time\}",\s*"reason":\s*"(?:Installing|InitialNamesAccepted)",\s*"message":\s*"[^"]*"`),
		`"status": "{soon}"`}, // a definition is served shortly before or after its status says so
	{regexp.MustCompile(`"apiserver\.latency\.k8s\.io/[a-z-]+":"[^"]*",?`), ""},
	{regexp.MustCompile(`("k8s\.io/[a-z-]+":"[^"]*"),\}`), "$1}"},
}

// neutral returns text without what differs between runs.
func neutral(text string) string {
	for _, vary := range varying {
		text = vary.form.ReplaceAllString(text, vary.is)
	}
	return text
}

// neutralPlaceholder returns what neutral makes of a text that a placeholder of a golden file stands for.
func neutralPlaceholder(p string) string {
	switch strings.TrimRight(strings.Trim(p, "<>${}"), "0123456789") {
	case "ns":
		return "{ns}"
	case "uid":
		return "{uid}"
	case "time":
		return "{time}"
	case "rv":
		return "{rv}"
	}
	return "<any>"
}

// shorter returns a value with a digest in place of each long text, and with other names for members that an object has already.
func shorter(v any) any {
	const most = 3000
	switch v := v.(type) {
	case *members:
		seen := map[string]int{}
		for i, m := range v.list {
			v.list[i].value = shorter(m.value)
			if seen[m.name]++; seen[m.name] > 1 {
				v.list[i].name = fmt.Sprintf("%s, for the %dth time", m.name, seen[m.name])
			}
		}
	case []any:
		for i := range v {
			v[i] = shorter(v[i])
		}
	case string:
		if len(v) > most {
			return fmt.Sprintf("%.40s... %d bytes %x", v, len(v), sha256.Sum256([]byte(v)))
		}
	}
	return v
}

// readEvents adds the events of a file.
func readEvents(path string, to map[string]eventsOf) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	in := io.Reader(file)
	if strings.HasSuffix(path, ".gz") {
		if in, err = gzip.NewReader(file); err != nil {
			return err
		}
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		if err := addEvent(to, lines.Bytes()); err != nil {
			return err
		}
	}
	return lines.Err()
}

// keepEvents writes the events that kube-apiserver has logged to a file of goldenEvents.
func keepEvents(t *testing.T, from, to string) {
	t.Helper()
	events := map[string]eventsOf{}
	if err := readEvents(from, events); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	zip, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
	for _, id := range slices.Sorted(maps.Keys(events)) {
		for _, stage := range slices.Sorted(maps.Keys(events[id])) {
			fmt.Fprintln(zip, compact(events[id][stage]))
		}
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// auditIDOf returns the audit ID of a request of a golden file.
func auditIDOf(name string, step int) string { return name + "#" + strconv.Itoa(step) }
