package patch_test

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/patch"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

type ShipSpec struct {
	Size  int32  `json:"size,omitempty"`
	Masts []Mast `json:"masts,omitempty" listType:"map" listMapKey:"name" patchStrategy:"merge" patchMergeKey:"name"`
}

type Mast struct {
	Name  string `json:"name"`
	Sails int32  `json:"sails,omitempty"`
}

type Ship = runtime.Resource[ShipSpec, struct{}]

// A strategic merge patch finds the items of a list by the key in the struct tags.
func ExampleStrategicMergePatch() {
	doc := []byte(`{"spec":{"size":3,"masts":[{"name":"fore","sails":2},{"name":"main","sails":4}]}}`)
	change := []byte(`{"spec":{"masts":[{"name":"main","sails":5},{"name":"fore","$patch":"delete"}]}}`)
	patched, err := patch.StrategicMergePatch(doc, change, reflect.TypeFor[Ship]())
	fmt.Println(string(patched), err)
	// Output:
	// {"spec":{"masts":[{"name":"main","sails":5}],"size":3}} <nil>
}

// A field manager needs only a scheme. Two managers share one object, and one of them has a conflict with the other.
func ExampleFieldManager() {
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Ship"}
	scheme := runtime.NewScheme()
	if err := runtime.Register(scheme, kind, runtime.KindOptions[*Ship]{}); err != nil {
		fmt.Println(err)
		return
	}
	ships, err := patch.NewFieldManager(patch.FieldManagerOptions{Scheme: scheme, Kind: kind})
	if err != nil {
		fmt.Println(err)
		return
	}
	live, err := ships.Apply(nil, shipOf(map[string]any{"size": int64(3)}), "builder", false)
	if err != nil {
		fmt.Println(err)
		return
	}
	main := []any{map[string]any{"name": "main"}}
	live, err = ships.Apply(live, shipOf(map[string]any{"masts": main}), "rigger", false)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range live.(*Ship).ManagedFields {
		fmt.Println(e.Manager, e.Operation, e.FieldsV1)
	}

	_, err = ships.Apply(live, shipOf(map[string]any{"masts": main, "size": int64(4)}), "rigger", false)
	fmt.Println(err)

	// Fields that no manager applies any more are removed.
	live, err = ships.Apply(live, shipOf(nil), "builder", false)
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := json.Marshal(live.(*Ship).Spec)
	fmt.Println(string(text), err)
	// Output:
	// builder Apply {"f:spec":{"f:size":{}}}
	// rigger Apply {"f:spec":{"f:masts":{"k:{\"name\":\"main\"}":{".":{},"f:name":{}}}}}
	// Apply failed with 1 conflict: conflict with "builder": .spec.size
	// {"masts":[{"name":"main"}]} <nil>
}

// shipOf returns a configuration as decoded from JSON.
func shipOf(spec map[string]any) map[string]any {
	config := map[string]any{"apiVersion": "example.com/v1", "kind": "Ship", "metadata": map[string]any{"name": "victory"}}
	if spec != nil {
		config["spec"] = spec
	}
	return config
}
