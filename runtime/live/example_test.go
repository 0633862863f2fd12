package live_test

import (
	"cmp"
	"fmt"

	"github.com/keelson-dev/keelson/runtime/live"
)

// A list of named values is changed while a reader goes on with the state that it has.
func Example() {
	var limits live.Members[int]
	limits.Set("width", 10, cmp.Compare[string])
	limits.Set("height", 4, cmp.Compare[string])

	before := limits.Now()
	limits.Set("width", 12, nil)
	fmt.Println(limits.Remove("height"), limits.Remove("depth"))

	for _, m := range *before {
		fmt.Println("before:", m.Name, m.Value)
	}
	for _, m := range *limits.Now() {
		fmt.Println("now:", m.Name, m.Value)
	}
	fmt.Println("changed:", limits.Now() != before)
	// Output:
	// true false
	// before: height 4
	// before: width 10
	// now: width 12
	// changed: true
}
