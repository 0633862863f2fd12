package roundtrip

import (
	"fmt"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Options refines what is checked. The zero Options checks every kind of the scheme.
type Options struct {
	// Kinds are those that are checked, in all their versions; nil is all of the scheme that have a Go type. The versions of
	// others differ in nothing that could be lost.
	Kinds []schema.GroupKind
	// Rounds is how many objects of each version are made; 0 is 200, or 50 with go test -short.
	Rounds int
	// Seed makes the objects of a run those of another run with the same seed and the same types; 0 is another seed in
	// each run, or that of the environment variable KEELSON_ROUNDTRIP_SEED.
	Seed int64
	// Fill are fill functions of sigs.k8s.io/randfill, func(*T, randfill.Continue): how values of type T are made. They
	// replace those for the same type which the package has.
	Fill []any
	// Tolerate is what may be lost.
	Tolerate []Tolerance
}

// Tolerance is a difference that is none.
type Tolerance struct {
	// Kind is that of the objects which differ, with their version.
	Kind schema.GroupVersionKind
	// Through is the version by way of which they may, such as "v1alpha1", or "example.com/v1alpha1" in one of the
	// groups of a kind that is in several; "" is any.
	Through string
	// Path is the dotted path of JSON names at and below which they may, such as "spec.color". It goes through the items
	// of a list without a name of its own.
	Path string
	// Reason says why that is right. It is required: it is all that those who read the test will know.
	Reason string
}

// seedVariable sets the seed of a run that has none.
const seedVariable = "KEELSON_ROUNDTRIP_SEED"

// Test checks random objects of every version of the kinds, each version in a subtest.
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

// Fuzz checks the objects that the Go fuzzer makes: call it in a function FuzzXxx, and run that with go test -fuzz. A
// failure is kept as a file of the corpus, by which go test repeats it. Rounds and Seed mean nothing here.
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

// Check checks one object, of any version. obj is not changed. Of Options only Tolerate counts.
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
