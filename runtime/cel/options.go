package cel

import (
	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/ext"
	"github.com/google/cel-go/interpreter"

	"github.com/keelson-dev/keelson/runtime/cel/internal/library"
)

// feature is something of the language that came in one version, and maybe left in another because it was replaced.
type feature struct {
	since, until Version
	options      func() []celgo.EnvOption
}

// features are in the order in which they are added. It matters: of several overloads of a function that fit, the first is
// taken.
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

// language is what all versions have.
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

// options are those of a version.
func options(version Version) []celgo.EnvOption {
	var opts []celgo.EnvOption
	for _, f := range features() {
		if version.has(f.since, f.until) {
			opts = append(opts, f.options()...)
		}
	}
	return append(opts, celgo.Lib(limits{}))
}

// limits are what programs are run with.
type limits struct{}

// CompileOptions is of celgo.Library.
func (limits) CompileOptions() []celgo.EnvOption { return nil }

// ProgramOptions is of celgo.Library.
func (limits) ProgramOptions() []celgo.ProgramOption {
	return []celgo.ProgramOption{
		celgo.EvalOptions(celgo.OptOptimize, celgo.OptTrackCost),
		celgo.CostLimit(MaxCallCost),
		celgo.CostTrackerOptions(interpreter.PresenceTestHasCost(false)),
		celgo.InterruptCheckFrequency(interruptEvery),
	}
}
