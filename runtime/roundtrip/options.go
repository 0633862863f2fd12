package roundtrip

import (
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/randfill"
)

func (o Options) seed() (int64, error) {
	if o.Seed != 0 {
		return o.Seed, nil
	}
	text, ok := os.LookupEnv(seedVariable)
	if !ok {
		return 1 + rand.Int64N(1<<40), nil
	}
	seed, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is %q; it must be a whole number", seedVariable, text)
	}
	return seed, nil
}

// title returns the name of a subtest.
func title(gvk schema.GroupVersionKind) string { return gvk.GroupKind().String() + "/" + gvk.Version }

// isThrough reports whether a Tolerance's Through names the version of gvk.
func isThrough(gvk schema.GroupVersionKind, through string) bool {
	return through == gvk.Version || through == gvk.GroupVersion().String()
}

// version returns the text for a version of gvk next to another version of its kind.
func version(gvk, other schema.GroupVersionKind) string {
	if gvk.Group == other.Group {
		return gvk.Version
	}
	return gvk.GroupVersion().String()
}

// isFill reports whether a type is that of a fill function for a pointer or a map.
func isFill(t reflect.Type) bool {
	return t != nil && t.Kind() == reflect.Func && t.NumIn() == 2 && t.NumOut() == 0 &&
		(t.In(0).Kind() == reflect.Pointer || t.In(0).Kind() == reflect.Map) && t.In(1) == reflect.TypeFor[randfill.Continue]()
}
