package written

import (
	"errors"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// leads reports whether a path with brackets leads to a schema inside another.
func leads(path string, props *apiextensionsv1.JSONSchemaProps) bool {
	return Follow(path, true, func(name string) bool {
		switch {
		case props == nil:
			return false
		case len(props.Properties) > 0:
			property, ok := props.Properties[name]
			props = &property
			return ok
		}
		inside := props.AdditionalProperties != nil
		props = additionalOf(props)
		return inside
	}) == nil
}

// Follow calls enter with each name in a path, until enter returns false.
func Follow(path string, brackets bool, enter func(name string) bool) error {
	for rest := path; rest != ""; {
		var name string
		var err error
		bracket := rest[0] == '['
		switch {
		case rest[0] == '.':
			if name, rest = token(rest[1:]); name == "" {
				return errors.New("unexpected end of JSON path")
			}
		case bracket && !brackets:
			return errors.New("array notation is not allowed")
		case bracket:
			if name, rest, err = quotedName(rest[1:]); err != nil {
				return err
			}
		default:
			name, _ = token(rest)
			return fmt.Errorf("expected [ or . but got: %s", name)
		}
		if !enter(name) {
			return errors.New("does not refer to a valid field")
		}
		if bracket {
			if rest, err = closed(rest); err != nil {
				return err
			}
		}
	}
	return nil
}

// token splits off the text before the next delimiter, or the delimiter itself if it comes first. A quoted part is one token.
func token(text string) (string, string) {
	if text == "" {
		return "", ""
	}
	if text[0] == '\'' {
		for i := 1; i < len(text); i++ {
			if text[i] == '\'' && text[i-1] != '\\' {
				return text[:i+1], text[i+1:]
			}
		}
		return text, ""
	}
	switch i := strings.IndexAny(text, ".[]"); i {
	case -1:
		return text, ""
	case 0:
		return text[:1], text[1:]
	default:
		return text[:i], text[i:]
	}
}

// quotedName splits off 'name'.
func quotedName(text string) (string, string, error) {
	quoted, rest := token(text)
	if quoted == "" {
		return "", "", errors.New("unexpected end of JSON path")
	}
	if len(quoted) < 2 || quoted[0] != '\'' || quoted[len(quoted)-1] != '\'' {
		return "", "", fmt.Errorf("expected single quoted string but got %s", quoted)
	}
	name, err := unquoted(quoted[1 : len(quoted)-1])
	if err != nil {
		return "", "", fmt.Errorf("invalid string literal: %w", err)
	}
	return name, rest, nil
}

// closed splits off a closing bracket.
func closed(text string) (string, error) {
	switch end, rest := token(text); end {
	case "]":
		return rest, nil
	case "":
		return "", errors.New("unexpected end of JSON path")
	default:
		return "", fmt.Errorf("expected ] but got %s", end)
	}
}

// unquoted resolves the one-character escapes of CEL. A backslash at the end stands for itself.
func unquoted(text string) (string, error) {
	const letters, meanings = `abfnrtv'\`, "\a\b\f\n\r\t\v'\\"
	var name strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			name.WriteByte(text[i])
			continue
		}
		i++
		which := strings.IndexByte(letters, text[i])
		if which < 0 {
			return "", fmt.Errorf("invalid escape char %s", text[i-1:i+1])
		}
		name.WriteByte(meanings[which])
	}
	return name.String(), nil
}
