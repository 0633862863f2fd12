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

// original is what of an object is in the converted one again, but for the resourceVersion. It shares nothing with the object.
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

// problem is what is wrong with a call, or with an object of it.
type problem struct {
	failure Failure
	text    string // for clients
	whole   bool   // the problem is that of the call, and perhaps of another object in it
	nobody  bool   // nobody answered
	err     error  // is told instead of the text
	reason  error  // is logged instead of the text
}

// problemOf is the problem of an object, or of a call whose first object that is.
func problemOf(failure Failure, gvk schema.GroupVersionKind, format string, args ...any) *problem {
	return &problem{failure: failure, text: cut(fmt.Sprintf("conversion webhook for %v %s", gvk, fmt.Sprintf(format, args...)))}
}

// error is what clients hear.
func (p *problem) error() error {
	if p.err != nil {
		return p.err
	}
	return failed(p.text)
}

// forLog is what the operator hears.
func (p *problem) forLog() error {
	if p.reason != nil {
		return p.reason
	}
	return p.error()
}

// restored makes an object of what a webhook made of it: of its metadata, labels and annotations are the webhook's, and all
// other is as it was. The resourceVersion is missing. o.metadata belongs to the result.
func restored(o original, converted []byte, to schema.GroupVersion) (*unstructured.Unstructured, *problem) {
	wrong := func(format string, args ...any) *problem {
		return problemOf(InvalidConvertedObject, o.gvk, format, args...)
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(converted); err != nil {
		return nil, &problem{failure: InvalidConvertedObject, text: cut(err.Error())} // sic
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

// checkStrings judges labels or annotations, which may stay as they were, whatever they were.
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
	}
	return validation.ValidateAnnotations(all, field.NewPath("metadata", "annotation")).ToAggregate() // sic
}

// maxText bounds what clients are told, of which a webhook may have written any part.
const maxText = 16 << 10

// cut bounds a text.
func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	end := maxText
	for end > maxText-4 && s[end]&0xC0 == 0x80 { // amid a rune
		end--
	}
	return fmt.Sprintf("%s... (%d bytes more)", s[:end], len(s)-end)
}

// failed is an error as kube-apiserver answers it that is not one of the API.
func failed(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: message}}
}
