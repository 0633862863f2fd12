package schema_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/schema"
)

// structOf makes a struct type of fields of type string, by their names and tags.
func structOf(fields ...[2]string) reflect.Type {
	var out []reflect.StructField
	for _, f := range fields {
		field := reflect.StructField{Name: f[0], Type: reflect.TypeFor[string](), Tag: reflect.StructTag(f[1])}
		if f[0][0] >= 'a' {
			field.PkgPath = "example.com/p"
		}
		out = append(out, field)
	}
	return reflect.StructOf(out)
}

func TestCheckFields(t *testing.T) {
	const cure = "; add `json:\"url\"`, or `json:\"-\"` if it is not for clients"
	for name, c := range map[string]struct {
		of   reflect.Type
		want string // "": no error
	}{
		"fine":          {structOf([2]string{"A", `json:"a"`}, [2]string{"B", `json:"-"`}, [2]string{"c", ""}), ""},
		"untagged":      {structOf([2]string{"URL", `json:",omitempty"`}), "field URL: it has no name in a json tag, and clients would have to write \"URL\"" + cure},
		"same":          {structOf([2]string{"A", `json:"x"`}, [2]string{"B", `json:"x"`}), `field A and B: they have the same name in JSON, "x", so that JSON has none of them; rename all but one`},
		"hidden":        {structOf([2]string{"a", `json:"x"`}), "field a: it has a json tag but is not exported, so that JSON does not have it; begin its name with a capital letter, or remove the tag"},
		"below a list":  {reflect.SliceOf(structOf([2]string{"URLPath", ""})), "field URLPath: it has no name in a json tag, and clients would have to write \"URLPath\"; add `json:\"urlPath\"`"},
		"a whole kind":  {reflect.TypeFor[runtime.Resource[struct{ Size int32 }, struct{}]](), `field Spec.Size: it has no name in a json tag`},
		"other package": {reflect.TypeFor[runtime.Resource[struct{}, struct{}]](), ""},
	} {
		err := schema.CheckFields(c.of)
		switch {
		case c.want == "" && err != nil, c.want != "" && err == nil:
			t.Errorf("%s: %v, want %q", name, err, c.want)
		case err != nil && !strings.HasPrefix(err.Error(), c.want):
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
