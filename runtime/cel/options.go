package cel

import (
	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/ext"
	"github.com/google/cel-go/interpreter"

	"github.com/keelson-dev/keelson/runtime/cel/internal/library"
)

// feature is a part of the language that version since added. It is removed in version until, unless until is zero.
type feature struct {
	since, until Version
	options      func() []celgo.EnvOption
}

// features lists the features in the order in which they are added. The order matters: if several overloads of a function fit a
// call, cel-go takes the first.
func features() []feature {
	one := func(option func() celgo.EnvOption) func() []celgo.EnvOption {
		return func() []celgo.EnvOption { return []celgo.EnvOption{option()} }
	}
	return []feature{
		{options: language},
		{until: 37, options: one(func() celgo.EnvOption { return library.Lists(0) })},
		{since: 27, options: one(library.Authorization)},
		{since: 28, options: func() []celgo.EnvOption {
			return []celgo.EnvOption{celgo.CrossTypeNumericComparisons(true), celgo.OptionalTypes(), library.Quantity()}
		}},
		{since: 29, options: one(func() celgo.EnvOption {
			return celgo.ASTValidators(celgo.ValidateDurationLiterals(), celgo.ValidateTimestampLiterals(),
				celgo.ValidateRegexLiterals(), celgo.ValidateHomogeneousAggregateLiterals())
		})},
		{until: 29, options: one(func() celgo.EnvOption { return ext.Strings(ext.StringsVersion(0)) })},
		{since: 29, options: one(func() celgo.EnvOption { return ext.Strings(ext.StringsVersion(2)) })},
		{since: 29, options: one(func() celgo.EnvOption { return ext.Sets() })},
		{since: 30, options: func() []celgo.EnvOption { return []celgo.EnvOption{library.IP(), library.CIDR()} }},
		{since: 31, options: one(library.Format)},
		{since: 31, options: one(library.AuthorizationSelectors)},
		{since: 32, options: one(func() celgo.EnvOption { return ext.TwoVarComprehensions() })},
		{since: 33, options: one(library.Semver)},
		{since: 34, options: one(func() celgo.EnvOption { return ext.Lists(ext.ListsVersion(3)) })},
		{since: 37, options: one(func() celgo.EnvOption { return library.Lists(1) })},
	}
}

// language returns the options that all versions have.
func language() []celgo.EnvOption {
	return []celgo.EnvOption{
		celgo.HomogeneousAggregateLiterals(),
		celgo.EagerlyValidateDeclarations(true),
		celgo.DefaultUTCTimeZone(true),
		library.URLs(),
		library.Regex(),
		celgo.CostEstimatorOptions(checker.PresenceTestHasCost(false)),
	}
}

// options returns the options of a version.
func options(version Version) []celgo.EnvOption {
	var opts []celgo.EnvOption
	for _, f := range features() {
		if version.has(f.since, f.until) {
			opts = append(opts, f.options()...)
		}
	}
	return append(opts, celgo.Lib(limits{}))
}

// limits is a library with the options of all programs.
type limits struct{}

// CompileOptions implements celgo.Library.
func (limits) CompileOptions() []celgo.EnvOption { return nil }

// ProgramOptions implements celgo.Library.
func (limits) ProgramOptions() []celgo.ProgramOption {
	return []celgo.ProgramOption{
		celgo.EvalOptions(celgo.OptOptimize, celgo.OptTrackCost),
		celgo.CostLimit(MaxCallCost),
		celgo.CostTrackerOptions(interpreter.PresenceTestHasCost(false)),
		celgo.InterruptCheckFrequency(interruptEvery),
	}
}
