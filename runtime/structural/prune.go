package structural

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Prune removes the members of objects that the schema does not specify, at any depth, and returns the paths of at most
// report of them, sorted, in the form in which decoders report unknown fields: spec.parts[0].x. If there are more, they
// are the first ones in that order.
//
// Where unknown members are preserved only what is specified inside of them is pruned. In an embedded resource apiVersion,
// kind and metadata are not looked at: [Schema.CoerceEmbedded] prunes metadata. The root is no embedded resource; use
// [Schema.PruneObject] for a whole object. Where the schema ends everything is unknown: of an object that is specified
// to be any value, the members are removed.
func (s *Schema) Prune(value any, report int) []string {
	var room [16]step
	p := pruner{report: report, at: room[:0]}
	p.prune(s, value)
	return p.unknown.sorted(report)
}

// PruneObject is Prune for a whole object, whose apiVersion, kind and metadata are not looked at.
func (s *Schema) PruneObject(object map[string]any, report int) []string {
	if s == nil {
		s = &Schema{}
	}
	var room [16]step
	p := pruner{report: report, resource: s, at: room[:0]}
	p.prune(s, object)
	return p.unknown.sorted(report)
}

// pruner walks a value. It takes no memory as long as nothing is unknown.
type pruner struct {
	report   int
	resource *Schema // the root, if that is an object with apiVersion, kind and metadata
	at       trail
	unknown  paths
}

func (p *pruner) prune(s *Schema, value any) {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			if s != nil && (s.Embedded || s == p.resource) && isMeta(name) {
				continue
			}
			switch next := s.member(name); {
			case next != nil || s != nil && s.Others != OthersUnspecified:
				p.at.enter(name)
				p.prune(next, member)
				p.at.leave()
			case s != nil && s.PreserveUnknown:
			default:
				if p.report > 0 && (!isMeta(name) || len(p.at) > 0) {
					p.at.enter(name)
					p.unknown.add(p.at.String(), p.report)
					p.at.leave()
				}
				delete(v, name)
			}
		}
	case []any:
		p.elements(s, v, s != nil && s.PreserveUnknown)
	}
}

// elements prunes a list. Elements of a list where unknown members are preserved are such themselves, if they have a
// schema; without one nothing of them is touched.
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
			p.at.enterIndex(i)
			p.prune(items, element)
			p.at.leave()
		}
	}
}

// trail is where a walk is in a value.
type trail []step

type step struct {
	name  string
	index int  // of an element, or -1
	key   bool // name is the key of a map, not a property
}

func (t *trail) enter(name string)    { *t = append(*t, step{name: name, index: -1}) }
func (t *trail) enterKey(name string) { *t = append(*t, step{name: name, index: -1, key: true}) }
func (t *trail) enterIndex(i int)     { *t = append(*t, step{index: i}) }
func (t *trail) leave()               { *t = (*t)[:len(*t)-1] }

// path is the trail as field errors write it, from a root.
func (t trail) path(root *field.Path) *field.Path {
	for _, step := range t {
		switch {
		case step.index >= 0:
			root = root.Index(step.index)
		case step.key:
			root = root.Key(step.name)
		default:
			root = root.Child(step.name)
		}
	}
	return root
}

// String is the path of an unknown field. One longer than maxShownPath ends before.
func (t trail) String() string {
	var text strings.Builder
	for i, step := range t {
		if text.Len()+len(step.name) > maxShownPath {
			return below(text.String(), "."+step.name[:min(len(step.name), maxShownPath)])
		}
		if step.index >= 0 {
			text.WriteString("[" + strconv.Itoa(step.index) + "]")
			continue
		}
		if i > 0 {
			text.WriteByte('.')
		}
		text.WriteString(step.name)
	}
	return text.String()
}

// paths are the first ones of many, in sorted order, whatever the order in which they come.
type paths []string

func (p *paths) add(path string, most int) {
	*p = append(*p, path)
	if len(*p) >= 2*most+64 {
		*p = p.sorted(most)
	}
}

func (p paths) sorted(most int) []string {
	slices.Sort(p)
	return p[:min(len(p), max(most, 0))]
}
