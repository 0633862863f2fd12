package regexsize_test

import (
	"fmt"
	"regexp"

	"github.com/keelson-dev/keelson/runtime/regexsize"
)

// A program compiles an expression of a client only if that takes at most 16 KiB.
func ExampleOf() {
	for _, pattern := range []string{`^[a-z]+$`, `x{1000}`, `(`} {
		if bytes := regexsize.Of(pattern) * regexsize.BytesPerInstruction; bytes > 16<<10 {
			fmt.Printf("%s is too large\n", pattern)
			continue
		}
		if _, err := regexp.Compile(pattern); err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Printf("%s is compiled\n", pattern)
	}
	// Output:
	// ^[a-z]+$ is compiled
	// x{1000} is too large
	// error parsing regexp: missing closing ): `(`
}
