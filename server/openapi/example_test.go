package openapi_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"reflect"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/spec3"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/openapi"
)

type LampSpec struct {
	Watts int32 `json:"watts"`
}

type Lamp = runtime.Resource[LampSpec, struct{}]

func Example() {
	service := openapi.New(openapi.Options{Title: "lamps", Version: "v1.0.0"})
	service.Set([]openapi.GroupVersion{{Group: "example.com", Version: "v1", Resources: []openapi.Resource{{
		Plural: "lamps", Kind: apischema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Lamp"},
		Namespaced: true, Type: reflect.TypeFor[Lamp](), Verbs: []string{"get", "list", "watch"},
	}}}})

	w := httptest.NewRecorder() // in a program: mux.Handle("/openapi/", service)
	service.ServeHTTP(w, httptest.NewRequest("GET", "/openapi/v3/apis/example.com/v1", nil))
	var document spec3.OpenAPI
	if err := json.Unmarshal(w.Body.Bytes(), &document); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(document.Paths.Paths["/apis/example.com/v1/namespaces/{namespace}/lamps"].Get.OperationId)
	fmt.Println(document.Components.Schemas["com.example.v1.LampSpec"].Required)
	// Output:
	// listExampleComV1NamespacedLamp
	// [watts]
}
