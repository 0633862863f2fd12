package conversion

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// original has the parts of an object that are the same in the converted one, without the resourceVersion. It shares nothing with
// the object.
type original struct {
	gvk                  schema.GroupVersionKind
	name, namespace, uid string
	metadata             any // nil if there is none
	bare                 bool
}

func originalOf(in *unstructured.Unstructured) original {
	o := original{gvk: in.GroupVersionKind(), name: in.GetName(), namespace: in.GetNamespace(), uid: string(in.GetUID())}
	metadata, ok := in.Object["metadata"]
	o.bare = !ok
	if m, ok := metadata.(map[string]any); ok {
		if _, ok := m["resourceVersion"]; ok {
			m = maps.Clone(m)
			delete(m, "resourceVersion")
		}
		metadata = m
	}
	o.metadata = runtime.DeepCopyJSONValue(metadata)
	return o
}

// problem describes what is wrong with a call, or with one object of it.
type problem struct {
	failure Failure
	text    string // for clients
	whole   bool   // the problem is that of the call, and may be caused by another object in it
	nobody  bool   // the webhook did not answer
	err     error  // if not nil, it is returned instead of the text
	reason  error  // if not nil, it is logged instead of the text
}

// problemOf returns the problem of an object with kind gvk, or of a call whose first object has that kind.
func problemOf(failure Failure, gvk schema.GroupVersionKind, format string, args ...any) *problem {
	return &problem{failure: failure, text: cut(fmt.Sprintf("conversion webhook for %v %s", gvk, fmt.Sprintf(format, args...)))}
}

// error returns the error for clients.
func (p *problem) error() error {
	if p.err != nil {
		return p.err
	}
	return failed(p.text)
}

// forLog returns the error for the log.
func (p *problem) forLog() error {
	if p.reason != nil {
		return p.reason
	}
	return p.error()
}

// restored returns the object that a webhook converted, with the original metadata except for the labels and annotations, which
// are those of the webhook. It has no resourceVersion. o.metadata belongs to the result.
func restored(o original, converted []byte, to schema.GroupVersion) (*unstructured.Unstructured, *problem) {
	wrong := func(format string, args ...any) *problem {
		return problemOf(InvalidConvertedObject, o.gvk, format, args...)
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(converted); err != nil { // sic: without a prefix, as in kube-apiserver
		return nil, &problem{failure: InvalidConvertedObject, text: cut(err.Error())} // sic: kube-apiserver has no other text either
	}
	gvk := out.GroupVersionKind()
	if gvk.GroupVersion() != to {
		return nil, wrong("returned invalid object at index 0: invalid groupVersion (expected %v, received %v)", to, gvk.GroupVersion())
	}
	if gvk.Kind != o.gvk.Kind {
		return nil, wrong("returned invalid object at index 0: invalid kind (expected %v, received %v)", o.gvk.Kind, gvk.Kind)
	}
	for _, same := range []struct{ what, was, is string }{
		{"name", o.name, out.GetName()}, {"namespace", o.namespace, out.GetNamespace()}, {"UID", o.uid, string(out.GetUID())},
	} {
		if same.was != same.is {
			return nil, wrong("returned invalid object: must have the same %s: %v != %v", same.what, same.was, same.is)
		}
	}
	if err := restoreMetadata(o, out); err != nil {
		return nil, wrong("returned invalid metadata: %v", err)
	}
	return out, nil
}

func restoreMetadata(o original, out *unstructured.Unstructured) error {
	value, ok := out.Object["metadata"]
	if !ok {
		return fmt.Errorf("missing metadata in converted object")
	}
	theirs, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("invalid metadata of type %T in converted object", value)
	}
	ours, ok := o.metadata.(map[string]any)
	if o.bare {
		ours = map[string]any{}
	} else if !ok {
		return fmt.Errorf("invalid metadata of type %T in input object", o.metadata)
	}
	for _, part := range []string{"labels", "annotations"} {
		value := theirs[part]
		if value == nil {
			delete(ours, part)
			continue
		}
		is, ok := value.(map[string]any)
		if !ok {
			return fmt.Errorf("invalid metadata.%s of type %T in converted object", part, value)
		}
		was, ok := ours[part].(map[string]any)
		if !ok && ours[part] != nil {
			return fmt.Errorf("invalid metadata.%s of type %T in original object", part, ours[part])
		}
		if err := checkStrings(part, was, is); err != nil {
			return err
		}
		ours[part] = is
	}
	out.Object["metadata"] = ours
	return nil
}

// checkStrings validates labels or annotations. Unchanged ones are valid, whatever they contain.
func checkStrings(part string, was, is map[string]any) error {
	changed := len(was) != len(is)
	all := make(map[string]string, len(is))
	for _, k := range slices.Sorted(maps.Keys(is)) {
		v := is[k]
		s, ok := v.(string)
		if !ok {
			return fmt.Errorf("metadata.%s[%s] must be a string, but is %T in converted object", part, k, v)
		}
		changed = changed || was[k] != v
		all[k] = s
	}
	if !changed {
		return nil
	}
	if part == "labels" {
		return metav1validation.ValidateLabels(all, field.NewPath("metadata", part)).ToAggregate()
	} // sic: kube-apiserver has the singular too
	return validation.ValidateAnnotations(all, field.NewPath("metadata", "annotation")).ToAggregate() // sic: kube-apiserver has the singular
}

// maxText is the maximum length in bytes of a text for clients, any part of which a webhook may have written.
const maxText = 16 << 10

// cut shortens a text to about maxText.
func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	end := maxText
	for end > maxText-4 && s[end]&0xC0 == 0x80 { // inside a rune
		end--
	}
	return fmt.Sprintf("%s... (%d bytes more)", s[:end], len(s)-end)
}

// failed returns an error of code 500 without a reason, as kube-apiserver returns errors that are not StatusErrors.
func failed(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: message}}
}
