package constraint_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/keelson-dev/keelson/runtime/constraint"
)

type crowd struct {
	Levels []int32          `json:"levels,omitempty" items:"minimum:\"1\""`
	Shares map[string]int32 `json:"shares,omitempty" additionalProperties:"minimum:\"1\""`
	Names  []string         `json:"names,omitempty" listType:"set"`
	Size   int32            `json:"size" minimum:"1"`
}

// TestErrorsAreBounded checks that a small request cannot cause millions of errors.
func TestErrorsAreBounded(t *testing.T) {
	const n = 5000
	rules := rulesOf[crowd](t)
	levels, shares, names := make([]int32, n), map[string]int32{}, make([]string, n)
	for i := range n {
		shares[fmt.Sprint(i)] = 0
	}
	for name, obj := range map[string]*crowd{
		"a list": {Levels: levels, Size: 1},
		"a map":  {Shares: shares, Size: 1},
		"a set":  {Names: names, Size: 1},
		"all":    {Levels: levels, Shares: shares, Names: names},
	} {
		if errs := rules.Validate(obj); len(errs) < 1000 || len(errs) > 2000 {
			t.Errorf("%s: %d errors", name, len(errs))
		}
	}
	old := &crowd{Levels: levels, Shares: shares, Names: names, Size: 1}
	errs := rules.ValidateUpdate(&crowd{Levels: levels, Shares: shares, Names: names}, old)
	if len(errs) != 1 || errs[0].Field != "size" {
		t.Errorf("behind a list that is as it was: %d errors, %.300v", len(errs), errs)
	}
}

// chain is a type that contains itself, in a field that must not change and in a field that has too many elements.
type chain struct {
	Up   *chain  `json:"up,omitempty" immutable:"true"`
	Kids []chain `json:"kids,omitempty" maxItems:"1"`
	Text counted `json:"text"`
}

// counted counts how often it is compared: values with their own JSON are compared by it if they differ in Go.
type counted struct{ of *int }

func (c counted) MarshalJSON() ([]byte, error) { *c.of++; return []byte("0"), nil }

// TestDepthIsNoSquare checks that a value which has not changed is compared once, and not once for every value around it.
func TestDepthIsNoSquare(t *testing.T) {
	const depth = 300
	build := func(count *int, inside func(*chain) *chain) *chain {
		c := &chain{Text: counted{count}}
		for range depth {
			c = inside(c)
			c.Text = counted{count}
		}
		return c
	}
	rules, err := constraint.Of(reflect.TypeFor[chain]())
	if err != nil {
		t.Fatal(err)
	}
	for name, inside := range map[string]func(*chain) *chain{
		"immutable": func(c *chain) *chain { return &chain{Up: c} },
		"a check":   func(c *chain) *chain { return &chain{Kids: []chain{*c, {Text: c.Text}}} },
	} {
		now, was := 0, -1 // two counters, so that the values differ in Go
		obj, old := build(&now, inside), build(&was, inside)
		if errs := rules.ValidateUpdate(obj, old); errs != nil {
			t.Errorf("%s: %.300v", name, errs)
		}
		if now < depth || now > 3*depth {
			t.Errorf("%s: of %d values %d were compared", name, depth, now)
		}
	}
}
