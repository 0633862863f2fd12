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

// maxUnknown is how many unknown fields of a body are reported, as many as sigs.k8s.io/json does.
const maxUnknown = 100

// conform brings a decoded object into shape, that of the kind's schema if it has one, and returns what is unknown as
// problems. kind may be nil.
func conform(kind *runtime.Kind, u *unstructured.Unstructured, v Validation) (problems []error, err error) {
	if kind == nil || kind.Schema == nil {
		return settle(u.Object, v)
	}
	report := maxUnknown
	if v == Ignore {
		report = 0
	}
	unknown, err := kind.Schema.Conform(u.Object, false, report)
	for _, path := range unknown {
		problems = append(problems, fmt.Errorf("unknown field %q", path))
	}
	return problems, err
}

// unmarshalUntyped reads the members of an object, not by its own method: that would ask for a kind, and not see duplicate
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

// Settle makes an object of a kind without a Go type what decoding its JSON would make of it, but for defaults: its
// metadata has what a metav1.ObjectMeta can hold, numbers that are whole are int64, and it has what the kind's schema
// specifies. Metadata that is none is an error. The object already has the types of decoded JSON; runtime.Normalize gives it
// those. kind may be nil.
func Settle(kind *runtime.Kind, u *unstructured.Unstructured) error {
	if u.Object == nil {
		u.Object = map[string]any{}
	}
	wholeNumbers(u.Object)
	_, err := conform(kind, u, Ignore)
	return err
}

// settled returns u with metadata as it is in all objects: a strategy may have left there what no reader would see. u is
// not changed.
func settled(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	c := shallowUnstructured(u).(*unstructured.Unstructured)
	_, err := settle(c.Object, Ignore)
	return c, err
}

// settle makes an object's metadata what a metav1.ObjectMeta can hold, and returns what it cannot as problems. Values of
// another type are an error, and then nothing is changed.
func settle(members map[string]any, v Validation) (problems []error, err error) {
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
	for _, p := range problems {
		if at, ok := p.(interface { // of sigs.k8s.io/json
			FieldPath() string
			SetFieldPath(path string)
		}); ok {
			at.SetFieldPath("metadata." + at.FieldPath())
		}
	}
	return problems, setMetadata(members, &m)
}

func setMetadata(members map[string]any, m *metav1.ObjectMeta) error {
	out, err := apiruntime.DefaultUnstructuredConverter.ToUnstructured(m)
	if err != nil {
		return fmt.Errorf("metadata: %w", err)
	}
	members["metadata"] = out
	return nil
}

// conformStored is conform for stored objects. What of the metadata cannot be read is left out, as kube-apiserver does:
// some that it has stored may date from a time when nobody looked.
func conformStored(kind *runtime.Kind, u *unstructured.Unstructured) error {
	if kind.Schema != nil {
		_, err := kind.Schema.Conform(u.Object, true, 0)
		return err
	}
	_, err := settle(u.Object, Ignore)
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

// wholeNumbers makes int64 of the floating-point numbers in a JSON value that would be read as such when they have been
// written: 1.0 is 1 then.
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
		const exact = 1 << 53 // up to which all whole numbers are their own texts
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

// unmarshal is Unmarshal for objects. One without a Go type is still to be conformed.
func unmarshal(text []byte, obj runtime.Object, v Validation) ([]error, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return unmarshalUntyped(u, text, v)
	}
	return Unmarshal(text, obj, v)
}
