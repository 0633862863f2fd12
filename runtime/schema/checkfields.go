package schema

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/runtime/internal/jsonfield"
)

// CheckFields returns an error if JSON loses a field of the Go type of a kind, or shows the field under its Go name. It looks at
// t, at the types of its fields Spec and Status, and at all struct types below them that are of the same packages or have no
// name. Types of other packages are not checked, because such fields may be intended there.
func CheckFields(t reflect.Type) error {
	own := map[string]bool{"": true, t.PkgPath(): true}
	if t.Kind() == reflect.Struct {
		for _, name := range []string{"Spec", "Status"} { // those of runtime.Resource
			if f, ok := t.FieldByName(name); ok {
				own[jsonfield.Dereference(f.Type).PkgPath()] = true
			}
		}
	}
	c := fieldsCheck{own: own, seen: map[reflect.Type]bool{}}
	c.visit(t, "")
	return errors.Join(c.problems...)
}

type fieldsCheck struct {
	own      map[string]bool // the packages that are looked at
	seen     map[reflect.Type]bool
	problems []error
}

// visit checks the struct types that t leads to. path is the Go path from the kind, such as Spec.Parts.
func (c *fieldsCheck) visit(t reflect.Type, path string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || c.seen[t] || !c.own[t.PkgPath()] || jsonfield.Marshals(t) {
		return
	}
	c.seen[t] = true
	names := map[string][]string{}
	for i := range t.NumField() {
		f := t.Field(i)
		at := strings.TrimPrefix(path+"."+f.Name, ".")
		_, tagged := f.Tag.Lookup("json")
		field, inlined, ok := jsonfield.Parse(f)
		switch {
		case !ok && tagged && f.Tag.Get("json") != "-":
			c.refuse(at, "it has a json tag but is not exported, so that JSON does not have it; begin its name with a capital letter, or remove the tag")
			continue
		case !ok:
			continue
		case !inlined && !field.Tagged:
			c.refuse(at, fmt.Sprintf("it has no name in a json tag, and clients would have to write %q; add `json:%q`, or `json:\"-\"` if it is not for clients", f.Name, lowerFirst(f.Name)))
		case !inlined:
			names[field.Name] = append(names[field.Name], at)
		}
		c.visit(f.Type, at)
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if fields := names[name]; len(fields) > 1 {
			c.refuse(strings.Join(fields, " and "), fmt.Sprintf("they have the same name in JSON, %q, so that JSON has none of them; rename all but one", name))
		}
	}
}

func (c *fieldsCheck) refuse(at, cause string) {
	c.problems = append(c.problems, fmt.Errorf("field %s: %s", at, cause))
}

// lowerFirst returns a Go name as a name in JSON: Size is size, URL is url.
func lowerFirst(name string) string {
	n := 0
	for n < len(name) && name[n] >= 'A' && name[n] <= 'Z' {
		n++
	}
	if n > 1 && n < len(name) {
		n-- // the next word begins
	}
	return strings.ToLower(name[:n]) + name[n:]
}
