package structural_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// random makes random schemas and values. Names, strings and numbers come from small sets, so that values often fit the schemas.
type random struct{ *rand.Rand }

func newRandom(seed uint64) random { return random{rand.New(rand.NewPCG(seed, 7))} }

func (r random) chance(percent int) bool { return r.IntN(100) < percent }

func pick[T any](r random, from ...T) T { return from[r.IntN(len(from))] }

func (r random) name() string { return pick(r, "a", "b", "c", "d", "name") }

func (r random) text() string {
	return pick(r, "", "a", "b", "abc", "A", "10.0.0.1", "2020-01-02", "a@b.c", "x/y/z", "ü", "1", "1h", "2020-01-02T03:04:05Z", "::1",
		"Zm9v", "example.com", "a b")
}

func (r random) number() any {
	if r.chance(65) {
		return pick[int64](r, 0, 1, 2, 3, -1, 10, 65, 1<<31, 1<<40, -1<<33)
	}
	return pick(r, 0.5, 1.5, 1.0, -2.5, 1e40, 3.0, 1e300, 1.0000000001, 100.0)
}

// scalar returns a value that is neither an object nor a list.
func (r random) scalar() any {
	switch r.IntN(7) {
	case 0:
		return nil
	case 1:
		return r.chance(50)
	case 2, 3:
		return r.number()
	}
	return r.text()
}

// anything returns any value.
func (r random) anything(depth int) any {
	switch n := r.IntN(10); {
	case depth > 0 && n < 3:
		object := map[string]any{}
		for range r.IntN(4) {
			object[r.name()] = r.anything(depth - 1)
		}
		return object
	case depth > 0 && n < 5:
		list := []any{}
		for range r.IntN(4) {
			list = append(list, r.anything(depth-1))
		}
		return list
	}
	return r.scalar()
}

func raw(v any) *apiextensionsv1.JSON {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return &apiextensionsv1.JSON{Raw: text}
}

type props = apiextensionsv1.JSONSchemaProps

// object returns the schema of an object with apiVersion, kind and metadata.
func (r random) object(depth int) *props {
	root := &props{Type: "object", Properties: map[string]props{}}
	for range 1 + r.IntN(4) {
		root.Properties[r.name()] = *r.structure(depth - 1)
	}
	if r.chance(10) {
		root.Properties["metadata"] = props{Type: "object", Properties: map[string]props{"name": {Type: "string", MaxLength: ptr(int64(3))}}}
	}
	if r.chance(20) {
		root.Properties["kind"] = props{Type: "string"}
		root.Properties["apiVersion"] = props{Type: "string"}
	}
	if r.chance(10) {
		root.XPreserveUnknownFields = ptr(true)
	}
	if r.chance(40) {
		r.conditions(root, depth)
	}
	return root
}

// structure returns a schema that is structural.
func (r random) structure(depth int) *props {
	p := &props{Type: pick(r, "string", "integer", "number", "boolean", "string", "object", "array", "object", "array")}
	if depth <= 0 {
		p.Type = pick(r, "string", "integer", "number", "boolean")
	}
	switch {
	case r.chance(7):
		p.Type, p.XIntOrString = "", true
		if r.chance(40) {
			p.AnyOf = []props{{Type: "integer"}, {Type: "string"}}
		}
	case r.chance(5):
		p.Type, p.XPreserveUnknownFields = "", ptr(true)
	}
	p.Nullable = r.chance(20)
	if r.chance(10) {
		p.Description, p.Title = "words", "word"
	}
	switch p.Type {
	case "object":
		r.members(p, depth)
	case "array":
		r.elements(p, depth)
	}
	if r.chance(55) {
		r.conditions(p, depth)
	}
	if r.chance(25) {
		p.Default = raw(r.value(p, depth, 90))
	}
	return p
}

