package writemodel

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// generator makes random JSON for the definitions of kinds. One run uses only a few fields of every type, so that requests often
// change the same fields.
type generator struct {
	*rand.Rand
	definitions map[string]spec.Schema
	chosen      map[string][]string // used fields by definition
}

func pick[T any](g *generator, from ...T) T { return from[g.IntN(len(from))] }

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func (g *generator) word() string { return pick(g, "a", "b", "c", "d") }

// maxDepth is the maximum depth of nested types.
const maxDepth = 9

// object returns a whole object with the top-level fields of a kind. Its metadata is generated here.
func (g *generator) object(k Kind, definition, name string, withStatus bool) map[string]any {
	out := map[string]any{"apiVersion": k.gvk.GroupVersion().String(), "kind": k.gvk.Kind, "metadata": g.metadata(name)}
	s := g.definitions[definition]
	for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
		if _, done := out[field]; done || field == "status" && !withStatus || g.chance(10) {
			continue
		}
		property := s.Properties[field]
		if v := g.value(&property, 0, ""); v != nil {
			out[field] = v
		}
	}
	return out
}

func (g *generator) metadata(name string) map[string]any {
	m := map[string]any{"name": name}
	if g.chance(60) {
		m["labels"] = g.labels()
	}
	if g.chance(60) {
		m["annotations"] = g.labels()
	}
	if g.chance(30) {
		m["finalizers"] = g.some([]any{"example.com/a", "example.com/b", "example.com/c"})
	}
	if g.chance(30) {
		var owners []any
		for _, uid := range g.some([]any{"u1", "u2", "u3"}) {
			owners = append(owners, map[string]any{"apiVersion": "v1", "kind": "Owner", "name": g.word(), "uid": uid})
		}
		m["ownerReferences"] = owners
	}
	return m
}

func (g *generator) labels() map[string]any {
	out := map[string]any{}
	for range g.IntN(4) {
		out[g.word()] = g.word()
	}
	return out
}

// some returns a few of the values in random order.
func (g *generator) some(of []any) []any {
	of = slices.Clone(of)
	g.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
	return of[:g.IntN(len(of)+1)]
}

// value returns a value of a schema, or nil if the schema is nested too deep. within is the definition that it is a part of.
func (g *generator) value(s *spec.Schema, depth int, within string) any {
	if depth > maxDepth {
		return nil
	}
	if name := reference(s); name != "" {
		return g.named(name, depth)
	}
	kind := ""
	if len(s.Type) > 0 {
		kind = s.Type[0]
	}
	switch kind {
	case "string":
		return g.text(s.Format)
	case "integer":
		return int64(g.IntN(4))
	case "number":
		return pick[any](g, int64(1), 0.5)
	case "boolean":
		return g.chance(50)
	case "array":
		return g.list(s, depth, within)
	case "object":
		return g.fields(s, depth, within)
	}
	return g.anything(depth)
}

func reference(s *spec.Schema) string {
	ref := s.Ref.String()
	if ref == "" && len(s.AllOf) == 1 {
		ref = s.AllOf[0].Ref.String()
	}
	return ref[strings.LastIndexByte(ref, '/')+1:]
}

// named returns a value of a definition.
func (g *generator) named(name string, depth int) any {
	switch name[strings.LastIndexByte(name, '.')+1:] {
	case "Quantity":
		return pick[any](g, "1", "1000m", "0.5", "1Gi", "1024Mi", int64(2))
	case "IntOrString":
		return pick[any](g, int64(80), int64(81), "http", "50%")
	case "MicroTime":
		return pick(g, "2020-01-01T00:00:00.000000Z", "2021-01-01T00:00:00.000001Z")
	case "Duration":
		return pick(g, "5m0s", "1h0m0s")
	case "ObjectMeta": // of a template
		return map[string]any{"labels": g.labels(), "annotations": g.labels()}
	case "RawExtension":
		return map[string]any{g.word(): g.anything(depth), "x": g.anything(depth)}
	}
	s := g.definitions[name]
	return g.value(&s, depth, name)
}

func (g *generator) text(format string) any {
	switch format {
	case "byte":
		return pick(g, "AAE=", "AAI=")
	case "date-time":
		return pick(g, "2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z")
	}
	if g.chance(5) {
		return ""
	}
	return g.word()
}

// anything returns free-form JSON.
func (g *generator) anything(depth int) any {
	switch n := g.IntN(6); {
	case n == 0 && depth < maxDepth:
		return map[string]any{g.word(): g.anything(depth + 2), g.word(): g.anything(depth + 2)}
	case n == 1 && depth < maxDepth:
		return []any{g.anything(depth + 2), g.word()}
	case n == 2:
		return int64(g.IntN(3))
	case n == 3:
		return g.chance(50)
	}
	return g.word()
}

