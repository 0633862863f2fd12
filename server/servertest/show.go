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

// shower writes requests in a form that does not differ between two runs of a test.
type shower struct {
	options *GoldenOptions
	names   *regexp.Regexp // generated names; nil if there are none
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

// title returns the first line of a request, such as "create widgets.example.com/v1 default/first".
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

// answerOf returns the code of the answer. The end of a watch is not shown, because it depends on timing.
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

// parameter returns the value of a query parameter. A resourceVersion of 0 is kept, because it has a special meaning.
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

// value replaces values that differ in each run. key is the key of the value in its object.
func (s *shower) value(v any, key string) any {
	switch v := v.(type) {
	case map[string]any:
		at, _ := v["path"].(string) // the path of an operation of a JSON patch
		for k, field := range v {
			of := k
			if k == "value" {
				of = path.Base(at)
			}
			v[k] = s.value(field, of)
		}
	case []any:
		if key == "managedFields" && len(v) > 0 {
			return "<managedFields>" // the client sent the server's own back
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

// isUUID reports whether v has the form of RFC 9562, section 4.
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

// readBody decodes JSON and keeps numbers as they are written.
func readBody(text json.RawMessage) any {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var out any
	if d.Decode(&out) != nil {
		return nil
	}
	return out
}

// indented returns a value as JSON, indented by two more spaces.
func indented(v any) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("  ", "  ")
	if err := e.Encode(v); err != nil { // cannot happen: the value was decoded from JSON
		return fmt.Sprintf("  %v\n", err)
	}
	return "  " + out.String()
}

// plain quotes a text that is not a single word.
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
