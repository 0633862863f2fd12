package codec

import (
	"encoding/json"

	kjson "sigs.k8s.io/json"
)

// Unmarshal decodes JSON into a Go value as the Kubernetes API does: keys are matched case-sensitively, integers stay integers in
// untyped values, and unknown and duplicate fields are reported as problems unless v is Ignore. The value is set even if there
// are problems. Data after the JSON value is an error.
//
// A value whose type has a method UnmarshalJSON, such as an unstructured.Unstructured, decides itself which fields it has, so
// only duplicate fields are reported. Nothing is reported about fields whose types have such a method, such as a
// runtime.RawExtension: kube-apiserver does not report these either.
func Unmarshal(text []byte, into any, v Validation) (problems []error, err error) {
	if v == Ignore {
		return nil, kjson.UnmarshalCaseSensitivePreserveInts(text, into)
	}
	if _, ok := into.(json.Unmarshaler); !ok {
		return kjson.UnmarshalStrict(text, into)
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, into); err != nil {
		return nil, err
	}
	var all any
	return kjson.UnmarshalStrict(text, &all)
}