func (r random) members(p *props, depth int) {
	switch n := r.IntN(10); {
	case n < 6:
		p.Properties = map[string]props{}
		for range r.IntN(4) {
			p.Properties[r.name()] = *r.structure(depth - 1)
		}
	case n < 8:
		p.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: r.structure(depth - 1)}
	case n < 9:
		p.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: r.chance(60)}
	}
	if r.chance(15) {
		p.XPreserveUnknownFields = ptr(true)
	}
	if r.chance(10) {
		p.XMapType = ptr(pick(r, "atomic", "granular"))
	}
	if p.AdditionalProperties == nil && r.chance(15) {
		p.XEmbeddedResource = true
		if len(p.Properties) == 0 {
			p.XPreserveUnknownFields = ptr(true)
		}
		if r.chance(20) {
			p.Properties = map[string]props{"metadata": {Type: "object", Properties: map[string]props{
				"name": {Type: "string", Default: raw(r.text())}, "generateName": {Type: "string", MinLength: ptr(int64(1))}}}}
		}
	}
}

func (r random) elements(p *props, depth int) {
	items := r.structure(depth - 1)
	p.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: items}
	switch r.IntN(5) {
	case 0:
		p.XListType = ptr("set")
		*items = props{Type: pick(r, "string", "integer", "number")}
		if r.chance(20) {
			*items = props{Type: "object", XMapType: ptr("atomic"), XPreserveUnknownFields: ptr(true)}
		}
	case 1, 2:
		p.XListType = ptr("map")
		p.XListMapKeys = slices.Compact(slices.Sorted(slices.Values([]string{r.name(), pick(r, "a", r.name())})))
		*items = props{Type: "object", Properties: map[string]props{r.name(): *r.structure(depth - 1)}}
		for _, key := range p.XListMapKeys {
			items.Properties[key] = props{Type: pick(r, "string", "integer"), MaxLength: ptr(int64(2))}
			if r.chance(70) {
				items.Required = append(items.Required, key)
			} else {
				key2 := items.Properties[key]
				key2.Default = raw(pick[any](r, "a", int64(1)))
				items.Properties[key] = key2
			}
		}
	case 3:
		p.XListType = ptr("atomic")
	}
	if r.chance(10) {
		p.XPreserveUnknownFields = ptr(true)
	}
}

// conditions adds conditions on values to a schema; most of them fit its type.
func (r random) conditions(p *props, depth int) {
	kind := p.Type
	if r.chance(10) || kind == "" {
		kind = pick(r, "string", "integer", "number", "array", "object")
	}
	for range 1 + r.IntN(2) {
		switch kind {
		case "string":
			switch r.IntN(4) {
			case 0:
				p.MaxLength = ptr(int64(r.IntN(3)))
			case 1:
				p.MinLength = ptr(int64(r.IntN(3)))
			case 2:
				p.Pattern = pick(r, "^a", "[a-z]+$", "^$", "b|c")
			case 3:
				p.Format = pick(r, "date", "date-time", "email", "ipv4", "ipv6", "byte", "duration", "hostname", "uri", "uuid", "cidr", "int32",
					"k8s-short-name", "k8s-long-name", "password", "unheard", "mac", "datetime")
			}
		case "integer", "number":
			switch r.IntN(4) {
			case 0:
				p.Maximum, p.ExclusiveMaximum = ptr(pick(r, 1.0, 2, 3, 1.5, 10)), r.chance(30)
			case 1:
				p.Minimum, p.ExclusiveMinimum = ptr(pick(r, 1.0, 0, -1, 0.5, 2)), r.chance(30)
			case 2:
				p.MultipleOf = ptr(pick(r, 1.0, 2, 0.5, 3))
			case 3:
				p.Format = pick(r, "int32", "int64", "float", "double", "date", "unheard")
			}
		case "array":
			if r.chance(50) {
				p.MaxItems = ptr(int64(r.IntN(3)))
			} else {
				p.MinItems = ptr(int64(r.IntN(3)))
			}
		case "object":
			switch r.IntN(4) {
			case 0:
				p.MaxProperties = ptr(int64(r.IntN(4)))
			case 1:
				p.MinProperties = ptr(int64(r.IntN(3)))
			default:
				p.Required = append(p.Required, r.name())
			}
		}
	}
	if r.chance(15) {
		for range 1 + r.IntN(3) {
			p.Enum = append(p.Enum, *raw(r.value(p, 1, 80)))
		}
	}
	if !r.chance(30) || depth <= 0 {
		return
	}
	switch r.IntN(4) {
	case 0:
		p.AllOf = r.branches(p, depth)
	case 1:
		if !p.XIntOrString {
			p.AnyOf = r.branches(p, depth)
		}
	case 2:
		p.OneOf = r.branches(p, depth)
	case 3:
		p.Not = ptr(r.branch(p, depth))
	}
}

