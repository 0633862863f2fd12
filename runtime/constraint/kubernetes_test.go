package constraint_test

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime/constraint"
	"github.com/keelson-dev/keelson/runtime/schema"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	gvkschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	openapierrors "k8s.io/kube-openapi/pkg/validation/errors"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// TestKubernetesTypes checks that no type of Kubernetes is refused. Their tags identify elements, but constrain nothing.
func TestKubernetesTypes(t *testing.T) {
	scheme := apiruntime.NewScheme()
	for _, add := range []func(*apiruntime.Scheme) error{
		admissionregistrationv1.AddToScheme, appsv1.AddToScheme, autoscalingv2.AddToScheme, batchv1.AddToScheme,
		certificatesv1.AddToScheme, coordinationv1.AddToScheme, corev1.AddToScheme, discoveryv1.AddToScheme,
		flowcontrolv1.AddToScheme, networkingv1.AddToScheme, policyv1.AddToScheme, rbacv1.AddToScheme,
		resourcev1.AddToScheme, schedulingv1.AddToScheme, storagev1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(scheme.AllKnownTypes()); n < 100 {
		t.Fatalf("only %d types", n)
	}
	for gvk, typ := range scheme.AllKnownTypes() {
		if rules, err := constraint.Of(typ); err != nil || rules != nil {
			t.Errorf("%s: got %v, %v", gvk, rules, err)
		}
	}
}

type judged struct {
	Size   int32             `json:"size" minimum:"1" maximum:"4"`
	Even   *int64            `json:"even,omitempty" multipleOf:"2" minimum:"0" exclusiveMinimum:"true" maximum:"8" exclusiveMaximum:"true"`
	Frac   float64           `json:"frac,omitempty" minimum:"0.5" maximum:"2.5" multipleOf:"0.5"`
	Count  uint8             `json:"count,omitempty" enum:"1,2,3"`
	Color  color             `json:"color" enum:"red,green,"`
	Text   *string           `json:"text,omitempty" minLength:"1" maxLength:"3" pattern:"^[ab]*$"`
	Addr   string            `json:"addr,omitempty" format:"ipv4"`
	Day    string            `json:"day,omitempty" format:"date-time"`
	Tags   []string          `json:"tags,omitempty" minItems:"2" maxItems:"3"`
	Words  []color           `json:"words,omitempty" items:"maxLength:\"3\" enum:\"a,ab,red\""`
	Values map[string]int32  `json:"values,omitempty" additionalProperties:"minimum:\"3\""`
	Grid   [][]int32         `json:"grid,omitempty" items:"maxItems:\"2\""`
	Labels map[string]string `json:"labels,omitempty" maxProperties:"2" minProperties:"1"`
	Must   *int              `json:"must,omitempty" required:"true"`
	Need   string            `json:"need,omitempty" required:"true" maxLength:"1"`
	Parts  []part            `json:"parts,omitempty"`
	ByKey  map[string]part   `json:"byKey,omitempty"`
	Part   *part             `json:"part,omitempty"`
}

// TestAsKubernetes compares our errors with those of kube-apiserver for a custom resource with the published schema. It uses the
// same validator and adds the same texts.
func TestAsKubernetes(t *testing.T) {
	rules := rulesOf[judged](t)
	gv := gvkschema.GroupVersion{Group: "example.com", Version: "v1"}
	builder := schema.NewBuilder(schema.Options{GroupVersion: gv})
	name := builder.AddType(reflect.TypeFor[judged]())
	definitions := builder.Definitions()
	upstream := validate.NewSchemaValidator(ptr(resolve(definitions[name], definitions)), nil, "", strfmt.Default)
	random := rand.New(rand.NewPCG(1, 2))
	key := regexp.MustCompile(`(byKey|values)\[(.*?)\]`)
	wrong := map[field.ErrorType]int{}
	for range 1500 {
		obj := &judged{}
		scatter(random, reflect.ValueOf(obj).Elem())
		text, err := json.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		var doc any
		if err := json.Unmarshal(text, &doc); err != nil {
			t.Fatal(err)
		}
		errs := rules.Validate(obj)
		got, want := errorsOf(errs), errorsOf(upstreamErrors(upstream.Validate(integers(doc))))
		for i, e := range got { // in our paths, as in all other errors of Kubernetes, a key is not a field
			got[i] = key.ReplaceAllString(e, "$1.$2")
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("%s\ngot:\n\t%s\nKubernetes:\n\t%s", text, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
		}
		for _, e := range errs {
			wrong[e.Type]++
		}
	}
	for _, kind := range []field.ErrorType{field.ErrorTypeInvalid, field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid} {
		if wrong[kind] < 50 {
			t.Errorf("only %d errors of type %s were compared", wrong[kind], kind)
		}
	}
}

// resolve replaces references by their definitions.
func resolve(s spec.Schema, definitions map[string]spec.Schema) spec.Schema {
	if ref, ok := strings.CutPrefix(s.Ref.String(), schema.RefPrefix); ok {
		return resolve(definitions[ref], definitions)
	}
	for i := range s.AllOf {
		s.AllOf = slices.Clone(s.AllOf)
		s.AllOf[i] = resolve(s.AllOf[i], definitions)
	}
	properties := map[string]spec.Schema{}
	for name, p := range s.Properties {
		properties[name] = resolve(p, definitions)
	}
	s.Properties = properties
	if s.Items != nil {
		s.Items = &spec.SchemaOrArray{Schema: ptr(resolve(*s.Items.Schema, definitions))}
	}
	if s.AdditionalProperties != nil {
		s.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: ptr(resolve(*s.AdditionalProperties.Schema, definitions))}
	}
	return s
}

// integers converts whole numbers to int64, as Kubernetes' decoder does. It does not convert those in frac, because the validator
// would then use only the whole part of every bound.
func integers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if k != "frac" {
				v[k] = integers(e)
			}
		}
	case []any:
		for i, e := range v {
			v[i] = integers(e)
		}
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	}
	return v
}

