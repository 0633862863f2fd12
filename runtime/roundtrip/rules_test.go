package roundtrip_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/roundtrip"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"
)

// ruledSpec has every rule of package constraint.
type ruledSpec struct {
	Low      int32             `json:"low" minimum:"1" maximum:"10"`
	Between  int64             `json:"between" minimum:"-7" exclusiveMinimum:"true" maximum:"-5" exclusiveMaximum:"true"`
	Huge     uint64            `json:"huge" minimum:"18446744073709551000"`
	Least    int64             `json:"least" maximum:"-9223372036854775807"`
	Tens     *int16            `json:"tens,omitempty" multipleOf:"10" minimum:"-95"`
	Port     int64             `json:"port" format:"int32"`
	Rank     int               `json:"rank" enum:"3,5,8"`
	Share    float64           `json:"share" minimum:"0" maximum:"1" exclusiveMaximum:"true"`
	Half     float32           `json:"half" multipleOf:"0.5" minimum:"10"`
	Color    string            `json:"color,omitempty" enum:"red,green"`
	Shade    named             `json:"shade" enum:"dark,light"`
	Hash     string            `json:"hash" pattern:"^[0-9a-f]+$" minLength:"64" maxLength:"64"`
	Version  *string           `json:"version" required:"true" pattern:"^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$"`
	Within   string            `json:"within" pattern:"\\bkeel\\b" minLength:"12"`
	Folded   string            `json:"folded" pattern:"(?i)^STRASSE.?[^a-z]$"`
	Title    string            `json:"title" minLength:"3" maxLength:"5"`
	Long     string            `json:"long" minLength:"300"`
	Zone     string            `json:"zone,omitempty" required:"true" format:"hostname" maxLength:"4"`
	Time     metav1.Time       `json:"time" required:"true"`
	Pair     []string          `json:"pair" minItems:"2" maxItems:"2" uniqueItems:"true" items:"enum:\"a,b,c\""`
	Set      []int8            `json:"set" minItems:"5" listType:"set" items:"minimum:\"1\" maximum:\"6\""`
	Needed   []ruledPart       `json:"needed,omitempty" required:"true" listType:"map" listMapKey:"name"`
	Parts    []*ruledPart      `json:"parts,omitempty" maxItems:"1"`
	Weights  map[string]int32  `json:"weights" minProperties:"2" maxProperties:"2" additionalProperties:"minimum:\"1\" maximum:\"3\""`
	Rows     [][]string        `json:"rows,omitempty" items:"minItems:\"1\" items:\"pattern:\\\"^[xyz]$\\\"\""`
	Children []ruledSpec       `json:"children,omitempty" maxItems:"1"`
	Labels   map[string]string `json:"labels,omitempty" required:"true"`
}

type named string

type ruledPart struct {
	Name string `json:"name" enum:"a,b,c,d"`
	Size *int   `json:"size" required:"true" minimum:"1" maximum:"9"`
}

// formats has a text of each format.
type formats struct {
	BSON       string `json:"bson" format:"bsonobjectid"`
	Byte       string `json:"byte" format:"byte"`
	CIDR       string `json:"cidr" format:"cidr"`
	CreditCard string `json:"creditcard" format:"creditcard"`
	Date       string `json:"date" format:"date"`
	DateTime   string `json:"date-time" format:"date-time"`
	DateTime2  string `json:"datetime" format:"datetime"`
	Duration   string `json:"duration" format:"duration"`
	Email      string `json:"email" format:"email"`
	HexColor   string `json:"hexcolor" format:"hexcolor"`
	Hostname   string `json:"hostname" format:"hostname"`
	IPv4       string `json:"ipv4" format:"ipv4"`
	IPv6       string `json:"ipv6" format:"ipv6"`
	ISBN       string `json:"isbn" format:"isbn"`
	ISBN10     string `json:"isbn10" format:"isbn10"`
	ISBN13     string `json:"isbn13" format:"isbn13"`
	LongName   string `json:"longName" format:"k8s-long-name"`
	ShortName  string `json:"shortName" format:"k8s-short-name"`
	MAC        string `json:"mac" format:"mac"`
	Password   string `json:"password" format:"password"`
	RGB        string `json:"rgb" format:"rgbcolor"`
	SSN        string `json:"ssn" format:"ssn"`
	URI        string `json:"uri" format:"uri"`
	UUID       string `json:"uuid" format:"uuid"`
	UUID3      string `json:"uuid3" format:"uuid3"`
	UUID4      string `json:"uuid4" format:"uuid4"`
	UUID5      string `json:"uuid5" format:"uuid5"`
}

