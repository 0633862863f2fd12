package server_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Placeholders for the parts of an answer that differ between runs.
const (
	uidForm  = `[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`
	timeForm = `20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ`
	rvForm   = `[1-9][0-9]*`
)

var placeholder = regexp.MustCompile(`<(?:uid|time|rv|any)>|\$\{[a-z]+[0-9]*\}`)

// comparison compares an answer with its file. It binds variables.
type comparison struct {
	values  map[string]string
	wrong   []string
	untimed bool // times are left out, so that the order of managedFields is not known
}

func (c *comparison) fail(path, format string, args ...any) {
	c.wrong = append(c.wrong, fmt.Sprintf("%s: %s", path, fmt.Sprintf(format, args...)))
}

// text reports whether got matches want, and binds variables at their first use in want.
func (c *comparison) text(want, got string) bool {
	if rest, ok := strings.CutPrefix(want, "<match "); ok && strings.HasSuffix(rest, ">") {
		form, err := regexp.Compile("^(?:" + strings.TrimSuffix(rest, ">") + ")$")
		return err == nil && form.MatchString(got)
	}
	if !placeholder.MatchString(want) {
		return want == got
	}
	var form strings.Builder
	var names []string
	at := 0
	for _, m := range placeholder.FindAllStringIndex(want, -1) {
		form.WriteString(regexp.QuoteMeta(want[at:m[0]]))
		at = m[1]
		switch p := want[m[0]:m[1]]; p {
		case "<uid>":
			form.WriteString(uidForm)
		case "<time>":
			form.WriteString(timeForm)
		case "<rv>":
			form.WriteString(rvForm)
		case "<any>":
			form.WriteString(`(?s:.*)`)
		default:
			name := p[2 : len(p)-1]
			if value, ok := c.values[name]; ok {
				form.WriteString(regexp.QuoteMeta(value))
				continue
			}
			if slices.Contains(names, name) {
				return false // a variable without a value may be only once in a text
			}
			names = append(names, name)
			form.WriteString("(" + formOf(name) + ")")
		}
	}
	form.WriteString(regexp.QuoteMeta(want[at:]))
	found := regexp.MustCompile("^" + form.String() + "$").FindStringSubmatch(got)
	if found == nil {
		return false
	}
	for i, name := range names {
		if !c.bind(name, found[i+1]) {
			return false
		}
	}
	return true
}

// formOf returns the form of a variable, by its name.
func formOf(name string) string {
	switch strings.TrimRight(name, "0123456789") {
	case "rv":
		return rvForm
	case "uid":
		return uidForm
	case "time":
		return timeForm
	}
	return `.+`
}

// bind sets the value of a variable. It fails if another variable of the same form has that value: rv2 after rv1 shows that the
// object was written.
func (c *comparison) bind(name, value string) bool {
	kind := strings.TrimRight(name, "0123456789")
	for other, v := range c.values {
		if v == value && strings.TrimRight(other, "0123456789") == kind {
			return false
		}
	}
	c.values[name] = value
	return true
}

// json compares values. The order of the members of objects does not matter.
func (c *comparison) json(path string, want, got any) {
	if want == "<any>" {
		return
	}
	switch want := want.(type) {
	case *members:
		g, ok := got.(*members)
		if !ok {
			c.fail(path, "got %s, want an object", compact(got))
			return
		}
		_, others := want.get("<any>")
		for _, m := range want.list {
			if v, ok := g.get(m.name); ok {
				c.json(path+"."+m.name, m.value, v)
			} else if m.name != "<any>" {
				c.fail(path+"."+m.name, "is missing, want %s", compact(m.value))
			}
		}
		for _, m := range g.list {
			if _, ok := want.get(m.name); !ok && !others {
				c.fail(path+"."+m.name, "got %s, want none", compact(m.value))
			}
		}
	case []any:
		g, ok := got.([]any)
		if ok && len(want) > 0 && want[len(want)-1] == "<any>" {
			c.some(path, want[:len(want)-1], g)
			return
		}
		if !ok || len(g) != len(want) {
			c.fail(path, "got %s, want %s", compact(got), compact(want))
			return
		}
		if strings.HasSuffix(path, "managedFields") && !c.untimed && !byTime(g) {
			c.fail(path, "%s are not in the order of operation, time, manager, apiVersion, subresource", compact(g))
		}
		name := path[strings.LastIndex(path, ".")+1:]
		want, g = settle(name, want), settle(name, g)
		for i := range want {
			c.json(fmt.Sprintf("%s[%d]", path, i), want[i], g[i])
		}
	case string:
		g, ok := got.(string)
		if !ok || !c.text(want, g) {
			c.fail(path, "got %s, want %s", compact(got), compact(want))
		}
	default:
		if want != got {
			c.fail(path, "got %s, want %s", compact(got), compact(want))
		}
	}
}

