package constraint_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime/constraint"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

type color string

type part struct {
	Name  string `json:"name" minLength:"1"`
	Count int32  `json:"count,omitempty" maximum:"9"`
	Fixed string `json:"fixed,omitempty" immutable:"true"`
}

type base struct {
	Weight float64 `json:"weight,omitempty" minimum:"0.5" multipleOf:"0.25"`
}

type tree struct {
	Label string `json:"label" pattern:"^[a-z]*$"`
	Next  *tree  `json:"next,omitempty"`
	Many  []tree `json:"many,omitempty" maxItems:"2"`
}

type hidden struct {
	Deep int `json:"deep,omitempty" minimum:"3"`
}

// object has a rule of every kind.
type object struct {
	base   `json:",inline"`
	*Inner `json:",inline"`

	Size   int32            `json:"size" minimum:"1" maximum:"10"`
	Even   *int64           `json:"even,omitempty" multipleOf:"2" exclusiveMinimum:"true" minimum:"0" exclusiveMaximum:"true" maximum:"100"`
	Byte   uint8            `json:"byte,omitempty" enum:"1,2,255"`
	Color  color            `json:"color,omitempty" enum:"red,green"`
	Name   *string          `json:"name,omitempty" minLength:"2" maxLength:"4" pattern:"^[a-zé]+$"`
	Addr   string           `json:"addr,omitempty" format:"ipv4"`
	Short  int64            `json:"short,omitempty" format:"int32"`
	Tags   []string         `json:"tags,omitempty" minItems:"2" maxItems:"3" uniqueItems:"true"`
	Set    []color          `json:"set,omitempty" listType:"set"`
	Labels map[string]int   `json:"labels,omitempty" minProperties:"1" maxProperties:"2"`
	Must   *metav1.Time     `json:"must,omitempty" required:"true"`
	Fixed  string           `json:"fixed,omitempty" immutable:"true"`
	Parts  []part           `json:"parts,omitempty" listType:"map" listMapKey:"name"`
	Loose  []part           `json:"loose,omitempty"`
	Words  []*string        `json:"words,omitempty" listType:"set" items:"maxLength:\"3\""`
	Points map[string][]int `json:"points,omitempty" additionalProperties:"maxItems:\"2\" items:\"minimum:\\\"1\\\"\""`
	ByKey  map[string]part  `json:"byKey,omitempty"`
	ByPtr  map[string]*part `json:"byPtr,omitempty"`
	Grid   [][]part         `json:"grid,omitempty"`
	Tree   tree             `json:"tree,omitempty"`
	hidden
	unseen int
}

type Inner struct {
	Maybe int `json:"maybe,omitempty" maximum:"5"`
}

