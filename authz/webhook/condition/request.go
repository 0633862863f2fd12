package condition

import (
	"github.com/keelson-dev/keelson/authz/webhook"
	"github.com/keelson-dev/keelson/runtime/cel"
)

// request returns the type of the variable.
func request() *cel.DeclType {
	text := cel.String(cel.Unbounded)
	texts := cel.List(text, cel.Unbounded)
	object := func(name string, fields map[string]*cel.DeclType, more ...string) *cel.DeclType {
		all := map[string]*cel.DeclField{}
		for name, typ := range fields {
			all[name] = &cel.DeclField{Name: name, Type: typ}
		}
		for _, name := range more {
			all[name] = &cel.DeclField{Name: name, Type: text}
		}
		return cel.Object("kubernetes."+name, all)
	}
	requirement := object("SelectorRequirement", map[string]*cel.DeclType{"values": texts}, "key", "operator")
	selector := func(name string) *cel.DeclType {
		return object(name, map[string]*cel.DeclType{"requirements": cel.List(requirement, cel.Unbounded)}, "rawSelector")
	}
	return object("SubjectAccessReviewSpec", map[string]*cel.DeclType{
		"resourceAttributes": object("ResourceAttributes", map[string]*cel.DeclType{
			"fieldSelector": selector("FieldSelectorAttributes"), "labelSelector": selector("LabelSelectorAttributes"),
		}, "namespace", "verb", "group", "version", "resource", "subresource", "name"),
		"nonResourceAttributes": object("NonResourceAttributes", nil, "path", "verb"),
		"groups":                texts,
		"extra":                 cel.Map(text, texts, cel.Unbounded),
	}, "user", "uid")
}

// valueOf returns the value of the variable.
func valueOf(s *webhook.Spec) map[string]any {
	value := map[string]any{"user": s.User, "groups": s.Groups, "extra": s.Extra, "uid": s.UID}
	if r := s.ResourceAttributes; r != nil {
		attributes := map[string]any{
			"namespace": r.Namespace, "verb": r.Verb, "group": r.Group, "version": r.Version, "resource": r.Resource, "subresource": r.Subresource, "name": r.Name,
		}
		if r.FieldSelector != nil {
			attributes["fieldSelector"] = valueOfSelector(r.FieldSelector)
		}
		if r.LabelSelector != nil {
			attributes["labelSelector"] = valueOfSelector(r.LabelSelector)
		}
		value["resourceAttributes"] = attributes
	}
	if n := s.NonResourceAttributes; n != nil {
		value["nonResourceAttributes"] = map[string]any{"path": n.Path, "verb": n.Verb}
	}
	return value
}

func valueOfSelector(s *webhook.Selector) map[string]any {
	all := make([]any, 0, len(s.Requirements))
	for _, r := range s.Requirements {
		all = append(all, map[string]any{"key": r.Key, "operator": r.Operator, "values": r.Values})
	}
	return map[string]any{"requirements": all}
}
