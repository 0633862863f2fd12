package patch_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/patch"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

type crate = runtime.Resource[crateSpec, struct{}]

type crateSpec struct {
	Items  []crateItem       `json:"items,omitempty" patchStrategy:"merge" patchMergeKey:"id"`
	Names  []string          `json:"names,omitempty" patchStrategy:"merge"`
	Plain  []string          `json:"plain,omitempty"`
	Others []crateItem       `json:"others,omitempty"`
	Kept   crateKept         `json:"kept,omitempty" patchStrategy:"retainKeys"`
	Whole  map[string]string `json:"whole,omitempty" patchStrategy:"replace"`
	Map    map[string]string `json:"map,omitempty"`
	Deep   *crateSpec        `json:"deep,omitempty"`
	Any    map[string]any    `json:"any,omitempty"`
	Scalar int64             `json:"scalar,omitempty"`
}

type crateItem struct {
	ID    int64       `json:"id"`
	Value string      `json:"value,omitempty"`
	Items []crateItem `json:"items,omitempty" patchStrategy:"merge" patchMergeKey:"id"`
}

type crateKept struct {
	Type string            `json:"type,omitempty"`
	A    map[string]string `json:"a,omitempty"`
	B    map[string]string `json:"b,omitempty"`
}

var crateType = reflect.TypeFor[crate]()

