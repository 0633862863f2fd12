package jsonpath_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime/jsonpath"
)

// longNames returns a list with one object, which has n members whose names are long and differ only in the last byte.
func longNames(n, length int) any {
	object := map[string]any{}
	for i := range n {
		object[strings.Repeat("k", length)+string(rune('a'+i))] = int64(i)
	}
	return map[string]any{"l": []any{object}}
}

// longTexts returns a list of a list with one object, whose members a and b are equal strings at different addresses.
func longTexts(length int) any {
	return map[string]any{"l": []any{[]any{map[string]any{"a": strings.Repeat("x", length), "b": strings.Repeat("x", length)}}}}
}

// zeros returns the path .l[0,0,...] with n zeros.
func zeros(n int) string { return ".l[0" + strings.Repeat(",0", n-1) + "]" }

// BenchmarkLong makes a row with one column whose path repeatedly reads long names or texts, and one of an ordinary object.
func BenchmarkLong(b *testing.B) {
	ordinary := decoded(b, sample)
	members := map[string]any{}
	for i := range 1000 {
		members[fmt.Sprintf("member-%d", i)] = int64(i)
	}
	many := map[string]any{"l": []any{members}}
	for _, of := range []struct {
		name, path string
		object     any
	}{
		{"names", zeros(2700) + ".*", longNames(14, 100_000)},
		{"texts", zeros(4400) + "[?(@.a<@.b)]", longTexts(700_000)},
		{"members", zeros(2700) + ".*", many},
		{"member", zeros(2000) + "." + strings.Repeat("k", 100_000), many},
		{"actions", ".l" + strings.Repeat("}{", 500_000), many},
		{"words", ".l[?(" + strings.Repeat("w", 100_000) + ")]", map[string]any{"l": wide(10_000)}},
		{"ordinary/member", ".spec.size", ordinary},
		{"ordinary/filter", `.status.conditions[?(@.type=="Ready")].status`, ordinary},
		{"ordinary/print", ".spec", ordinary},
		{"ordinary/all", ".spec.object.*", ordinary},
		{"ordinary/descent", "..name", ordinary},
	} {
		p := parsed(b, of.path)
		b.Run(of.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				budget := jsonpath.NewBudget(1 << 16)
				if v, ok, err := budget.First(p, of.object); ok && err == nil {
					budget.Text(v, 16<<10)
				}
			}
		})
	}
}
