package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// finding is an unexplained difference with an example.
type finding struct {
	signature string
	count     int
	example   string
	size      int // of the example: the smallest is kept
	cases     []int
	grade     int // index of grades
}

// report is the result of a run.
type report struct {
	options  options
	versions [2]string

	mu                      sync.Mutex // guards the following
	requests, cases         int
	equal, retried          int
	withAccepted, different int
	codes                   map[string]int
	accepted                map[string]int
	unexplained             map[string]*finding // by grade and signature
}

func newReport(o options) *report {
	return &report{options: o, codes: map[string]int{}, accepted: map[string]int{}, unexplained: map[string]*finding{}}
}

// record counts a request and returns the differences that are not accepted.
func (p *report) record(c *oneCase, r *request, both [2]side, found []difference, retried bool) (left []difference) {
	reasons, left := explain(found)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests++
	p.codes[fmt.Sprintf("%s %d", strings.Fields(or(r.verb, "-"))[0], both[0].code)]++
	for reason := range reasons {
		p.accepted[reason]++
	}
	switch {
	case len(found) == 0 && retried:
		p.equal, p.retried = p.equal+1, p.retried+1
	case len(found) == 0:
		p.equal++
	case len(left) == 0:
		p.withAccepted++
	default:
		p.different++
		p.find(c, r, both, left)
	}
	return left
}

// explain returns the reasons of accepted differences, and the differences that are not accepted.
func explain(found []difference) (reasons map[string]bool, left []difference) {
	reasons = map[string]bool{}
	for i, d := range found {
		a := reasonFor(d)
		if a == nil {
			left = append(left, d)
			continue
		}
		reasons[a.reason] = true
		if a.whole && i == 0 {
			break
		}
	}
	return reasons, left
}

// reasonFor returns the first acceptance of a difference, or nil if it is unexplained.
func reasonFor(d difference) *acceptance {
	for i := range accepted {
		if accepted[i].matches(d) {
			return &accepted[i]
		}
	}
	return nil
}

// find records the first difference of a request under its signature.
func (p *report) find(c *oneCase, r *request, both [2]side, left []difference) {
	of := grade(both)
	key := fmt.Sprint(of, left[0].signature()) // the examples of a finding are of one grade
	f := p.unexplained[key]
	if f == nil {
		f = &finding{signature: left[0].signature(), grade: of}
		p.unexplained[key] = f
	}
	f.count++
	if len(f.cases) < 5 && !slices.Contains(f.cases, c.number) {
		f.cases = append(f.cases, c.number)
	}
	size := len(r.target()) + len(r.body) + 40*len(c.history)
	if f.example == "" || size < f.size {
		f.example, f.size = c.show(r, both, left, 400), size
	}
}

func (p *report) endCase() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cases++
}

// show writes a request, its answers and their differences.
func (c *oneCase) show(r *request, both [2]side, left []difference, length int) string {
	var out strings.Builder
	s := c.states[0]
	if len(left) > 0 {
		prior := c.history
		if n := len(prior); n > 6 {
			prior = prior[n-6:]
		}
		for _, h := range prior {
			fmt.Fprintf(&out, "after    %s\n", h)
		}
	}
	fmt.Fprintf(&out, "request  %s %s\n", r.method, cut(s.expand(r.target()), 300))
	for _, h := range r.header {
		fmt.Fprintf(&out, "         %s: %s\n", h[0], h[1])
	}
	if r.body != "" {
		fmt.Fprintf(&out, "         %s\n", cut(strings.ReplaceAll(strings.TrimSpace(s.expand(r.body)), "\n", "\n         "), length))
	}
	for i, name := range []string{"left", "right"} {
		a := both[i]
		text := compact(a.normal)
		fmt.Fprintf(&out, "%-8s %d %s %s %s\n", name, a.code, a.failed, strings.Join(a.header.Values("Warning"), " "), cut(text, length))
	}
	for i, d := range left {
		if i == 4 {
			fmt.Fprintf(&out, "differs  in %d more places\n", len(left)-i)
			break
		}
		fmt.Fprintf(&out, "differs  at %s: %s | %s\n", d.at, cut(d.left, 250), cut(d.right, 250))
	}
	return strings.ToValidUTF8(out.String(), "?") + "\n"
}

// markdown is the report as text.
func (p *report) markdown(began time.Time) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out strings.Builder
	took := time.Since(began).Round(time.Second)
	fmt.Fprintf(&out, "# Differences of two servers\n\n%s, in %s. The left server is kube-apiserver (%s), the right one Keelson (%s).\n\n", began.UTC().Format(time.DateOnly), took, p.versions[0], p.versions[1])
	if p.options.note != "" {
		fmt.Fprintf(&out, "%s\n\n", p.options.note)
	}
	fmt.Fprintf(&out, "| | |\n|---|---|\n| seed | %d |\n| requests | %d in %d cases |\n| equal | %d, of them %d after the request was repeated |\n| with accepted differences only | %d |\n| with unexplained differences | %d, of %d signatures |\n\n",
		p.options.seed, p.requests, p.cases, p.equal, p.retried, p.withAccepted, p.different, len(p.unexplained))
	fmt.Fprintf(&out, "## Accepted differences\n\n| requests | reason |\n|---|---|\n")
	for _, reason := range byCount(p.accepted) {
		fmt.Fprintf(&out, "| %d | %s |\n", p.accepted[reason], reason)
	}
	fmt.Fprintf(&out, "\n## Answers of the left server\n\n")
	for i, code := range slices.Sorted(keys(p.codes)) {
		if i > 0 {
			out.WriteString(", ")
		}
		fmt.Fprintf(&out, "%s: %d", code, p.codes[code])
	}
	out.WriteString("\n\n")
	number := 0
	for grade, title := range grades {
		counts := map[string]int{}
		for s, f := range p.unexplained {
			if f.grade == grade {
				counts[s] = f.count
			}
		}
		fmt.Fprintf(&out, "## Unexplained: %s\n", title)
		for _, s := range byCount(counts) {
			f := p.unexplained[s]
			number++
			fmt.Fprintf(&out, "\n### %d. %d times, such as in the cases %v\n\n`%s`\n\n~~~\n%s~~~\n", number, f.count, f.cases, strings.ReplaceAll(f.signature, "`", "'"), f.example)
		}
		if len(counts) == 0 {
			out.WriteString("\nNone.\n")
		}
		out.WriteString("\n")
	}
	return strings.TrimRight(out.String(), "\n") + "\n"
}

// grades are the kinds of differences, the most severe first.
var grades = []string{"only one server succeeds", "both succeed with different answers", "both refuse with different codes", "both refuse with equal codes"}

func grade(both [2]side) int {
	left, right := both[0].code < 300, both[1].code < 300
	switch {
	case left != right:
		return 0
	case left:
		return 1
	case both[0].code != both[1].code:
		return 2
	}
	return 3
}

func keys(m map[string]int) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// byCount returns the keys of a map, the highest count first.
func byCount(m map[string]int) []string {
	return slices.SortedFunc(keys(m), func(a, b string) int {
		if m[a] != m[b] {
			return m[b] - m[a]
		}
		return strings.Compare(a, b)
	})
}
