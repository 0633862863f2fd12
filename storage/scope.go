package storage

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
)

// CheckKey returns ErrBadKey, with the key in its text, if nothing can be stored under this key of a resource.
func CheckKey(key string, namespaced bool) error {
	segments := 1
	if namespaced {
		segments = 2
	}
	if strings.Count(key, "/") != segments-1 {
		return fmt.Errorf("%w: %q", ErrBadKey, key)
	}
	for segment := range strings.SplitSeq(key, "/") {
		if !isSegment(segment) {
			return fmt.Errorf("%w: %q", ErrBadKey, key)
		}
	}
	return nil
}

func isSegment(s string) bool {
	return s != "" && s != "." && s != ".." && !strings.ContainsAny(s, "/\x00")
}

// SplitKey returns the namespace and the name in a key that CheckKey accepts. The namespace is "" in a cluster-scoped
// resource.
func SplitKey(key string, namespaced bool) (namespace, name string) {
	if !namespaced {
		return "", key
	}
	namespace, name, _ = strings.Cut(key, "/")
	return namespace, name
}

// Scope is the set of keys that a Selection can choose, relative to the resource: the keys in the interval [From, To) for
// which Has is true. To "" is no upper bound. An interval whose To is not after From has no key. All keys of an interval,
// From included, begin with From. Make a Scope with [Selection.Scope].
type Scope struct {
	From, To string // the interval [From, To)
	suffix   string // "/name", the required end of a key; "": any end
}

// Scope returns the keys that a selection can choose in a resource. A name or namespace that the field selector requires
// counts like one in Name or Namespace. Other requirements of the selectors are not part of the Scope.
func (s Selection) Scope(namespaced bool) Scope {
	namespace, ok1 := required(s.Namespace, s.Fields, "metadata.namespace")
	name, ok2 := required(s.Name, s.Fields, "metadata.name")
	switch {
	case !ok1 || !ok2 || namespace != "" && !namespaced:
		return Scope{From: "\x00", To: "\x00"} // no key has a NUL byte
	case !namespaced && name != "":
		return single(name)
	case namespace != "" && name != "":
		return single(namespace + "/" + name)
	case namespace != "":
		return Scope{From: namespace + "/", To: namespace + "0"} // the next byte after a slash
	case name != "":
		return Scope{suffix: "/" + name}
	}
	return Scope{}
}

// required returns the required value of a key segment, "" if any value is possible. ok is false when no value satisfies the
// selection.
func required(given string, selector fields.Selector, field string) (string, bool) {
	if selector != nil {
		value, ok := selector.RequiresExactMatch(field)
		switch {
		case !ok || value == given:
		case given != "" || value == "":
			return "", false
		default:
			given = value
		}
	}
	return given, given == "" || isSegment(given)
}

func single(key string) Scope { return Scope{From: key, To: key + "\x00"} }

// Has reports whether the scope has a key.
func (sc Scope) Has(key string) bool {
	return key >= sc.From && (sc.To == "" || key < sc.To) && strings.HasSuffix(key, sc.suffix)
}

// Single returns the key if it is the only one that the scope can have.
func (sc Scope) Single() (key string, ok bool) {
	key, ok = strings.CutSuffix(sc.To, "\x00")
	if !ok || key != sc.From {
		return "", false
	}
	return key, true
}

// Whole reports whether the scope has every key in the interval.
func (sc Scope) Whole() bool { return sc.suffix == "" }
