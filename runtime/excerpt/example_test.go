package excerpt_test

import (
	"fmt"
	"strings"

	"github.com/keelson-dev/keelson/runtime/excerpt"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A program quotes a text of a client in an error. The quoted text has at most 40 bytes, the note included.
func ExampleOf() {
	for _, name := range []string{"dinghy", strings.Repeat("a", 5000)} {
		fmt.Printf("the name %q is taken\n", excerpt.Of(name, 40))
	}
	// Output:
	// the name "dinghy" is taken
	// the name "aaaaaa... (truncated, 5000 bytes in all)" is taken
}

// An error about an object with thousands of wrong fields lists the first hundred, of which the last
// says how many more there are.
func ExampleInvalid() {
	var errs field.ErrorList
	for i := range 5000 {
		errs = append(errs, field.Required(field.NewPath("spec", "masts").Index(i), ""))
	}
	err := excerpt.Invalid(schema.GroupKind{Group: "example.com", Kind: "Boat"}, "dinghy", errs)
	causes := err.ErrStatus.Details.Causes
	fmt.Println(len(causes), "causes")
	fmt.Println(causes[0].Field, causes[0].Message)
	fmt.Println(causes[len(causes)-1].Message)
	// Output:
	// 100 causes
	// spec.masts[0] Required value
	// Required value: there are 4900 more errors than these
}
