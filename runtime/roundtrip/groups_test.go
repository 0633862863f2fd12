package roundtrip_test

import (
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/roundtrip"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/randfill"
)

// Boats of two groups have one hub; both groups have a v1.
type (
	Boat = runtime.Resource[struct {
		Flag  string `json:"flag,omitempty"`
		Oars  int32  `json:"oars,omitempty"`
		Depth int32  `json:"depth,omitempty"`
	}, struct{}]
	RiverBoat = runtime.Resource[struct {
		Colours string `json:"colours,omitempty"`
		Oars    int32  `json:"oars,omitempty"`
	}, struct{}]
)

var (
	boat      = schema.GroupVersionKind{Group: "sea.example.com", Version: "v1", Kind: "Boat"}
	riverBoat = schema.GroupVersionKind{Group: "river.example.com", Version: "v1", Kind: "Boat"}
)

// boats returns a scheme whose conversion from the hub adds the given number of oars.
func boats(t *testing.T, oars int32) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, err := range []error{
		runtime.Register(s, boat, runtime.KindOptions[*Boat]{SelectableFields: []string{"spec.flag", "spec.oars"}}),
		runtime.Register(s, riverBoat, runtime.KindOptions[*RiverBoat]{RenamedFields: map[string]string{"spec.colours": "spec.flag"}, SelectableFields: []string{"spec.oars"}}),
		runtime.AddConversion(s,
			func(in *RiverBoat, out *Boat) error {
				out.Spec.Flag, out.Spec.Oars = in.Spec.Colours, in.Spec.Oars
				return nil
			},
			func(in *Boat, out *RiverBoat) error {
				out.Spec.Colours, out.Spec.Oars = in.Spec.Flag, in.Spec.Oars+oars
				return nil
			}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func depthIsLost(through string) []roundtrip.Tolerance {
	return []roundtrip.Tolerance{{Kind: boat, Through: through, Path: "spec.depth", Reason: "a river has none"}}
}

// Each version is checked once, under its own name, though both groups have all versions.
func TestAKindOfTwoGroups(t *testing.T) {
	made := 0
	count := func(b *Boat, c randfill.Continue) { made++; c.FillNoCustom(b) }
	t.Run("all", func(t *testing.T) {
		roundtrip.Test(t, boats(t, 0), roundtrip.Options{Rounds: 20, Tolerate: depthIsLost("river.example.com/v1"), Fill: []any{count}})
	})
	if made != 20 {
		t.Errorf("%d objects of one version, want 20", made)
	}
	t.Run("one named", func(t *testing.T) {
		roundtrip.Test(t, boats(t, 0), roundtrip.Options{Rounds: 20, Tolerate: depthIsLost("v1"), Kinds: []schema.GroupKind{riverBoat.GroupKind(), boat.GroupKind()}})
	})
}

func TestWhatIsWrongBetweenGroupsIsFound(t *testing.T) {
	b := &Boat{}
	b.Spec.Flag, b.Spec.Depth = "red", 7
	for want, c := range map[string]struct {
		oars     int32
		tolerate []roundtrip.Tolerance
	}{
		"sea.example.com/v1 -> river.example.com/v1 -> sea.example.com/v1 makes another object of it": {},
		"the selectable field spec.oars of river.example.com/v1 and spec.oars of sea.example.com/v1":  {oars: 1},
		"": {tolerate: depthIsLost("river.example.com/v1")},
	} {
		err := roundtrip.Check(boats(t, c.oars), b, roundtrip.Options{Tolerate: c.tolerate})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	err := roundtrip.Check(boats(t, 0), b, roundtrip.Options{Tolerate: depthIsLost("sea.example.com/v2")})
	if err == nil || !strings.Contains(err.Error(), `the kind has no version "sea.example.com/v2"`) {
		t.Errorf("a version there is not: %v", err)
	}
}
