package codec

import (
	kjson "sigs.k8s.io/json"
)

// Unmarshal decodes JSON into a Go value as the Kubernetes API does: keys are matched case-sensitively, integers stay integers in
// untyped values, and unknown and duplicate fields are reported as problems unless v is Ignore. The value is set even if there
// are problems.
func Unmarshal(text []byte, into any, v Validation) (problems []error, err error) {
	if v == Ignore {
		return nil, kjson.UnmarshalCaseSensitivePreserveInts(text, into)
	}
	return kjson.UnmarshalStrict(text, into)
}
