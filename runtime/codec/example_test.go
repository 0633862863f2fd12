package codec_test

import (
	"fmt"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

type BoatSpec struct {
	Masts int32  `json:"masts,omitempty"`
	Hull  string `json:"hull,omitempty"`
}

type Boat = runtime.Resource[BoatSpec, struct{}]

// The example uses a scheme and the codecs, without a server. It decodes a body in YAML, sets defaults, and encodes the object as
// the bytes that are stored and served.
func Example() {
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Boat"}
	scheme := runtime.NewScheme()
	err := runtime.Register(scheme, kind, runtime.KindOptions[*Boat]{Default: func(b *Boat) {
		if b.Spec.Hull == "" {
			b.Spec.Hull = "oak"
		}
	}})
	if err != nil {
		fmt.Println(err)
		return
	}

	body := "metadata:\n  name: victory\nspec:\n  masts: 3\n  mast: 4\n"
	decoded, err := codec.Decode(scheme, codec.YAML(), []byte(body), kind, codec.Warn)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("problems:", decoded.Problems)

	document, err := codec.EncodeDocument(decoded.Object, kind)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("stored:    %s\n", document.Bytes())
	fmt.Printf("served:    %s\n", document.AppendObject(nil, 42))
	fmt.Printf("in a list: %s\n", document.AppendItem(nil, 42))
	// Output:
	// problems: [unknown field "spec.mast"]
	// stored:    {"kind":"Boat","apiVersion":"example.com/v1","metadata":{"name":"victory"},"spec":{"masts":3,"hull":"oak"}}
	// served:    {"kind":"Boat","apiVersion":"example.com/v1","metadata":{"name":"victory","resourceVersion":"42"},"spec":{"masts":3,"hull":"oak"}}
	// in a list: {"metadata":{"name":"victory","resourceVersion":"42"},"spec":{"masts":3,"hull":"oak"}}
}
