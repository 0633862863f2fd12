package structural_test

import (
	"encoding/json"
	"maps"
	"slices"
)

// value returns a value. Each part of it fits the schema with a probability of good percent.
func (r random) value(p *props, depth, good int) any {
	if !r.chance(good) || p.Type == "" && !p.XIntOrString {
		return r.anything(min(depth, 2))
	}
	if p.Nullable && r.chance(10) {
		return nil
	}
	if len(p.Enum) > 0 && r.chance(60) {
		var v any
		if json.Unmarshal(pick(r, p.Enum...).Raw, &v) == nil {
			return whole(v)
		}
	}
	switch p.Type {
	case "string":
		return r.text()
	case "integer":
		return pick[any](r, int64(0), int64(1), int64(2), int64(3), int64(10), int64(1<<33), 1.0)
	case "number":
		return r.number()
	case "boolean":
		return r.chance(50)
	case "array":
		if p.Items == nil || p.Items.Schema == nil {
			return r.anything(min(depth, 2))
		}
		list := []any{}
		for range r.IntN(4) {
			list = append(list, r.value(p.Items.Schema, depth-1, good))
		}
		return list
	case "object":
		return r.members2(p, depth, good)
	}
	return pick[any](r, "a", "10%", int64(1), int64(65), 2.0)
}

func (r random) members2(p *props, depth, good int) map[string]any {
	object := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
		if r.chance(75) || slices.Contains(p.Required, name) && r.chance(80) {
			object[name] = r.value(ptr(p.Properties[name]), depth-1, good)
		}
	}
	if p.AdditionalProperties != nil && p.AdditionalProperties.Schema != nil {
		for range r.IntN(3) {
			object[r.name()] = r.value(p.AdditionalProperties.Schema, depth-1, good)
		}
	}
	if r.chance(20) {
		object[r.name()] = r.anything(2)
	}
	if p.XEmbeddedResource {
		r.resource(object)
	}
	return object
}

// resource adds apiVersion, kind and metadata, mostly valid ones.
func (r random) resource(object map[string]any) {
	if r.chance(85) {
		object["apiVersion"] = pick[any](r, "v1", "apps/v1", "a/b/c", "", int64(1), nil)
	}
	if r.chance(85) {
		object["kind"] = pick[any](r, "Pod", "pod", "", "a_b", true)
	}
	if r.chance(85) {
		object["metadata"] = r.metadata()
	}
}

func (r random) metadata() any {
	if r.chance(8) {
		return r.scalar()
	}
	meta := map[string]any{}
	for range r.IntN(4) {
		switch r.IntN(11) {
		case 10:
			meta["deletionTimestamp"] = pick[any](r, nil, "2020-01-02T03:04:05Z", "0001-01-01T00:00:00Z", "x")
			meta["deletionGracePeriodSeconds"] = pick[any](r, nil, int64(0), int64(30), 1.0)
		case 0:
			meta["name"] = pick[any](r, "a", "", "x/y", int64(1), nil)
		case 1:
			meta["labels"] = pick[any](r, map[string]any{"a": "b"}, map[string]any{}, map[string]any{"a": int64(1)}, map[string]any{"a/b/c": "x"}, nil, "x")
		case 2:
			meta["creationTimestamp"] = pick[any](r, nil, "2020-01-02T03:04:05Z", "2020-01-02T03:04:05+01:00", "x")
		case 3:
			meta["finalizers"] = pick[any](r, []any{"a/b"}, []any{}, []any{int64(1)}, []any{"a"})
		case 4:
			meta["unknown"] = r.scalar()
		case 5:
			meta["generation"] = pick[any](r, int64(1), int64(0), int64(-1), "1", 1.5)
		case 6:
			meta["ownerReferences"] = pick[any](r, []any{map[string]any{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "u"}},
				[]any{map[string]any{"kind": "Pod", "other": int64(1)}}, []any{map[string]any{"kind": "Pod", "name": "a", "uid": "u"}}, []any{}, nil)
		case 7:
			meta["annotations"] = pick[any](r, map[string]any{"a": ""}, nil, map[string]any{"a": nil})
		case 8:
			meta["managedFields"] = pick[any](r, []any{map[string]any{"manager": "m", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
				"time": "2020-01-02T03:04:05Z", "fieldsV1": map[string]any{"f:a": map[string]any{".": map[string]any{}}}}},
				[]any{map[string]any{"manager": "", "x": "y"}}, []any{map[string]any{"fieldsV1": nil, "time": "0001-01-01T00:00:00Z"}})
		case 9:
			meta["namespace"] = pick[any](r, "a", "A b", "")
		}
	}
	return meta
}

// wholeObject returns an object with apiVersion, kind and metadata.
func (r random) wholeObject(p *props, depth, good int) map[string]any {
	object := r.members2(p, depth, good)
	object["apiVersion"], object["kind"] = "g.example.com/v1", "Thing"
	if r.chance(90) {
		object["metadata"] = r.metadata()
	}
	return object
}

// changed returns a copy of a value with a few changes.
func (r random) changed(v any, percent int) any {
	if r.chance(percent) {
		return r.anything(1)
	}
	switch v := v.(type) {
	case map[string]any:
		other := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if !r.chance(percent) {
				other[name] = r.changed(v[name], percent)
			}
		}
		return other
	case []any:
		other := []any{}
		for _, element := range v {
			if !r.chance(percent / 2) {
				other = append(other, r.changed(element, percent))
			}
		}
		if r.chance(20) {
			r.Shuffle(len(other), func(i, k int) { other[i], other[k] = other[k], other[i] })
		}
		return other
	}
	return v
}
