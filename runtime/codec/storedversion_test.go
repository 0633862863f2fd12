package codec_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Crates of v1, the hub, have a number and a default weight, which v1beta1 does not have.
type (
	Crate = runtime.Resource[struct {
		Number int32  `json:"number"`
		Weight *int32 `json:"weight,omitempty"`
	}, struct{}]
	CrateV1Beta1 = runtime.Resource[struct {
		Number string `json:"number"`
	}, struct{}]
)

func crate(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "sea.example.com", Version: version, Kind: "Crate"}
}

// The hub is v1, and objects are stored in v1beta1.
func TestStoredInAnotherVersionThanTheHub(t *testing.T) {
	s := runtime.NewScheme()
	must(t, runtime.Register(s, crate("v1"), runtime.KindOptions[*Crate]{Default: func(c *Crate) {
		if c.Spec.Weight == nil {
			c.Spec.Weight = new(int32)
			*c.Spec.Weight = 10
		}
	}}))
	must(t, runtime.Register(s, crate("v1beta1"), runtime.KindOptions[*CrateV1Beta1]{}))
	must(t, runtime.AddConversion(s,
		func(in *CrateV1Beta1, out *Crate) error {
			switch in.Spec.Number {
			case "seven":
				out.Spec.Number = 7
			case "panic":
				panic("a number like that")
			default:
				return errors.New("what number is " + in.Spec.Number)
			}
			return nil
		},
		func(in *Crate, out *CrateV1Beta1) error {
			switch in.Spec.Number {
			case 7:
				out.Spec.Number = "seven"
			case 8:
				out.Spec.Number = "eight" // cannot be decoded
			case 9:
				out.Spec.Number = "panic"
			default:
				return errors.New("only seven has a name")
			}
			return nil
		}))
	typed, err := codec.NewTyped(s, crate("v1beta1"))
	must(t, err)
	in := &Crate{}
	in.Name, in.Spec.Number = "a", 7
	d, err := typed.Encode(in)
	must(t, err)
	if want := `{"kind":"Crate","apiVersion":"sea.example.com/v1beta1","metadata":{"name":"a"},"spec":{"number":"seven"}}`; string(d.Bytes()) != want {
		t.Errorf("got %s\nwant %s", d.Bytes(), want)
	}
	out, err := typed.Decode(d)
	must(t, err)
	if c, ok := out.(*Crate); !ok || c.Spec.Number != 7 || c.Spec.Weight == nil || *c.Spec.Weight != 10 || c.APIVersion != "sea.example.com/v1" {
		t.Errorf("decoded to %+v", out)
	}
	if _, stale, err := typed.Entry(d.Bytes()); err != nil || stale {
		t.Errorf("what it has written itself: stale %v, %v", stale, err)
	}
	hub, err := codec.NewTyped(s, crate("v1"))
	must(t, err)
	if e, stale, err := hub.Entry(d.Bytes()); err != nil || !stale || !e.InVersion("sea.example.com/v1beta1") {
		t.Errorf("for a store of v1: %s, stale %v, %v", e.Bytes(), stale, err)
	}
	for number, want := range map[int32]string{8: "what number is eight", 9: "a number like that", 10: "only seven has a name"} {
		in.Spec.Number = number
		var conversion *runtime.ConversionError
		if _, err := typed.Encode(in); !errors.As(err, &conversion) || !strings.Contains(err.Error(), want) {
			t.Errorf("%d: %v, want a ConversionError with %q", number, err, want)
		}
	}
}
