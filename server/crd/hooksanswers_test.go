package crd_test

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime/webhook"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/crd"
	"github.com/keelson-dev/keelson/server/servertest"
)

// cratesIn returns the path of the crates of a group in a version.
func cratesIn(group, version string) string {
	return "/apis/" + group + "/" + version + "/namespaces/default/crates"
}

func crate(group, version, name, rest string) string {
	return fmt.Sprintf(`{"apiVersion":"%s/%s","kind":"Crate","metadata":{"name":%q}%s}`, group, version, name, rest)
}

// hookPlay is a sequence of requests about the crates of one group.
type hookPlay struct {
	name  string // of the mode of the webhook during the requests
	steps func(v1, v2, group string) []hookStep
}

type hookStep struct {
	step
	mode   string // the new mode of the webhook before the step; "-" means no change
	events int    // maximum number of events that are read from a watch
	stored string // the new stored version before the step; "" means no change
}

// playHook defines the crates of a group and sends the requests of a play. It returns the answers with group and port replaced.
func playHook(t *testing.T, h *hooks, p hookPlay, run string, client *http.Client, url string, header ...string) string {
	t.Helper()
	group := strings.ReplaceAll(p.name, " ", "-") + run + ".hooks.example.com"
	ask := func(s step) (a answer) {
		for range 100 {
			if a = s.do(t, client, url, header...); !strings.Contains(a.text, "storage is (re)initializing") {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		return a
	}
	watch := func(path string) io.ReadCloser {
		req, err := http.NewRequestWithContext(t.Context(), "GET", url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		return resp.Body
	}
	if p.name != "well" {
		h.set(group, p.name)
	}
	d := h.crates(t, group)
	if a := ask(step{method: "POST", path: crdsPath, body: text(t, d)}); a.code != http.StatusCreated {
		t.Fatalf("%d %s", a.code, a.text)
	}
	defer ask(step{method: "DELETE", path: crdsPath + "/" + d.Name})
	v1, v2 := cratesIn(group, "v1"), cratesIn(group, "v2")
	eventually(t, func() bool { return ask(step{method: "GET", path: v2}).code == http.StatusOK }, func() string { return "crates are served" })
	anonymous := strings.NewReplacer(group, "GROUP", strings.TrimPrefix(h.URL, "https://"), "ADDRESS")
	var out strings.Builder
	for i, s := range p.steps(v1, v2, group) {
		if s.mode != "-" {
			h.set(group, s.mode)
		}
		if s.stored != "" {
			flip(t, ask, watch, crdsPath+"/"+d.Name, v1, s.stored)
		}
		fmt.Fprintf(&out, "%d %s %s", i, s.method, s.path)
		sent := s.step
		if strings.Contains(s.body, "LATEST") {
			there := ask(step{method: "GET", path: v1 + "/a"}).object(t)["metadata"].(map[string]any)
			sent.body = strings.Replace(s.body, "LATEST", there["resourceVersion"].(string), 1)
		}
		if s.header != nil {
			fmt.Fprintf(&out, " as %s", s.header[1])
		}
		if s.body != "" {
			fmt.Fprintf(&out, " %s", s.body)
		}
		if out.WriteString("\n"); s.events > 0 {
			out.WriteString(brief(answer{code: http.StatusOK, text: firstEvents(t, watch(s.path), s.events)}, false))
			continue
		}
		out.WriteString(brief(ask(sent), p.name == "well" && s.method != "GET"))
	}
	return anonymous.Replace(out.String())
}

// flip makes a version the stored one, and waits until a watch of the objects ends because of that.
func flip(t *testing.T, ask func(step) answer, watch func(path string) io.ReadCloser, definition, watched, version string) {
	t.Helper()
	began := ask(step{method: "GET", path: watched}).object(t)["metadata"].(map[string]any)["resourceVersion"]
	events := watch(fmt.Sprintf("%s?watch=true&resourceVersion=%v&timeoutSeconds=60", watched, began))
	defer events.Close()
	body := fmt.Sprintf(`[{"op":"replace","path":"/spec/versions/0/storage","value":%t},{"op":"replace","path":"/spec/versions/1/storage","value":%t}]`,
		version == "v1", version == "v2")
	if a := ask(step{method: "PATCH", path: definition, contentType: "application/json-patch+json", body: body}); a.code != http.StatusOK {
		t.Fatalf("%d %s", a.code, a.text)
	}
	if _, err := io.Copy(io.Discard, events); err != nil {
		t.Fatal(err)
	}
}

// firstEvents reads the first events of a watch, up to the first error.
func firstEvents(t *testing.T, events io.ReadCloser, n int) string {
	t.Helper()
	defer events.Close()
	var out strings.Builder
	decoder := json.NewDecoder(events)
	for range n {
		var event json.RawMessage
		if err := decoder.Decode(&event); err != nil {
			break
		}
		out.Write(event)
	}
	return out.String()
}

// brief returns an answer in lines: the message of an error, or the JSON of any other answer. managedFields are left out unless
// whole is true.
func brief(a answer, whole bool) string {
	var out strings.Builder
	for _, w := range a.warnings {
		fmt.Fprintf(&out, "  Warning: %s\n", w)
	}
	decoder := json.NewDecoder(strings.NewReader(a.text))
	for n := 0; ; n++ {
		var document map[string]any
		if err := decoder.Decode(&document); err != nil {
			if n == 0 {
				fmt.Fprintf(&out, "  %d %q\n", a.code, a.text)
			}
			return out.String()
		}
		if document["kind"] == "Status" && document["status"] == "Failure" {
			message, _ := document["message"].(string)
			fmt.Fprintf(&out, "  %d %v: %s\n", a.code, document["reason"], strings.ReplaceAll(volatile.ReplaceAllString(message, "…"), "\n", " "))
			continue
		}
		managers(document, whole)
		text, err := json.Marshal(steady(document))
		if err != nil {
			text = []byte(err.Error())
		}
		fmt.Fprintf(&out, "  %d %s\n", a.code, text)
	}
}

// managers removes managedFields, or sorts them, because their order depends on times in seconds.
func managers(v any, keep bool) {
	switch v := v.(type) {
	case map[string]any:
		if entries, ok := v["managedFields"].([]any); ok && keep {
			slices.SortFunc(entries, func(a, b any) int { return cmp.Compare(managerOf(a), managerOf(b)) })
		} else {
			delete(v, "managedFields")
		}
		for _, member := range v {
			managers(member, keep)
		}
	case []any:
		for _, element := range v {
			managers(element, keep)
		}
	}
}

func managerOf(entry any) string {
	e, _ := entry.(map[string]any)
	return fmt.Sprint(e["manager"], e["operation"], e["apiVersion"], e["subresource"])
}

const hookAnswers = "crates.answers"

// hookLines has the lines of one step of a play: the line of the request, the lines of kube-apiserver's answer, and the lines of
// this server's answer if they differ.
type hookLines struct {
	request      string
	theirs, ours []string
}

// hookStepsOf splits the lines of a play into steps. Lines that begin with "* " are answers of this server that differ.
func hookStepsOf(text string) []hookLines {
	var out []hookLines
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \n")
		switch n := len(out) - 1; {
		case strings.HasPrefix(line, "* "):
			out[n].ours = append(out[n].ours, line[2:])
		case strings.HasPrefix(line, "  "):
			out[n].theirs = append(out[n].theirs, line[2:])
		default:
			out = append(out, hookLines{request: line})
		}
	}
	return out
}

// plainly returns kube-apiserver's error for an object that cannot be converted, without the text about a corrupt object around
// it.
func plainly(line string) string {
	for _, pattern := range []string{
		`InternalError: Internal error occurred: StorageError: corrupt object, Code: 7, Key: \S+, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=\d+: (.*)`,
		`StorageReadError: failed to read one or more crates.GROUP from the storage: StorageError: corrupt object, Code: 7, Key: \S+, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=\d+: (.*?)( \(and \d+ more\))?`,
		`<nil>: object not decodable revision=\d+: (.*)`,
	} {
		line = regexp.MustCompile(`^500 `+pattern+`$`).ReplaceAllString(line, "500 <nil>: $1")
	}
	return line
}

// TestHookAnswers compares the answers to clients for all modes of webhooks with those of kube-apiserver. The differences are
// documented in the package.
func TestHookAnswers(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile(filepath.Join("testdata", hookAnswers))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for section := range strings.SplitSeq(string(file), "=== ") {
		name, text, _ := strings.Cut(section, "\n")
		want[name] = text
	}
	h := startHooks(t)
	srv := servertest.Start(t, server.Options{}, crd.New(crd.Options{Webhooks: webhook.Options{ShowErrors: true}}))
	for _, p := range hookPlays() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			want, got := hookStepsOf(want[p.name]), hookStepsOf(playHook(t, h, p, "", srv.Client(), srv.URL))
			if len(want) != len(got) {
				t.Errorf("%d answers, want %d", len(got), len(want))
			}
			for i := range min(len(want), len(got)) {
				answer := want[i].ours
				if answer == nil {
					for _, line := range want[i].theirs {
						answer = append(answer, strings.TrimRight(plainly(line), " "))
					}
				}
				if got[i].request != want[i].request || !slices.Equal(got[i].theirs, answer) {
					t.Errorf("%s\ngot  %s\nwant %s", got[i].request, strings.Join(got[i].theirs, "\n     "), strings.Join(answer, "\n     "))
				}
			}
		})
	}
}

