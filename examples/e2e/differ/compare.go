package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// difference is one place where two answers differ.
type difference struct {
	verb, path  string // classes of the request
	codes       string // "200/404"
	at          string // "code", "header Warning", or a JSON path with [*] for the elements of lists
	left, right string // the values there, or "none"
}

const maxDifferences = 40 // of one pair of answers

// signature names the cause of a difference. Differences with the same cause should have equal signatures.
func (d difference) signature() string {
	for _, n := range named {
		if n.matches(d) {
			return n.reason
		}
	}
	if d.at == "code" {
		return fmt.Sprintf("%s %s %s: %s | %s", d.verb, d.path, d.codes, cut(reduce(d.left), 48), cut(reduce(d.right), 48))
	}
	return fmt.Sprintf("%s %s %s at %s: %s | %s", d.verb, d.path, d.codes, d.at, reduce(d.left), reduce(d.right))
}

var reductions = []struct {
	form *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`(configmaps|secrets|leases|events|namespaces|widgets|gadgets|sites|things)(\.[a-z0-9.-]+)?`), "RESOURCE"},
	{regexp.MustCompile(`\b(ConfigMap|Secret|Lease|Event|Namespace|Widget|Gadget|Site|Thing)(List)?(\.[a-z0-9.-]+)?\b`), "KIND$2"},
	{regexp.MustCompile(`differ-[0-9]+-[0-9]+(-[a-z]\b)?`), "NS"},
	{regexp.MustCompile(`(?s)(failed to create typed patch object|unknown patch type|Invalid value: "\{|error decoding|cannot be handled as a).*`), "$1…"},
	{regexp.MustCompile(`(?s)(\d+: \[)\{.*`), "$1…"},
	{regexp.MustCompile(`"(?:[^"\\]|\\.)*"`), `"…"`},
	{regexp.MustCompile(`[0-9]+`), "N"},
}

// reduce takes names and numbers out of a value.
func reduce(text string) string {
	if strings.HasPrefix(text, `"`) {
		text = strings.ReplaceAll(strings.Trim(text, `"`), `\"`, `"`)
	}
	for _, r := range reductions {
		text = r.form.ReplaceAllString(text, r.by)
	}
	return cut(text, 110)
}

// cut shortens a text to n characters.
func cut(text string, n int) string {
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n]) + "…"
	}
	return text
}

// side is an answer with its normal form.
type side struct {
	answer
	decoded any
	normal  any
}

// comparedHeaders are the headers of answers that must be equal. A header that ends an exchange, such as Connection, and the
// headers of time and flow control are not compared.
var comparedHeaders = []string{"Content-Type", "Warning", "Location", "Allow", "Cache-Control", "Retry-After", "Content-Encoding", "X-Content-Type-Options"}

// compare returns the differences of two answers.
func compare(r *request, left, right side) []difference {
	c := comparison{base: difference{verb: r.verb, path: r.class, codes: fmt.Sprintf("%d/%d", left.code, right.code)}}
	if left.failed != right.failed {
		c.add("connection", or(left.failed, "answered"), or(right.failed, "answered"))
		return c.found
	}
	if left.code != right.code {
		c.add("code", message(left.normal), message(right.normal))
		return c.found
	}
	for _, name := range comparedHeaders {
		l, g := headerText(left, name), headerText(right, name)
		if l != g {
			c.add("header "+name, l, g)
		}
	}
	if l, ok := left.normal.([]any); ok && r.watch {
		if g, ok := right.normal.([]any); ok {
			one, other := bookmarks(l), bookmarks(g)
			if one.marks != other.marks {
				c.add("bookmarks", fmt.Sprint(one.marks), fmt.Sprint(other.marks))
			}
			left.normal, right.normal = one.rest, other.rest
		}
	}
	if l, again := unique(left.normal); again {
		if g, _ := unique(right.normal); compact(l) == compact(g) {
			c.add(".details.causes length", "repeated", "once")
			return c.found
		}
	}
	c.value("", left.normal, right.normal)
	// The message of a Status says most about the cause.
	slices.SortStableFunc(c.found, func(a, b difference) int {
		switch {
		case a.at == b.at:
			return 0
		case a.at == ".message":
			return -1
		case b.at == ".message":
			return 1
		}
		return 0
	})
	return c.found
}

func headerText(s side, name string) string {
	values := s.header.Values(name)
	if len(values) == 0 {
		return "none"
	}
	if name == "Warning" {
		values = slices.Sorted(slices.Values(values))
	}
	return normalText(strings.Join(values, "\n"))
}

// message is the message of a Status, or the kind of another answer.
func message(v any) string {
	if o, ok := v.(map[string]any); ok {
		if text, ok := o["message"].(string); ok && o["kind"] == "Status" {
			return text
		}
		return fmt.Sprintf("kind %v", o["kind"])
	}
	return compact(v)
}

type comparison struct {
	base  difference
	found []difference
}

func (c *comparison) add(at, left, right string) {
	if len(c.found) < maxDifferences {
		d := c.base
		d.at, d.left, d.right = at, left, right
		c.found = append(c.found, d)
	}
}

var managedForm = regexp.MustCompile(`(\.(?:f|k|v):.*)$`)

func (c *comparison) value(at string, left, right any) {
	switch l := left.(type) {
	case map[string]any:
		r, ok := right.(map[string]any)
		if !ok {
			break
		}
		all := maps.Clone(l)
		maps.Copy(all, r)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			x, inLeft := l[name]
			y, inRight := r[name]
			where := managedForm.ReplaceAllString(at+"."+name, ".<fields>")
			switch {
			case !inLeft:
				c.add(where, "none", compact(y))
			case !inRight:
				c.add(where, compact(x), "none")
			default:
				c.value(at+"."+name, x, y)
			}
		}
		return
	case []any:
		r, ok := right.([]any)
		if !ok {
			break
		}
		if len(l) != len(r) {
			c.add(at+" length", fmt.Sprintf("%d: %s", len(l), compact(l)), fmt.Sprintf("%d: %s", len(r), compact(r)))
			return
		}
		for i := range l {
			c.value(at+"[*]", l[i], r[i])
		}
		return
	}
	if compact(left) != compact(right) {
		c.add(managedForm.ReplaceAllString(or(at, "body"), ".<fields>"), compact(left), compact(right))
	}
}

// marked are the events of a watch, without the bookmarks that depend on time.
type marked struct {
	rest  []any
	marks int
}

func bookmarks(events []any) (m marked) {
	for _, e := range events {
		if o, ok := e.(obj); ok && o["type"] == "BOOKMARK" && !strings.Contains(compact(o), "initial-events-end") {
			m.marks++
			continue
		}
		m.rest = append(m.rest, e)
	}
	return m
}

// unique returns the causes of a Status without repetitions.
func unique(v any) (causes []any, repeated bool) {
	o, _ := v.(obj)
	details, _ := o["details"].(obj)
	all, _ := details["causes"].([]any) // sorted
	causes = slices.CompactFunc(slices.Clone(all), func(a, b any) bool { return compact(a) == compact(b) })
	return causes, len(causes) < len(all)
}
