package roundtrip

import (
	"fmt"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Options are the options of [Test] and [Fuzz]. The zero Options checks every kind of the scheme.
type Options struct {
	// Kinds are the kinds to check, in all their versions; nil means all kinds of the scheme that have a Go type.
	Kinds []schema.GroupKind
	// Rounds is the number of objects of each version; 0 means 200, or 50 with go test -short.
	Rounds int
	// Seed selects the random objects: runs with the same seed and the same types check the same objects. 0 means another seed in
	// each run, or the value of the environment variable KEELSON_ROUNDTRIP_SEED.
	Seed int64
	// Fill holds fill functions of sigs.k8s.io/randfill, func(*T, randfill.Continue), which make the values of type T. They
	// replace the fill functions of this package for the same type. Values that break the rules in struct tags are replaced by
	// others.
	Fill []any
	// Tolerate lists the differences that are allowed.
	Tolerate []Tolerance
}

// Tolerance is a difference that is allowed.
type Tolerance struct {
	// Kind is the kind and version of the objects that may differ.
	Kind schema.GroupVersionKind
	// Through is the version to which the objects are converted and from which they are converted back: "v1alpha1", or
	// "example.com/v1alpha1" if the kind is in several groups. "" means any version.
	Through string
	// Path is the dotted path of JSON names, such as "spec.color", of the value that may differ, with everything below it. The
	// items of a list have no name in the path.
	Path string
	// Reason says why the difference is right. It is required, for the readers of the test.
	Reason string
}

// seedVariable is the environment variable with the seed, for Options without a Seed.
const seedVariable = "KEELSON_ROUNDTRIP_SEED"

// Test checks random objects of every version of the kinds, each version in a subtest. The objects obey the rules in the struct
// tags of their types.
func Test(t *testing.T, s *runtime.Scheme, o Options) {
	t.Helper()
	c, err := newChecker(s, o)
	if err != nil {
		t.Fatalf("roundtrip: %v", err)
	}
	seed, err := o.seed()
	if err != nil {
		t.Fatalf("roundtrip: %v", err)
	}
	rounds := o.Rounds
	if rounds == 0 {
		if rounds = 200; testing.Short() {
			rounds = 50
		}
	}
	for _, k := range c.kinds {
		t.Run(title(k.GVK), func(t *testing.T) {
			for i := range int64(rounds) {
				obj, err := c.random(k, seed+i)
				if err == nil {
					err = c.smallest(k, obj)
				}
				if err != nil {
					t.Fatalf("%v\n\nObject %d of seed %d. To run it again: %s=%d go test -run '^%s$', or set Seed in the Options.",
						err, i, seed, seedVariable, seed+i, strings.ReplaceAll(t.Name(), "/", "$/^"))
				}
			}
		})
	}
}

// Fuzz checks objects that the Go fuzzer makes: call it in a function FuzzXxx, and run that with go test -fuzz. A failure is
// stored in the corpus, and go test repeats it. Rounds and Seed have no effect.
func Fuzz(f *testing.F, s *runtime.Scheme, o Options) {
	f.Helper()
	c, err := newChecker(s, o)
	if err != nil {
		f.Fatalf("roundtrip: %v", err)
	}
	for i := range c.kinds {
		f.Add(uint8(i), []byte("a seed of the corpus, which is as good as any other"))
	}
	f.Fuzz(func(t *testing.T, kind uint8, data []byte) {
		k := c.kinds[int(kind)%len(c.kinds)]
		obj, err := c.fuzzed(k, data)
		if err == nil {
			err = c.smallest(k, obj)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
}

// Check checks one object, of any version. obj is not changed. Only the field Tolerate of Options is used.
func Check(s *runtime.Scheme, obj runtime.Object, o Options) error {
	c, err := newChecker(s, o)
	if err != nil {
		return fmt.Errorf("roundtrip: %w", err)
	}
	k := s.KindOf(obj)
	switch {
	case k == nil:
		return fmt.Errorf("roundtrip: %T is no kind of the scheme", obj)
	case k.Untyped():
		return nil
	}
	if p := c.check(k, obj); p != nil {
		return p
	}
	return nil
}
