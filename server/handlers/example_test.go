package handlers_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/go-chi/chi/v5"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/handlers"
	"github.com/keelson-dev/keelson/server/registry"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

type CitySpec struct {
	Country string `json:"country"`
}

type City = runtime.Resource[CitySpec, struct{}]

// cities is a storage of the application's own: it reads objects from a map.
type cities map[string]string

func (c cities) Get(_ *registry.Call, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	country, ok := c[name]
	if !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: "geo.example.com", Resource: "cities"}, name)
	}
	city := &City{Spec: CitySpec{Country: country}}
	city.Name = name
	return city, nil
}

// The handler of one resource over a storage of the application, mounted in a chi router beside other routes.
func Example() {
	version := schema.GroupVersion{Group: "geo.example.com", Version: "v1"}
	scheme := runtime.NewScheme()
	if err := runtime.Register[*City](scheme, version.WithKind("City"), runtime.KindOptions[*City]{}); err != nil {
		fmt.Println(err)
		return
	}
	resource, err := handlers.New(handlers.Options{
		Scheme:   scheme,
		Resource: version.WithResource("cities"),
		Kind:     version.WithKind("City"),
		Storage:  cities{"lima": "Peru", "oslo": "Norway"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	router := chi.NewRouter()
	router.Get("/hello", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello\n") })
	router.Handle("/apis/geo.example.com/v1/*", resource)

	fmt.Println("verbs:", resource.Verbs(""))
	for _, target := range []string{
		"/hello",
		"/apis/geo.example.com/v1/cities/oslo",
		"/apis/geo.example.com/v1/cities/rome",
	} {
		w := httptest.NewRecorder()
		router.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
		fmt.Print(w.Code, " ", w.Body)
	}
	// Output:
	// verbs: [get]
	// 200 hello
	// 200 {"kind":"City","apiVersion":"geo.example.com/v1","metadata":{"name":"oslo"},"spec":{"country":"Norway"}}
	// 404 {"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"cities.geo.example.com \"rome\" not found","reason":"NotFound","details":{"name":"rome","group":"geo.example.com","kind":"cities"},"code":404}
}