// some compares the elements of want with the elements of got that they match, in their order; got may have others between.
func (c *comparison) some(path string, want, got []any) {
	at := 0
	for i, w := range want {
		var mismatches []string
		for found := false; !found; at++ {
			if at == len(got) {
				c.fail(fmt.Sprintf("%s[%d]", path, i), "there is no such element in the list, want %s\n    %s", compact(w), strings.Join(mismatches, "\n    "))
				return
			}
			try := &comparison{values: maps.Clone(c.values)}
			if try.json(fmt.Sprintf("%s[%d]", path, at), w, got[at]); len(try.wrong) == 0 {
				found, c.values = true, try.values
			} else if sameName(w, got[at]) {
				mismatches = append(mismatches, try.wrong...)
			}
		}
	}
}

// sameName reports whether two objects have a name in common, so that their other differences should be reported.
func sameName(a, b any) bool {
	return slices.ContainsFunc([]string{"name", "resource", "version"}, func(name string) bool {
		return memberText(a, name) != "" && memberText(a, name) == memberText(b, name)
	})
}

// settle sorts a list whose order depends on the time, such as managedFields, or is undefined, such as the causes of an apply's
// conflicts with several managers.
func settle(name string, list []any) []any {
	switch name {
	case "managedFields":
		return slices.SortedStableFunc(slices.Values(list), func(a, b any) int {
			return compareMembers(a, b, "operation", "manager", "apiVersion", "subresource")
		})
	case "causes":
		return slices.SortedStableFunc(slices.Values(list), func(a, b any) int { return compareMembers(a, b, "field", "message") })
	}
	return list
}

// byTime reports whether managedFields are sorted by time, as required.
func byTime(list []any) bool {
	return slices.IsSortedFunc(list, func(a, b any) int {
		if memberText(a, "time") == "" || memberText(b, "time") == "" {
			return compareMembers(a, b, "operation")
		}
		return compareMembers(a, b, "operation", "time", "manager", "apiVersion", "subresource")
	})
}

// compareMembers compares objects by some of their members, one after another.
func compareMembers(a, b any, names ...string) int {
	for _, name := range names {
		if order := strings.Compare(memberText(a, name), memberText(b, name)); order != 0 {
			return order
		}
	}
	return 0
}

func memberText(v any, name string) string {
	if m, ok := v.(*members); ok {
		if value, ok := m.get(name); ok {
			text, _ := value.(string)
			return text
		}
	}
	return ""
}

// propose returns the text for a golden file that matches got: the text of the file where that matches, and otherwise got with
// placeholders for the parts that differ between runs. json must have bound the variables before.
func (c *comparison) propose(name string, want, got any) any {
	if want == "<any>" {
		return want
	}
	switch got := got.(type) {
	case *members:
		was, _ := want.(*members)
		out := &members{}
		others := false
		if was != nil {
			_, others = was.get("<any>")
		}
		for _, m := range got.list {
			var before any
			known := false
			if was != nil {
				before, known = was.get(m.name)
			}
			if known || !others {
				out.list = append(out.list, member{m.name, c.propose(m.name, before, m.value)})
			}
		}
		if others {
			out.list = append(out.list, member{"<any>", "<any>"})
		}
		return out
	case []any:
		was, _ := want.([]any)
		if len(was) > 0 && was[len(was)-1] == "<any>" {
			return c.proposeSome(name, was, got)
		}
		was = settle(name, was)
		out := []any{}
		for i, v := range settle(name, got) {
			var before any
			if i < len(was) {
				before = was[i]
			}
			out = append(out, c.propose(name, before, v))
		}
		return out
	case string:
		if w, ok := want.(string); ok && c.text(w, got) {
			return w
		}
		return c.proposeText(name, got)
	}
	return got
}

// proposeSome is propose for a list that may have other elements: it returns the elements with the names in want.
func (c *comparison) proposeSome(name string, want, got []any) any {
	out := []any{}
	for _, w := range want[:len(want)-1] {
		if i := slices.IndexFunc(got, func(g any) bool { return sameName(w, g) }); i >= 0 {
			out = append(out, c.propose(name, w, got[i]))
		}
	}
	return append(out, "<any>")
}

