package selector_test

import (
	"fmt"
	"strings"

	"github.com/keelson-dev/keelson/runtime/selector"
	"k8s.io/apimachinery/pkg/labels"
)

// A program parses the label selector of a client, and selects objects by their labels.
func ExampleLabels() {
	parsed, err := selector.DefaultLimit.ParseLabels("color in (red, blue), !sunk")
	if err != nil {
		fmt.Println(err)
		return
	}
	chosen := selector.Labels(parsed)
	fmt.Println(chosen.Matches(labels.Set{"color": "red"}))
	fmt.Println(chosen.Matches(labels.Set{"color": "red", "sunk": "1912"}))
	// Output:
	// true
	// false
}

// A selector with more requirements than the limit is an error.
func ExampleLimit_ParseFields() {
	limit := selector.Limit(10)
	_, err := limit.ParseFields("spec.color=red" + strings.Repeat(",spec.size!=1", 10))
	fmt.Println(err)
	// Output:
	// the field selector is too large: it has 11 requirements, and at most 10 are allowed
}
