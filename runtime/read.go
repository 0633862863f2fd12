package runtime

import "github.com/keelson-dev/keelson/runtime/internal/weight"

// Read decodes a new object of the kind from JSON by the fast decoder of package jsonread. ok is false if that decoder does not
// accept the text, valid or not, or if the kind has no Go type. The caller must then use another decoder. Read sets no defaults.
// It does not compare kind and apiVersion in the text with those of k: the object gets those of the text.
func (k *Kind) Read(text []byte) (obj Object, ok bool) {
	if k.untyped || k.reader == nil {
		return nil, false
	}
	obj = k.New()
	return obj, k.reader.Read(text, obj)
}

// Weigh returns an error if the values in the JSON text, decoded into an object of the kind, would take more than the given
// number of bytes of memory, or if a list or map of its metadata has more than the given number of items. It reads the text once
// and decodes nothing. The rules are those of DecodeWithin in package codec. A limit of 0 means no limit. If the text is within
// the limits, Weigh calls weighed with the number of bytes, and returns its error; weighed may be nil.
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
