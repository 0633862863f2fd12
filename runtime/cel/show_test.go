package cel_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// show returns a value as the corpus has it.
func show(v ref.Val) string {
	switch v := v.(type) {
	case types.Null:
		return "null"
	case types.String:
		if len(v) > 200 {
			return fmt.Sprintf("string of %d", len(v))
		}
		return fmt.Sprintf("%q", string(v))
	case types.Bytes:
		return fmt.Sprintf("b%q", string(v))
	case types.Bool, types.Int, types.Uint, types.Double:
		return fmt.Sprintf("%s %v", v.Type().TypeName(), v.Value())
	case types.Duration, types.Timestamp:
		return fmt.Sprintf("%s %v", v.Type().TypeName(), v.ConvertToType(types.StringType).Value())
	case *types.Optional:
		if !v.HasValue() {
			return "none"
		}
		return "some " + show(v.GetValue())
	case *types.Type:
		return "type " + v.TypeName()
	case traits.Lister:
		var all []string
		for it := v.Iterator(); it.HasNext() == types.True; {
			all = append(all, show(it.Next()))
		}
		if len(all) > 50 {
			all = append(all[:50], fmt.Sprintf("and %d more", len(all)-50))
		}
		return "[" + strings.Join(all, ", ") + "]"
	case traits.Mapper:
		var all []string
		for it := v.Iterator(); it.HasNext() == types.True; {
			k := it.Next()
			all = append(all, show(k)+": "+show(v.Get(k)))
		}
		slices.Sort(all)
		return "{" + strings.Join(all, ", ") + "}"
	}
	name := v.Type().TypeName()
	if s, err := v.ConvertToNative(reflect.TypeFor[string]()); err == nil {
		return fmt.Sprintf("%s %v", name, s)
	}
	return name
}

// values returns the values of the variables in the corpus.
func values() map[string]any {
	self := map[string]any{
		"s": "hello, wörld", "long": strings.Repeat("abc ", 50), "e": "red", "i": int64(42), "d": 2.5, "b": true,
		"by": []byte("bytes"), "du": mustDuration("90s"), "ts": mustTime("2024-02-29T12:34:56.789Z"),
		"ls": []any{"b", "a", "c", "a"}, "li": []any{int64(3), int64(1), int64(2)}, "ld": []any{1.5, -2.0}, "lb": []any{true, false},
		"ll": []any{[]any{int64(1)}, []any{int64(2), int64(3)}}, "empty": []any{},
		"ul": []any{"x", "y"},
		"lo": []any{map[string]any{"name": "one", "value": int64(1)}, map[string]any{"name": "two"}},
		"m":  map[string]any{"k": "v", "app": "web"}, "mi": map[string]any{"a": int64(1), "b": int64(2)}, "um": map[string]any{"z": "zz"},
		"mo":  map[string]any{"first": map[string]any{"name": "one", "value": int64(7)}},
		"any": "50%", "anyint": int64(7),
		"o":   map[string]any{"x": int64(5), "namespace": "ns", "__namespace__": "ns", "a__dash__b": "dashed"},
		"nul": nil,
	}
	return map[string]any{"self": self, "x": map[string]any{"a": []any{int64(1), "two", 3.0}, "n": nil, "u": uint64(9)}}
}
