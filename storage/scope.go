package storage

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
)

// CheckKey returns ErrBadKey, with the key, if nothing can be stored under a key of a resource.
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

// SplitKey returns the namespace, "" in a cluster-scoped resource, and the name in a key that CheckKey has no
// objection to.
func SplitKey(key string, namespaced bool) (namespace, name string) {
	if !namespaced {
		return "", key
	}
	namespace, name, _ = strings.Cut(key, "/")
	return namespace, name
}

// Scope is what a Selection means for the keys of a resource, which are relative to it: those in the interval
// [From, To) that Has. To "" is no upper bound. No key is in an interval whose To is not after From. The keys of
// an interval, From included, all begin with From. Make one with [Selection.Scope].
type Scope struct {
	From, To string
	suffix   string // "/name", with which a key must end; "": any
}

// Scope finds the keys that a selection can choose in a resource. A name or namespace that the field selector
// requires is as good as one given directly. What else the selectors ask is not in it.
func (s Selection) Scope(namespaced bool) Scope {
	namespace, ok1 := required(s.Namespace, s.Fields, "metadata.namespace")
	name, ok2 := required(s.Name, s.Fields, "metadata.name")
	switch {
	case !ok1 || !ok2 || namespace != "" && !namespaced:
		return Scope{From: "\x00", To: "\x00"} // which is in no key
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

// required returns what a key segment must be, "" for anything, and false when nothing can satisfy it.
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

// Has tells whether a key is chosen.
func (sc Scope) Has(key string) bool {
	return key >= sc.From && (sc.To == "" || key < sc.To) && strings.HasSuffix(key, sc.suffix)
}

// Single returns the key when there is no other that the scope can have.
func (sc Scope) Single() (key string, ok bool) {
	key, ok = strings.CutSuffix(sc.To, "\x00")
	if !ok || key != sc.From {
		return "", false
	}
	return key, true
}

// Whole tells whether every key in the interval is chosen.
func (sc Scope) Whole() bool { return sc.suffix == "" }
