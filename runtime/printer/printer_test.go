package printer_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/keelson-dev/keelson/runtime/printer"
)

type Mast struct {
	Height int32   `json:"height" print:"Height,wide"`
	Wood   *string `json:"wood,omitempty" print:"Wood"`
}

type Crew struct {
	Names []string `json:"names" print:"Crew"`
}

type ShipSpec struct {
	Crew      `json:",inline"`
	Mast      *Mast               `json:"mast,omitempty"`
	Fast      bool                `json:"fast" print:"Fast"`
	Knots     float64             `json:"knots" print:"Knots"`
	Guns      *uint16             `json:"guns" print:"Guns"`
	Launched  metav1.Time         `json:"launched" print:"Launched"`
	Refitted  *metav1.MicroTime   `json:"refitted" print:"Refitted"`
	Watch     metav1.Duration     `json:"watch" print:"Watch"`
	Cargo     resource.Quantity   `json:"cargo" print:"Cargo"`
	Port      *intstr.IntOrString `json:"port" print:"Port"`
	Ballast   []*int              `json:"ballast" print:"Ballast"`
	Forgotten map[string]string   `json:"forgotten"`
}

type Ship struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ShipSpec `json:"spec"`
}

func TestColumnsOfEveryType(t *testing.T) {
	table, err := printer.Of(reflect.TypeFor[Ship]())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range table.Columns() {
		got = append(got, strings.Join([]string{c.Name, c.Type, []string{"", "wide"}[c.Priority], c.Path, c.Declaring.Name() + "." + c.Field}, " "))
	}
	want := []string{
		"Crew string  spec.names Crew.Names",
		"Height integer wide spec.mast.height Mast.Height",
		"Wood string  spec.mast.wood Mast.Wood",
		"Fast boolean  spec.fast ShipSpec.Fast",
		"Knots number  spec.knots ShipSpec.Knots",
		"Guns integer  spec.guns ShipSpec.Guns",
		"Launched date  spec.launched ShipSpec.Launched",
		"Refitted date  spec.refitted ShipSpec.Refitted",
		"Watch string  spec.watch ShipSpec.Watch",
		"Cargo string  spec.cargo ShipSpec.Cargo",
		"Port string  spec.port ShipSpec.Port",
		"Ballast string  spec.ballast ShipSpec.Ballast",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestCells(t *testing.T) {
	table, err := printer.Of(reflect.TypeFor[Ship]())
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC)
	one, wood, guns, port := 1, "oak", uint16(12), intstr.FromString("http")
	full := &Ship{Spec: ShipSpec{
		Crew: Crew{[]string{"ann", "bob"}}, Mast: &Mast{Height: 20, Wood: &wood}, Fast: true, Knots: 7.5, Guns: &guns,
		Launched: metav1.NewTime(now.Add(-76 * time.Hour)), Refitted: &metav1.MicroTime{Time: now.Add(-90 * time.Second)},
		Watch: metav1.Duration{Duration: 4 * time.Hour}, Cargo: resource.MustParse("5Gi"), Port: &port, Ballast: []*int{&one, nil, &one},
	}}
	for _, c := range []struct {
		ship *Ship
		want []any
	}{
		{full, []any{"ann,bob", int64(20), "oak", true, 7.5, uint64(12), "3d4h", "90s", "4h0m0s", "5Gi", "http", "1,1"}},
		{&Ship{}, []any{"", nil, nil, false, 0.0, nil, nil, nil, "0s", "0", nil, ""}},
	} {
		got, err := table.Cells(nil, c.ship, now)
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got)\n%s", err, diff)
		}
	}
	if _, err := table.Cells(nil, &Mast{}, now); err == nil {
		t.Error("another type is taken")
	}
}

type DockSpec struct {
	Depth int32         `json:"depth" print:"Depth"`
	Tides []metav1.Time `json:"tides" print:"Tides"`
}

func (s *DockSpec) String() string { return "a dock" }

type Dock struct {
	Spec DockSpec `json:"spec"`
}

// A spec with a String method, as generated code has, still has columns for its fields.
func TestSpecWithAStringMethod(t *testing.T) {
	table, err := printer.Of(reflect.TypeFor[Dock]())
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC)
	got, err := table.Cells(nil, &Dock{DockSpec{Depth: 9, Tides: []metav1.Time{{}, metav1.NewTime(now.Add(-time.Minute)), {}}}}, now)
	if diff := cmp.Diff([]any{int64(9), "60s"}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

type Loop struct {
	Name string `json:"name" print:"Title"`
	Next *Loop  `json:"next"`
}

func TestTagsThatAreRefused(t *testing.T) {
	for want, object := range map[string]any{
		`field a of struct`: struct {
			A string `json:"a" print:""`
		}{},
		`needs a name first`: struct {
			A string `json:"a" print:",wide"`
		}{},
		`has the option "narrow"`: struct {
			A string `json:"a" print:"A,narrow"`
		}{},
		`which no cell can show`: struct {
			A map[string]string `json:"a" print:"A"`
		}{},
		`which no cell can show; `: struct {
			A []byte `json:"a" print:"A"`
		}{},
		`which no cell can show; put it`: struct {
			A struct{ B string } `json:"a" print:"A"`
		}{},
		`a field that JSON does not have`: struct {
			A string `json:"-" print:"A"`
		}{},
		`the tag Print:"A" is written print:"A"`: struct {
			A string `json:"a" Print:"A"`
		}{},
		`that a has already`: struct {
			A string `json:"a" print:"Size"`
			B string `json:"b" print:"size"`
		}{},
		`that every table has already`: struct {
			A string `json:"a" print:"Age"`
		}{},
		`a struct that contains itself`: Loop{},
	} {
		if _, err := printer.Of(reflect.TypeOf(object)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%T: %v, want %q", object, err, want)
		}
	}
	if table, err := printer.Of(reflect.TypeFor[metav1.PartialObjectMetadata]()); err != nil || len(table.Columns()) != 0 {
		t.Errorf("no tags: %v %v", table.Columns(), err)
	}
}
