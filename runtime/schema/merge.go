package schema

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/keelson-dev/keelson/runtime/internal/jsonfield"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Check returns an error if the objects of a kind cannot be merged as the struct tags of its Go types or, if k has Docs, their
// markers declare. It finds a listType or mapType that does not exist or is on a field of another type, a list key that the
// elements do not have, and keys without listType map. The error names every such field. Types of Kubernetes are not checked.
// Programs should call Check when they start, because objects of such a kind cannot be applied or patched.
func Check(k Kind) error {
	c := &mergeChecker{reflector: newReflector(newNames(schema.GroupVersion{})), seen: map[reflect.Type]bool{}}
	c.docs = k.Docs
	c.enter(k.Type, nil)
	return errors.Join(c.problems...)
}

// mergeChecker checks the types of a kind.
type mergeChecker struct {
	*reflector
	seen     map[reflect.Type]bool
	problems []error
}

// enter checks a type and all types inside it. docs is the comment of the field that has the type, for anonymous structs.
func (c *mergeChecker) enter(t reflect.Type, docs *comment) {
	if t = jsonfield.Dereference(t); t == nil || c.seen[t] {
		return
	}
	c.seen[t] = true
	if _, special := c.special(t); special {
		return
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		c.enter(t.Elem(), docs)
	case reflect.Struct:
		c.structFields(t, docs)
	}
}

func (c *mergeChecker) structFields(t reflect.Type, docs *comment) {
	if c.kubernetes.knows(t) {
		return
	}
	if t.Name() != "" {
		docs = c.comment(t)
	}
	if v := mapTypeOf(docs.marks()); !knownMapType(v) {
		c.problems = append(c.problems, fmt.Errorf("%v: mapType %q is neither atomic nor granular", t, v))
	}
	for _, f := range c.jsonFields(t, docs) {
		comment := f.docs.field(f.Name)
		if err := c.field(f.Type, mergeRuleOf(f, comment.marks())); err != nil {
			c.problems = append(c.problems, fmt.Errorf("field %s of %v: %w", f.Name, f.declaring, err))
		}
		c.enter(f.Type, comment)
	}
}

// field checks the merge rule of a field of type t.
func (c *mergeChecker) field(t reflect.Type, rule mergeRule) error {
	t = jsonfield.Dereference(t)
	if _, special := c.special(t); special {
		t = nil // the form of its JSON is not known
	}
	switch {
	case !slices.Contains([]string{"", "atomic", "set", "map"}, rule.listType):
		return fmt.Errorf("listType %q is none of atomic, set and map", rule.listType)
	case rule.listType != "" && !isList(t):
		return fmt.Errorf("listType is for lists")
	case len(rule.keys) > 0 && rule.listType != "map":
		return fmt.Errorf(`listMapKey needs listType "map"`)
	case !knownMapType(rule.mapType):
		return fmt.Errorf("mapType %q is neither atomic nor granular", rule.mapType)
	case rule.mapType != "" && (t == nil || t.Kind() != reflect.Map && t.Kind() != reflect.Struct):
		return fmt.Errorf("mapType is for maps and structs")
	}
	var err error
	switch rule.listType {
	case "set":
		err = c.setElements(jsonfield.Dereference(t.Elem()))
	case "map":
		err = c.mapElements(jsonfield.Dereference(t.Elem()), rule.keys)
	}
	if err != nil {
		return err
	}
	return c.patchStrategy(t, rule)
}

// setElements returns an error for elements with parts that may have different owners: each element of a set has one owner.
func (c *mergeChecker) setElements(elem reflect.Type) error {
	if _, special := c.special(elem); special {
		return nil
	}
	if k := elem.Kind(); k == reflect.Map || k == reflect.Struct && mapTypeOf(c.comment(elem).marks()) != "atomic" {
		return fmt.Errorf(`listType "set" is for lists of plain values, not of %v; use "map" with a listMapKey, or "atomic"`, elem)
	}
	return nil
}

func (c *mergeChecker) mapElements(elem reflect.Type, keys []string) error {
	if len(keys) == 0 {
		return fmt.Errorf(`listType "map" needs listMapKey, the JSON names of the fields that tell elements apart`)
	}
	return c.keys(elem, "listMapKey", keys)
}

// keys checks that the elements of a list have the fields that are its keys.
func (c *mergeChecker) keys(elem reflect.Type, tag string, keys []string) error {
	if elem.Kind() == reflect.Map {
		return nil // an element may have any key
	}
	if _, special := c.special(elem); special || elem.Kind() != reflect.Struct {
		return fmt.Errorf("%s is for lists of structs, not of %v", tag, elem)
	}
	fields := c.jsonFields(elem, nil)
	for i, key := range keys {
		at := slices.IndexFunc(fields, func(f jsonField) bool { return f.name == key })
		if at < 0 {
			return fmt.Errorf("%s %q is no field of %v in JSON", tag, key, elem)
		}
		if slices.Contains(keys[:i], key) {
			return fmt.Errorf("%s %q is given twice", tag, key)
		}
		t := jsonfield.Dereference(fields[at].Type)
		if _, special := c.special(t); special {
			continue
		}
		switch t.Kind() {
		case reflect.Struct, reflect.Map, reflect.Slice, reflect.Array, reflect.Interface:
			return fmt.Errorf("%s %q of %v is a %v, not a plain value", tag, key, elem, t)
		}
		if tag == "listMapKey" && c.dropsZero(elem, fields[at]) {
			return fmt.Errorf("%s %q is left out of the JSON of a %v when it is zero, so that an element applied with zero would be another one than what is stored; take omitempty out of its json tag, or give it a default", tag, key, elem)
		}
	}
	return nil
}

// dropsZero reports whether JSON omits a zero value of the field of elem and the field has no default. In
// CustomResourceDefinitions, keys must be required or have a default.
func (c *mergeChecker) dropsZero(elem reflect.Type, f jsonField) bool {
	if !f.omitted || f.Type.Kind() == reflect.Pointer {
		return false
	}
	_, tagged := f.Tag.Lookup("default")
	_, marked := c.comment(elem).field(f.Name).marks().defaultValue()
	return !tagged && !marked
}

// patchStrategy checks the tags of strategic merge patch on a list.
func (c *mergeChecker) patchStrategy(t reflect.Type, rule mergeRule) error {
	if !isList(t) || rule.patchStrategy == "" {
		return nil
	}
	if !slices.Contains([]string{"merge", "retainKeys", "merge,retainKeys"}, rule.patchStrategy) {
		return fmt.Errorf(`patchStrategy %q is none of "merge", "retainKeys" and "merge,retainKeys"; a list without one is replaced as a whole`, rule.patchStrategy)
	}
	elem := jsonfield.Dereference(t.Elem())
	if rule.patchMergeKey != "" {
		return c.keys(elem, "patchMergeKey", []string{rule.patchMergeKey})
	}
	if _, special := c.special(elem); !special && elem.Kind() == reflect.Struct && rule.patchStrategy != "retainKeys" {
		return fmt.Errorf("patchStrategy %q on a list of structs needs patchMergeKey, the JSON name of the field that tells them apart", rule.patchStrategy)
	}
	return nil
}
