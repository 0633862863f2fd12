package server_test

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"strings"
)

// members are the members of a JSON object, in their order.
type members struct{ list []member }

type member struct {
	name  string
	value any
}

func (m *members) get(name string) (any, bool) {
	for _, x := range m.list {
		if x.name == name {
			return x.value, true
		}
	}
	return nil, false
}

// decodeAll decodes successive JSON values in text. Numbers are json.Number.
func decodeAll(text string) ([]any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var out []any
	for {
		v, err := decodeValue(d)
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
}

// decodeValue decodes one value. It returns io.EOF if there is none.
func decodeValue(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	within := func(err error) error {
		if err == io.EOF {
			return io.ErrUnexpectedEOF
		}
		return err
	}
	switch token {
	case json.Delim('{'):
		m := &members{}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, within(err)
			}
			value, err := decodeValue(d)
			if err != nil {
				return nil, within(err)
			}
			m.list = append(m.list, member{name.(string), value})
		}
		_, err = d.Token()
		return m, within(err)
	case json.Delim('['):
		list := []any{}
		for d.More() {
			value, err := decodeValue(d)
			if err != nil {
				return nil, within(err)
			}
			list = append(list, value)
		}
		_, err = d.Token()
		return list, within(err)
	}
	return token, nil
}

// compact returns a value on one line.
func compact(v any) string {
	switch v := v.(type) {
	case *members:
		parts := make([]string, len(v.list))
		for i, m := range v.list {
			parts[i] = quote(m.name) + ": " + compact(m.value)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		parts := make([]string, len(v))
		for i, x := range v {
			parts[i] = compact(x)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case string:
		return quote(v)
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	}
	return "null"
}

// pretty returns a value for people: on one line if it fits, and otherwise with a line for each part.
func pretty(v any, indent string) string {
	const width = 116
	line := compact(v)
	if len(indent)+len(line) <= width {
		return line
	}
	var parts []string
	open, shut := "{", "}"
	deeper := indent + "  "
	switch v := v.(type) {
	case *members:
		for _, m := range v.list {
			parts = append(parts, quote(m.name)+": "+pretty(m.value, deeper))
		}
	case []any:
		open, shut = "[", "]"
		for _, x := range v {
			parts = append(parts, pretty(x, deeper))
		}
	default:
		return line
	}
	return open + "\n" + deeper + strings.Join(parts, ",\n"+deeper) + "\n" + indent + shut
}

// quote returns a string as JSON, with '<', '>' and '&' unchanged.
func quote(s string) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return strconv.Quote(s)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// shown returns a body for people.
func shown(body string) string {
	docs, err := decodeAll(body)
	if err != nil {
		return body
	}
	var out strings.Builder
	for _, d := range docs {
		out.WriteString(pretty(d, "") + "\n")
	}
	return out.String()
}
