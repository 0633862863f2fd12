package server_test

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// scenario is a golden file: requests in their order, and their answers. The format is described at the top of golden_test.go.
type scenario struct {
	head    string   // the text of the file before the first exchange
	servers []string // required properties of the server; none: any server
	steps   []*step
}

// step is one request and its answer.
type step struct {
	title   string
	request string // the text of the file from the title to the answer

	method, target string
	header         [][2]string
	body           string
	auditID        string        // the request's Audit-ID, if the file gives none
	within         time.Duration // time for which the request is repeated; 0: it is sent once

	code       int
	exact      bool
	ends       bool // the server ends the watch after the events
	wantHeader [][2]string
	wantBody   string
}

// The values of the line "servers:" of a file.
const (
	anyServer     = "all"
	keelsonServer = "keelson"
	kubeServer    = "kube-apiserver"
	customWidgets = "custom"
	typedWidgets  = "typed"
	withCBOR      = "cbor"
	withoutCBOR   = "without-cbor"
	withCRDs      = "crds"
	fastServer    = "fast"
)

// parseScenario reads a golden file.
func parseScenario(text string) (*scenario, error) {
	s := &scenario{}
	head, rest, found := strings.Cut(text, "### ")
	if !found {
		return nil, fmt.Errorf("no exchange: want a line that begins with \"### \"")
	}
	s.head = head
	if err := s.parseHead(); err != nil {
		return nil, err
	}
	for i, part := range strings.Split(rest, "\n### ") {
		st, err := parseStep(part)
		if err != nil {
			return nil, fmt.Errorf("exchange %d, %q: %w", i+1, strings.SplitN(part, "\n", 2)[0], err)
		}
		s.steps = append(s.steps, st)
	}
	return s, nil
}

func (s *scenario) parseHead() error {
	reason := false
	for line := range strings.Lines(s.head) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch {
		case strings.HasPrefix(line, "#"):
			reason = true
		case strings.TrimSpace(line) == "":
		case name == "servers":
			s.servers = strings.Fields(value)
		default:
			return fmt.Errorf("line %q: want a comment or \"servers: ...\"", line)
		}
	}
	if len(s.servers) == 0 || !reason {
		return fmt.Errorf("want a comment that says what the file shows, and a line \"servers: ...\"")
	}
	for _, word := range s.servers {
		switch word {
		case anyServer, keelsonServer, kubeServer, customWidgets, typedWidgets, withCBOR, withoutCBOR, withCRDs, fastServer:
		default:
			return fmt.Errorf("servers: %q is none of all, keelson, kube-apiserver, custom, typed, cbor, without-cbor, crds, fast", word)
		}
	}
	return nil
}

// holdsFor reports whether the file is for servers with the given properties.
func (s *scenario) holdsFor(is map[string]bool) bool {
	for _, word := range s.servers {
		if word == fastServer && raceDetector || word != anyServer && word != fastServer && !is[word] {
			return false
		}
	}
	return true
}

// parseStep parses the text after "### ".
func parseStep(text string) (*step, error) {
	request, answer, found := strings.Cut(text, "\nHTTP ")
	if !found {
		return nil, fmt.Errorf("no answer: want a line such as \"HTTP 200\"")
	}
	st := &step{request: request}
	lines := strings.SplitN(request, "\n", 2)
	st.title = lines[0]
	if len(lines) < 2 {
		return nil, fmt.Errorf("no request")
	}
	rest := lines[1]
	for strings.HasPrefix(rest, "#") {
		_, rest, _ = strings.Cut(rest, "\n")
	}
	first, header, body := splitMessage(rest)
	st.method, st.target, found = strings.Cut(first, " ")
	if !found || strings.TrimSpace(st.target) != st.target {
		return nil, fmt.Errorf("request line %q: want \"METHOD /path\"", first)
	}
	var err error
	if within := headerOf(header, "Within"); within != "" {
		if st.within, err = time.ParseDuration(within); err != nil {
			return nil, fmt.Errorf("the header Within: %w", err)
		}
		header = slices.DeleteFunc(header, func(h [2]string) bool { return h[0] == "Within" })
	}
	st.header, st.body = header, body

	first, st.wantHeader, st.wantBody = splitMessage(answer)
	code, mark, _ := strings.Cut(first, " ")
	if st.code, err = strconv.Atoi(code); err != nil || mark != "" && mark != "exact" && mark != "ends" {
		return nil, fmt.Errorf("answer \"HTTP %s\": want \"HTTP <code>\", \"HTTP <code> exact\" or \"HTTP <code> ends\"", first)
	}
	st.exact, st.ends = mark == "exact", mark == "ends"
	return st, nil
}