func (c *comparison) proposeText(name, got string) string {
	for v, value := range c.values {
		if kind := strings.TrimRight(v, "0123456789"); v == "ns" || kind == "uid" {
			got = strings.ReplaceAll(got, value, "${"+v+"}")
		} else if kind == "rv" && got == value && name == "resourceVersion" {
			return "${" + v + "}"
		}
	}
	switch {
	case name == "resourceVersion" && regexp.MustCompile("^"+rvForm+"$").MatchString(got):
		return "<rv>"
	case name == "uid" || name == "message":
		got = regexp.MustCompile(uidForm).ReplaceAllString(got, "<uid>")
		return regexp.MustCompile(timeForm).ReplaceAllString(got, "<time>")
	case regexp.MustCompile("^" + timeForm + "$").MatchString(got):
		return "<time>"
	}
	return got
}

// compare records the differences of an answer in c.
func (st *step) compare(c *comparison, got answer) {
	if got.code != st.code {
		c.fail("code", "got %d, want %d", got.code, st.code)
	}
	want := map[string][]string{"Warning": nil, "Retry-After": nil, "Location": nil}
	docs, notJSON := decodeAll(st.wantBody)
	if notJSON == nil && st.wantBody != "" {
		want["Content-Type"] = []string{"application/json"}
	}
	given := map[string][]string{}
	for _, h := range st.wantHeader {
		given[h[0]] = append(given[h[0]], h[1])
	}
	maps.Copy(want, given)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		values := got.header.Values(name)
		if !slices.EqualFunc(want[name], values, c.text) {
			c.fail("header "+name, "got %q, want %q", values, want[name])
		}
	}
	if st.exact || notJSON != nil || st.wantBody == "" {
		text := got.body
		if text = strings.TrimSuffix(text, "\n"); text == got.body && st.exact && !strings.Contains(text, "\n") {
			c.fail("body", "there is no line end after it")
		}
		if !c.text(st.wantBody, strings.TrimRight(text, "\n")) {
			c.fail("body", "is another, want\n%s\n", st.wantBody)
		}
		return
	}
	answers, err := decodeAll(got.body)
	if err != nil {
		if st.wantBody != `"<any>"` {
			c.fail("body", "is no JSON: %v", err)
		}
		return
	}
	if len(answers) != len(docs) {
		c.fail("body", "got %d JSON values, want %d", len(answers), len(docs))
		return
	}
	for i := range docs {
		path := ""
		if len(docs) > 1 {
			path = fmt.Sprintf("event %d ", i)
		}
		c.json(path, docs[i], answers[i])
	}
}

// rewrite changes the expected answer to the actual one. Headers whose names are in the file are kept, with their new values, and
// headers that must always be expected are added.
func (st *step) rewrite(c *comparison, got answer) {
	st.code = got.code
	var header [][2]string
	seen := map[string]bool{}
	for _, h := range slices.Concat(st.wantHeader, [][2]string{{"Warning"}, {"Retry-After"}, {"Location"}}) {
		if seen[h[0]] {
			continue
		}
		seen[h[0]] = true
		var was []string
		for _, other := range st.wantHeader {
			if other[0] == h[0] {
				was = append(was, other[1])
			}
		}
		for i, value := range got.header.Values(h[0]) {
			if i < len(was) && c.text(was[i], value) {
				value = was[i]
			} else if ns := c.values["ns"]; ns != "" {
				value = strings.ReplaceAll(value, ns, "${ns}")
			}
			header = append(header, [2]string{h[0], value})
		}
	}
	st.wantHeader = header
	answers, err := decodeAll(got.body)
	if st.exact || err != nil {
		if body := strings.TrimRight(got.body, "\n"); !c.text(st.wantBody, body) {
			body = regexp.MustCompile(uidForm).ReplaceAllString(body, "<uid>")
			body = regexp.MustCompile(timeForm).ReplaceAllString(body, "<time>")
			body = regexp.MustCompile(`(resourceVersion"?: ?")`+rvForm+`"`).ReplaceAllString(body, `${1}<rv>"`)
			st.wantBody = strings.ReplaceAll(body, c.values["ns"], "${ns}")
		}
		return
	}
	was, _ := decodeAll(st.wantBody)
	var parts []string
	for i, v := range answers {
		var before any
		if i < len(was) {
			before = was[i]
		}
		parts = append(parts, pretty(c.propose("", before, v), ""))
	}
	st.wantBody = strings.Join(parts, "\n")
}
