package constraint

import (
	"slices"

	"github.com/keelson-dev/keelson/runtime/spelling"
)

// misspelt returns the tag of this package that the name of another tag probably stands for, or "". It recognizes the names that
// other languages and libraries have for a rule. It also recognizes names of five letters or more that differ from a tag in one
// or two letters.
func misspelt(name string) string {
	for meant, others := range map[string][]string{
		"minimum": {"min", "gte"}, "maximum": {"max", "lte"}, "exclusiveMinimum": {"exclusiveMin"}, "exclusiveMaximum": {"exclusiveMax"},
		"minLength": {"minLen", "minlen"}, "maxLength": {"maxLen", "maxlen"}, "pattern": {"regex", "regexp"}, "enum": {"oneof", "oneOf"},
		"uniqueItems": {"unique"}, "required": {"mandatory"},
	} {
		if slices.Contains(others, name) {
			return meant
		}
	}
	const least, most = 5, 2
	if len(name) < least {
		return ""
	}
	long := slices.DeleteFunc(tagNames(), func(tag string) bool { return len(tag) < least })
	return spelling.Nearest(name, slices.Values(long), most)
}