func TestStrategicMergePatch(t *testing.T) {
	for _, c := range []struct{ name, doc, patch, want string }{
		{"nothing", `{"spec":{"scalar":1}}`, `{}`, `{"spec":{"scalar":1}}`},
		{"nothing onto nothing", `{}`, `{}`, `{}`},
		{"scalar", `{"spec":{"scalar":1}}`, `{"spec":{"scalar":2}}`, `{"spec":{"scalar":2}}`},
		{"null removes", `{"spec":{"scalar":1,"map":{"a":"b"}}}`, `{"spec":{"scalar":null,"map":null,"plain":null}}`, `{"spec":{}}`},
		{"null in a new map goes", `{}`, `{"spec":{"map":{"a":null,"b":"c"}}}`, `{"spec":{"map":{"b":"c"}}}`},
		{"map", `{"spec":{"map":{"a":"1","b":"2"}}}`, `{"spec":{"map":{"a":null,"c":"3"}}}`, `{"spec":{"map":{"b":"2","c":"3"}}}`},
		{"by key", `{"spec":{"items":[{"id":1,"value":"a"},{"id":2}]}}`, `{"spec":{"items":[{"id":2,"value":"b"},{"id":3}]}}`, `{"spec":{"items":[{"id":1,"value":"a"},{"id":2,"value":"b"},{"id":3}]}}`},
		{"by key below a key", `{"spec":{"items":[{"id":1,"items":[{"id":5},{"id":6}]}]}}`, `{"spec":{"items":[{"id":1,"items":[{"id":6,"$patch":"delete"}]}]}}`, `{"spec":{"items":[{"id":1,"items":[{"id":5}]}]}}`},
		{"keys beyond float64", `{"spec":{"items":[{"id":9007199254740993,"value":"a"},{"id":9007199254740992}]}}`, `{"spec":{"items":[{"id":9007199254740993,"value":"b"}]}}`, `{"spec":{"items":[{"id":9007199254740993,"value":"b"},{"id":9007199254740992}]}}`},
		{"delete beyond float64", `{"spec":{"items":[{"id":9223372036854775807},{"id":9223372036854775806}]}}`, `{"spec":{"items":[{"id":9223372036854775806,"$patch":"delete"}]}}`, `{"spec":{"items":[{"id":9223372036854775807}]}}`},
		{"values keep precision", `{"spec":{"scalar":9007199254740993}}`, `{"spec":{"any":{"n":9223372036854775807}}}`, `{"spec":{"scalar":9007199254740993,"any":{"n":9223372036854775807}}}`},
		{"values beyond int64", `{"spec":{"any":{"n":9223372036854776833}}}`, `{"spec":{"scalar":1,"any":{"m":18446744073709551615}}}`, `{"spec":{"scalar":1,"any":{"m":18446744073709551615,"n":9223372036854776833}}}`},
		{"primitives", `{"spec":{"names":["a","b"]}}`, `{"spec":{"names":["b","c"]}}`, `{"spec":{"names":["a","b","c"]}}`},
		{"primitives deleted", `{"spec":{"names":["a","b","c"]}}`, `{"spec":{"$deleteFromPrimitiveList/names":["a","z"]}}`, `{"spec":{"names":["b","c"]}}`},
		{"order", `{"spec":{"names":["a","b","c"]}}`, `{"spec":{"$setElementOrder/names":["c","a","b"]}}`, `{"spec":{"names":["c","a","b"]}}`},
		{"order by key", `{"spec":{"items":[{"id":1},{"id":2}]}}`, `{"spec":{"$setElementOrder/items":[{"id":2},{"id":1}],"items":[{"id":1,"value":"x"}]}}`, `{"spec":{"items":[{"id":2},{"id":1,"value":"x"}]}}`},
		{"untagged lists are replaced", `{"spec":{"plain":["a","b"],"others":[{"id":1,"value":"a"}]}}`, `{"spec":{"plain":["c"],"others":[{"id":1}]}}`, `{"spec":{"plain":["c"],"others":[{"id":1}]}}`},
		{"replace a list", `{"spec":{"items":[{"id":1},{"id":2}]}}`, `{"spec":{"items":[{"$patch":"replace"},{"id":3}]}}`, `{"spec":{"items":[{"id":3}]}}`},
		{"replace a map", `{"spec":{"map":{"a":"1"}}}`, `{"spec":{"map":{"$patch":"replace","b":"2"}}}`, `{"spec":{"map":{"b":"2"}}}`},
		{"delete a map", `{"spec":{"map":{"a":"1"},"scalar":1}}`, `{"spec":{"map":{"$patch":"delete"}}}`, `{"spec":{"map":{},"scalar":1}}`},
		{"replaced by its tag", `{"spec":{"whole":{"a":"1"}}}`, `{"spec":{"whole":{"b":"2"}}}`, `{"spec":{"whole":{"b":"2"}}}`},
		{"retain keys", `{"spec":{"kept":{"type":"A","a":{"x":"1"}}}}`, `{"spec":{"kept":{"$retainKeys":["type","b"],"type":"B","b":{"y":"2"}}}}`, `{"spec":{"kept":{"type":"B","b":{"y":"2"}}}}`},
		{"delete all", `{"spec":{"scalar":1}}`, `{"$patch":"delete"}`, `{}`},
		{"replace all", `{"spec":{"scalar":1}}`, `{"$patch":"replace","metadata":{"name":"x"}}`, `{"metadata":{"name":"x"}}`},
		{"through recursion", `{"spec":{"deep":{"deep":{"names":["a"]}}}}`, `{"spec":{"deep":{"deep":{"names":["b"]}}}}`, `{"spec":{"deep":{"deep":{"names":["b","a"]}}}}`},
		{
			"metadata has tags of its own",
			`{"metadata":{"finalizers":["a"],"ownerReferences":[{"uid":"1","name":"x"}],"labels":{"l":"1"},"managedFields":[{"manager":"m"}]}}`,
			`{"metadata":{"finalizers":["b"],"ownerReferences":[{"uid":"1","name":"y"},{"uid":"2"}],"labels":{"k":"2"},"managedFields":[{"manager":"n"}]}}`,
			`{"metadata":{"finalizers":["b","a"],"ownerReferences":[{"uid":"1","name":"y"},{"uid":"2"}],"labels":{"k":"2","l":"1"},"managedFields":[{"manager":"n"}]}}`,
		},
		{
			"metadata's directives", `{"metadata":{"finalizers":["a","b"],"ownerReferences":[{"uid":"1"},{"uid":"2"}]}}`,
			`{"metadata":{"$deleteFromPrimitiveList/finalizers":["a"],"ownerReferences":[{"uid":"1","$patch":"delete"}]}}`, `{"metadata":{"finalizers":["b"],"ownerReferences":[{"uid":"2"}]}}`,
		},
		{"unknown fields", `{"spec":{"scalar":1}}`, `{"spec":{"scalar":2,"text":"x"}}`, `{"spec":{"scalar":2,"text":"x"}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			doc, changes := []byte(c.doc), []byte(c.patch)
			got, err := patch.StrategicMergePatch(doc, changes, crateType)
			if err != nil {
				t.Fatal(err)
			}
			same(t, got, c.want)
			if string(doc) != c.doc || string(changes) != c.patch {
				t.Error("the inputs changed")
			}
		})
	}
}

func TestStrategicMergePatchOfKubernetes(t *testing.T) {
	for _, c := range []struct {
		t                reflect.Type
		doc, patch, want string
	}{
		{
			reflect.TypeFor[corev1.Pod](), pod, `{"spec":{"containers":[{"name":"a","ports":[{"containerPort":80,"hostPort":8080}],"env":[{"name":"F","value":"2"}],"args":["z"]}],"volumes":[{"name":"v","$retainKeys":["name","hostPath"],"hostPath":{"path":"/"}}],"tolerations":[{"key":"l"}]}}`,
			`{"metadata":{"name":"p"},"spec":{"containers":[{"name":"a","ports":[{"containerPort":80,"hostPort":8080}],"env":[{"name":"F","value":"2"},{"name":"E","value":"1"}],"args":["z"]},{"name":"b"}],"volumes":[{"name":"v","hostPath":{"path":"/"}}],"tolerations":[{"key":"l"}]}}`,
		},
		{
			reflect.TypeFor[appsv1.Deployment](), `{"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1}}}}`,
			`{"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"}}}`, `{"spec":{"strategy":{"type":"Recreate"}}}`,
		},
	} {
		got, err := patch.StrategicMergePatch([]byte(c.doc), []byte(c.patch), c.t)
		if err != nil {
			t.Fatal(err)
		}
		same(t, got, c.want)
	}
}

const pod = `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"a","ports":[{"containerPort":80}],"env":[{"name":"E","value":"1"}],"args":["x","y"]},{"name":"b"}],"volumes":[{"name":"v","emptyDir":{}}],"tolerations":[{"key":"k"}]}}`

const crateText = `{"metadata":{"finalizers":["a"]},"spec":{"items":[{"id":1,"value":"a"},{"id":2}],"names":["a","b"],"plain":["a"],"map":{"a":"b"},"kept":{"type":"A"},"scalar":1,"others":[{"id":1}]}}`

func TestStrategicMergePatchRefused(t *testing.T) {
	for _, c := range []struct {
		name, patch string
		code        int
	}{
		{"empty", ``, 400},
		{"truncated", `{"a"`, 400},
		{"two values", `{} {}`, 400},
		{"null", `null`, 400},
		{"list", `[]`, 400},
		{"scalar", `1`, 400},
		{"text", `"x"`, 400},
		{"too deep", strings.Repeat(`{"a":`, 20000), 400},
		{"infinite", `{"spec":{"scalar":1e999}}`, 400},
		{"unknown directive", `{"spec":{"map":{"$patch":"frob"}}}`, 400},
		{"unknown directive in a list", `{"spec":{"items":[{"id":1,"$patch":"frob"}]}}`, 400},
		{"no such directive as merge", `{"spec":{"map":{"$patch":"merge"}}}`, 400},
		{"nor for an item", `{"spec":{"items":[{"id":1,"$patch":"merge"}]}}`, 400},
		{"item without key", `{"spec":{"items":[{"value":"x"}]}}`, 400},
		{"delete without key", `{"spec":{"items":[{"$patch":"delete"}]}}`, 400},
		{"order without list", `{"spec":{"$setElementOrder/items":"x"}}`, 400},
		{"order that lacks an item", `{"spec":{"$setElementOrder/items":[{"id":7}],"items":[{"id":1}]}}`, 400},
		{"retain keys of a scalar", `{"spec":{"kept":{"$retainKeys":5,"type":"B"}}}`, 400},
		{"retain keys that lack one", `{"spec":{"kept":{"$retainKeys":[],"type":"B"}}}`, 400},
		{"retained key of a wrong type", `{"spec":{"kept":{"$retainKeys":[1],"type":"B"}}}`, 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := patch.StrategicMergePatch([]byte(crateText), []byte(c.patch), crateType)
			if got != nil {
				t.Errorf("%s", got)
			}
			wantError(t, err, c.code, "")
		})
	}
	for _, doc := range []string{``, `{`, `[]`, `null`, `1`} {
		_, err := patch.StrategicMergePatch([]byte(doc), []byte(`{}`), crateType)
		wantError(t, err, 422, "")
	}
	for _, typ := range []reflect.Type{nil, reflect.TypeFor[map[string]any](), reflect.TypeFor[*crate]()} {
		_, err := patch.StrategicMergePatch([]byte(`{}`), []byte(`{}`), typ)
		wantError(t, err, 415, "")
	}
}

