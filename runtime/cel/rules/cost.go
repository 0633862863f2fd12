package rules

import (
	"fmt"
	"math"
	"slices"

	"github.com/keelson-dev/keelson/runtime/structural"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Limits of the estimated costs of rules.
const (
	maxRuleCost   = 10_000_000  // for all evaluations of one rule on an object
	maxSchemaCost = 100_000_000 // for all rules of a schema
	maxReported   = 4           // number of the most expensive rules to report when the total is too high
)

// maxElements returns how many values of a schema directly inside s a value of s may have, nil if unbounded.
func maxElements(s *structural.Schema) *uint64 {
	limit := int64(1)
	switch {
	case s.Type == "array":
		if values(s).MaxItems == nil {
			return nil
		}
		limit = atLeastZero(*values(s).MaxItems)
	case s.Type == "object" && s.Others != structural.OthersUnspecified:
		if values(s).MaxProperties == nil {
			return nil
		}
		limit = atLeastZero(*values(s).MaxProperties)
	}
	n := uint64(limit)
	return &n
}

// product returns a*b, or math.MaxUint64 if the product is larger than that.
func product(a, b uint64) uint64 {
	if a != 0 && math.MaxUint64/a < b {
		return math.MaxUint64
	}
	return a * b
}

// spend adds the cost of an expression to the total.
func (j *judge) spend(path *field.Path, cost uint64) {
	if math.MaxUint64-j.total < cost {
		j.total = math.MaxUint64
	} else {
		j.total += cost
	}
	if cost < maxSchemaCost/100 {
		return
	}
	j.most = append(j.most, expense{path, cost})
	slices.SortStableFunc(j.most, func(a, b expense) int {
		switch {
		case a.cost > b.cost:
			return -1
		case a.cost < b.cost:
			return 1
		}
		return 0
	})
	j.most = j.most[:min(len(j.most), maxReported)]
}

// totalErrors returns the errors if all rules together may cost too much: one for each of the most expensive rules, and one for
// the total.
func (j *judge) totalErrors(path *field.Path) field.ErrorList {
	if j.total <= maxSchemaCost {
		return nil
	}
	var errs field.ErrorList
	for _, e := range j.most {
		errs = append(errs, field.Forbidden(e.path, "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"))
	}
	const what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
	return append(errs, field.Forbidden(path, tooCostly(what, j.total, maxSchemaCost)))
}

// tooCostly returns a message with the factor by which a cost is too high.
func tooCostly(what string, cost, limit uint64) string {
	factor := float64(cost) / float64(limit)
	text := "more than 100x"
	switch {
	case factor < 1.5: // not "1.0x"
		text = fmt.Sprintf("%fx", factor)
	case factor <= 100:
		text = fmt.Sprintf("%.1fx", factor)
	}
	return fmt.Sprintf("%s exceeds budget by factor of %s (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)", what, text)
}