type (
	Ruled   = runtime.Resource[ruledSpec, formats]
	Loosely = runtime.Resource[looseSpec, struct{}]
)

// looseSpec has rules that no value obeys, or that no value is found for.
type looseSpec struct {
	Never   string  `json:"never,omitempty" pattern:"^a$" minLength:"2"`
	Needed  string  `json:"needed" pattern:"a^"`
	Numbers [2]int8 `json:"numbers" uniqueItems:"true"`
}

// Random objects obey the rules of their types: their fields have values, and these are valid.
func TestRandomObjectsObeyTheRules(t *testing.T) {
	s := runtime.NewScheme()
	var k *runtime.Kind
	objects, values := 0, map[string]map[string]bool{}
	see := func(r *Ruled) { // called for each random object
		objects++
		if errs := k.Constraints.Validate(r); len(errs) > 0 {
			t.Errorf("a random object is not valid: %v", errs.ToAggregate())
		}
		for _, part := range []any{r.Spec, r.Status} {
			v := reflect.ValueOf(part)
			for i := range v.NumField() {
				name := v.Type().Field(i).Name
				if values[name] == nil {
					values[name] = map[string]bool{}
				}
				f := v.Field(i)
				for f.Kind() == reflect.Pointer && !f.IsNil() {
					f = f.Elem()
				}
				values[name][fmt.Sprint(f)] = true
			}
		}
	}
	if err := runtime.Register(s, kind("v1").GroupVersion().WithKind("Ruled"), runtime.KindOptions[*Ruled]{Default: see}); err != nil {
		t.Fatal(err)
	}
	k = s.Lookup(kind("v1").GroupVersion().WithKind("Ruled"))
	roundtrip.Test(t, s, roundtrip.Options{Rounds: 50})
	for name, few := range map[string]int{"Between": 1, "Rank": 3, "Shade": 2, "Color": 3, "Least": 2, "CreditCard": 3, "ISBN": 6, "ISBN10": 3, "ISBN13": 3} {
		if got := len(values[name]); got < few {
			t.Errorf("%d objects have only %d values of %s", objects, got, name)
		}
		delete(values, name)
	}
	for name, got := range values {
		if len(got) < 6 {
			t.Errorf("%d objects have only the values %v of %s", objects, got, name)
		}
	}
}

// A rule that no value is found for leaves the field out, or as it is. That is no error.
func TestRulesThatNoValueObeys(t *testing.T) {
	s := runtime.NewScheme()
	var never, needed int
	see := func(l *Loosely) {
		if l.Spec.Never != "" {
			never++
		}
		if l.Spec.Needed != "" {
			needed++
		}
	}
	if err := runtime.Register(s, kind("v1").GroupVersion().WithKind("Loosely"), runtime.KindOptions[*Loosely]{Default: see}); err != nil {
		t.Fatal(err)
	}
	roundtrip.Test(t, s, roundtrip.Options{Rounds: 10})
	if never > 0 || needed == 0 {
		t.Errorf("a field that may be absent has %d values that are not valid, and another %d", never, needed)
	}
}

