package conversion

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Annotation is the name of the annotation with the fields of the hub.
const Annotation = "keelson.dev/hub-fields"

// MaxBytes limits the text of the annotation, in bytes. All annotations of an object together may have 256 KiB.
const MaxBytes = 64 << 10

// Keep returns two functions for [runtime.AddConversion] or server.Convert. They convert as toHub and fromHub do, and keep the
// fields of the hub that the version S cannot hold in an annotation: see the package documentation.
//
// toHub and fromHub are called more than once for a conversion, and must have no effects but those on out. They need not copy
// metadata. What they do to metadata is not kept. If toHub fails for an object that fromHub made, nothing is kept of it.
//
// If toHub or fromHub is nil, Keep returns both as they are, and AddConversion returns an error.
func Keep[SP runtime.Pointer[S], HP runtime.Pointer[H], S, H any](toHub func(in SP, out HP) error, fromHub func(in HP, out SP) error) (func(in SP, out HP) error, func(in HP, out SP) error) {
	if toHub == nil || fromHub == nil {
		return toHub, fromHub
	}
	k := &keeper[SP, HP, S, H]{toHub, fromHub, shapeOf(reflect.TypeFor[S]()), shapeOf(reflect.TypeFor[H]())}
	return k.restore, k.store
}

// keeper converts between a version and its hub. It may be used concurrently.
type keeper[SP runtime.Pointer[S], HP runtime.Pointer[H], S, H any] struct {
	toHub      func(in SP, out HP) error
	fromHub    func(in HP, out SP) error
	spoke, hub *shape
}

// annotation is the JSON of the annotation.
type annotation struct {
	Fields   *difference `json:"fields,omitempty"`   // from the hub that the version converts to
	TooLarge bool        `json:"tooLarge,omitempty"` // there are fields, but they are too large
}

// store converts from the hub. in and out have the same metadata and share nothing.
func (k *keeper[SP, HP, S, H]) store(in HP, out SP) error {
	take(in)
	take(out)
	whole, err := members(in) // before fromHub, which may change its input
	if err != nil {
		return err
	}
	if err := k.fromHub(in, out); err != nil {
		return err
	}
	back, err := call(k.toHub, out)
	if err != nil {
		return nil // an annotation would be of no use
	}
	bare, err := members(back)
	if err != nil {
		return err
	}
	d := k.hub.compare(whole, bare)
	if d == nil {
		return nil
	}
	text, err := json.Marshal(annotation{Fields: d})
	if err == nil && len(text) > MaxBytes {
		text, err = json.Marshal(annotation{TooLarge: true})
	}
	if err != nil {
		return err
	}
	if m := metadata(out); m != nil {
		metav1.SetMetaDataAnnotation(m, Annotation, string(text))
	}
	return nil
}

// restore converts to the hub. in and out have the same metadata and share nothing.
func (k *keeper[SP, HP, S, H]) restore(in SP, out HP) error {
	text := take(in)
	take(out)
	if err := k.toHub(in, out); err != nil || text == "" {
		return err
	}
	take(out) // toHub may have copied annotations
	var kept annotation
	if len(text) > MaxBytes || json.Unmarshal([]byte(text), &kept) != nil {
		return nil
	}
	if kept.TooLarge {
		return fmt.Errorf("the hub has fields that this version cannot hold, and that are larger than the %d bytes which the annotation %q can keep; write the object in the version of the hub, or remove the annotation to empty these fields", MaxBytes, Annotation)
	}
	if restored := k.restored(out, kept.Fields); restored != nil {
		*out = *restored
	}
	return nil
}

// restored returns a copy of hub with the fields of d, or nil if they are not to be restored.
func (k *keeper[SP, HP, S, H]) restored(hub HP, d *difference) HP {
	if d == nil {
		return nil
	}
	all, err := members(hub)
	if err != nil {
		return nil
	}
	value, _ := d.apply(k.hub, all, true)
	text, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	out := HP(new(H))
	if _, err := codec.Unmarshal(text, out, codec.Ignore); err != nil {
		return nil
	}
	from, to := metadata(hub), metadata(out)
	if from == nil || to == nil {
		return nil
	}
	*to = *from
	out.GetObjectKind().SetGroupVersionKind(hub.GetObjectKind().GroupVersionKind())
	before, err := k.shown(hub)
	if err != nil {
		return nil
	}
	after, err := k.shown(out)
	if err != nil || k.spoke.compare(before, after) != nil {
		return nil
	}
	return out
}

// shown returns the fields that the version has of a hub.
func (k *keeper[SP, HP, S, H]) shown(hub HP) (any, error) {
	spoke, err := call(k.fromHub, hub)
	if err != nil {
		return nil, err
	}
	return members(spoke)
}

// call calls a conversion function with a copy of in, and turns a panic into an error.
func call[IP runtime.Pointer[I], OP runtime.Pointer[O], I, O any](convert func(in IP, out OP) error, in IP) (out OP, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the conversion panicked: %v", p)
		}
	}()
	out = OP(new(O))
	given := in.DeepCopyObject().(IP)
	if from, to := metadata(given), metadata(out); from != nil && to != nil {
		from.DeepCopyInto(to)
	}
	return out, convert(given, out)
}

// members returns the JSON of an object without kind, apiVersion and metadata. Numbers are json.Numbers.
func members(obj runtime.Object) (map[string]any, error) {
	text, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var out map[string]any
	if err := decoder.Decode(&out); err != nil {
		return nil, err
	}
	for _, name := range []string{"kind", "apiVersion", "metadata"} {
		delete(out, name)
	}
	return out, nil
}

// metadata returns the metadata of an object, or nil if its type cannot be registered.
func metadata(obj runtime.Object) *metav1.ObjectMeta {
	a, ok := obj.(metav1.ObjectMetaAccessor)
	if !ok {
		return nil
	}
	m, _ := a.GetObjectMeta().(*metav1.ObjectMeta)
	return m
}

// take removes the annotation from an object and returns its text.
func take(obj runtime.Object) string {
	m := metadata(obj)
	if m == nil {
		return ""
	}
	text := m.Annotations[Annotation]
	if delete(m.Annotations, Annotation); len(m.Annotations) == 0 {
		m.Annotations = nil
	}
	return text
}