// splitMessage splits a message into its first line, its header and its body, without white space at the end.
func splitMessage(text string) (first string, header [][2]string, body string) {
	head, body, _ := strings.Cut(strings.TrimRight(text, "\n")+"\n", "\n\n")
	first, fields, _ := strings.Cut(strings.TrimRight(head, "\n"), "\n")
	for line := range strings.Lines(fields) {
		name, value, _ := strings.Cut(strings.TrimRight(line, "\n"), ":")
		header = append(header, [2]string{http.CanonicalHeaderKey(name), strings.TrimSpace(value)})
	}
	return first, header, strings.TrimRight(body, "\n")
}

// String returns the text of the file.
func (s *scenario) String() string {
	var out bytes.Buffer
	out.WriteString(s.head)
	for i, st := range s.steps {
		if i > 0 {
			out.WriteString("\n")
		}
		fmt.Fprintf(&out, "### %s\n\nHTTP %d", strings.TrimRight(st.request, "\n"), st.code)
		if st.exact {
			out.WriteString(" exact")
		}
		if st.ends {
			out.WriteString(" ends")
		}
		out.WriteString("\n")
		for _, h := range st.wantHeader {
			out.WriteString(strings.TrimRight(h[0]+": "+h[1], " ") + "\n")
		}
		if st.wantBody != "" {
			out.WriteString("\n" + st.wantBody + "\n")
		}
	}
	return out.String()
}

var (
	repetition = regexp.MustCompile(`\$\{repeat (\d+) ("(?:[^"\\]|\\.)*")\}`)
	variable   = regexp.MustCompile(`\$\{([a-z]+[0-9]*)\}`)
)

// expand replaces repetitions and variables in a request.
func expand(text string, values map[string]string) (string, error) {
	var failed error
	text = repetition.ReplaceAllStringFunc(text, func(m string) string {
		parts := repetition.FindStringSubmatch(m)
		count, err := strconv.Atoi(parts[1])
		unit, err2 := strconv.Unquote(parts[2])
		if err != nil || err2 != nil || count*len(unit) > 8<<20 {
			failed = fmt.Errorf("%s: want ${repeat <count> \"<text>\"}, of at most 8 MiB", m)
			return ""
		}
		return strings.Repeat(unit, count)
	})
	text = variable.ReplaceAllStringFunc(text, func(m string) string {
		value, ok := values[m[2:len(m)-1]]
		if !ok {
			failed = fmt.Errorf("%s has no value yet: an answer before this request must bring it", m)
		}
		return value
	})
	return text, failed
}

