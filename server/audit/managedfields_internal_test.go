package audit

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestWithoutManagedFields(t *testing.T) {
	t.Parallel()
	for _, test := range [][2]string{
		{`{"kind":"A","metadata":{"managedFields":[{"a":1}],"name":"a"},"spec":{"managedFields":1}}`, `{"kind":"A","metadata":{"name":"a"},"spec":{"managedFields":1}}`},
		{`{"metadata":{"name":"a\u003c\"","managedFields":null}}`, `{"metadata":{"name":"a\u003c\""}}`},
		{`{"metadata":{"managedFields":[]},"items":[{"metadata":{"managedFields":[]}},{"metadata":{"name":"b","managedFields":[{}]},"x":[1]},7]}`, `{"metadata":{},"items":[{"metadata":{}},{"metadata":{"name":"b"},"x":[1]},7]}`},
		{`{"kind":"Table","rows":[{"cells":["managedFields"],"object":{"metadata":{"managedFields":[]}}},null]}`, `{"kind":"Table","rows":[{"cells":["managedFields"],"object":{"metadata":{}}},null]}`},
		{`{"metadata":"managedFields","items":{"managedFields":1},"rows":7}`, `{"metadata":"managedFields","items":{"managedFields":1},"rows":7}`},
		{`[{"op":"add","path":"/metadata/managedFields"},{"metadata":{"managedFields":[]}}]`, `[{"op":"add","path":"/metadata/managedFields"},{"metadata":{"managedFields":[]}}]`},
		{`{"a":1}`, `{"a":1}`},
		{``, ``},
	} {
		if got := string(withoutManagedFields(json.RawMessage(test[0]))); got != test[1] {
			t.Errorf("%s\ngot  %s\nwant %s", test[0], got, test[1])
		}
	}
}

func FuzzManagedFields(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"b","managedFields":[{}]},"items":[{"metadata":{"managedFields":[]}}],"rows":[{"object":{}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if !json.Valid(text) {
			withoutManagedFields(text)
			return
		}
		var before, after any
		if err := json.Unmarshal(text, &before); err != nil {
			t.Skip()
		}
		got := withoutManagedFields(text)
		if err := json.Unmarshal(got, &after); err != nil {
			t.Fatalf("%s: %s: %v", text, got, err)
		}
		if !strings.Contains(string(text), "managedFields") && !reflect.DeepEqual(before, after) {
			t.Fatalf("%s became %s", text, got)
		}
	})
}
