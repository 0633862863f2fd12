package library

import (
	"fmt"
	"reflect"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// noOverload returns the error of a function that was called with a value of another type, which the type checker permits for
// dyn. If v is an error already, it returns v.
func noOverload(v ref.Val) ref.Val { return types.MaybeNoSuchOverloadErr(v) }

// convert implements ConvertToType of a value whose type is own. It converts only to that type and to the type of types.
func convert(v ref.Val, own *types.Type, to ref.Type) ref.Val {
	switch to {
	case own:
		return v
	case types.TypeType:
		return own
	}
	return types.NewErr("type conversion error from '%s' to '%s'", own, to)
}

// native implements ConvertToNative. It converts to the Go type of inside, or to a string.
func native(inside any, text func() string, name string, to reflect.Type) (any, error) {
	switch {
	case inside != nil && reflect.TypeOf(inside).AssignableTo(to):
		return inside, nil
	case text != nil && to.Kind() == reflect.String:
		return text(), nil
	}
	return nil, fmt.Errorf("type conversion error from '%s' to '%v'", name, to)
}

// function is the declaration of a function.
type function struct {
	name      string
	overloads []celgo.FunctionOpt
}

// lib is a library that is added at most once to an environment, under its name.
type lib struct {
	name      string
	types     []*celgo.Type // types that expressions can name
	functions []function
	program   []celgo.ProgramOption
}

// LibraryName implements celgo.SingletonLibrary.
func (l lib) LibraryName() string { return l.name }

// CompileOptions implements celgo.Library.
func (l lib) CompileOptions() []celgo.EnvOption {
	var opts []celgo.EnvOption
	for _, t := range l.types {
		opts = append(opts, celgo.Types(t))
	}
	for _, f := range l.functions {
		opts = append(opts, celgo.Function(f.name, f.overloads...))
	}
	return opts
}

// ProgramOptions implements celgo.Library.
func (l lib) ProgramOptions() []celgo.ProgramOption { return l.program }

// global declares a function that is called as f(x).
func global(name, id string, args []*celgo.Type, result *celgo.Type, binding celgo.OverloadOpt) function {
	return function{name, []celgo.FunctionOpt{celgo.Overload(id, args, result, binding)}}
}

// method declares a function that is called as x.f().
func method(name, id string, args []*celgo.Type, result *celgo.Type, binding celgo.OverloadOpt) function {
	return function{name, []celgo.FunctionOpt{celgo.MemberOverload(id, args, result, binding)}}
}

// args returns the types of arguments.
func args(all ...*celgo.Type) []*celgo.Type { return all }

// onString binds a function of one string.
func onString(f func(string) ref.Val) celgo.OverloadOpt {
	return celgo.UnaryBinding(func(v ref.Val) ref.Val {
		s, ok := v.Value().(string)
		if !ok {
			return noOverload(v)
		}
		return f(s)
	})
}

// on binds a method of a value of type T that has no arguments.
func on[T ref.Val](f func(T) ref.Val) celgo.OverloadOpt {
	return celgo.UnaryBinding(func(v ref.Val) ref.Val {
		t, ok := v.(T)
		if !ok {
			return noOverload(v)
		}
		return f(t)
	})
}

// onBoth binds a method of a value of type T with an argument of type U.
func onBoth[T, U ref.Val](f func(T, U) ref.Val) celgo.OverloadOpt {
	return celgo.BinaryBinding(func(v, w ref.Val) ref.Val {
		t, ok := v.(T)
		if !ok {
			return noOverload(v)
		}
		u, ok := w.(U)
		if !ok {
			return noOverload(v)
		}
		return f(t, u)
	})
}

// onText binds a method of a value of type T with a string argument.
func onText[T ref.Val](f func(T, string) ref.Val) celgo.OverloadOpt {
	return onBoth(func(t T, s types.String) ref.Val { return f(t, string(s)) })
}