func rulesOf[T any](t testing.TB) *constraint.Rules {
	t.Helper()
	r, err := constraint.Of(reflect.TypeFor[T]())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func valid() *object {
	return &object{Size: 1, Must: &metav1.Time{}}
}

func ptr[T any](v T) *T { return &v }

// errorsOf returns errors as the client sees them.
func errorsOf(list field.ErrorList) []string {
	out := []string{}
	for _, e := range list {
		out = append(out, e.Error())
	}
	return out
}

func wantErrors(t *testing.T, got field.ErrorList, want ...string) {
	t.Helper()
	if texts := errorsOf(got); !slices.Equal(texts, append([]string{}, want...)) {
		t.Errorf("got:\n\t%s\nwant:\n\t%s", strings.Join(texts, "\n\t"), strings.Join(want, "\n\t"))
	}
}

func TestValidate(t *testing.T) {
	rules := rulesOf[object](t)
	for name, c := range map[string]struct {
		change func(*object)
		want   []string
	}{
		"valid": {func(*object) {}, nil},
		"minimum": {func(o *object) { o.Size = 0 }, []string{
			"size: Invalid value: 0: size in body should be greater than or equal to 1"}},
		"maximum": {func(o *object) { o.Size = 11 }, []string{
			"size: Invalid value: 11: size in body should be less than or equal to 10"}},
		"exclusive bounds": {func(o *object) { o.Even = ptr(int64(0)) }, []string{
			"even: Invalid value: 0: even in body should be greater than 0"}},
		"exclusive maximum": {func(o *object) { o.Even = ptr(int64(100)) }, []string{
			"even: Invalid value: 100: even in body should be less than 100"}},
		"multipleOf": {func(o *object) { o.Even = ptr(int64(3)) }, []string{
			"even: Invalid value: 3: even in body should be a multiple of 2"}},
		"fraction": {func(o *object) { o.Weight = 0.3 }, []string{
			"weight: Invalid value: 0.3: weight in body should be greater than or equal to 0.5",
			"weight: Invalid value: 0.3: weight in body should be a multiple of 0.25"}},
		"good fraction": {func(o *object) { o.Weight = 1e6 + 0.75 }, nil},
		"enum of numbers": {func(o *object) { o.Byte = 7 }, []string{
			`byte: Unsupported value: 7: supported values: "1", "2", "255"`}},
		"enum": {func(o *object) { o.Color = "blue" }, []string{
			`color: Unsupported value: "blue": supported values: "red", "green"`}},
		"minLength counts characters": {func(o *object) { o.Name = ptr("é") }, []string{
			`name: Invalid value: "é": name in body should be at least 2 chars long`}},
		"maxLength counts characters": {func(o *object) { o.Name = ptr("éééé") }, nil},
		"maxLength": {func(o *object) { o.Name = ptr("abcde") }, []string{
			"name: Too long: may not be more than 4 bytes"}},
		"pattern": {func(o *object) { o.Name = ptr("A1") }, []string{
			`name: Invalid value: "A1": name in body should match '^[a-zé]+$'`}},
		"empty text behind a pointer is there": {func(o *object) { o.Name = ptr("") }, []string{
			`name: Invalid value: "": name in body should be at least 2 chars long`}},
		"format": {func(o *object) { o.Addr = "1.2.3" }, []string{
			`addr: Invalid value: "1.2.3": addr in body must be of type ipv4: "1.2.3"`}},
		"format of numbers": {func(o *object) { o.Short = 1 << 31 }, []string{
			"short: Invalid value: 2147483648: short in body must be of type int32"}},
		"minItems": {func(o *object) { o.Tags = []string{"a"} }, []string{
			"tags: Invalid value: 1: tags in body should have at least 2 items"}},
		"empty list with omitempty is absent": {func(o *object) { o.Tags = []string{} }, nil},
		"maxItems and uniqueItems": {func(o *object) { o.Tags = []string{"a", "b", "a", "a"} }, []string{
			"tags: Too many: 4: must have at most 3 items",
			`tags[2]: Duplicate value: "a"`, `tags[3]: Duplicate value: "a"`}},
		"listType set": {func(o *object) { o.Set = []color{"a", "a"} }, []string{`set[1]: Duplicate value: "a"`}},
		"maxProperties": {func(o *object) { o.Labels = map[string]int{"a": 1, "b": 2, "c": 3} }, []string{
			"labels: Too many: 3: must have at most 2 items"}},
		"required": {func(o *object) { o.Must = nil }, []string{"must: Required value"}},
		"listType map": {func(o *object) { o.Parts = []part{{Name: "a"}, {Name: "b"}, {Name: "a"}} }, []string{
			`parts[2]: Duplicate value: {"name":"a"}`}},
		"elements": {func(o *object) { o.Loose = []part{{Name: "a", Count: 9}, {}, {Name: "c", Count: 10}} }, []string{
			`loose[1].name: Invalid value: "": loose[1].name in body should be at least 1 chars long`,
			"loose[2].count: Invalid value: 10: loose[2].count in body should be less than or equal to 9"}},
		"elements that are no structs": {func(o *object) { o.Words = []*string{ptr("abcd"), nil, ptr("abc"), ptr("")} }, []string{
			"words[0]: Too long: may not be more than 3 bytes"}},
		"values of a map": {func(o *object) { o.Points = map[string][]int{"b": {1, 2, 0}, "a": {0}, "c": nil} }, []string{
			"points[a][0]: Invalid value: 0: points[a][0] in body should be greater than or equal to 1",
			"points[b]: Too many: 3: must have at most 2 items",
			"points[b][2]: Invalid value: 0: points[b][2] in body should be greater than or equal to 1"}},
		"lists in lists": {func(o *object) { o.Grid = [][]part{nil, {{Name: "a"}, {}}} }, []string{
			`grid[1][1].name: Invalid value: "": grid[1][1].name in body should be at least 1 chars long`}},
		"values of maps, in order": {func(o *object) { o.ByKey = map[string]part{"z": {}, "a/b": {}, "m": {Name: "m"}} }, []string{
			`byKey[a/b].name: Invalid value: "": byKey[a/b].name in body should be at least 1 chars long`,
			`byKey[z].name: Invalid value: "": byKey[z].name in body should be at least 1 chars long`}},
		"null in a map": {func(o *object) { o.ByPtr = map[string]*part{"a": nil, "b": {}} }, []string{
			`byPtr[b].name: Invalid value: "": byPtr[b].name in body should be at least 1 chars long`}},
		"types that contain themselves": {func(o *object) { o.Tree = tree{Next: &tree{Many: []tree{{}, {Label: "A"}}}} }, []string{
			`tree.next.many[1].label: Invalid value: "A": tree.next.many[1].label in body should match '^[a-z]*$'`}},
		"embedded": {func(o *object) { o.Weight, o.Deep, o.Inner = 0.25, 1, &Inner{Maybe: 6} }, []string{
			"weight: Invalid value: 0.25: weight in body should be greater than or equal to 0.5",
			"maybe: Invalid value: 6: maybe in body should be less than or equal to 5",
			"deep: Invalid value: 1: deep in body should be greater than or equal to 3"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := valid()
			c.change(o)
			o.unseen++
			before, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			wantErrors(t, rules.Validate(o), c.want...)
			wantErrors(t, rules.ValidateUpdate(o, nil), c.want...)
			if after, _ := json.Marshal(o); string(after) != string(before) {
				t.Errorf("the object was changed from %s to %s", before, after)
			}
		})
	}
}

// TestNullIsAbsent checks that a value which is null in JSON is absent, though it is not a pointer.
func TestNullIsAbsent(t *testing.T) {
	type kind struct {
		At metav1.Time `json:"at" required:"true"`
	}
	rules := rulesOf[kind](t)
	wantErrors(t, rules.Validate(&kind{}), "at: Required value")
	wantErrors(t, rules.Validate(&kind{At: metav1.Unix(1, 0)}))
}

type (
	one   struct{ A, B, C int }
	other struct {
		A int `maximum:"1"`
		B int `json:"B" maximum:"1"`
		C int `maximum:"1"`
	}
)

// TestNamesakes checks that of several fields with one name only the field in JSON is validated: the outer one, or the one with a
// name in its tag, or none.
func TestNamesakes(t *testing.T) {
	type kind struct {
		one
		other
		C string
	}
	obj := &kind{other: other{A: 2, B: 2, C: 2}}
	wantJSON(t, obj, `{"B":2,"C":""}`)
	wantErrors(t, rulesOf[kind](t).Validate(obj), "B: Invalid value: 2: B in body should be less than or equal to 1")
}

// TestOrigins checks the Origin of errors, which tests of validation compare.
func TestOrigins(t *testing.T) {
	o := valid()
	o.Size, o.Addr, o.Color = 0, "x", "x"
	var got []string
	for _, e := range rulesOf[object](t).Validate(o) {
		got = append(got, e.Origin)
	}
	if want := []string{"minimum", "enum", "format=ipv4"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestNoRules(t *testing.T) {
	rules := rulesOf[struct {
		A int `json:"a" patchStrategy:"merge"`
		B *struct{ C []string }
	}](t)
	if rules != nil || !rules.IsZero() || rules.HasDefaults() {
		t.Errorf("got %v for a type without rules", rules)
	}
	rules.SetDefaults(nil)
	if errs := append(rules.Validate(nil), rules.ValidateUpdate(1, 2)...); errs != nil {
		t.Errorf("got %v", errs)
	}
}

// TestOtherTypes shows that an object of a wrong type is an error and does not panic.
func TestOtherTypes(t *testing.T) {
	rules := rulesOf[object](t)
	for _, obj := range []any{nil, 1, part{}, (*object)(nil), &part{}} {
		if errs := rules.Validate(obj); len(errs) != 1 || errs[0].Type != field.ErrorTypeInternal {
			t.Errorf("Validate(%T): got %v", obj, errs)
		}
		rules.SetDefaults(obj)
	}
}

// TestRefused checks that an invalid tag is an error that names the type, the field, the tag and the correction.
func TestRefused(t *testing.T) {
	for want, typ := range map[string]reflect.Type{
		`field A: tag minimum:"a": it does not fit the field, a int32 (invalid syntax); write a number that does`: typeOf[struct {
			A int32 `minimum:"a"`
		}](),
		`field A: tag minimum:"300": it does not fit the field, a int8 (value out of range)`: typeOf[struct {
			A int8 `minimum:"300"`
		}](),
		`field A: tag maximum:"-1": it does not fit the field, a uint (invalid syntax)`: typeOf[struct {
			A uint `maximum:"-1"`
		}](),
		`field A: tag minimum:"NaN": write a number, such as 0.5`: typeOf[struct {
			A float64 `minimum:"NaN"`
		}](),
		`field A: tag minimum:"1": it is for an integer or a number, and the field is a string (string); take the tag away`: typeOf[struct {
			A string `minimum:"1"`
		}](),
		`field A: tag minimum:"1": it is for an integer or a number, and the option ",string" makes the field a string`: typeOf[struct {
			A int `json:"a,string" minimum:"1"`
		}](),
		`field A: tag multipleOf:"0": write a number above 0`: typeOf[struct {
			A int `multipleOf:"0"`
		}](),
		`field A: tag exclusiveMinimum:"true": there is no minimum`: typeOf[struct {
			A int `exclusiveMinimum:"true"`
		}](),
		`field A: tag exclusiveMaximum:"yes": write "true", or leave the tag out`: typeOf[struct {
			A int `maximum:"1" exclusiveMaximum:"yes"`
		}](),
		`field A: tags minimum and maximum: no number is both`: typeOf[struct {
			A int `minimum:"2" maximum:"1"`
		}](),
		`field A: tag minLength:"-1": write a whole number, 0 or more`: typeOf[struct {
			A string `minLength:"-1"`
		}](),
		`field A: tags minLength and maxLength: no text is both`: typeOf[struct {
			A string `minLength:"2" maxLength:"1"`
		}](),
		`field A: tag maxItems:"1": it is for a list, and the field is a map (map[string]string)`: typeOf[struct {
			A map[string]string `maxItems:"1"`
		}](),
		`field A: tag maxProperties:"1": it is for a map, and the field is a list ([]string)`: typeOf[struct {
			A []string `maxProperties:"1"`
		}](),
		`field A: tag maxLength:"1": it is for a string, and the field is a value that has its own JSON ([]uint8)`: typeOf[struct {
			A []byte `maxLength:"1"`
		}](),
		`field A: tag pattern:"(": it is no RE2 expression`: typeOf[struct {
			A string `pattern:"("`
		}](),
		`field A: tag pattern:"a": it is for a string, and the field is a list ([]string)`: typeOf[struct {
			A []string `pattern:"a"`
		}](),
		`field A: tag format:"ipv5": there is no such format of a string; the formats are bsonobjectid, byte`: typeOf[struct {
			A string `format:"ipv5"`
		}](),
		`field A: tag format:"ipv4": there is no such format of an integer; the formats are int32, int64`: typeOf[struct {
			A int `format:"ipv4"`
		}](),
		`field A: tag enum:"": no value is allowed`: typeOf[struct {
			A string `enum:""`
		}](),
		`field A: tag enum:"a, b": there is a space around " b"`: typeOf[struct {
			A string `enum:"a, b"`
		}](),
		`field A: tag enum:"a,a": "a" is there twice`: typeOf[struct {
			A string `enum:"a,a"`
		}](),
		`field A: tag enum:"1,x": it does not fit the field, a int`: typeOf[struct {
			A int `enum:"1,x"`
		}](),
		`field A: tag enum:"true": it is for a string or an integer or a number, and the field is a boolean`: typeOf[struct {
			A bool `enum:"true"`
		}](),
		`field A: tag enum: the field's other tags do not allow 5`: typeOf[struct {
			A int `enum:"1,5" maximum:"4"`
		}](),
		`field A: tag items:"minLength:\"1\"": of every element: tag minLength:"1": it is for a string, and the field is an integer`: typeOf[struct {
			A []int `items:"minLength:\"1\""`
		}](),
		`field A: tag items:"minLength:\"1\"": it is for a list, and the field is a map`: typeOf[struct {
			A map[string]string `items:"minLength:\"1\""`
		}](),
		`field A: tag items:"required:\"true\"": required, immutable and default are for fields`: typeOf[struct {
			A []*int `items:"required:\"true\""`
		}](),
		`field A: tag items:"x": there is no constraint in it`: typeOf[struct {
			A []string `items:"x"`
		}](),
		`field A: tag uniqueItems:"true": elements are constraint_test.part; only strings`: typeOf[struct {
			A []part `uniqueItems:"true"`
		}](),
		`field A: tag required:"true": a string is always there`: typeOf[struct {
			A string `json:"a" required:"true"`
		}](),
		`field A: tag required:"true": a constraint_test.part is always there`: typeOf[struct {
			A part `json:"a,omitempty" required:"true"`
		}](),
		`field A: tag required:"false": write "true", or leave the tag out`: typeOf[struct {
			A *int `required:"false"`
		}](),
		`field A: tags required and default: a field with a default is never missing`: typeOf[struct {
			A *int `required:"true" default:"1"`
		}](),
		`field A: tag default:"x": it is no JSON of a int`: typeOf[struct {
			A int `default:"x"`
		}](),
		`field A: tag default:"null": null is no default`: typeOf[struct {
			A *int `default:"null"`
		}](),
		`field A: tag default:"true": the field could never be false`: typeOf[struct {
			A bool `default:"true"`
		}](),
		`field A: tag default:"11": the default is not valid: A: Invalid value: 11: A in body should be less than or equal to 10`: typeOf[struct {
			A int `default:"11" maximum:"10"`
		}](),
		`field A: tag default:"{\"name\":\"\"}": the default is not valid: a.name: Invalid value: ""`: typeOf[struct {
			A *part `json:"a" default:"{\"name\":\"\"}"`
		}](),
		`field A: tag default:"{\"nam\":\"\"}": it is no JSON of a *constraint_test.part (unknown field "nam")`: typeOf[struct {
			A *part `json:"a" default:"{\"nam\":\"\"}"`
		}](),
		`type constraint_test.endless: field Next: tag default: it brings more than 16 defaults inside each other`: typeOf[endless](),
		`field A: tag minimum: JSON does not have the field; export it`: typeOf[struct {
			A int `json:"-" minimum:"1"`
		}](),
		`field a: tag required: JSON does not have the field; export it`: typeOf[struct {
			a *int `required:"true"`
		}](),
		`field Part: tag immutable: the struct is embedded, and its fields are those of the outer one`: typeOf[struct {
			Part `json:",inline" immutable:"true"`
		}](),
		`field A: tag maxlength: it is written maxLength`: typeOf[struct {
			A string `maxlength:"1"`
		}](),
		"field A: tags `minimum:\"1\" maximum:\"2\" minimum:\"3\"`: minimum is there twice; only the first would count":                       tagged(`minimum:"1" maximum:"2" minimum:"3"`),
		"field A: tags `json:\"a\" maximum=\"2\"`: \"maximum=\\\"2\\\"\" is lost, as it does not begin with a tag of the form name:\"value\"": tagged(`json:"a" maximum="2"`),
		`type constraint_test.inside: field B: tag minItems:"x": write a whole number, 0 or more`:                                             typeOf[struct{ A map[string][]*inside }](),
		"field A: tags `pattern:\"\\d\"`: the value \"\\d\" is no string of Go; write a backslash as \\\\":                                    tagged(`pattern:"\d"`),
		`constraints of string: only a struct has fields to constrain`:                                                                        typeOf[string](),
		`constraints of <nil>: only a struct has fields to constrain`:                                                                         nil,
	} {
		t.Run(want, func(t *testing.T) {
			rules, err := constraint.Of(typ)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got  %v\nwant %s", err, want)
			}
			if rules != nil {
				t.Error("there are rules beside the error")
			}
		})
	}
}

type Part struct{ B int }

type endless struct {
	Next *endless `json:"next" default:"{}"`
}

type inside struct {
	B []int `minItems:"x"`
}

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

// tagged is a type with a tag that linters would not let into a source.
func tagged(tag reflect.StructTag) reflect.Type {
	return reflect.StructOf([]reflect.StructField{{Name: "A", Type: reflect.TypeFor[int](), Tag: tag}})
}

// TestAllRefusals checks that every invalid tag is named, not only the first.
func TestAllRefusals(t *testing.T) {
	_, err := constraint.Of(typeOf[struct {
		A int `minimum:"x" maximum:"y"`
		B int `pattern:"z"`
	}]())
	for _, want := range []string{`minimum:"x"`, `maximum:"y"`, `pattern:"z"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}

// TestForeignTags checks that the tags of other packages are ignored, whatever they look like.
func TestForeignTags(t *testing.T) {
	typ := reflect.StructOf([]reflect.StructField{
		{Name: "A", Type: reflect.TypeFor[int](), Tag: `protobuf:"varint,1,opt,name=a" json:"a" validate:"min=1" patchStrategy:"merge" patchMergeKey:"x" broken`},
		{Name: "B", Type: reflect.TypeFor[[]string](), Tag: `listType:"nonsense" patchMergeKey:"x"`},
	})
	if rules, err := constraint.Of(typ); rules != nil || err != nil {
		t.Errorf("got %v, %v", rules, err)
	}
}

func TestParseField(t *testing.T) {
	f, _ := typeOf[struct {
		A *int32 `json:"a,omitempty" minimum:"+01" maximum:"10" exclusiveMaximum:"true" multipleOf:"2" default:"4" immutable:"true" enum:"2,4"`
	}]().FieldByName("A")
	got, err := constraint.ParseField(f)
	if err != nil {
		t.Fatal(err)
	}
	want := constraint.Field{
		Minimum: "1", Maximum: "10", ExclusiveMaximum: true, MultipleOf: "2", Default: json.RawMessage("4"), Immutable: true,
		Enum: []any{int64(2), int64(4)},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	f, _ = typeOf[struct {
		A intstr.IntOrString `default:"25%"`
		B resource.Quantity  `default:"1Gi"`
	}]().FieldByName("A")
	if got, err := constraint.ParseField(f); err != nil || string(got.Default) != `"25%"` {
		t.Errorf("got %+v, %v", got, err)
	}
}

// moody has a method that panics for the zero value.
type moody struct {
	Level int `json:"level"`
}

func (m moody) IsZero() bool { return 1/m.Level < 0 }

// TestCompilerAfterAPanic: a type whose methods panic does not affect types that are compiled later.
func TestCompilerAfterAPanic(t *testing.T) {
	type Panics struct {
		Inner struct {
			Mood moody `json:"mood,omitzero" default:"{\"level\":1}"`
		} `json:"inner" default:"{}"`
	}
	type Sound struct {
		Size int `json:"size" maximum:"3"`
	}
	var c constraint.Compiler
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the method was not called")
			}
		}()
		_, _ = c.Of(reflect.TypeFor[Panics]())
	}()
	rules, err := c.Of(reflect.TypeFor[Sound]())
	if err != nil {
		t.Fatal(err)
	}
	if errs := rules.Validate(&Sound{Size: 4}); len(errs) != 1 {
		t.Errorf("%v; want one error", errs)
	}
}

// Types that several types have in common are compiled once. An invalid type is an error each time it is found.
func TestCompilerOfManyTypes(t *testing.T) {
	type Plain struct{ A int }
	type Inner struct {
		Size  int `json:"size" maximum:"3"`
		Plain Plain
		Self  *Inner
	}
	type Wrong struct {
		Size int `json:"size" pattern:"x"`
	}
	type One struct{ Inner, Other Inner }
	type Two struct {
		List []Inner
		One  *One
	}
	type Bad struct {
		Inner Inner
		Wrong Wrong
	}
	type AlsoBad struct {
		One One
		Bad *Bad
	}
	var c constraint.Compiler
	for range 2 {
		for _, typ := range []reflect.Type{reflect.TypeFor[Bad](), reflect.TypeFor[AlsoBad]()} {
			_, err := c.Of(typ)
			_, alone := constraint.Of(typ)
			if err == nil || alone == nil || err.Error() != alone.Error() {
				t.Errorf("%v: %v, and by itself %v", typ, err, alone)
			}
		}
		if rules, err := c.Of(reflect.TypeFor[Plain]()); err != nil || rules != nil {
			t.Errorf("a type without rules: %v, %v", rules, err)
		}
		for _, obj := range []any{
			&Two{List: []Inner{{Size: 4}, {Size: 1, Self: &Inner{Size: 5}}}, One: &One{Other: Inner{Size: 6}}},
			&One{Inner: Inner{Size: 4}},
			&Inner{Self: &Inner{Self: &Inner{Size: 9}}},
		} {
			rules, err := c.Of(reflect.TypeOf(obj))
			if err != nil {
				t.Fatal(err)
			}
			alone, err := constraint.Of(reflect.TypeOf(obj))
			if err != nil {
				t.Fatal(err)
			}
			if got, want := rules.Validate(obj).ToAggregate(), alone.Validate(obj).ToAggregate(); want == nil || got == nil || got.Error() != want.Error() {
				t.Errorf("%T: %v, and by itself %v", obj, got, want)
			}
		}
	}
}