// fields returns an object for a schema with fields, or a map.
func (g *generator) fields(s *spec.Schema, depth int, within string) any {
	out := map[string]any{}
	if len(s.Properties) == 0 {
		for range g.IntN(4) {
			key := g.word()
			if s.AdditionalProperties == nil || s.AdditionalProperties.Schema == nil {
				out[key] = g.anything(depth)
			} else if v := g.value(s.AdditionalProperties.Schema, depth+1, within); v != nil {
				out[key] = v
			}
		}
		return out
	}
	for _, name := range g.choose(s, within) {
		if g.chance(25) {
			continue
		}
		property := s.Properties[name]
		if v := g.value(&property, depth+1, within+"."+name); v != nil {
			out[name] = v
		}
	}
	return out
}

// choose returns the fields of a type that this run uses.
func (g *generator) choose(s *spec.Schema, definition string) []string {
	if chosen, ok := g.chosen[definition]; ok {
		return chosen
	}
	names := slices.Sorted(maps.Keys(s.Properties))
	g.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	slices.SortStableFunc(names, func(a, b string) int { // lists first: they have the most difficult rules
		return weight(s.Properties[b]) - weight(s.Properties[a])
	})
	if n := 2 + g.IntN(4); len(names) > n {
		names = append(names[:n/2:n/2], g.sample(names[n/2:], n-n/2)...)
	}
	g.chosen[definition] = names
	return names
}

func weight(s spec.Schema) int {
	if s.Type.Contains("array") {
		return 1
	}
	return 0
}

func (g *generator) sample(names []string, n int) []string {
	g.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names[:n]
}

func (g *generator) list(s *spec.Schema, depth int, within string) any {
	out := []any{}
	keys := listKeys(s)
	seen := map[string]bool{}
	for range g.IntN(4) {
		v := g.value(s.Items.Schema, depth+1, within+"[]")
		if v == nil {
			continue
		}
		g.setKeys(v, s.Items.Schema, keys)
		if id := identity(v, keys); seen[id] && (keys != nil || s.Extensions["x-kubernetes-list-type"] == "set") && !g.chance(2) {
			continue // duplicates are rare
		} else {
			seen[id] = true
		}
		out = append(out, v)
	}
	return out
}

// setKeys mostly sets the key fields of a list element.
func (g *generator) setKeys(v any, s *spec.Schema, keys []string) {
	element, ok := v.(map[string]any)
	if !ok {
		return
	}
	definition := *s
	if name := reference(s); name != "" {
		definition = g.definitions[name]
	}
	for _, key := range keys {
		property := definition.Properties[key]
		if _, has := element[key]; !has && (property.Default == nil || property.Default == "" || g.chance(50)) && !g.chance(2) {
			element[key] = g.value(&property, 1, "")
		}
	}
}

func listKeys(s *spec.Schema) []string {
	var out []string
	all, _ := s.Extensions["x-kubernetes-list-map-keys"].([]any)
	for _, key := range all {
		out = append(out, fmt.Sprint(key))
	}
	if key, ok := s.Extensions["x-kubernetes-patch-merge-key"].(string); ok && !slices.Contains(out, key) {
		out = append(out, key)
	}
	return out
}

func identity(v any, keys []string) string {
	element, ok := v.(map[string]any)
	if !ok || keys == nil {
		return fmt.Sprint(v)
	}
	var id []any
	for _, key := range keys {
		id = append(id, element[key])
	}
	return fmt.Sprint(id...)
}

// mix returns a value made of most of the old value and some of the new one. Some parts are left out.
func (g *generator) mix(old, fresh any) any {
	was, ok := old.(map[string]any)
	now, both := fresh.(map[string]any)
	switch {
	case ok && both:
		out := map[string]any{}
		names := slices.Sorted(maps.Keys(was))
		for name := range now {
			if _, ok := was[name]; !ok {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			v, old := was[name]
			n, fresh := now[name]
			switch {
			case old && fresh && name != "name":
				out[name] = g.mix(v, n)
			case old && (name == "name" || !g.chance(12)):
				out[name] = v
			case fresh && !old && g.chance(30):
				out[name] = n
			}
		}
		return out
	case fresh == nil || !g.chance(25):
		if list, ok := old.([]any); ok && len(list) > 0 && g.chance(25) {
			list = slices.Clone(list)
			if g.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] }); g.chance(50) {
				list = list[1:]
			}
			return list
		}
		return old
	}
	return fresh
}