// TestGoldenFormat checks that the comparison reports differences.
func TestGoldenFormat(t *testing.T) {
	t.Parallel()
	const rv, uid = `"resourceVersion":"7"`, `"uid":"8a2e0b9c-4f0d-4c3c-9a53-0a3bb7c0f9aa"`
	for _, c := range []struct {
		want, got string
		wrong     string // part of the reported difference; "": none
	}{
		{`{"a": 1, "b": {"c": [true, null, "x"]}}`, `{"b":{"c":[true,null,"x"]},"a":1}`, ""},
		{`{"a": 1}`, `{"a":1.0}`, ".a: got 1.0, want 1"},
		{`{"a": 1}`, `{"a":"1"}`, `.a: got "1", want 1`},
		{`{"a": 1}`, `{"a":1,"b":2}`, ".b: got 2, want none"},
		{`{"a": 1, "b": 2}`, `{"a":1}`, ".b: is missing"},
		{`{"a": [1, 2]}`, `{"a":[2,1]}`, ".a[0]: got 2"},
		{`{"a": [1]}`, `{"a":[1,2]}`, ".a: got [1, 2]"},
		{`{"a": {}}`, `{"a":[]}`, ".a: got [], want an object"},
		{`{"a": [1, 3, "<any>"]}`, `{"a":[0,1,2,3,4]}`, ""},
		{`{"a": ["<any>"]}`, `{"a":[]}`, ""},
		{`{"a": [{"name": "x", "b": 1}, "<any>"]}`, `{"a":[{"name":"w","b":1},{"name":"x","b":2}]}`, ".a[1].b: got 2"},
		{`{"a": [{"name": "${x1}"}, {"name": "${x1}"}, "<any>"]}`, `{"a":[{"name":"y"},{"name":"z"}]}`, "no such element"},
		{`{"a": null}`, `{}`, ".a: is missing"},
		{`{"resourceVersion": "<rv>", "uid": "<uid>"}`, `{` + rv + `,` + uid + `}`, ""},
		{`{"resourceVersion": "<rv>"}`, `{"resourceVersion":"0"}`, ".resourceVersion"},
		{`{"uid": "in <uid>"}`, `{"uid":"8A"}`, ".uid"},
		{`{"t": "<time>"}`, `{"t":"2020-01-01T00:00:00.5Z"}`, ".t"},
		{`{"t": "at <time>: <any>"}`, `{"t":"at 2020-01-01T00:00:00Z: x"}`, ""},
		{`{"a": "<any>"}`, `{"a":{"b":1}}`, ""},
		{`{"a": "<any>"}`, `{}`, ".a: is missing"},
		{`{"a": 1, "<any>": "<any>"}`, `{"a":1,"b":2}`, ""},
		{`{"a": 1, "<any>": "<any>"}`, `{"b":2}`, ".a: is missing"},
		{`{"managedFields": [{"manager": "b"}, {"manager": "a"}]}`, `{"managedFields":[{"manager":"a"},{"manager":"b"}]}`, ""},
		{`{"managedFields": [{"manager": "b"}, {"manager": "a"}]}`, `{"managedFields":[{"manager":"a","operation":"Update"},{"manager":"b","operation":"Apply"}]}`, "in the order of"},
		{`{"a": "<match x-[a-c]{2}>"}`, `{"a":"x-ab"}`, ""},
		{`{"a": "<match x-[a-c]{2}>"}`, `{"a":"x-abc"}`, ".a: got"},
		{`{"a": "${rv1}", "b": "${rv1}"}`, `{"a":"7","b":"7"}`, ""},
		{`{"a": "${rv1}", "b": "${rv1}"}`, `{"a":"7","b":"8"}`, `.b: got "8"`},
		{`{"a": "${rv1}", "b": "${rv2}"}`, `{"a":"7","b":"7"}`, `.b: got "7"`},
		{`{"a": "${ns}"}`, `{"a":"space"}`, ""},
		{`{"a": "${ns}"}`, `{"a":"spice"}`, ".a"},
		{`{"a": "(b)"}`, `{"a":"b"}`, ".a"},
	} {
		st := &step{code: 200, wantBody: c.want}
		cmp := &comparison{values: map[string]string{"ns": "space"}}
		st.compare(cmp, answer{200, http.Header{"Content-Type": {"application/json"}}, c.got + "\n"})
		if problems := strings.Join(cmp.wrong, "; "); !strings.Contains(problems, c.wrong) || (c.wrong == "") != (problems == "") {
			t.Errorf("want %s, got %s: %q, want %q", c.want, c.got, problems, c.wrong)
		}
		if c.wrong == "in the order of" {
			continue // a file cannot expect it
		}
		cmp = &comparison{values: map[string]string{"ns": "space"}}
		st.rewrite(cmp, answer{200, http.Header{}, c.got + "\n"})
		if st.compare(cmp, answer{200, http.Header{"Content-Type": {"application/json"}}, c.got + "\n"}); len(cmp.wrong) > 0 {
			t.Errorf("after the rewrite to %s: %q", st.wantBody, cmp.wrong)
		}
	}
	for header, wrong := range map[string]string{"Warning": "header Warning", "X-Other": "", "Location": "header Location"} {
		cmp := &comparison{values: map[string]string{}}
		(&step{code: 200}).compare(cmp, answer{200, http.Header{header: {"x"}}, ""})
		if problems := strings.Join(cmp.wrong, "; "); !strings.Contains(problems, wrong) || (wrong == "") != (problems == "") {
			t.Errorf("%s: %q", header, problems)
		}
	}
	for _, text := range []string{
		"", "# a\nservers: all\n", "servers: all\n### t\nGET /\n\nHTTP 200\n", "# a\nservers: none\n### t\nGET /\n\nHTTP 200\n",
		"# a\nservers: all\n### t\nGET /\n", "# a\nservers: all\n### t\nGET\n\nHTTP 200\n", "# a\nservers: all\n### t\nGET /\n\nHTTP OK\n", "# a\nserver: all\n### t\nGET /\n\nHTTP 200\n",
		"# a\nservers: all\n### t\nGET /\nWithin: long\n\nHTTP 200\n",
	} {
		if _, err := parseScenario(text); err == nil {
			t.Errorf("%q is taken for a scenario", text)
		}
	}
	if _, err := expand("${rv1}", nil); err == nil {
		t.Error("a variable without value is expanded")
	}
	if got, err := expand(`${repeat 3 "a\"{}"}${ns}`, map[string]string{"ns": "x"}); got != `a"{}a"{}a"{}x` || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if regexp.MustCompile("^" + uidForm + "$").MatchString("8a2e0b9c-4f0d-1c3c-9a53-0a3bb7c0f9aa") {
		t.Error("a uid that is not random is taken for one")
	}
}
