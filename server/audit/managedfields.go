package audit

import (
	"bytes"
	"encoding/json"
)

// editor returns what to write in place of the value of a member; nil leaves the member out.
type editor func(name string, value json.RawMessage) json.RawMessage

// withoutManagedFields returns the JSON of an object without metadata.managedFields, also in the items of a list and the rows of a
// Table. A text that is no object stays as it is.
func withoutManagedFields(text json.RawMessage) json.RawMessage {
	if !bytes.Contains(text, []byte(`"managedFields"`)) {
		return text
	}
	return edited(text, func(name string, value json.RawMessage) json.RawMessage {
		switch name {
		case "metadata":
			return withoutMember(value, "managedFields")
		case "items":
			return eachElement(value, withoutManagedFields)
		case "rows":
			return eachElement(value, func(row json.RawMessage) json.RawMessage {
				return edited(row, func(name string, value json.RawMessage) json.RawMessage {
					if name == "object" {
						return withoutManagedFields(value)
					}
					return value
				})
			})
		}
		return value
	})
}

func withoutMember(text json.RawMessage, left string) json.RawMessage {
	return edited(text, func(name string, value json.RawMessage) json.RawMessage {
		if name == left {
			return nil
		}
		return value
	})
}

// edited returns an object with other members. A text that is no object stays as it is.
func edited(text json.RawMessage, edit editor) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return text
	}
	out := append(make(json.RawMessage, 0, len(text)), '{')
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return text
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return text
		}
		key, _ := name.(string) // the decoder allows no other
		if value = edit(key, value); value == nil {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		quoted, _ := json.Marshal(key) // a string has no error
		out = append(append(append(out, quoted...), ':'), value...)
	}
	return append(out, '}')
}

// eachElement returns a list with other elements. A text that is no list stays as it is.
func eachElement(text json.RawMessage, edit func(json.RawMessage) json.RawMessage) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return text
	}
	out := append(make(json.RawMessage, 0, len(text)), '[')
	for d.More() {
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return text
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, edit(value)...)
	}
	return append(out, ']')
}
