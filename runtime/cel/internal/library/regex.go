package library

import (
	"regexp"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// Regex returns the library with find and findAll of strings, with the syntax of RE2. A constant regular expression is compiled
// once.
func Regex() celgo.EnvOption {
	text, all := celgo.StringType, celgo.ListType(celgo.StringType)
	return celgo.Lib(lib{
		name: "kubernetes.regex",
		functions: []function{
			method("find", "string_find_string", args(text, text), text, both(first)),
			{"findAll", []celgo.FunctionOpt{
				celgo.MemberOverload("string_find_all_string", args(text, text), all, both(matches)),
				celgo.MemberOverload("string_find_all_string_int", args(text, text, celgo.IntType), all,
					celgo.FunctionBinding(search(matches))),
			}},
		},
		program: []celgo.ProgramOption{celgo.OptimizeRegex(constant("find", "", first), constant("findAll", "", matches),
			constant(overloads.Matches, overloads.Matches, match), constant(overloads.Matches, overloads.MatchesString, match))},
	})
}

// both binds a search without a limit. It is a binary binding, so cel-go evaluates both arguments even if the first is an error.
// The cost depends on this.
func both(find func(*regexp.Regexp, []ref.Val) ref.Val) celgo.OverloadOpt {
	found := search(find)
	return celgo.BinaryBinding(func(s, pattern ref.Val) ref.Val { return found(s, pattern) })
}

// search returns a function that compiles the regular expression in its second argument and calls find.
func search(find func(*regexp.Regexp, []ref.Val) ref.Val) func(...ref.Val) ref.Val {
	return func(args ...ref.Val) ref.Val {
		if len(args) < 2 {
			return types.NoSuchOverloadErr()
		}
		if _, ok := args[0].Value().(string); !ok {
			return noOverload(args[0])
		}
		pattern, ok := args[1].Value().(string)
		if !ok {
			return noOverload(args[1])
		}
		re, err := regexp.Compile(pattern)
		if err != nil {
			return types.NewErr("Illegal regex: %v", err.Error())
		}
		return find(re, args)
	}
}

// constant returns an optimization that compiles a constant regular expression with the program. If it names an overload, it
// replaces the optimization of matches that cel-go has, so that these calls are checked too.
func constant(function, overload string, find func(*regexp.Regexp, []ref.Val) ref.Val) *interpreter.RegexOptimization {
	return &interpreter.RegexOptimization{
		Function:   function,
		OverloadID: overload,
		RegexIndex: 1,
		Factory: func(call interpreter.InterpretableCall, pattern string) (interpreter.InterpretableCall, error) {
			re, err := regexp.Compile(pattern)
			if err != nil {
				return nil, err
			}
			return interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(), func(args ...ref.Val) ref.Val {
				if len(args) == 2 || len(args) == 3 {
					if !TooMuch(function, overload, args) {
						return find(re, args)
					}
					Stop()
				}
				return types.NoSuchOverloadErr()
			}), nil
		},
	}
}

// first returns the first match, or an empty string.
func first(re *regexp.Regexp, args []ref.Val) ref.Val {
	if len(args) != 2 {
		return types.NoSuchOverloadErr()
	}
	s, ok := args[0].Value().(string)
	if !ok {
		return noOverload(args[0])
	}
	return types.String(re.FindString(s))
}

// match reports whether there is a match.
func match(re *regexp.Regexp, args []ref.Val) ref.Val {
	s, ok := args[0].(types.String)
	if !ok {
		return noOverload(args[0])
	}
	return types.Bool(re.MatchString(string(s)))
}

// matches returns all matches, or at most as many as the third argument.
func matches(re *regexp.Regexp, args []ref.Val) ref.Val {
	if len(args) < 2 || len(args) > 3 {
		return types.NoSuchOverloadErr()
	}
	s, ok := args[0].Value().(string)
	if !ok {
		return noOverload(args[0])
	}
	most := int64(-1)
	if len(args) == 3 {
		if most, ok = args[2].Value().(int64); !ok {
			return noOverload(args[2])
		}
	}
	return types.NewStringList(types.DefaultTypeAdapter, re.FindAllString(s, int(most)))
}
