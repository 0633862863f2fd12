package kinds

import (
	"bytes"
	"encoding/json"
	"errors"

	"k8s.io/apimachinery/pkg/conversion"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// addConversions adds conversions between the first of the versions and each of the others, by way of JSON. The JSON of the
// versions is the same except for the differences in edits.
func addConversions(s *apiruntime.Scheme, versions []schema.GroupVersionKind) error {
	var all []error
	for _, gvk := range versions[1:] {
		hub, err := s.New(versions[0])
		if err != nil {
			return err
		}
		spoke, err := s.New(gvk)
		if err != nil {
			return err
		}
		e := edits()[gvk]
		all = append(all, s.AddConversionFunc(spoke, hub, byJSON(e.toHub)), s.AddConversionFunc(hub, spoke, byJSON(e.fromHub)))
	}
	return errors.Join(all...)
}

// byJSON returns a conversion that encodes an object, edits the JSON and decodes it; a nil edit changes nothing.
func byJSON(edit func(object map[string]any)) conversion.ConversionFunc {
	return func(in, out any, _ conversion.Scope) error {
		text, err := json.Marshal(in)
		if err != nil || edit == nil {
			return errors.Join(err, json.Unmarshal(text, out))
		}
		var object map[string]any
		numbers := json.NewDecoder(bytes.NewReader(text))
		numbers.UseNumber()
		if err := numbers.Decode(&object); err != nil {
			return err
		}
		edit(object)
		if text, err = json.Marshal(object); err != nil {
			return err
		}
		return json.Unmarshal(text, out)
	}
}

// edit is the difference between the JSON of a version and that of the stored version.
type edit struct{ toHub, fromHub func(object map[string]any) }

// edits returns the differences by version. In v1beta1 of resource.k8s.io a request of a claim itself has the fields of the hub's
// member exactly, and a device of a slice has a member basic with fields that the hub's device itself has.
func edits() map[schema.GroupVersionKind]edit {
	const group, version = "resource.k8s.io", "v1beta1"
	return map[schema.GroupVersionKind]edit{
		{Group: group, Version: version, Kind: "ResourceClaim"}:         requests("spec", "devices", "requests"),
		{Group: group, Version: version, Kind: "ResourceClaimTemplate"}: requests("spec", "spec", "devices", "requests"),
		{Group: group, Version: version, Kind: "ResourceSlice"}: {
			toHub:   func(o map[string]any) { eachOf(o, raiseBasic, "spec", "devices") },
			fromHub: func(o map[string]any) { eachOf(o, lowerBasic, "spec", "devices") },
		},
	}
}

func requests(path ...string) edit {
	return edit{
		toHub:   func(o map[string]any) { eachOf(o, lowerExactly, path...) },
		fromHub: func(o map[string]any) { eachOf(o, raiseExactly, path...) },
	}
}

// eachOf calls f for the objects of the list at a path.
func eachOf(object map[string]any, f func(map[string]any), path ...string) {
	for _, name := range path[:len(path)-1] {
		object, _ = object[name].(map[string]any)
	}
	list, _ := object[path[len(path)-1]].([]any)
	for _, item := range list {
		if item, ok := item.(map[string]any); ok {
			f(item)
		}
	}
}

// exactFields returns the fields that a request itself has in v1beta1.
func exactFields() []string {
	return []string{"deviceClassName", "selectors", "allocationMode", "count", "adminAccess", "tolerations", "capacity", "derivedAttributes"}
}

func lowerExactly(request map[string]any) {
	exactly := map[string]any{}
	for _, name := range exactFields() {
		if value, ok := request[name]; ok && value != "" {
			exactly[name] = value
		}
		delete(request, name)
	}
	if len(exactly) > 0 {
		request["exactly"] = exactly
	}
}

func raiseExactly(request map[string]any) {
	exactly, _ := request["exactly"].(map[string]any)
	delete(request, "exactly")
	for name, value := range exactly {
		request[name] = value
	}
}

func raiseBasic(device map[string]any) {
	basic, _ := device["basic"].(map[string]any)
	delete(device, "basic")
	for name, value := range basic {
		device[name] = value
	}
}

func lowerBasic(device map[string]any) {
	basic := map[string]any{}
	for name, value := range device {
		if name != "name" {
			basic[name] = value
			delete(device, name)
		}
	}
	device["basic"] = basic
}
