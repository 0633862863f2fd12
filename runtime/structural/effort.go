package structural

import (
	"github.com/keelson-dev/keelson/runtime/structural/internal/jsonvalue"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Effort is the remaining work for validating values, in units of about ten nanoseconds. Work needs a bound because conditions
// multiply with values: a definition can have 40,000 alternatives of an anyOf, an object can have half a million numbers, and
// each number is validated by each alternative. [NewEffort] makes one. An Effort must not be used concurrently.
type Effort struct {
	left  int64
	words int64 // remaining bytes of errors
}

// MaxEffort is the work for one object, a second at most. It is enough for the largest request with some conditions on each
// value. An object that needs more has one error that says so. There is one exception: an update that changes only the metadata
// has no error, so that the object can be labelled, freed of its finalizers and deleted. kube-apiserver has no such bound, and
// continues when no client waits for the response any more.
const MaxEffort = 30_000_000

// Effort of some steps.
const (
	visitEffort      = 3  // checking a value quickly
	judgeEffort      = 20 // finding the errors of a value
	charactersEffort = 16 // characters to count, for one unit
	patternEffort    = 2  // characters times instructions of a regular expression, for one unit
	alternativeShare = 4  // alternatives of an enum to compare, for one unit
)

// NewEffort returns an Effort of MaxEffort.
func NewEffort() *Effort { return &Effort{MaxEffort, jsonvalue.MaxErrorBytes} }

// spend takes n from the effort, and reports whether there was enough.
func (e *Effort) spend(n int64) bool {
	e.left -= n
	return e.left >= 0
}

// tell counts the bytes of an error, and reports whether the error should be made.
func (e *Effort) tell(n int64) bool {
	e.words -= n
	return e.words+n > 0
}

func (e *Effort) spent() bool { return e.left < 0 }

// tooMuch returns the error of a value that needs too much effort.
func tooMuch(path *field.Path) field.ErrorList {
	return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "the value is too large for the conditions that its schema has: judging it takes too long")}
}