func (r random) branches(p *props, depth int) []props {
	var all []props
	for range 1 + r.IntN(3) {
		all = append(all, r.branch(p, depth))
	}
	return all
}

// branch returns a schema with conditions on the parts that p specifies.
func (r random) branch(p *props, depth int) props {
	var b props
	if p.Items != nil && p.Items.Schema != nil && r.chance(60) {
		b.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: ptr(r.branch(p.Items.Schema, depth-1))}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
		if name != "metadata" && r.chance(50) {
			if b.Properties == nil {
				b.Properties = map[string]props{}
			}
			b.Properties[name] = r.branch(ptr(p.Properties[name]), depth-1)
		}
	}
	if r.chance(75) {
		like := props{Type: p.Type}
		r.conditions(&like, depth-1)
		like.Type = ""
		like.Items, like.Properties = b.Items, b.Properties
		return like
	}
	return b
}

// spoiled returns a schema with an invalid keyword.
func (r random) spoiled(p *props) *props {
	p = p.DeepCopy()
	target := p
	for range r.IntN(5) { // go down
		var next []*props
		for _, name := range slices.Sorted(maps.Keys(target.Properties)) {
			child := target.Properties[name]
			copied := &child
			next = append(next, copied)
			defer func(parent *props) { parent.Properties[name] = *copied }(target)
		}
		if target.Items != nil && target.Items.Schema != nil {
			next = append(next, target.Items.Schema)
		}
		if target.AdditionalProperties != nil && target.AdditionalProperties.Schema != nil {
			next = append(next, target.AdditionalProperties.Schema)
		}
		for i := range target.AllOf {
			next = append(next, &target.AllOf[i])
		}
		for i := range target.AnyOf {
			next = append(next, &target.AnyOf[i])
		}
		if target.Not != nil {
			next = append(next, target.Not)
		}
		if len(next) == 0 {
			break
		}
		target = pick(r, next...)
	}
	r.spoil(target)
	return p
}

