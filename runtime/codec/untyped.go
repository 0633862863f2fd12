package codec

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/keelson-dev/keelson/runtime"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
)

// maxUnknown limits the unknown fields that are reported for a body. sigs.k8s.io/json has the same limit.
const maxUnknown = 100

// conform adapts a decoded object to the schema of the kind, if it has one, and returns unknown fields as problems. kind may be
// nil. at is "", or the path of the object with a dot, for the texts of the problems.
func conform(kind *runtime.Kind, u *unstructured.Unstructured, at string, v Validation) (problems []error, err error) {
	if kind == nil || kind.Schema == nil {
		return settle(u.Object, at, v)
	}
	report := maxUnknown
	if v == Ignore {
		report = 0
	}
	unknown, err := kind.Schema.Conform(u.Object, false, report)
	for _, path := range unknown {
		problems = append(problems, fmt.Errorf("unknown field %q", at+path))
	}
	return problems, err
}

// conformList adapts the items of a decoded list as conform adapts an object, and returns unknown fields as problems. Metadata of the
// list keeps its fields.
func conformList(s *runtime.Scheme, list *unstructured.UnstructuredList, v Validation) (problems []error, err error) {
	if given, ok := list.Object["metadata"]; ok && v != Ignore {
		text, err := json.Marshal(given)
		if err != nil {
			return nil, err
		}
		var m metav1.ListMeta
		if problems, err = Unmarshal(text, &m, v); err != nil {
			return nil, err
		}
		setPath(problems, "metadata.")
	}
	for i := range list.Items {
		item := &list.Items[i]
		wholeNumbers(item.Object)
		more, err := conform(s.KindOf(item), item, fmt.Sprintf("items[%d].", i), v)
		if err != nil {
			return nil, err
		}
		problems = append(problems, more...)
	}
	return problems, nil
}

// unmarshalUntyped decodes the members of an object. The object's own method would require a kind, and would not report duplicate
// members.
func unmarshalUntyped(u *unstructured.Unstructured, text []byte, v Validation) ([]error, error) {
	var members map[string]any
	problems, err := Unmarshal(text, &members, v)
	if err != nil {
		return nil, err
	}
	if members == nil {
		members = map[string]any{} // "null"
	}
	wholeNumbers(members)
	u.Object = members
	return problems, nil
}

// Settle gives an object of a kind without a Go type the form that decoding its JSON would give it, except defaults: metadata is
// reduced to the fields of a metav1.ObjectMeta, floating-point numbers that are whole become int64, and fields that the kind's
// schema does not specify are dropped. Metadata of a wrong type is an error. The object must have the values of decoded JSON,
// which runtime.Normalize provides. kind may be nil.
func Settle(kind *runtime.Kind, u *unstructured.Unstructured) error {
	if u.Object == nil {
		u.Object = map[string]any{}
	}
	wholeNumbers(u.Object)
	_, err := conform(kind, u, "", Ignore)
	return err
}

// settled returns a copy of u with metadata as in all objects: a strategy may have left fields there that no reader would see. u
// is not changed.
func settled(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	c := shallowUnstructured(u).(*unstructured.Unstructured)
	_, err := settle(c.Object, "", Ignore)
	return c, err
}

// settle reduces an object's metadata to the fields of a metav1.ObjectMeta, and returns the other fields as problems. For values
// of another type it returns an error, and changes nothing. at is that of conform.
func settle(members map[string]any, at string, v Validation) (problems []error, err error) {
	given, ok := members["metadata"]
	if !ok {
		return nil, nil
	}
	text, err := json.Marshal(given)
	if err != nil {
		return nil, err
	}
	var m metav1.ObjectMeta
	if problems, err = Unmarshal(text, &m, v); err != nil {
		return nil, err
	}
	setPath(problems, at+"metadata.")
	return problems, setMetadata(members, &m)
}

// setPath puts the path at before the paths of problems that Unmarshal returned.
func setPath(problems []error, at string) {
	for _, p := range problems {
		if p, ok := p.(interface { // implemented by the errors of sigs.k8s.io/json
			FieldPath() string
			SetFieldPath(path string)
		}); ok {
			p.SetFieldPath(at + p.FieldPath())
		}
	}
}

func setMetadata(members map[string]any, m *metav1.ObjectMeta) error {
	out, err := apiruntime.DefaultUnstructuredConverter.ToUnstructured(m)
	if err != nil {
		return fmt.Errorf("metadata: %w", err)
	}
	members["metadata"] = out
	return nil
}

// conformStored is conform for stored objects. Parts of the metadata that cannot be decoded are dropped, as kube-apiserver does:
// it may have stored them in a version that did not check them.
func conformStored(kind *runtime.Kind, u *unstructured.Unstructured) error {
	if kind.Schema != nil {
		_, err := kind.Schema.Conform(u.Object, true, 0)
		return err
	}
	_, err := settle(u.Object, "", Ignore)
	if err == nil {
		return nil
	}
	given, _ := u.Object["metadata"].(map[string]any)
	var m metav1.ObjectMeta
	for name, member := range given {
		text, err := json.Marshal(map[string]any{name: member})
		if err != nil {
			return err
		}
		if try := m.DeepCopy(); json.Unmarshal(text, try) == nil {
			m = *try
		}
	}
	return setMetadata(u.Object, &m)
}

// wholeNumbers converts floating-point numbers in a JSON value to int64 if their encoded form would be decoded as an integer: 1.0
// becomes 1.
func wholeNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			switch member.(type) {
			case map[string]any, []any:
				wholeNumbers(member)
			case float64:
				v[key] = wholeNumbers(member)
			}
		}
	case []any:
		for i, item := range v {
			v[i] = wholeNumbers(item)
		}
	case float64:
		const exact = 1 << 53 // up to this bound all whole numbers are encoded exactly
		switch {
		case v != math.Trunc(v) || math.Abs(v) > math.MaxInt64:
		case math.Abs(v) <= exact:
			return int64(v)
		default:
			if n, err := strconv.ParseInt(strconv.FormatFloat(v, 'f', -1, 64), 10, 64); err == nil {
				return n
			}
		}
	}
	return v
}

// unmarshal is Unmarshal for objects. An object without a Go type must be conformed to its schema after that.
func unmarshal(text []byte, obj runtime.Object, v Validation) ([]error, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return unmarshalUntyped(u, text, v)
	}
	return Unmarshal(text, obj, v)
}
