package structural

import (
	"github.com/keelson-dev/keelson/runtime/structural/internal/jsonvalue"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Effort is what may be done to judge values, in about ten nanoseconds each. Conditions multiply: 40,000 alternatives of an anyOf have
// room in a definition and half a million numbers in an object, and each of these is held against each of those. Make one with
// [NewEffort]. It belongs to one goroutine.
type Effort struct {
	left  int64
	words int64 // bytes of errors that may be made yet
}

// MaxEffort is what one object may need: a second at most. It is enough for the largest request with some conditions on each value.
// kube-apiserver has no such bound, and goes on when nobody waits for the answer any more.
const MaxEffort = 30_000_000

// What some steps need.
const (
	visitEffort      = 3  // a value that is held against a schema
	judgeEffort      = 20 // one that is judged rather than allowed
	charactersEffort = 16 // characters that are counted, for one
	patternEffort    = 2  // characters times instructions of a regular expression, for one
	alternativeShare = 4  // alternatives of an enum that are compared, for one
)

// NewEffort returns MaxEffort.
func NewEffort() *Effort { return &Effort{MaxEffort, jsonvalue.MaxErrorBytes} }

// spend takes n, and says whether there was enough.
func (e *Effort) spend(n int64) bool {
	e.left -= n
	return e.left >= 0
}

// tell takes the bytes of an error, and says whether it should be made.
func (e *Effort) tell(n int64) bool {
	e.words -= n
	return e.words+n > 0
}

func (e *Effort) spent() bool { return e.left < 0 }

// tooMuch is the error of a value that needs more.
func tooMuch(path *field.Path) field.ErrorList {
	return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "the value is too large for the conditions that its schema has: judging it takes too long")}
}
