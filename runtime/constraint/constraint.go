package constraint

import (
	"fmt"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Rules are the constraints and defaults of a Go struct type and of all types inside it, compiled from struct tags. They are
// immutable: all methods may be called concurrently for different objects. A nil *Rules has no rules: every object is valid, and
// no defaults are set.
//
// # Absent fields
//
// A field is absent if its pointer, list, map or interface is nil, if its json tag has omitempty or omitzero and JSON leaves the
// value out, or if the value is null in JSON (a zero metav1.Time). The zero value of any other field is a value like others: a
// field `json:"size"` that a client leaves out is 0, and must obey the rules as 0. Only required and immutable apply to an absent
// field.
//
// A field without omitempty that is not a pointer, list, map or interface is therefore never absent. Of returns an error if such
// a field is required, because the tag would have no effect.
type Rules struct {
	root *shape
}

// Of compiles the rules of t, which must be a struct or a pointer to one. It returns nil if no field in t or below it has a tag
// of this package. If tags are wrong, the error names the Go type, the field and the tag of each of them, and says what to write
// instead.
//
// t may contain types of other packages: tags that the package documentation does not list are ignored.
func Of(t reflect.Type) (*Rules, error) { return new(Compiler).Of(t) }

// Compiler compiles the rules of many types. Types that they have in common, such as the PodSpec in many types of k8s.io/api, are
// examined only once. The zero Compiler is ready to use; its methods may be called concurrently.
type Compiler struct {
	mu       sync.Mutex // guards compiler
	compiler compiler
}

// Of is like the function [Of].
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

// IsZero reports whether there are no rules and no defaults.
func (r *Rules) IsZero() bool { return r == nil }

// HasDefaults reports whether SetDefaults may change an object.
func (r *Rules) HasDefaults() bool { return r != nil && len(r.root.defaulted) > 0 }

// SetDefaults sets the defaults of obj, a pointer to the rules' type, in place. Values that it sets are not shared with other
// objects. A second call changes nothing. An obj of another type is not changed.
//
// A default is set if the field is absent. If the field is not a pointer, list, map or interface, it is also set if the field has
// its zero value: a Go program cannot distinguish a 0 that a client sent from a missing value. If zero is a valid choice, make
// the field a pointer; a boolean that is true by default must be a pointer. A default must itself be valid. Fields inside a nil
// pointer get no defaults unless the pointer has one, such as default:"{}".
func (r *Rules) SetDefaults(obj any) {
	if !r.HasDefaults() {
		return
	}
	if v, ok := r.valueOf(obj); ok && v.CanSet() {
		(&defaulter{}).fields(r.root, v)
	}
}

// Validate returns the errors of obj, a pointer to the rules' type, in the order of the fields. It only reads the object. It
// stops after a thousand errors.
//
// Errors are apimachinery's field errors, with the types and texts that kube-apiserver uses for custom resources:
//
//	spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1
//	spec.color: Unsupported value: "blue": supported values: "red", "green"
//
// The key of a map is in brackets, as in spec.weights[a.b] and in errors of built-in kinds. For custom resources, kube-apiserver
// writes spec.weights.a.b.
func (r *Rules) Validate(obj any) field.ErrorList {
	return r.judge(obj, nil)
}

// ValidateUpdate returns the errors of the change from old to obj, both pointers to the rules' type. These are the errors of
// Validate, except those about values that did not change, and errors for immutable fields that changed. With a nil old it is
// Validate.
//
// Rules may become stricter while objects are stored: an update that leaves a value as it was gets no error for it
// (https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/4008-crd-ratcheting), and a required field may
// stay absent. An old value is found by its field, by its key in a map, and in lists by the keys of listType map or the value of
// listType set. In every other list it is only found if the whole list is unchanged.
//
// An immutable field must not be changed, removed, or added later, as with +k8s:immutable in Kubernetes
// (https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/5073-declarative-validation-with-validation-gen).
// It belongs to its struct: in an object, list element or map value that was not there before, it may have any value, and
// removing the whole struct is not a change of the field. A struct whose json tag has omitempty or omitzero counts as not there
// while it is zero, such as a status before it is first written. Make the outer field immutable as well to forbid that.
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

// valueOf returns the struct that obj is or points to. It returns false if that is not of the rules' type.
func (r *Rules) valueOf(obj any) (reflect.Value, bool) {
	v := indirect(reflect.ValueOf(obj))
	if !v.IsValid() || v.Type() != r.root.typ {
		return reflect.Value{}, false
	}
	return v, true
}