// Anchors whose versions have a text that the other version parses. No fill function is needed.
type (
	Anchor = runtime.Resource[struct {
		Mass int32  `json:"mass" minimum:"0"`
		Unit string `json:"unit" enum:"kg,t"`
	}, struct{}]
	AnchorV1Beta1 = runtime.Resource[struct {
		Mass string `json:"mass" pattern:"^(0|[1-9][0-9]{0,8}) (kg|t)$"`
	}, struct{}]
)

func anchors(t testing.TB, options runtime.KindOptions[*AnchorV1Beta1], toHub func(mass string, unit string) error) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	gvk := kind("v1").GroupVersion().WithKind("Anchor")
	for _, err := range []error{
		runtime.Register(s, gvk, runtime.KindOptions[*Anchor]{}),
		runtime.Register(s, kind("v1beta1").GroupVersion().WithKind("Anchor"), options),
		runtime.AddConversion(s, func(in *AnchorV1Beta1, out *Anchor) error {
			if in.Spec.Mass == "" {
				return nil // absent in what is applied
			}
			mass, unit, ok := strings.Cut(in.Spec.Mass, " ")
			n, err := strconv.ParseInt(mass, 10, 32)
			if !ok || err != nil {
				return fmt.Errorf("mass %q is not a number and a unit", in.Spec.Mass)
			}
			out.Spec.Mass, out.Spec.Unit = int32(n), unit
			if toHub != nil {
				return toHub(mass, unit)
			}
			return nil
		}, func(in *Anchor, out *AnchorV1Beta1) error {
			if in.Spec.Mass != 0 || in.Spec.Unit != "" {
				out.Spec.Mass = fmt.Sprintf("%d %s", in.Spec.Mass, in.Spec.Unit)
			}
			return nil
		}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestConversionsThatParse(t *testing.T) {
	roundtrip.Test(t, anchors(t, runtime.KindOptions[*AnchorV1Beta1]{}, nil), roundtrip.Options{})
}

func FuzzConversionsThatParse(f *testing.F) {
	roundtrip.Fuzz(f, anchors(f, runtime.KindOptions[*AnchorV1Beta1]{}, nil), roundtrip.Options{})
}

// A value that a fill function makes is kept if it is valid, and replaced if it is not.
func TestFillFunctionsAndRules(t *testing.T) {
	seen := map[string]bool{}
	for _, mass := range []string{"7 t", "heavy"} {
		options := runtime.KindOptions[*AnchorV1Beta1]{Default: func(a *AnchorV1Beta1) { seen[a.Spec.Mass] = true }}
		roundtrip.Test(t, anchors(t, options, nil), roundtrip.Options{Rounds: 5, Fill: []any{
			func(a *AnchorV1Beta1, _ randfill.Continue) { a.Spec.Mass = mass },
		}})
	}
	if !seen["7 t"] || seen["heavy"] {
		t.Errorf("the texts are %v", seen)
	}
}

// TestHeavy fails when TestAFailureObeysTheRules runs it in a separate process.
func TestHeavy(t *testing.T) {
	if os.Getenv("ROUNDTRIP_HEAVY") == "" {
		t.Skip("it is to fail, in a process of its own")
	}
	roundtrip.Test(t, anchors(t, runtime.KindOptions[*AnchorV1Beta1]{}, func(mass, _ string) error {
		if len(mass) > 4 {
			return errors.New("too heavy")
		}
		return nil
	}), roundtrip.Options{})
}

// The smallest object that a failure shows obeys the rules too.
func TestAFailureObeysTheRules(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHeavy$/^Anchor.sea.example.com$/^v1$")
	cmd.Env = append(os.Environ(), "ROUNDTRIP_HEAVY=1")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "too heavy") {
		t.Fatalf("it should fail: %s", out)
	}
	if !regexp.MustCompile(`The object is .*"mass":[0-9]{5,},"unit":"(kg|t)"`).Match(out) {
		t.Errorf("the object does not obey the rules: %s", out)
	}
}
