package runtime

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
