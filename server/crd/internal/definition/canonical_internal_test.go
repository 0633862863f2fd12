package definition

import (
	"encoding/json"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// JSON that isPlain accepts is not changed by decoding and encoding.
func TestPlainJSONIsCanonical(t *testing.T) {
	plain := 0
	for _, text := range []string{
		"0", "7", "10", "999999999999999999", `""`, `"a"`, `"a b, c: [d]"`, "01", "-1", "-0", "1000000000000000000", "1.0", "1e3", " 1", `"`, `"a\"b"`,
		`"a\u0041"`, `"<a>"`, `"a&b"`, "\"\u00e9\"", "\"\x7f\"", "true", "null", "[1, 2]", "", `" `, `"a" `,
	} {
		if !isPlain([]byte(text)) {
			continue
		}
		plain++
		value, err := decoded(apiextensionsv1.JSON{Raw: []byte(text)})
		again, failed := json.Marshal(value)
		if err != nil || failed != nil || string(again) != text {
			t.Errorf("%q: %q, %v, %v", text, again, err, failed)
		}
	}
	if plain != 7 {
		t.Errorf("%d are taken for canonical", plain)
	}
}