// TestStrategicMergePatchNeverPanics has values of every type in the positions of directives and merged lists.
func TestStrategicMergePatchNeverPanics(t *testing.T) {
	values := []string{`null`, `true`, `1`, `1.5`, `"x"`, `[]`, `{}`, `[null]`, `[1]`, `["a"]`, `[[]]`, `[{}]`, `[{"id":1}]`, `[{"id":null}]`, `[{"id":{}}]`, `[{"$patch":1}]`, `[{"$patch":"delete","id":1}]`, `{"$patch":[]}`, `{"a":null}`}
	for _, field := range []string{"items", "names", "plain", "others", "map", "kept", "whole", "deep", "any", "scalar", "nothing"} {
		for _, directive := range []string{"", "$setElementOrder/", "$deleteFromPrimitiveList/", "$retainKeys/", "$patch/"} {
			for _, value := range values {
				for _, text := range []string{`{"spec":{"` + directive + field + `":` + value + `}}`, `{"spec":{"` + field + `":{"$retainKeys":` + value + `,"$patch":` + value + `}}}`, `{"` + directive + `metadata":` + value + `}`, `{"$patch":` + value + `,"$retainKeys":` + value + `}`, `{"spec":{"` + field + `":` + value + `,"` + directive + field + `":` + value + `}}`} {
					for _, doc := range []string{crateText, `{}`, `{"spec":{"` + field + `":` + value + `}}`, `{"spec":[]}`} {
						got, err := patch.StrategicMergePatch([]byte(doc), []byte(text), crateType)
						checkResult(t, got, err)
					}
				}
			}
		}
	}
}

func TestStrategicMergePatchNamesTheCause(t *testing.T) {
	_, err := patch.StrategicMergePatch([]byte(crateText), []byte(`{"spec":{"items":[{"value":"x"}]}}`), crateType)
	var e *patch.Error
	if !errors.As(err, &e) || !strings.Contains(e.Message, "merge key: id") {
		t.Error(err)
	}
}

// TestStrategicMergePatchBounds has lists that would take too long to merge, and a list of this size that is replaced.
func TestStrategicMergePatchBounds(t *testing.T) {
	list := "[" + strings.TrimSuffix(strings.Repeat(`"x",`, 2*patch.DefaultMergedItems), ",") + "]"
	for _, field := range []string{"names", "$setElementOrder/names", "$deleteFromPrimitiveList/names"} {
		_, err := patch.StrategicMergePatch([]byte(crateText), []byte(`{"spec":{"`+field+`":`+list+`}}`), crateType)
		wantError(t, err, 413, "a merge patch replaces lists of any length")
	}
	if _, err := patch.StrategicMergePatch([]byte(crateText), []byte(`{"spec":{"plain":`+list+`}}`), crateType); err != nil {
		t.Error(err)
	}
}
