package written

import (
	"reflect"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// TestAllDecoded checks that values that are decoded together, and the errors, are the same as of values that are decoded one by
// one.
func TestAllDecoded(t *testing.T) {
	for _, texts := range [][]string{
		nil, {"1"}, {"", "null", "-0", "1e3", "9223372036854775807", `"a,b"`, `{"a":[1,2.5]}`, "[]", " true "},
		{"1,2"}, {"1,2", "[3", "4]"}, {`"a`, `b"`}, {"1", "x"}, {" "}, {"01"},
	} {
		var all []apiextensionsv1.JSON
		var want []any
		var failure error
		for _, text := range texts {
			all = append(all, apiextensionsv1.JSON{Raw: []byte(text)})
			value, err := Decoded(&all[len(all)-1])
			if want = append(want, value); err != nil {
				want, failure = nil, err
				break
			}
		}
		for _, text := range texts[len(all):] {
			all = append(all, apiextensionsv1.JSON{Raw: []byte(text)})
		}
		got, err := AllDecoded(all)
		if !reflect.DeepEqual(got, want) || (err == nil) != (failure == nil) || err != nil && err.Error() != failure.Error() {
			t.Errorf("%q: %v, %v; want %v, %v", texts, got, err, want, failure)
		}
	}
}
