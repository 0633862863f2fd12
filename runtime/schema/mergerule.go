package schema

import (
	"cmp"
	"reflect"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// mergeRule describes how the values of a field merge; "" or nil means unspecified.
type mergeRule struct {
	patchStrategy, patchMergeKey string
	listType                     string
	keys                         []string // of a list of the type map
	mapType                      string   // of a map or a struct
}

// mergeRuleOf reads the struct tags and the markers of a field; tags win.
func mergeRuleOf(f jsonField, m markers) mergeRule {
	tagOr := func(tag string) string {
		value, _ := m.value(tag)
		return cmp.Or(f.Tag.Get(tag), value)
	}
	rule := mergeRule{
		patchStrategy: tagOr("patchStrategy"), patchMergeKey: tagOr("patchMergeKey"),
		listType: tagOr("listType"), keys: m["listMapKey"],
		mapType: cmp.Or(f.Tag.Get("structType"), f.Tag.Get("mapType"), mapTypeOf(m)),
	}
	if v := f.Tag.Get("listMapKey"); v != "" {
		rule.keys = nil
		for key := range strings.SplitSeq(v, ",") {
			rule.keys = append(rule.keys, strings.TrimSpace(key))
		}
	}
	return rule
}

// setListExtensions adds the extensions for merging lists and maps, from the struct tags and the markers of a field.
func (r *reflector) setListExtensions(s *spec.Schema, f jsonField, m markers) {
	rule := mergeRuleOf(f, m)
	set := func(extension, value string) {
		if value != "" {
			s.Extensions = withExtension(s.Extensions, extension, value)
		}
	}
	set(extensionPatchStrategy, rule.patchStrategy)
	set(extensionPatchMergeKey, rule.patchMergeKey)
	set(extensionListType, rule.listType)
	set(extensionMapType, rule.mapType)
	if len(rule.keys) > 0 {
		list := []any{}
		for _, key := range rule.keys {
			list = append(list, key)
		}
		s.Extensions = withExtension(s.Extensions, extensionListMapKeys, list)
	}
}

// setMapType adds the extension for a struct type that is owned as a whole or by field.
func setMapType(s *spec.Schema, m markers) {
	if v := mapTypeOf(m); v != "" {
		s.Extensions = withExtension(s.Extensions, extensionMapType, v)
	}
}

// mapTypeOf returns the map type in the markers of a type.
func mapTypeOf(m markers) string {
	ofMap, _ := m.value("mapType")
	ofStruct, _ := m.value("structType")
	return cmp.Or(ofStruct, ofMap)
}

func knownMapType(v string) bool { return v == "" || v == "atomic" || v == "granular" }

// isList reports whether a type is a list in JSON.
func isList(t reflect.Type) bool {
	return t != nil && (t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8 || t.Kind() == reflect.Array)
}
