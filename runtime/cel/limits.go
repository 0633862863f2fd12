package cel

// What expressions may cost, in the units of cel-go: one for an operation, a tenth for a byte of a string that is read. They
// are part of the API, since they decide which expressions may be written.
const (
	// MaxCallCost is what one evaluation of one expression may cost: about 0.1 s.
	MaxCallCost = 1_000_000
	// MaxObjectCost is what all rules of an object, or all expressions of one policy binding, may cost together: about 1 s.
	MaxObjectCost = 10_000_000
	// MaxMatchConditionsCost is what all match conditions of a webhook or of a policy binding may cost for an object.
	MaxMatchConditionsCost = 2_500_000
	// interruptEvery is after how many steps of a comprehension a context is looked at.
	interruptEvery = 100
)

// Sizes that the estimates stand on, in bytes.
const (
	// MaxRequestSize is how large a request may be. Lists, maps and strings without a bound of their own are taken to be as
	// large as they can be in it. It is not how large the requests of a server may be: then estimates would depend on that.
	MaxRequestSize = 3 << 20
	// MaxMessageSize is how long what a messageExpression evaluates to may be.
	MaxMessageSize = 5 << 10
	// MaxDurationSize is how long a duration can be in JSON.
	MaxDurationSize = 32
	// MaxDateTimeSize is how long a date with a time can be in JSON: 9999-12-31T23:59:59.999999999Z, and quotes.
	MaxDateTimeSize = 32
	// DateSize is how long a date is in JSON.
	DateSize = 12
	// MinDurationSize is how short a duration can be in JSON: a zero, and quotes.
	MinDurationSize = 3
	// MinDateTimeSize is how short a date with a time can be in JSON.
	MinDateTimeSize = 21
	// MinStringSize is how short a string can be in JSON.
	MinStringSize = 2
	// MinBoolSize is how short a boolean can be in JSON.
	MinBoolSize = 4
	// MinNumberSize is how short a number can be in JSON.
	MinNumberSize = 1
)

// MaxRegexSize is how many instructions the regular expressions of one expression that are constants may have together: 10 MB.
// It is not in kube-apiserver, where a rule of 23 KB takes 130 MB.
const MaxRegexSize = 250_000
