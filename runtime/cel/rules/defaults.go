package rules

import (
	"context"
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/runtime/structural"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// defaultErrors returns how defaults break the rules on them. Those that have another fault are left out.
func (c *Compiler) defaultErrors(ctx context.Context, path *field.Path, ground structural.Groundwork) (field.ErrorList, error) {
	ruled := rulesBelow{}
	ruled.note(ground.Schema)
	if !ruled.anyDefault() {
		return nil, nil
	}
	r, err := c.Compile(ground.Schema)
	if err != nil || r == nil {
		return nil, err
	}
	d := defaultWalk{ctx: ctx, wrong: ground.Defaults, budget: Budget}
	d.check(path, ground.Schema, r.root)
	return d.errs, nil
}

// anyDefault says that there are rules on a value that has a default.
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
	ctx    context.Context
	wrong  field.ErrorList // what is known of defaults
	budget int64           // for all of them
	errs   field.ErrorList
}

// check evaluates the rules on the default of s and on those below. n are the rules of s, nil if there are none.
func (d *defaultWalk) check(path *field.Path, s *structural.Schema, n *node) {
	if n == nil {
		return
	}
	if s.Default != nil && !d.isWrong(path.Child("default").String()) {
		d.evaluate(path.Child("default"), s, n)
	}
	if d.budget < 0 {
		return
	}
	if s.Items != nil {
		d.check(path.Child("items"), s.Items, n.items)
	}
	for i := range n.properties {
		if d.budget < 0 {
			return
		}
		p := &n.properties[i]
		d.check(path.Child("properties").Key(p.name), s.Properties[p.name], p.node)
	}
}

// evaluate evaluates rules on a default as a value that an update keeps, and as a new one: a rule with an optional oldSelf may
// tell them apart.
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

// isWrong says that there is an error at a path or below it.
func (d *defaultWalk) isWrong(path string) bool {
	return slices.ContainsFunc(d.wrong, func(err *field.Error) bool {
		rest, below := strings.CutPrefix(err.Field, path)
		return below && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}
