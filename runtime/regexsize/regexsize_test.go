package regexsize_test

import (
	"regexp/syntax"
	"testing"

	"github.com/keelson-dev/keelson/runtime/regexsize"
)

// TestOf compares the estimate with the size of compiled expressions: it is not much less, and not many times as much.
func TestOf(t *testing.T) {
	for _, pattern := range []string{
		"", "a", "x{1000}", "(x?){1000}y", "(ab|c[d-f]){0,253}", `^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$`,
		`\pL{1000}`, "(?i)kubernetes{20,}", "((a{10}){10}){10}",
	} {
		re, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		prog, err := syntax.Compile(re.Simplify())
		if err != nil {
			t.Fatal(err)
		}
		if size, made := regexsize.Of(pattern), len(prog.Inst); size*3 < made-10 || size > 3*made+200 {
			t.Errorf("%s: %d, but it has %d instructions", pattern, size, made)
		}
	}
	for _, none := range []string{"(", "x{1001}", "a**"} {
		if size := regexsize.Of(none); size != 0 {
			t.Errorf("%s: %d, but it is none", none, size)
		}
	}
}
