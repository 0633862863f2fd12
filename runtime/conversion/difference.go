package conversion

import (
	"encoding/json"
	"maps"
	"reflect"
)

// difference says how a JSON value differs from another one, the base. It is a leaf, or has differences inside the value.
type difference struct {
	// Value is the value. It is nil if Remove is set, or if the differences are inside the value.
	Value json.RawMessage `json:"value,omitempty"`
	// Remove means that the value is absent.
	Remove bool `json:"remove,omitempty"`
	// Was is the hash of the base of a leaf, or "" if the base is absent or empty.
	Was string `json:"was,omitempty"`
	// Members are the differences of the members of an object.
	Members map[string]*difference `json:"members,omitempty"`
	// Items are the differences of the items of a list.
	Items []*itemDifference `json:"items,omitempty"`
}

// itemDifference is the difference of an item, which has its position in neither list.
type itemDifference struct {
	// Key is the hash of the item's keys; "" if it has none.
	Key string `json:"key,omitempty"`
	// Was is the hash of the item without keys in the base, and Nth is the number of equal items before it.
	Was  string      `json:"was,omitempty"`
	Nth  int         `json:"nth,omitempty"`
	Diff *difference `json:"diff"`
}

// compare returns the difference of value from base, or nil if they are equal. nil is an absent value.
func (s *shape) compare(value, base any) *difference {
	if s.empty(value) && s.empty(base) {
		return nil
	}
	object, ok := value.(map[string]any)
	other, ok2 := base.(map[string]any)
	if ok && ok2 {
		return s.compareMembers(object, other)
	}
	list, ok := value.([]any)
	others, ok2 := base.([]any)
	if ok && ok2 {
		if d, ok := s.compareItems(list, others); ok {
			return d
		}
	}
	if reflect.DeepEqual(value, base) {
		return nil
	}
	return s.leaf(value, base, value != nil)
}

// leaf returns the difference of a whole value. present tells null from an absent value.
func (s *shape) leaf(value, base any, present bool) *difference {
	d := &difference{Remove: !present, Was: s.hash(base)}
	if present {
		d.Value, _ = json.Marshal(value) // decoded JSON can be encoded
	}
	return d
}

func (s *shape) compareMembers(object, base map[string]any) *difference {
	found := map[string]*difference{}
	all := maps.Clone(base)
	maps.Copy(all, object)
	for name := range all {
		value, has := object[name]
		was, had := base[name]
		d := s.member(name).compare(value, was)
		if !s.isStruct() && (has != had && d == nil || has && value == nil && d != nil) { // an entry of a map that is null
			d = s.leaf(value, was, has)
		}
		if d != nil {
			found[name] = d
		}
	}
	if len(found) == 0 {
		return nil
	}
	return &difference{Members: found}
}

// compareItems returns the differences of the items of two lists. It returns false if the items cannot be matched.
func (s *shape) compareItems(list, base []any) (d *difference, ok bool) {
	if len(list) != len(base) || len(list) == 0 {
		return nil, false
	}
	d = &difference{}
	names, was := s.names(list), s.names(base)
	elem := s.element()
	for i := range list {
		_, isObject := list[i].(map[string]any)
		if _, wasObject := base[i].(map[string]any); !isObject || !wasObject {
			return nil, false
		}
		if names[i].Key != was[i].Key {
			return nil, false
		}
		if inner := elem.compare(list[i], base[i]); inner != nil {
			name := was[i]
			d.Items = append(d.Items, &itemDifference{name.Key, name.Was, name.Nth, inner})
		}
	}
	if len(d.Items) == 0 {
		return nil, true
	}
	return d, true
}

// itemName identifies an item of a list: see itemDifference.
type itemName struct {
	Key, Was string
	Nth      int
}

// names returns the names of the items of a list. They are different from each other.
func (s *shape) names(list []any) []itemName {
	out := make([]itemName, len(list))
	seen := map[itemName]int{}
	for i, item := range list {
		if out[i] = (itemName{Key: s.keyOf(item)}); out[i].Key == "" || seen[out[i]] > 0 {
			out[i] = itemName{Was: s.element().hash(item)}
		}
		seen[out[i]]++
		out[i].Nth = seen[out[i]] - 1
	}
	return out
}

// apply returns the value that differs from base as d says. Differences from another base are left out. present and ok tell null
// from an absent value.
func (d *difference) apply(s *shape, base any, present bool) (value any, ok bool) {
	if d == nil {
		return base, present
	}
	if d.Remove || d.Value != nil {
		if s.hash(base) != d.Was {
			return base, present
		}
		if d.Remove {
			return nil, false
		}
		return d.Value, true
	}
	switch base := base.(type) {
	case map[string]any:
		out := maps.Clone(base)
		for name, inner := range d.Members {
			was, had := base[name]
			if value, ok := inner.apply(s.member(name), was, had); ok {
				out[name] = value
			} else {
				delete(out, name)
			}
		}
		return out, present
	case []any:
		at := map[itemName]int{}
		for i, name := range s.names(base) {
			at[name] = i
		}
		out := append([]any{}, base...)
		for _, item := range d.Items {
			if item == nil {
				continue
			}
			if i, ok := at[itemName{item.Key, item.Was, item.Nth}]; ok {
				if value, ok := item.Diff.apply(s.element(), base[i], true); ok {
					out[i] = value
				}
			}
		}
		return out, present
	}
	return base, present
}
