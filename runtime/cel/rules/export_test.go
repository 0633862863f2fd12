package rules

import (
	"context"

	"github.com/keelson-dev/keelson/runtime/structural"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Estimate is the estimated cost of a rule.
type Estimate struct {
	Path                string // of the rule
	Cost, Message       uint64 // of one evaluation, at most
	Times               uint64 // as often as it is evaluated at most
	UsesOldSelf, Broken bool
}

// Estimates returns the estimates of all rules of a schema, as for a new schema.
func (c *Compiler) Estimates(props *apiextensionsv1.JSONSchemaProps) []Estimate {
	ground := structural.Prepare(nil, props, structural.Options{})
	if ground.Schema == nil {
		return nil
	}
	one := uint64(1)
	var all []Estimate
	j := judge{ctx: context.Background(), compiler: c, made: newMade(), observe: func(path string, r *compiled, times uint64) {
		all = append(all, Estimate{path, r.cost(), r.messageCost(), times, r.usesOldSelf, r.fault != ""})
	}}
	j.check(nil, &surroundings{schema: ground.Schema, resource: true, ruled: len(ground.Schema.Rules) > 0, times: &one})
	return all
}

// Kept returns the number of rules that Check has kept for Take.
func (c *Compiler) Kept() int {
	c.checked.mu.Lock()
	defer c.checked.mu.Unlock()
	return c.checked.kept
}
