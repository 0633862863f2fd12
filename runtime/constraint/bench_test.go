package constraint_test

import (
	"reflect"
	"testing"

	"github.com/keelson-dev/keelson/runtime/constraint"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// many is an object with twenty rules, elements aside.
type many struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Size    int32    `json:"size" minimum:"1" maximum:"10"`
		Even    *int64   `json:"even,omitempty" multipleOf:"2"`
		Color   string   `json:"color,omitempty" enum:"red,green" default:"red"`
		Name    *string  `json:"name,omitempty" required:"true" minLength:"1" maxLength:"63"`
		Zone    string   `json:"zone,omitempty" immutable:"true" pattern:"^[a-z]+$"`
		Addr    string   `json:"addr,omitempty" format:"ipv4"`
		Share   *float64 `json:"share,omitempty" minimum:"0" maximum:"1" default:"0.5"`
		Tags    []string `json:"tags,omitempty" minItems:"1" maxItems:"8"`
		Parts   []part   `json:"parts,omitempty" maxItems:"100" listType:"map" listMapKey:"name"`
		Command []string `json:"command,omitempty"`
	} `json:"spec"`
}

func newMany() *many {
	o := &many{}
	o.Spec.Size, o.Spec.Even, o.Spec.Name, o.Spec.Zone, o.Spec.Addr = 3, ptr(int64(4)), ptr("abc"), "west", "10.0.0.1"
	o.Spec.Tags, o.Spec.Command = []string{"a", "b"}, []string{"x", "y"}
	o.Spec.Parts = []part{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}
	return o
}

func BenchmarkValidate(b *testing.B) {
	rules, obj := rulesOf[many](b), newMany()
	rules.SetDefaults(obj)
	b.ReportAllocs()
	for b.Loop() {
		if rules.Validate(obj) != nil {
			b.Fatal("not valid")
		}
	}
}

func BenchmarkValidateUpdate(b *testing.B) {
	rules, obj, old := rulesOf[many](b), newMany(), newMany()
	b.ReportAllocs()
	for b.Loop() {
		if rules.ValidateUpdate(obj, old) != nil {
			b.Fatal("not valid")
		}
	}
}

func BenchmarkSetDefaults(b *testing.B) {
	rules, obj := rulesOf[many](b), newMany()
	b.ReportAllocs()
	for b.Loop() {
		obj.Spec.Color, obj.Spec.Share = "", nil
		rules.SetDefaults(obj)
	}
}

// TestCost checks that validating a valid object allocates almost nothing: only the set of names of a list, and the memory for
// checking the format.
func TestCost(t *testing.T) {
	rules, obj, old := rulesOf[many](t), newMany(), newMany()
	rules.SetDefaults(obj)
	rules.SetDefaults(old)
	obj.Spec.Parts, old.Spec.Parts = nil, nil
	if n := testing.AllocsPerRun(100, func() { rules.Validate(obj) }); n > 4 {
		t.Errorf("Validate allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() { rules.ValidateUpdate(obj, old) }); n > 4 {
		t.Errorf("ValidateUpdate allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() { rules.SetDefaults(obj) }); n > 1 {
		t.Errorf("SetDefaults allocates %v times where nothing is missing", n)
	}
}

// BenchmarkOf compiles a large type without rules, which is the cost of registering it.
func BenchmarkOf(b *testing.B) {
	for b.Loop() {
		if _, err := constraint.Of(reflect.TypeFor[corev1.Pod]()); err != nil {
			b.Fatal(err)
		}
	}
}
