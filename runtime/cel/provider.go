package cel

import (
	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// provider provides the object types of variables, in addition to the types of the environment below it.
type provider struct {
	types.Provider
	types.Adapter

	objects  map[string]*DeclType
	keywords bool // a field whose name is a keyword may be written without the escape
}

// keywordsSince is the first version in which self.namespace means self.__namespace__.
const keywordsSince Version = 31

func newProvider(under types.Provider, version Version, all []*DeclType) *provider {
	p := &provider{
		Provider: under,
		Adapter:  types.DefaultTypeAdapter,
		objects:  make(map[string]*DeclType),
		keywords: version >= keywordsSince,
	}
	if a, ok := under.(types.Adapter); ok {
		p.Adapter = a
	}
	for _, t := range all {
		p.add(t)
	}
	return p
}

// add adds all object types in t.
func (p *provider) add(t *DeclType) {
	switch {
	case t == nil:
	case t.Fields != nil:
		if p.objects[t.name] == t {
			return
		}
		p.objects[t.name] = t
		for _, f := range t.Fields {
			p.add(f.Type)
		}
	default:
		p.add(t.Elem)
	}
}

// scalarNamed returns the type for a name that expressions use in place of the name of cel-go, so that type(x) == duration is
// valid. It returns nil for other names.
func scalarNamed(name string) *celgo.Type {
	switch name {
	case "bool":
		return celgo.BoolType
	case "bytes":
		return celgo.BytesType
	case "double":
		return celgo.DoubleType
	case "duration":
		return celgo.DurationType
	case "int":
		return celgo.IntType
	case "null_type":
		return celgo.NullType
	case "string":
		return celgo.StringType
	case "timestamp":
		return celgo.TimestampType
	case "uint":
		return celgo.UintType
	case "list":
		return celgo.ListType(celgo.AnyType)
	case "map":
		return celgo.MapType(celgo.AnyType, celgo.AnyType)
	}
	return nil
}

// FindStructType implements types.Provider.
func (p *provider) FindStructType(name string) (*types.Type, bool) {
	if t, ok := p.objects[name]; ok {
		return types.NewTypeTypeWithParam(t.typ), true
	}
	if t := scalarNamed(name); t != nil {
		return types.NewTypeTypeWithParam(t), true
	}
	return p.Provider.FindStructType(name)
}

// FindStructFieldNames implements types.Provider. It returns no names: with names, cel-go would make up the fields of a null
// value.
func (p *provider) FindStructFieldNames(string) ([]string, bool) { return []string{}, false }

// FindStructFieldType implements types.Provider.
func (p *provider) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	t, ok := p.objects[name]
	if !ok {
		if scalarNamed(name) != nil {
			return nil, false
		}
		return p.Provider.FindStructFieldType(name, field)
	}
	f, ok := t.Fields[field]
	if !ok && p.keywords && isKeyword(field) {
		f, ok = t.Fields["__"+field+"__"]
	}
	if !ok {
		return nil, false
	}
	return &types.FieldType{Type: f.Type.typ}, true
}

// NewValue implements types.Provider. Expressions cannot make objects of the types of variables.
func (p *provider) NewValue(name string, fields map[string]ref.Val) ref.Val {
	return p.Provider.NewValue(name, fields)
}

// otherNames is the key in sizes of the type for names that are not variables; see [Variable.SizesOthers].
const otherNames = ""

// sizes estimates the size of the values of variables by their paths.
type sizes map[string]*DeclType

// EstimateSize implements checker.CostEstimator.
func (s sizes) EstimateSize(element checker.AstNode) *checker.SizeEstimate {
	path := element.Path()
	if len(path) == 0 {
		return nil
	}
	t, ok := s[path[0]]
	if !ok {
		t = s[otherNames]
	}
	for _, name := range path[1:] {
		if t == nil {
			return nil
		}
		switch name {
		case "@items", "@values":
			t = t.Elem
		case "@keys":
			t = t.Key
		default:
			f, ok := t.Fields[name]
			if !ok {
				return nil
			}
			t = f.Type
		}
	}
	if t == nil || t.MaxElements < 0 {
		return nil
	}
	return &checker.SizeEstimate{Min: 0, Max: uint64(t.MaxElements)}
}

// EstimateCallCost implements checker.CostEstimator. It has no estimates of functions.
func (s sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}
