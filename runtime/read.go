package runtime

import "github.com/keelson-dev/keelson/runtime/internal/weight"

// Read makes a new object of the kind from JSON, as package jsonread does: of what is unusual in any way, or of a kind
// without a Go type, it makes none and returns false, and the text has to be read otherwise. No defaults are set. The text
// need not be of the kind: kind and apiVersion of the object are those that it has.
func (k *Kind) Read(text []byte) (obj Object, ok bool) {
	if k.untyped || k.reader == nil {
		return nil, false
	}
	obj = k.New()
	return obj, k.reader.Read(text, obj)
}

// Weigh reports whether the values in JSON, read into an object of the kind, would take more than so many bytes of memory, and
// whether a list or map of its metadata has more than so many items: then it returns an error, which says so. It reads the
// text once and makes nothing of it. Package codec's DecodeWithin has the rules. 0 is no limit. What the values take, if that is
// within the limits, weighed is told, whose error is returned; nil is nobody.
func (k *Kind) Weigh(text []byte, bytes, items int, weighed func(bytes int) error) error {
	limit := weight.Limit{Bytes: bytes, Items: items, Weighed: weighed}
	switch {
	case k.weights == nil:
		return nil
	case k.untyped:
		return k.weights.Object(text, limit)
	}
	return k.weights.JSON(text, k.Type, limit)
}

// WeighMessage is Weigh for a protobuf message.
func (k *Kind) WeighMessage(message []byte, bytes, items int, weighed func(bytes int) error) error {
	if k.weights == nil || k.untyped {
		return nil
	}
	return k.weights.Protobuf(message, k.Type, weight.Limit{Bytes: bytes, Items: items, Weighed: weighed})
}
