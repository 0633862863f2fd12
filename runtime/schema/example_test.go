package schema_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing/fstest"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/schema"
)

type LampSpec struct {
	Watts int32  `json:"watts"`
	Shade string `json:"shade,omitempty"`
}

type Lamp = runtime.Resource[LampSpec, struct{}]

func Example() {
	// A program gives its own source: //go:embed *.go
	source := fstest.MapFS{"lamp.go": {Data: []byte(`package schema_test
// LampSpec is a lamp as it should be.
type LampSpec struct {
	// Watts it draws.
	Watts int32
}`)}}
	docs, err := schema.ParseDocs(source)
	if err != nil {
		fmt.Println(err)
		return
	}
	gv := apischema.GroupVersion{Group: "example.com", Version: "v1"}
	b := schema.NewBuilder(schema.Options{GroupVersion: gv, Docs: docs})
	name := b.AddKind(schema.Kind{GVK: gv.WithKind("Lamp"), Type: reflect.TypeFor[Lamp]()})
	definitions := b.Definitions()
	fmt.Println(name, b.ListName(name))
	text, err := json.MarshalIndent(definitions["com.example.v1.LampSpec"], "", "  ")
	fmt.Println(string(text), err)
	// Output:
	// com.example.v1.Lamp com.example.v1.LampList
	// {
	//   "description": "LampSpec is a lamp as it should be.",
	//   "type": "object",
	//   "required": [
	//     "watts"
	//   ],
	//   "properties": {
	//     "shade": {
	//       "type": "string"
	//     },
	//     "watts": {
	//       "description": "Watts it draws.",
	//       "type": "integer",
	//       "format": "int32",
	//       "default": 0
	//     }
	//   }
	// } <nil>
}
