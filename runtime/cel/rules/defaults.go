package rules

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/runtime/structural"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// defaultErrors returns the errors of defaults: those that ground has already, and for the other defaults the rules that they
// violate. m has the programs that are compiled already.
func (c *Compiler) defaultErrors(ctx context.Context, path *field.Path, ground structural.Groundwork, m *made) (field.ErrorList, error) {
	ruled := rulesBelow{}
	ruled.note(ground.Schema)
	if !ruled.anyDefault() {
		return ground.Defaults, nil
	}
	r, err := c.compile(ctx, ground.Schema, m)
	if err != nil {
		return nil, err
	}
	if r == nil { // rules cannot see the values that have rules
		r = &Rules{}
	}
	d := defaultWalk{ctx: ctx, wrong: slices.Clone(ground.Defaults), compiler: newTreeCompiler(ctx, c, ruled, m), budget: Budget}
	if err := d.check(path, ground.Schema, r.root); err != nil {
		return nil, err
	}
	return append(d.errs, d.wrong...), nil
}

// anyDefault reports whether a value with rules has a default.
func (r rulesBelow) anyDefault() bool {
	for s := range r {
		if s.Default != nil {
			return true
		}
	}
	return false
}

// defaultWalk evaluates rules on defaults.
type defaultWalk struct {
	ctx      context.Context
	wrong    field.ErrorList // known errors of the defaults that check has not reached yet
	compiler treeCompiler
	budget   int64 // for all defaults together
	errs     field.ErrorList
}

// check evaluates the rules on the default of s and on the defaults inside s. n has the rules of s; it is nil if there are none
// or if rules above s cannot see s.
func (d *defaultWalk) check(path *field.Path, s *structural.Schema, n *node) error {
	if at := path.Child("default"); s.Default != nil && !d.take(at.String()) && d.compiler.ruled[s] {
		if n == nil { // compile the rules of s alone
			var err error
			if n, err = d.compiler.node(s, asSeen(s), declare(s, s.Embedded), s.Embedded); err != nil {
				return err
			}
		}
		if n != nil {
			d.evaluate(at, s, n)
		}
	}
	if s.Items != nil && d.budget >= 0 {
		var items *node
		if n != nil {
			items = n.items
		}
		if err := d.check(path.Child("items"), s.Items, items); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if d.budget < 0 {
			return nil
		}
		if err := d.check(path.Child("properties").Key(name), s.Properties[name], n.property(name)); err != nil {
			return err
		}
	}
	return nil
}

// property returns the rules of a property, nil if there are none.
func (n *node) property(name string) *node {
	if n == nil {
		return nil
	}
	i, ok := slices.BinarySearchFunc(n.properties, name, func(p property, name string) int { return strings.Compare(p.name, name) })
	if !ok {
		return nil
	}
	return n.properties[i].node
}

// evaluate evaluates the rules on a default twice: as a value that an update keeps, and as a new value. A rule with an optional
// oldSelf may distinguish the two.
func (d *defaultWalk) evaluate(path *field.Path, s *structural.Schema, n *node) {
	r := &Rules{root: n, schema: s}
	kept := r.validate(d.ctx, path, s.Default, s.Default, nil, d.budget)
	d.errs = append(d.errs, kept.Errors...)
	left := kept.Budget
	if len(kept.Errors) == 0 {
		created := r.Validate(d.ctx, path, s.Default, d.budget)
		d.errs = append(d.errs, created.Errors...)
		left = min(left, created.Budget)
	}
	d.budget = left
}

// take moves the known errors at path or below it to d.errs. It reports whether one of them prevents the evaluation of rules on
// the default.
func (d *defaultWalk) take(path string) (wrong bool) {
	d.wrong = slices.DeleteFunc(d.wrong, func(err *field.Error) bool {
		rest, below := strings.CutPrefix(err.Field, path)
		if below = below && (rest == "" || rest[0] == '.' || rest[0] == '['); below {
			d.errs = append(d.errs, err)
			wrong = wrong || !structural.OnlyUnpruned(err)
		}
		return below
	})
	return wrong
}
