package roundtrip_test

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/roundtrip"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Kegs have fields of many types, the same in both versions.
type (
	Keg        = runtime.Resource[KegSpec, struct{}]
	KegV1Beta1 struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
		Spec              KegSpec `json:"spec,omitzero"`
	}
	KegSpec struct {
		Text  string                  `json:"text,omitempty"`
		Big   int64                   `json:"big,omitempty"`
		Flag  *bool                   `json:"flag,omitempty"`
		Items []KegItem               `json:"items,omitempty"`
		ByKey map[string]KegItem      `json:"byKey,omitempty"`
		Time  metav1.Time             `json:"time,omitzero"`
		Maybe *metav1.MicroTime       `json:"maybe,omitempty"`
		Space resource.Quantity       `json:"space,omitzero"`
		Port  intstr.IntOrString      `json:"port,omitzero"`
		Raw   apiruntime.RawExtension `json:"raw,omitempty"`
		Next  *KegSpec                `json:"next,omitempty"`
	}
	KegItem struct {
		Name  string                 `json:"name"`
		Count int64                  `json:"count,omitempty"`
		Notes map[string]string      `json:"notes,omitempty"`
		Times map[string]metav1.Time `json:"times,omitempty"`
	}
)

func (k *KegV1Beta1) DeepCopyObject() runtime.Object { return runtime.DeepCopy(k) }

// planted returns errors that a conversion may contain after it has copied the spec; "" is a correct conversion.
func planted() map[string]func(in *KegV1Beta1, out *Keg) {
	return map[string]func(in *KegV1Beta1, out *Keg){
		"": func(*KegV1Beta1, *Keg) {},
		"false is absent": func(_ *KegV1Beta1, out *Keg) {
			if f := out.Spec.Flag; f != nil && !*f {
				out.Spec.Flag = nil
			}
		},
		"a number passes through float64": func(in *KegV1Beta1, out *Keg) { out.Spec.Big = int64(float64(in.Spec.Big)) },
		"the third item": func(_ *KegV1Beta1, out *Keg) {
			out.Spec.Items = out.Spec.Items[:min(2, len(out.Spec.Items))]
		},
		"a map inside an item": func(_ *KegV1Beta1, out *Keg) {
			for i := range out.Spec.Items {
				if len(out.Spec.Items[i].Notes) > 1 {
					out.Spec.Items[i].Notes = nil
				}
			}
		},
		"no time becomes now": func(_ *KegV1Beta1, out *Keg) {
			if out.Spec.Time.IsZero() {
				out.Spec.Time = metav1.Unix(1, 0)
			}
		},
		"far inside": func(_ *KegV1Beta1, out *Keg) {
			if n := out.Spec.Next; n != nil && n.Next != nil {
				n.Next.Text = ""
			}
		},
		"a fraction": func(in *KegV1Beta1, out *Keg) {
			out.Spec.Space = *resource.NewQuantity(in.Spec.Space.Value(), resource.DecimalSI)
		},
		"a number as text": func(in *KegV1Beta1, out *Keg) { out.Spec.Port = intstr.FromString(in.Spec.Port.String()) },
		"a number that must be there": func(in *KegV1Beta1, _ *Keg) {
			if in.Spec.Big == 0 {
				panic("no number")
			}
		},
		"owners":   func(_ *KegV1Beta1, out *Keg) { out.OwnerReferences = nil },
		"managers": func(_ *KegV1Beta1, out *Keg) { out.ManagedFields = nil },
		"capitals": func(_ *KegV1Beta1, out *Keg) { out.Spec.Text = strings.ToLower(out.Spec.Text) },
	}
}

const plantedVariable = "KEELSON_TEST_PLANTED"

// TestPlantedChild runs one of the cases of TestPlanted.
func TestPlantedChild(t *testing.T) {
	name, ok := os.LookupEnv(plantedVariable)
	if !ok {
		t.Skip("it is run by TestPlanted")
	}
	s, mistake := runtime.NewScheme(), planted()[name]
	err := errors.Join(
		runtime.Register(s, kind("v1").GroupVersion().WithKind("Keg"), runtime.KindOptions[*Keg]{Hub: true}),
		runtime.Register(s, kind("v1beta1").GroupVersion().WithKind("Keg"), runtime.KindOptions[*KegV1Beta1]{}),
		runtime.AddConversion(s,
			func(in *KegV1Beta1, out *Keg) error { out.Spec = in.Spec; mistake(in, out); return nil },
			func(in *Keg, out *KegV1Beta1) error { out.Spec = in.Spec; return nil }),
	)
	if err != nil {
		t.Fatal(err)
	}
	roundtrip.Test(t, s, roundtrip.Options{})
}

// Typical errors in programs are found with the default number of objects, and the same seed finds the same error again.
func TestPlanted(t *testing.T) {
	t.Parallel()
	run := func(name string) (shown string, found bool) {
		c := exec.Command(os.Args[0], "-test.run=^TestPlantedChild$")
		c.Env = append(os.Environ(), plantedVariable+"="+name, "KEELSON_ROUNDTRIP_SEED=7")
		out, err := c.CombinedOutput()
		return strings.Join(regexp.MustCompile("(?m)^ *(The object is|Object ).*$").FindAllString(string(out), -1), "\n"), err != nil
	}
	for name := range planted() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shown, found := run(name)
			if found != (name != "") {
				t.Errorf("found: %v\n%s", found, shown)
			}
			if again, _ := run(name); again != shown {
				t.Errorf("found again\n%s\nwas\n%s", again, shown)
			}
		})
	}
}
