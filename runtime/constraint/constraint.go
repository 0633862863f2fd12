package constraint

import (
	"fmt"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Rules are the constraints and defaults of a Go struct type and of everything inside it, compiled from its struct
// tags. They are immutable: all methods may be called concurrently for different objects. A nil *Rules is a type
// without any: nothing is wrong with its objects and nothing is set in them.
type Rules struct {
	root *shape
}

// Of compiles the rules of t, a struct or a pointer to one. It returns nil when no field in t or below it has a tag
// of this package. An error names the Go type, the field and the tag, and says what to write instead; of several
// wrong tags all are named.
//
// Types of others may be inside t: tags that are not listed in the package comment are passed over.
func Of(t reflect.Type) (*Rules, error) { return new(Compiler).Of(t) }

// Compiler is for who compiles the rules of many types: what types have in common, such as the PodSpec in many of
// k8s.io/api, is looked through once. The zero Compiler is ready to use; its methods may be called concurrently.
type Compiler struct {
	mu       sync.Mutex // guards compiler
	compiler compiler
}

// Of is the function of that name.
func (c *Compiler) Of(t reflect.Type) (*Rules, error) {
	t, ok := dereference(t)
	if !ok || t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("constraints of %v: only a struct has fields to constrain", t)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	root, err := c.compiler.compile(t)
	if err != nil || len(root.judged) == 0 && len(root.defaulted) == 0 {
		return nil, err
	}
	return &Rules{root: root}, nil
}

// IsZero reports whether there are no rules at all, defaults included.
func (r *Rules) IsZero() bool { return r == nil }

// HasDefaults reports whether SetDefaults may do anything.
func (r *Rules) HasDefaults() bool { return r != nil && len(r.root.defaulted) > 0 }

// SetDefaults sets the defaults of absent fields of obj, a pointer to the rules' type, in place. What it sets shares
// nothing with other objects. Doing it again changes nothing. Any other obj is left alone.
func (r *Rules) SetDefaults(obj any) {
	if !r.HasDefaults() {
		return
	}
	if v, ok := r.valueOf(obj); ok && v.CanSet() {
		(&defaulter{}).fields(r.root, v)
	}
}

// Validate returns what is wrong with obj, a pointer to the rules' type, in the order of the fields. The object is
// only read. When it has found a thousand errors it looks for no more.
func (r *Rules) Validate(obj any) field.ErrorList {
	return r.judge(obj, nil)
}

// ValidateUpdate returns what is wrong with the change from old to obj, both pointers to the rules' type: what
// Validate says, without errors about values that the change left as they were, and fields that must not change. A
// nil old is Validate.
func (r *Rules) ValidateUpdate(obj, old any) field.ErrorList {
	return r.judge(obj, old)
}

func (r *Rules) judge(obj, old any) field.ErrorList {
	if r == nil || len(r.root.judged) == 0 {
		return nil
	}
	v, ok := r.valueOf(obj)
	if !ok {
		return field.ErrorList{field.InternalError(nil, fmt.Errorf("constraints of %v cannot judge a %T", r.root.typ, obj))}
	}
	was, _ := r.valueOf(old)
	j := judge{}
	j.path = j.room[:0]
	j.fields(r.root, v, was)
	return j.errs
}

// valueOf returns the struct that obj is or points to, and false when it is not of the rules' type.
func (r *Rules) valueOf(obj any) (reflect.Value, bool) {
	v := indirect(reflect.ValueOf(obj))
	if !v.IsValid() || v.Type() != r.root.typ {
		return reflect.Value{}, false
	}
	return v, true
}