// upstreamErrors returns the validator's errors as the API reports them: the code of an error determines its type and its value.
func upstreamErrors(result *validate.Result) field.ErrorList {
	var out field.ErrorList
	for _, err := range result.Errors {
		e, ok := err.(*openapierrors.Validation)
		if !ok {
			out = append(out, field.InternalError(nil, err))
			continue
		}
		at := field.NewPath(strings.TrimPrefix(e.Name, "."))
		value := e.Value
		if value == nil {
			value = ""
		}
		count := func(v any) int { n, _ := v.(int64); return int(n) }
		switch e.Code() {
		case openapierrors.RequiredFailCode:
			out = append(out, field.Required(at, ""))
		case openapierrors.EnumFailCode:
			var names []string
			for _, v := range e.Values {
				text, _ := json.Marshal(v)
				names = append(names, strings.Trim(string(text), `"`))
			}
			out = append(out, field.NotSupported(at, e.Value, names))
		case openapierrors.TooLongFailCode:
			out = append(out, field.TooLong(at, "", count(e.Valid)))
		case openapierrors.MaxItemsFailCode, openapierrors.TooManyPropertiesCode:
			out = append(out, field.TooMany(at, count(e.Value), count(e.Valid)))
		case openapierrors.InvalidTypeCode:
			out = append(out, field.TypeInvalid(at, value, e.Error()))
		default:
			out = append(out, field.Invalid(at, value, e.Error()))
		}
	}
	return out
}

// scatter fills a value with random values, about half of which are invalid.
func scatter(r *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if r.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			scatter(r, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			scatter(r, v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), r.IntN(5), 5))
		for i := range v.Len() {
			scatter(r, v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for _, key := range []string{"a", "b/c", "d", "e"}[:r.IntN(5)] {
			e := reflect.New(v.Type().Elem()).Elem()
			scatter(r, e)
			v.SetMapIndex(reflect.ValueOf(key), e)
		}
	case reflect.String:
		v.SetString([]string{"", "red", "green", "a", "ab", "abab", "ééé", "1.2.3.4", "2026-01-02T03:04:05Z", "1.2.3"}[r.IntN(10)])
	case reflect.Float64:
		v.SetFloat([]float64{0, 0.25, 0.5, 0.6, 1.5, 2.75, 3}[r.IntN(7)])
	case reflect.Uint8:
		v.SetUint(r.Uint64N(6))
	default:
		if v.CanInt() {
			v.SetInt(r.Int64N(12) - 1)
		}
	}
}
