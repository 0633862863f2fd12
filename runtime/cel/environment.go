package cel

import (
	"fmt"
	"maps"

	celgo "github.com/google/cel-go/cel"

	"github.com/keelson-dev/keelson/runtime/cel/internal/library"
)

// Environment is what expressions may use: the language of a version, and variables. It does not change, and may be used
// concurrently. To make one is slow (milliseconds), to extend one less so; a program makes it once and keeps it.
type Environment struct {
	version Version
	env     *celgo.Env
	planner *celgo.Env           // plans what env has checked: programs keep it, and need nothing of variables, mostly
	roots   map[string]*DeclType // of the variables, for the estimates

	operators celgo.ProgramOption // that are guarded
}

// New is the environment of a version, without variables.
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

// Version is what the environment was made for.
func (e *Environment) Version() Version { return e.version }

// WithPatches is the environment with what expressions have that make patches: jsonpatch.escapeKey.
func (e *Environment) WithPatches() (*Environment, error) {
	env, err := e.env.Extend(library.JSONPatch())
	if err != nil {
		return nil, fmt.Errorf("cel: %w", err)
	}
	return withPlanner(&Environment{version: e.version, env: env, roots: e.roots, operators: e.operators})
}

// withPlanner gives an environment without variables its planner, which all that extend it share.
func withPlanner(e *Environment) (*Environment, error) {
	p := newProvider(e.env.CELTypeProvider(), e.version, nil)
	var err error
	if e.planner, err = e.env.Extend(celgo.CustomTypeProvider(p), celgo.CustomTypeAdapter(p)); err != nil {
		return nil, fmt.Errorf("cel: %w", err)
	}
	return e, nil
}

// Extend is the environment with more variables. Types names types that expressions use only by the variables of others;
// those of the variables need not be named.
func (e *Environment) Extend(variables []Variable, types ...*DeclType) (*Environment, error) {
	roots := maps.Clone(e.roots)
	if roots == nil {
		roots = make(map[string]*DeclType, len(variables))
	}
	var opts []celgo.EnvOption
	for _, v := range variables {
		typ := v.Type.typ
		if v.Optional {
			typ = celgo.OptionalType(typ)
		}
		roots[v.Name] = v.Type
		if v.SizesOthers {
			roots[otherNames] = v.Type
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
	return &Environment{version: e.version, env: env, planner: e.planner, roots: roots, operators: e.operators}, nil
}
