package cel

// Bounds of costs, in the units of cel-go: an operation costs 1, and reading a byte of a string costs 0.1. The bounds are part of
// the API, because they decide which expressions may be written.
const (
	// MaxCallCost is the maximum cost of one evaluation of one expression, about 0.1 s.
	//
	// In kube-apiserver some calls cost 1 however large their arguments are, such as the size of a string, or the comparison of
	// nested lists. In a comprehension such calls take minutes for a permitted cost. Here a call costs more if it reads a string
	// of more than 32 KiB, more than a thousand elements that the expression made, or a regular expression that is not a constant
	// and has more than a thousand instructions. The estimates are the same as in kube-apiserver. The elements of lists and maps
	// that were read from an object are not counted: these values implement Tree of package runtime/cel/internal/library. A value
	// can end an evaluation by the function Stop of that package.
	MaxCallCost = 1_000_000
	// MaxObjectCost is the maximum cost of all rules of an object together, or of all expressions of one policy binding, about 1
	// s.
	MaxObjectCost = 10_000_000
	// MaxMatchConditionsCost is the maximum cost of all match conditions of a webhook or of a policy binding for one object.
	MaxMatchConditionsCost = 2_500_000
	// interruptEvery is the number of steps of a comprehension between two checks of the context.
	interruptEvery = 100
)

// Sizes in bytes on which the estimates are based.
const (
	// MaxRequestSize is the assumed maximum size of a request. Lists, maps and strings without a bound of their own are assumed
	// to fill such a request. It does not depend on the limit of a server, because the estimates must not depend on that limit.
	MaxRequestSize = 3 << 20
	// MaxMessageSize is the maximum length of the result of a messageExpression.
	MaxMessageSize = 5 << 10
	// MaxDurationSize is the maximum length of a duration in JSON.
	MaxDurationSize = 32
	// MaxDateTimeSize is the maximum length of a date with a time in JSON: 9999-12-31T23:59:59.999999999Z, and quotes.
	MaxDateTimeSize = 32
	// DateSize is the length of a date in JSON.
	DateSize = 12
	// MinDurationSize is the minimum length of a duration in JSON: a zero, and quotes.
	MinDurationSize = 3
	// MinDateTimeSize is the minimum length of a date with a time in JSON.
	MinDateTimeSize = 21
	// MinStringSize is the minimum length of a string in JSON.
	MinStringSize = 2
	// MinBoolSize is the minimum length of a boolean in JSON.
	MinBoolSize = 4
	// MinNumberSize is the minimum length of a number in JSON.
	MinNumberSize = 1
)

// MaxRegexSize is the maximum number of instructions of all constant regular expressions of one expression together, about 10 MB.
// A few thousand characters are enough for more than a hundred megabytes. kube-apiserver has no such bound; there a rule of 23 KB
// takes 130 MB.
const MaxRegexSize = 250_000
