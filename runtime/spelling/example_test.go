package spelling_test

import (
	"fmt"
	"slices"

	"github.com/keelson-dev/keelson/runtime/spelling"
)

func ExampleNearest() {
	known := []string{"minimum", "maximum", "pattern"}
	for _, name := range []string{"patern", "minium", "colour"} {
		fmt.Printf("%s: %q\n", name, spelling.Nearest(name, slices.Values(known), 2))
	}
	// Output:
	// patern: "pattern"
	// minium: "minimum"
	// colour: ""
}
