package servertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// shower writes requests so that two runs of a test write the same.
type shower struct {
	options *GoldenOptions
	names   *regexp.Regexp // that were generated; nil: none
}

func (s *shower) paragraph(r *Request) paragraph {
	var out strings.Builder
	body := readBody(r.Body)
	out.WriteString(s.title(r, body) + "\n")
	if s.options.Users {
		out.WriteString("  by " + plain(r.User) + "\n")
	}
	for _, key := range slices.Sorted(maps.Keys(r.Query)) {
		for _, value := range r.Query[key] {
			out.WriteString("  ?" + plain(key) + "=" + plain(s.parameter(key, value)) + "\n")
		}
	}
	switch {
	case r.Body != nil:
		out.WriteString(indented(s.value(body, "")))
	case len(r.Sent) > 0:
		fmt.Fprintf(&out, "  %q\n", r.Sent)
	}
	answer := answerOf(r)
	return paragraph{request: out.String(), answers: answer, last: answer}
}

// title is such as "create widgets.example.com/v1 default/first".
func (s *shower) title(r *Request, body any) string {
	verb := r.Verb
	if r.IsApply() {
		verb = applyVerb
	} else if verb == "patch" {
		mediaType, _, _ := strings.Cut(r.ContentType, ";")
		verb += " (" + strings.TrimSuffix(strings.TrimPrefix(mediaType, "application/"), "-patch+json") + ")"
	}
	resource := r.Resource
	if r.Group != "" {
		resource += "." + r.Group
	}
	name := r.Name
	if name == "" && r.Verb == "create" {
		if prefix := generateName(body); prefix != "" {
			name = prefix + "*"
		}
	}
	where := name
	if r.Namespace != "" && r.Resource != "namespaces" {
		where = r.Namespace + "/" + name
	}
	return strings.TrimRight(verb+" "+path.Join(resource, r.Version, r.Subresource)+" "+plain(s.shorten(where)), " ")
}

// answerOf is the code. When a watch ends depends on much, so that it is not shown.
func answerOf(r *Request) string {
	switch {
	case r.Code == 0 && r.Ended:
		return "aborted"
	case r.Code == 0:
		return "nothing yet"
	case r.Verb != "watch" && r.Ended && !r.Completed:
		return strconv.Itoa(r.Code) + ", aborted"
	}
	return strconv.Itoa(r.Code)
}

// parameter is the value of a query parameter. A resourceVersion of 0 means something of its own.
func (s *shower) parameter(key, value string) string {
	switch {
	case key == "resourceVersion" && value != "" && value != "0":
		return "<version>"
	case key == "continue" && value != "":
		return "<token>"
	case key == "timeoutSeconds":
		return "<seconds>"
	}
	return s.shorten(value)
}

// value replaces what differs in each run. key is that of the value in its object.
func (s *shower) value(v any, key string) any {
	switch v := v.(type) {
	case map[string]any:
		at, _ := v["path"].(string) // of an operation of a JSON patch
		for k, field := range v {
			of := k
			if k == "value" {
				of = path.Base(at)
			}
			v[k] = s.value(field, of)
		}
	case []any:
		if key == "managedFields" && len(v) > 0 {
			return "<managedFields>" // the server's own, sent back
		}
		for i, item := range v {
			v[i] = s.value(item, key)
		}
	case string:
		return s.text(v, key)
	}
	return v
}

func (s *shower) text(v, key string) string {
	switch {
	case v == "":
		return v
	case key == "resourceVersion":
		return "<version>"
	case isUUID(v):
		return "<uid>"
	case isTime(v):
		return "<time>"
	}
	return s.shorten(v)
}

// shorten replaces generated names.
func (s *shower) shorten(v string) string {
	if s.names == nil {
		return v
	}
	return s.names.ReplaceAllString(v, "${1}*")
}

func isTime(v string) bool {
	_, err := time.Parse(time.RFC3339Nano, v)
	return err == nil
}

// isUUID reports whether v is in the form of RFC 9562, section 4.
func isUUID(v string) bool {
	if len(v) != len("00000000-0000-0000-0000-000000000000") {
		return false
	}
	for i, c := range []byte(v) {
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if !strings.ContainsRune("0123456789abcdefABCDEF", rune(c)) {
				return false
			}
		}
	}
	return true
}

// readBody reads JSON, numbers as they are written.
func readBody(text json.RawMessage) any {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var out any
	if d.Decode(&out) != nil {
		return nil
	}
	return out
}

// indented is a value as JSON, two blanks to the right.
func indented(v any) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("  ", "  ")
	if err := e.Encode(v); err != nil { // what was read from JSON
		return fmt.Sprintf("  %v\n", err)
	}
	return "  " + out.String()
}

// plain quotes text that would not be one word of a line.
func plain(text string) string {
	if strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return strconv.Quote(text)
	}
	return text
}

func generateNames(requests []Request) (out []string) {
	for i := range requests {
		if requests[i].Verb == "create" && requests[i].Name == "" {
			out = append(out, generateName(readBody(requests[i].Body)))
		}
	}
	return out
}

func generateName(body any) string {
	obj, _ := body.(map[string]any)
	meta, _ := obj["metadata"].(map[string]any)
	name, _ := meta["generateName"].(string)
	return name
}