// TestRecordHookAnswers records the answers of a kube-apiserver on this machine. It runs only if KUBE_APISERVER,
// KUBE_APISERVER_CA (a file) and KUBE_APISERVER_TOKEN (of an administrator) are set.
func TestRecordHookAnswers(t *testing.T) {
	url := os.Getenv("KUBE_APISERVER")
	if url == "" {
		t.Skip("KUBE_APISERVER is not set")
	}
	ca, err := os.ReadFile(os.Getenv("KUBE_APISERVER_CA"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	h := startHooks(t)
	var mu sync.Mutex // guards answers
	answers := map[string]string{}
	run := fmt.Sprint(time.Now().Unix())
	t.Run("plays", func(t *testing.T) {
		for _, p := range hookPlays() {
			if only := os.Getenv("KUBE_APISERVER_ONLY"); only != "" && only != p.name {
				continue
			}
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				got := playHook(t, h, p, run, client, url, "Authorization", "Bearer "+os.Getenv("KUBE_APISERVER_TOKEN"))
				mu.Lock()
				defer mu.Unlock()
				answers[p.name] = got
			})
		}
	})
	var out bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(answers)) {
		fmt.Fprintf(&out, "=== %s\n%s", name, answers[name])
	}
	to := os.Getenv("KUBE_APISERVER_ANSWERS")
	if to == "" {
		to = filepath.Join("testdata", hookAnswers)
	}
	if err := os.WriteFile(to, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}