func (r random) spoil(p *props) {
	switch r.IntN(38) {
	case 0:
		p.Type = ""
	case 1:
		p.Type = pick(r, "null", "foo", "string", "array", "object")
	case 2:
		p.UniqueItems = true
	case 3:
		p.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: r.chance(50)}
	case 4:
		p.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &props{Type: "string", Default: raw("x")}}
	case 5:
		p.Ref = ptr("#/x")
	case 6:
		p.ID = "id"
	case 7:
		p.Schema = "http://x"
	case 8:
		p.Definitions = apiextensionsv1.JSONSchemaDefinitions{"a": {Type: "null"}}
	case 9:
		p.PatternProperties = map[string]props{"a": {Type: "string"}}
	case 10:
		p.Dependencies = apiextensionsv1.JSONSchemaDependencies{"a": {Property: []string{"b"}}}
	case 11:
		p.AdditionalItems = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true}
	case 12:
		p.Items = &apiextensionsv1.JSONSchemaPropsOrArray{JSONSchemas: []props{{Type: "string"}}}
	case 13:
		p.Items = nil
	case 14:
		p.XListType = ptr(pick(r, "set", "map", "atomic", "bag"))
	case 15:
		p.XListMapKeys = []string{r.name(), r.name()}
	case 16:
		p.XMapType = ptr(pick(r, "atomic", "granular", "bag"))
	case 17:
		p.XEmbeddedResource = true
	case 18:
		p.XIntOrString = true
	case 19:
		p.XPreserveUnknownFields = ptr(false)
	case 20:
		p.XPreserveUnknownFields = ptr(true)
	case 21:
		p.Nullable = true
	case 22:
		p.Pattern = "("
	case 23:
		p.Default = raw(r.anything(2))
	case 24:
		p.Properties = map[string]props{"metadata": {Type: pick(r, "object", "string"), Properties: map[string]props{
			pick(r, "name", "labels"): *r.structure(1)}}}
	case 25:
		p.Properties = map[string]props{"kind": {Type: "integer"}, "apiVersion": {Type: "string", Default: raw("x")}}
	case 26:
		p.AnyOf = []props{{Type: "integer"}, {Type: "string", Nullable: r.chance(20)}}
	case 27:
		p.AllOf = []props{{AnyOf: []props{{Type: "integer"}, {Type: "string"}}}, {Title: "t", Description: "d"}}
	case 28:
		p.Not = &props{Properties: map[string]props{"missing": {Required: []string{"x"}}, "metadata": {}}}
	case 29:
		p.OneOf = []props{{Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &props{MinLength: ptr(int64(1))}}}}
	case 30:
		p.AnyOf = []props{{Default: raw("x")}, {XListType: ptr("set"), XListMapKeys: []string{"a"}, XMapType: ptr("atomic")}}
	case 31:
		p.AllOf = []props{{XEmbeddedResource: true, XIntOrString: true, XPreserveUnknownFields: ptr(true)}}
	case 32:
		p.OneOf = []props{{AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: r.chance(50)}}}
	case 33:
		p.Properties = map[string]props{"metadata": {Type: "object", XEmbeddedResource: true, XPreserveUnknownFields: ptr(true),
			AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &props{Type: "string", Default: raw("x")}}}}
	case 34:
		p.XValidations = apiextensionsv1.ValidationRules{{Rule: pick(r, "", " ", "true\n", "true"), Message: pick(r, "", " ", "a\nb", "fine"),
			Reason: ptr(apiextensionsv1.FieldValueErrorReason(pick(r, "FieldValueInvalid", "Other"))), FieldPath: pick(r, "", " ", ".a", "['b']", ".a.b", "a", ".a['x", "[a]", ".", ".a\n")}}
	case 35:
		p.Type, p.Items = "array", &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &props{Type: pick(r, "object", "array", "string"), Nullable: r.chance(30),
			Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &props{Type: "string"}}, XListType: ptr("set")}}
		p.XListType = ptr(pick(r, "set", "map"))
	case 36:
		p.Type, p.Items = "array", &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &props{Type: "object", Required: []string{"a"}, Properties: map[string]props{
			"a": {Type: "string", Nullable: r.chance(30)}, "b": {Type: pick(r, "string", "object", "array")}, "c": {Type: "string", Default: raw("x")}}}}
		p.XListType, p.XListMapKeys = ptr("map"), []string{"a", pick(r, "a", "b", "c", "d")}
	case 37:
		p.MaxProperties = ptr(int64(3))
	}
}

func ptr[T any](v T) *T { return &v }

// whole converts numbers without a fraction to int64, as decoding does.
func whole(v any) any {
	switch v := v.(type) {
	case float64:
		if i := int64(v); float64(i) == v && v < 1<<53 && v > -1<<53 {
			return i
		}
	case map[string]any:
		for name, member := range v {
			v[name] = whole(member)
		}
	case []any:
		for i, element := range v {
			v[i] = whole(element)
		}
	}
	return v
}
