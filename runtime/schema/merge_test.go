package schema_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/keelson-dev/keelson/runtime/schema"
	"github.com/keelson-dev/keelson/runtime/schema/testdata/merging"
)

type part struct {
	Name   string            `json:"name"`
	Port   *int32            `json:"port,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Any    json.RawMessage   `json:"any,omitempty"`
}

// Struct tags declare how a list or map merges, as the markers with the same names do.
func TestStructTagsSayHowFieldsMerge(t *testing.T) {
	type tagged struct {
		Parts   []part            `json:"parts,omitempty" listType:"map" listMapKey:"name, port" patchStrategy:"merge" patchMergeKey:"name"`
		Tags    []string          `json:"tags,omitempty" listType:"set"`
		Command []string          `json:"command,omitempty" listType:"atomic"`
		Labels  map[string]string `json:"labels,omitempty" mapType:"atomic"`
		Part    *part             `json:"part,omitempty" structType:"atomic"`
		Plain   []string          `json:"plain,omitempty"`
	}
	properties := definition[tagged](t).Properties
	for name, want := range map[string]string{
		"parts": `{"x-kubernetes-list-map-keys":["name","port"],"x-kubernetes-list-type":"map","x-kubernetes-patch-merge-key":"name","x-kubernetes-patch-strategy":"merge"}`,
		"tags":  `{"x-kubernetes-list-type":"set"}`, "command": `{"x-kubernetes-list-type":"atomic"}`,
		"labels": `{"x-kubernetes-map-type":"atomic"}`, "part": `{"x-kubernetes-map-type":"atomic"}`, "plain": `null`,
	} {
		got, err := json.Marshal(properties[name].Extensions)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if err := schema.Check(schema.Kind{Type: reflect.TypeFor[tagged]()}); err != nil {
		t.Error(err)
	}
}

func TestCheckNamesFieldsThatCannotMerge(t *testing.T) {
	type within struct {
		Deep []map[string]*struct {
			Parts []part `json:"parts" listType:"map"`
		} `json:"deep"`
	}
	type twice struct {
		One []string `json:"one" listType:"maps"`
		Two int      `json:"two" listType:"set"`
	}
	for want, typ := range map[string]reflect.Type{
		`field F of struct { F []string "json:\"f\" listType:\"maps\"" }: listType "maps" is none of atomic, set and map`: reflect.TypeFor[struct {
			F []string `json:"f" listType:"maps"`
		}](),
		`listType is for lists`: reflect.TypeFor[struct {
			F string `json:"f" listType:"set"`
		}](),
		`: listType is for lists`: reflect.TypeFor[struct {
			F []byte `json:"f" listType:"atomic"`
		}](),
		`listMapKey needs listType "map"`: reflect.TypeFor[struct {
			F []part `json:"f" listMapKey:"name"`
		}](),
		`listType "map" needs listMapKey`: reflect.TypeFor[within](),
		`listMapKey "nam" is no field of schema_test.part in JSON`: reflect.TypeFor[struct {
			F []*part `json:"f" listType:"map" listMapKey:"name,nam"`
		}](),
		`listMapKey "" is no field`: reflect.TypeFor[struct {
			F []part `json:"f" listType:"map" listMapKey:"name,"`
		}](),
		`listMapKey "Name" is no field`: reflect.TypeFor[struct {
			F []part `json:"f" listType:"map" listMapKey:"Name"`
		}](),
		`listMapKey "name" is given twice`: reflect.TypeFor[struct {
			F []part `json:"f" listType:"map" listMapKey:"name,name"`
		}](),
		`listMapKey "labels" of schema_test.part is a map[string]string, not a plain value`: reflect.TypeFor[struct {
			F []part `json:"f" listType:"map" listMapKey:"labels"`
		}](),
		`listMapKey "port" is left out of the JSON`: reflect.TypeFor[struct {
			F []struct {
				Name string `json:"name"`
				Port int    `json:"port,omitempty"`
			} `json:"f" listType:"map" listMapKey:"name,port"`
		}](),
		`listMapKey is for lists of structs, not of string`: reflect.TypeFor[struct {
			F []string `json:"f" listType:"map" listMapKey:"name"`
		}](),
		`listType "set" is for lists of plain values, not of schema_test.part`: reflect.TypeFor[struct {
			F []part `json:"f" listType:"set"`
		}](),
		`mapType "loose" is neither`: reflect.TypeFor[struct {
			F part `json:"f" mapType:"loose"`
		}](),
		`mapType is for maps and structs`: reflect.TypeFor[struct {
			F []part `json:"f" mapType:"atomic"`
		}](),
		`patchStrategy "replace" is none of`: reflect.TypeFor[struct {
			F []part `json:"f" patchStrategy:"replace"`
		}](),
		`patchMergeKey "nam" is no field`: reflect.TypeFor[struct {
			F []part `json:"f" listType:"map" listMapKey:"name" patchStrategy:"merge" patchMergeKey:"nam"`
		}](),
		`on a list of structs needs patchMergeKey`: reflect.TypeFor[struct {
			F []part `json:"f" patchStrategy:"merge"`
		}](),
		"field One of schema_test.twice: listType \"maps\" is none of atomic, set and map\nfield Two of schema_test.twice: listType is for lists": reflect.TypeFor[twice](),
	} {
		err := schema.Check(schema.Kind{Type: typ})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\n got %v\nwant %s", typ, err, want)
		}
	}
}

func TestCheckReadsMarkers(t *testing.T) {
	docs, err := schema.ParseDocs(merging.Source)
	if err != nil {
		t.Fatal(err)
	}
	err = schema.Check(schema.Kind{Type: reflect.TypeFor[merging.Marked](), Docs: docs})
	want := "field Parts of merging.Marked: listMapKey \"nam\" is no field of merging.Part in JSON\n" +
		`field Keyed of merging.Marked: listMapKey needs listType "map"`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if err := schema.Check(schema.Kind{Type: reflect.TypeFor[merging.Marked]()}); err != nil {
		t.Errorf("without its source: %v", err)
	}
}

func TestCheckAllowsWhatMerges(t *testing.T) {
	type recursive struct {
		Self []*struct {
			Name string               `json:"name"`
			Refs []metaRef            `json:"refs" listType:"set"`
			Keys []part               `json:"keys" listType:"map" listMapKey:"any"`
			Maps []map[string]bool    `json:"maps" listType:"map" listMapKey:"name"`
			Port []intstr.IntOrString `json:"port" listType:"set"`
			Self []*tree              `json:"self" listType:"atomic"`
		} `json:"self" listType:"map" listMapKey:"name"`
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[recursive](), reflect.TypeFor[corev1.Pod](), reflect.TypeFor[*corev1.Service](), reflect.TypeFor[int](), nil} {
		if err := schema.Check(schema.Kind{Type: typ}); err != nil {
			t.Errorf("%v: %v", typ, err)
		}
	}
}

// metaRef is a struct that is owned as a whole.
type metaRef = corev1.ObjectReference
