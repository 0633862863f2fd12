package constraint

import "slices"

// misspelt returns the tag of this package that the name of another tag probably stands for, or "". It knows what other languages and
// libraries call a rule, and names of five letters or more that differ from a tag in one or two.
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
	best, closest := "", most+1
	for _, tag := range tagNames() {
		if len(name) < least || len(tag) < least || tag == name {
			continue
		}
		if d := distance(name, tag); d < closest {
			best, closest = tag, d
		}
	}
	return best
}

// distance returns how many letters have to be added, removed or replaced to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
