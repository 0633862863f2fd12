package structural

import (
	"github.com/keelson-dev/keelson/runtime/structural/internal/jsonvalue"
	"github.com/keelson-dev/keelson/runtime/structural/internal/word"
)

// Prune removes the members of objects that the schema does not specify, at any depth. It returns the sorted paths of at most
// report removed members, in the form in which decoders report unknown fields: spec.parts[0].x. If there are more, it returns the
// first ones in that order.
//
// Where unknown members are preserved, only the members of specified parts are pruned. In an embedded resource, apiVersion, kind
// and metadata are skipped; [Schema.CoerceEmbedded] prunes metadata. The root is not an embedded resource; use
// [Schema.PruneObject] for a whole object. A value without a schema has no known members: if the schema allows any value
// somewhere, the members of an object there are removed.
func (s *Schema) Prune(value any, report int) []string {
	var room [16]jsonvalue.Step
	p := pruner{report: report, at: room[:0]}
	p.prune(s, value)
	return p.unknown.Sorted(report)
}

// PruneObject is like Prune for a whole object. It skips apiVersion, kind and metadata of the object.
func (s *Schema) PruneObject(object map[string]any, report int) []string {
	if s == nil {
		s = &Schema{}
	}
	var room [16]jsonvalue.Step
	p := pruner{report: report, resource: s, at: room[:0]}
	p.prune(s, object)
	return p.unknown.Sorted(report)
}

// pruner visits a value. It allocates nothing as long as it finds no unknown members.
type pruner struct {
	report   int
	resource *Schema // the root schema, if the root has apiVersion, kind and metadata
	at       jsonvalue.Trail
	unknown  jsonvalue.Paths
}

func (p *pruner) prune(s *Schema, value any) {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			if s != nil && (s.Embedded || s == p.resource) && word.IsMeta(name) {
				continue
			}
			switch next := s.member(name); {
			case next != nil || s != nil && s.Others != OthersUnspecified:
				p.at.Enter(name)
				p.prune(next, member)
				p.at.Leave()
			case s != nil && s.PreserveUnknown:
			default:
				if p.report > 0 && (!word.IsMeta(name) || len(p.at) > 0) {
					p.at.Enter(name)
					p.unknown.Add(p.at.String(), p.report)
					p.at.Leave()
				}
				delete(v, name)
			}
		}
	case []any:
		p.elements(s, v, s != nil && s.PreserveUnknown)
	}
}

// elements prunes a list. If the list preserves unknown members, so do its elements if they have a schema; if they have none,
// they are not changed.
func (p *pruner) elements(s *Schema, list []any, preserve bool) {
	var items *Schema
	if s != nil {
		items = s.Items
	}
	if preserve {
		if items == nil {
			return
		}
		if !items.PreserveUnknown {
			preserving := *items
			preserving.PreserveUnknown = true
			items = &preserving
		}
	}
	for i, element := range list {
		switch element.(type) {
		case map[string]any, []any:
			p.at.EnterIndex(i)
			p.prune(items, element)
			p.at.Leave()
		}
	}
}
