package cel

import (
	"fmt"
	"maps"

	celgo "github.com/google/cel-go/cel"

	"github.com/keelson-dev/keelson/runtime/cel/internal/library"
)

// Environment is the set of names that expressions may use: the language of a version, and variables. It is immutable and may be
// used concurrently. Making one is slow (milliseconds) and extending one is faster, so a process should make one once and keep
// it.
type Environment struct {
	version Version
	env     *celgo.Env
	planner *celgo.Env           // plans the programs that env has checked. Programs keep it alive, and mostly do not need the variables
	roots   map[string]*DeclType // types of the variables, for the estimates

	operators celgo.ProgramOption // the operators with checks of their arguments
}

// New returns the environment of a version, without variables.
func New(version Version) (*Environment, error) {
	base, err := celgo.NewEnv()
	if err != nil {
		return nil, fmt.Errorf("cel: %w", err)
	}
	env, err := base.Extend(options(version)...)
	if err != nil {
		return nil, fmt.Errorf("cel: environment %v: %w", version, err)
	}
	guarded, err := guardOverloads(env)
	if err != nil {
		return nil, fmt.Errorf("cel: %w", err)
	}
	operators, err := guardOperators(env)
	if err != nil {
		return nil, fmt.Errorf("cel: %w", err)
	}
	if env, err = env.Extend(guarded...); err != nil {
		return nil, fmt.Errorf("cel: %w", err)
	}
	return withPlanner(&Environment{version: version, env: env, operators: operators})
}

// Version returns the version for which the environment was made.
func (e *Environment) Version() Version { return e.version }

// WithPatches returns the environment with the function jsonpatch.escapeKey, which only expressions that make patches may use.
func (e *Environment) WithPatches() (*Environment, error) {
	env, err := e.env.Extend(library.JSONPatch())
	if err != nil {
		return nil, fmt.Errorf("cel: %w", err)
	}
	return withPlanner(&Environment{version: e.version, env: env, roots: e.roots, operators: e.operators})
}

// withPlanner sets the planner of an environment without variables. All environments that extend it share the planner.
func withPlanner(e *Environment) (*Environment, error) {
	p := newProvider(e.env.CELTypeProvider(), e.version, nil)
	var err error
	if e.planner, err = e.env.Extend(celgo.CustomTypeProvider(p), celgo.CustomTypeAdapter(p)); err != nil {
		return nil, fmt.Errorf("cel: %w", err)
	}
	return e, nil
}

// Extend returns the environment with more variables. types lists further object types that expressions may use. The types of the
// variables need not be listed.
func (e *Environment) Extend(variables []Variable, types ...*DeclType) (*Environment, error) {
	var opts []celgo.EnvOption
	for _, v := range variables {
		typ := v.Type.typ
		if v.Optional {
			typ = celgo.OptionalType(typ)
		}
		types = append(types, v.Type)
		opts = append(opts, celgo.Variable(v.Name, typ))
	}
	p := newProvider(e.env.CELTypeProvider(), e.version, types)
	opts = append(opts, celgo.CustomTypeProvider(p), celgo.CustomTypeAdapter(p))
	env, err := e.env.Extend(opts...)
	if err != nil {
		return nil, fmt.Errorf("cel: %w", err)
	}
	return &Environment{version: e.version, env: env, planner: e.planner, roots: e.rootsWith(variables), operators: e.operators}, nil
}

// Resized returns the environment with other types for variables that it already has, for the estimates of costs. A new type may
// differ from the old one only in the sizes of its values, and must not contain an object type. Resized is much faster than
// Extend.
func (e *Environment) Resized(variables []Variable) *Environment {
	return &Environment{version: e.version, env: e.env, planner: e.planner, roots: e.rootsWith(variables), operators: e.operators}
}

// rootsWith returns the types of the variables of e and of more variables.
func (e *Environment) rootsWith(variables []Variable) map[string]*DeclType {
	roots := make(map[string]*DeclType, len(e.roots)+len(variables)+1)
	maps.Copy(roots, e.roots)
	for _, v := range variables {
		roots[v.Name] = v.Type
		if v.SizesOthers {
			roots[otherNames] = v.Type
		}
	}
	return roots
}
