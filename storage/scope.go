package storage

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
)

// checkKey tells whether something can be stored under a key.
func (s *Store) checkKey(key string) error {
	segments := 1
	if s.opts.Namespaced {
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

// splitKey returns the namespace and the name in a key.
func (s *Store) splitKey(key string) (namespace, name string) {
	if !s.opts.Namespaced {
		return "", key
	}
	namespace, name, _ = strings.Cut(key, "/")
	return namespace, name
}

// scope is what a Selection means for keys: the interval [prefix, end), where every key begins with prefix, and
// the name that a key must end with when it is not in the prefix.
type scope struct {
	prefix, end string
	single      bool   // prefix is the one key
	suffix      string // "/name"; "": any name
}

// scope finds the keys that a selection can choose. A name or namespace that the field selector requires is as
// good as one given directly.
func (s *Store) scope(sel Selection) scope {
	namespace, ok1 := required(sel.Namespace, sel.Fields, "metadata.namespace")
	name, ok2 := required(sel.Name, sel.Fields, "metadata.name")
	switch {
	case !ok1 || !ok2 || namespace != "" && !s.opts.Namespaced:
		return scope{prefix: s.root + "\x00", end: s.root} // empty: no key has a NUL byte
	case !s.opts.Namespaced && name != "":
		return single(s.root + name)
	case namespace != "" && name != "":
		return single(s.root + namespace + "/" + name)
	case namespace != "":
		return within(s.root + namespace + "/")
	case name != "":
		sc := within(s.root)
		sc.suffix = "/" + name
		return sc
	}
	return within(s.root)
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

func single(key string) scope { return scope{prefix: key, end: key + "\x00", single: true} }

// within is all keys that begin with a prefix, which ends with a slash: the next byte after it ends the interval.
func within(prefix string) scope {
	return scope{prefix: prefix, end: prefix[:len(prefix)-1] + "0"}
}

// has tells whether a key in the interval is chosen.
func (sc scope) has(key string) bool {
	return strings.HasSuffix(key, sc.suffix) && (!sc.single || key == sc.prefix)
}
