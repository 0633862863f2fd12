package servertest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// UpdateVariable is the environment variable that makes Golden write golden files instead of comparing them, if it is 1.
const UpdateVariable = "KEELSON_UPDATE"

// GoldenOptions are the options of GoldenWith. The zero GoldenOptions compare the recording as it is.
type GoldenOptions struct {
	// Sort sorts the requests by their text, for clients that send several requests concurrently.
	Sort bool
	// Collapse shows immediate repetitions of a request, for example by a client that tries again, as one request. The one
	// request then has the answers of all, one after the other; equal answers in a row are shown once.
	Collapse bool
	// Users shows the user of each request.
	Users bool
	// Generated are the generateNames whose names differ in each run: "widget-x7k2p" is shown as "widget-*". The generateNames of
	// recorded creates need not be listed.
	Generated []string
	// Rewrite receives the text of a request, a paragraph of several lines, and returns the text to compare. It can replace
	// further parts that differ in each run. nil changes nothing.
	Rewrite func(paragraph string) string
}

// Golden compares the recording with a golden file, and fails the test if they differ or if there is no file. With
// KEELSON_UPDATE=1 in the environment it writes the file instead. The path is relative to the package's directory, where tests
// run.
//
// The file has a paragraph for each request: verb, resource, and namespace/name; the query, with one parameter per line; the body
// as indented JSON with sorted keys; and the code of the answer.
//
//	create widgets.example.com/v1 default/first
//	  ?fieldManager=test
//	  {
//	    "metadata": {
//	      "name": "first"
//	    },
//	    "spec": {
//	      "size": 3
//	    }
//	  }
//	=> 201
//
// Parts that differ in each run are replaced: resourceVersions by <version>, uids by <uid>, times by <time>, managedFields by
// <managedFields>, continue tokens by <token>, the timeout of a watch by <seconds>, and generated names. A patch is shown with
// its type, and an aborted answer is marked. The user agent and the format of the body are not shown.
//
// Golden first waits, for a few seconds at most, until all recorded requests have an answer.
func (r *Recording) Golden(t testing.TB, path string) {
	t.Helper()
	r.GoldenWith(t, path, GoldenOptions{})
}

// GoldenWith is Golden with options.
func (r *Recording) GoldenWith(t testing.TB, path string, o GoldenOptions) {
	t.Helper()
	r.settle()
	got := o.text(r.Requests())
	if os.Getenv(UpdateVariable) == "1" {
		if err := writeGolden(path, got); err != nil {
			t.Errorf("servertest: golden file %s: %v", path, err)
		}
		return
	}
	how := fmt.Sprintf("%s=1 go test -run '^%s$' .", UpdateVariable, strings.ReplaceAll(regexp.QuoteMeta(t.Name()), "/", "$/^"))
	want, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		t.Errorf("servertest: there is no golden file %s. To make it of what was recorded now:\n\t%s", path, how)
	case err != nil:
		t.Errorf("servertest: golden file %s: %v", path, err)
	case string(want) != got:
		t.Errorf("servertest: the requests differ from the golden file %s (-) thus (+):\n%s\nIf that is as it should be, update it:\n\t%s",
			path, lineDiff(string(want), got), how)
	}
}

func writeGolden(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// text returns the content of a golden file for requests.
func (o *GoldenOptions) text(requests []Request) string {
	show := &shower{options: o, names: generatedNames(slices.Concat(o.Generated, generateNames(requests)))}
	var all []paragraph
	for i := range requests {
		p := show.paragraph(&requests[i])
		if n := len(all); o.Collapse && n > 0 && all[n-1].request == p.request {
			if all[n-1].last != p.last {
				all[n-1].answers, all[n-1].last = all[n-1].answers+", "+p.last, p.last
			}
			continue
		}
		all = append(all, p)
	}
	texts := make([]string, len(all))
	for i, p := range all {
		texts[i] = p.request + "=> " + p.answers + "\n"
		if o.Rewrite != nil {
			texts[i] = strings.TrimRight(o.Rewrite(texts[i]), "\n") + "\n"
		}
	}
	if o.Sort {
		slices.Sort(texts)
	}
	if len(texts) == 0 {
		return "no requests\n" // explicit, for reviewers of the file
	}
	return strings.Join(texts, "\n")
}

// paragraph is the text of one request, or of several repetitions.
type paragraph struct {
	request string // several lines
	answers string
	last    string // last of the answers
}

// generatedNames returns an expression for names that begin with one of prefixes, or nil if there are none. A generated name ends
// with five characters, see https://kubernetes.io/docs/reference/using-api/api-concepts/#generated-values.
func generatedNames(prefixes []string) *regexp.Regexp {
	prefixes = slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(prefixes))), func(p string) bool { return p == "" })
	if len(prefixes) == 0 {
		return nil
	}
	slices.Reverse(prefixes) // prefer the longer of two matching prefixes
	for i, p := range prefixes {
		prefixes[i] = regexp.QuoteMeta(p)
	}
	return regexp.MustCompile(`\b(` + strings.Join(prefixes, "|") + `)[bcdfghjklmnpqrstvwxz2456789]{5}\b`)
}

// lineDiff returns the lines that only one of two texts has, marked with "-" or "+", with some common lines around them.
func lineDiff(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	lines := diffLines(a, b)
	const around = 3
	near := make([]bool, len(lines))
	for i, l := range lines {
		if l[0] != ' ' {
			for j := max(0, i-around); j <= min(len(lines)-1, i+around); j++ {
				near[j] = true
			}
		}
	}
	var out strings.Builder
	for i, l := range lines {
		switch {
		case near[i]:
			fmt.Fprintln(&out, l)
		case i == 0 || near[i-1]:
			fmt.Fprintln(&out, "  ...")
		}
	}
	return strings.TrimRight(out.String(), "\n")
}

// diffLines marks the lines of a and b by a longest common subsequence of the lines between their common beginning and end. If
// that would be too expensive, all these lines are marked as removed and added.
func diffLines(a, b []string) (out []string) {
	head := 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	mark := func(sign string, lines []string) {
		for _, l := range lines {
			out = append(out, sign+" "+l)
		}
	}
	mark(" ", a[:head])
	x, y := a[head:len(a)-tail], b[head:len(b)-tail]
	const most = 1 << 22 // maximum number of cells
	if (len(x)+1)*(len(y)+1) > most {
		mark("-", x)
		mark("+", y)
		x, y = nil, nil
	}
	// common[i][j] is the length of the longest common subsequence of x[i:] and y[j:].
	common := make([][]int32, len(x)+1)
	for i := range common {
		common[i] = make([]int32, len(y)+1)
	}
	for i := len(x) - 1; i >= 0; i-- {
		for j := len(y) - 1; j >= 0; j-- {
			common[i][j] = max(common[i+1][j], common[i][j+1])
			if x[i] == y[j] {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	i, j := 0, 0
	for i < len(x) || j < len(y) {
		switch {
		case i < len(x) && j < len(y) && x[i] == y[j]:
			mark(" ", x[i:i+1])
			i, j = i+1, j+1
		case j == len(y) || i < len(x) && common[i+1][j] >= common[i][j+1]:
			mark("-", x[i:i+1])
			i++
		default:
			mark("+", y[j:j+1])
			j++
		}
	}
	mark(" ", a[len(a)-tail:])
	return out
}
