package definition_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/server/crd/internal/definition"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// good is a valid definition.
const good = `
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: things, kind: Thing}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {color: {type: string}}}}}}
`

// parse returns the definition in a YAML text, with defaults.
func parse(t testing.TB, text string) *crd {
	c := &crd{}
	if err := yaml.UnmarshalStrict([]byte(text), c); err != nil {
		t.Fatal(err)
	}
	definition.SetDefaults(c)
	return c
}

func texts(errs field.ErrorList) []string {
	var all []string
	for _, err := range errs {
		all = append(all, err.Error())
	}
	return all
}

// TestValidate checks the errors, and that their paths are those of the internal form of kube-apiserver.
func TestValidate(t *testing.T) {
	validator := validatorOf(t)
	second := func(c *crd, change func(*apiextensionsv1.CustomResourceDefinitionVersion)) {
		v := c.Spec.Versions[0].DeepCopy()
		v.Name, v.Storage = "v2", false
		change(v)
		c.Spec.Versions = append(c.Spec.Versions, *v)
	}
	nothing := func(*apiextensionsv1.CustomResourceDefinitionVersion) {}
	schemaOf := func(c *crd) *apiextensionsv1.JSONSchemaProps { return c.Spec.Versions[0].Schema.OpenAPIV3Schema }
	selectable := []apiextensionsv1.SelectableField{{JSONPath: ".spec.color"}}
	for name, test := range map[string]struct {
		change func(c *crd)
		want   []string
	}{
		"fine":         {func(*crd) {}, nil},
		"another name": {func(c *crd) { c.Name = "x" }, []string{`metadata.name: Invalid value: "x": must be spec.names.plural+"."+spec.group`}},
		"a generated name": {func(c *crd) { c.GenerateName = "x-" },
			[]string{`metadata.generateName: Invalid value: "x-": must be spec.names.plural+"."+spec.group`}},
		"a schema that is shared": {func(c *crd) { schemaOf(c).Type = ""; second(c, nothing) },
			[]string{`spec.validation.openAPIV3Schema.type: Required value: must not be empty at the root`}},
		"schemas that are not shared": {
			func(c *crd) {
				second(c, func(v *apiextensionsv1.CustomResourceDefinitionVersion) {
					v.Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{}
				})
			},
			[]string{`spec.versions[1].schema.openAPIV3Schema.type: Required value: must not be empty at the root`}},
		"no schema": {func(c *crd) { c.Spec.Versions[0].Schema = nil }, []string{`spec.versions[0].schema.openAPIV3Schema: Required value`}},
		"a shared column": {
			func(c *crd) {
				c.Spec.Versions[0].AdditionalPrinterColumns = []apiextensionsv1.CustomResourceColumnDefinition{{Name: "A", Type: "text", JSONPath: "a"}}
			},
			[]string{
				`spec.additionalPrinterColumns[0].type: Invalid value: "text": must be one of boolean,date,integer,number,string`,
				`spec.additionalPrinterColumns[0].JSONPath: Invalid value: "a": must be a simple json path starting with .`,
			}},
		"selectable fields of one version of two with one schema": {
			func(c *crd) {
				second(c, func(v *apiextensionsv1.CustomResourceDefinitionVersion) { v.SelectableFields = selectable })
			},
			[]string{"spec.versions[1].selectableFields: Invalid value: \"\": may only be set when `version.schema.openAPIV3Schema` is not included"}},
		"the same selectable fields of versions with two schemas": {
			func(c *crd) {
				c.Spec.Versions[0].SelectableFields = selectable
				second(c, func(v *apiextensionsv1.CustomResourceDefinitionVersion) {
					v.Schema.OpenAPIV3Schema.Description = "other"
				})
			},
			[]string{`spec.selectableFields: Invalid value: "": may only be set when validations.schema is included`}},
		"no storage version": {func(c *crd) { c.Spec.Versions[0].Storage = false }, []string{
			`spec.versions: Invalid value: [{"Name":"v1","Served":true,"Storage":false,"Deprecated":false,"DeprecationWarning":null,"Schema":null,` +
				`"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null}]: must have exactly one version marked as storage version`}},
		"more versions than are judged": {
			func(c *crd) {
				c.Spec.Versions[0].Storage = false
				for i := range 2000 {
					second(c, func(v *apiextensionsv1.CustomResourceDefinitionVersion) { v.Name = fmt.Sprintf("v1beta%d", i) })
				}
			}, []string{`spec.versions: Too many: 2001: must have at most 100 items`}},
		"no storage version among long ones": {
			func(c *crd) {
				c.Spec.Versions[0].Storage = false
				second(c, func(v *apiextensionsv1.CustomResourceDefinitionVersion) {
					v.Schema.OpenAPIV3Schema.Description = strings.Repeat("x", 70_000)
				})
			}, []string{`spec.versions: Invalid value: must have exactly one version marked as storage version`}},
		"no storage version and a long default": {
			func(c *crd) {
				c.Spec.Versions[0].Storage = false
				second(c, func(v *apiextensionsv1.CustomResourceDefinitionVersion) {
					v.Schema.OpenAPIV3Schema.Example = &apiextensionsv1.JSON{Raw: []byte(`"` + strings.Repeat("x", 70_000) + `"`)}
				})
			}, []string{`spec.versions: Invalid value: must have exactly one version marked as storage version`}},
		"one schema written in two ways": {
			func(c *crd) {
				schemaOf(c).Type = "array"
				schemaOf(c).Example = &apiextensionsv1.JSON{Raw: []byte(`{"a":1,"b":2}`)}
				second(c, func(v *apiextensionsv1.CustomResourceDefinitionVersion) {
					v.Schema.OpenAPIV3Schema.Example.Raw = []byte(`{"b":2, "a":1}`)
				})
			}, []string{
				`spec.validation.openAPIV3Schema.items: Required value: must be specified`,
				`spec.validation.openAPIV3Schema.type: Invalid value: "array": must be object at the root`,
			}},
		"names of a scale that are empty": {
			func(c *crd) {
				selector := ".status.."
				c.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{Scale: &apiextensionsv1.CustomResourceSubresourceScale{
					SpecReplicasPath: ".spec.", StatusReplicasPath: ".status..a", LabelSelectorPath: &selector}}
				second(c, func(v *apiextensionsv1.CustomResourceDefinitionVersion) {
					v.Subresources.Scale.SpecReplicasPath, v.Subresources.Scale.StatusReplicasPath, v.Subresources.Scale.LabelSelectorPath = ".spec.a", ".status.a.", nil
				})
			}, []string{
				`spec.versions[0].subresources.scale.specReplicasPath: Invalid value: ".spec.": this server does not know fields without a name`,
				`spec.versions[0].subresources.scale.statusReplicasPath: Invalid value: ".status..a": this server does not know fields without a name`,
				`spec.versions[0].subresources.scale.labelSelectorPath: Invalid value: ".status..": this server does not know fields without a name`,
				`spec.versions[1].subresources.scale.statusReplicasPath: Invalid value: ".status.a.": this server does not know fields without a name`,
			}},
		"a shared scale with an empty name": {
			func(c *crd) {
				c.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{Scale: &apiextensionsv1.CustomResourceSubresourceScale{
					SpecReplicasPath: ".spec.", StatusReplicasPath: ".status.a"}}
			}, []string{`spec.subresources.scale.specReplicasPath: Invalid value: ".spec.": this server does not know fields without a name`}},
		"a scale that leads nowhere": {
			func(c *crd) {
				c.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{Scale: &apiextensionsv1.CustomResourceSubresourceScale{
					SpecReplicasPath: ".", StatusReplicasPath: ".status.a"}}
			}, []string{`spec.subresources.scale.specReplicasPath: Invalid value: ".": should be a json path under .spec`}},
		"a warning as long as may be": {
			func(c *crd) {
				text := strings.Repeat("x", 256)
				c.Spec.Versions[0].Deprecated, c.Spec.Versions[0].DeprecationWarning = true, &text
			}, nil},
		"a webhook without anything": {func(c *crd) { c.Spec.Conversion.Strategy = "Webhook" }, []string{
			`spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook`,
			`spec.conversion.conversionReviewVersions: Required value`,
		}},
		"rules": {
			func(c *crd) {
				spec := schemaOf(c).Properties["spec"]
				spec.XValidations = apiextensionsv1.ValidationRules{{Rule: "self.color != 'red'"}, {Rule: "self.size > 1", Message: "no"}}
				schemaOf(c).Properties["spec"] = spec
			},
			[]string{"spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[1].rule: Invalid value: " +
				`{"Rule":"self.size \u003e 1","Message":"no","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: ` +
				"compilation failed: ERROR: \u003cinput\u003e:1:5: undefined field 'size'\n | self.size \u003e 1\n | ....^"}},
		"rules of one version": {
			func(c *crd) {
				second(c, func(v *apiextensionsv1.CustomResourceDefinitionVersion) {
					v.Schema.OpenAPIV3Schema.XValidations = apiextensionsv1.ValidationRules{{Rule: "true", OptionalOldSelf: new(bool)}}
				})
			},
			[]string{"spec.versions[1].schema.openAPIV3Schema.x-kubernetes-validations[0].optionalOldSelf: Invalid value: false: may not be set if oldSelf is not used in rule"}},
		"a protected group": {func(c *crd) { c.Spec.Group, c.Name = "x.k8s.io", "things.x.k8s.io" }, []string{
			`metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval annotation "api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111`}},
	} {
		t.Run(name, func(t *testing.T) {
			c := parse(t, good)
			test.change(c)
			if diff := cmp.Diff(test.want, texts(validator.Validate(t.Context(), c))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestValidateUpdate checks what may not change, and what may remain although new definitions may not have it.
func TestValidateUpdate(t *testing.T) {
	validator := validatorOf(t)
	established := func(c *crd) {
		c.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
	}
	webhook := func(c *crd) { c.Spec.Conversion.Strategy = "Webhook" }
	for name, test := range map[string]struct {
		old, change func(c *crd)
		want        []string
	}{
		"the scope, when it is served": {established, func(c *crd) { c.Spec.Scope = "Cluster" }, []string{`spec.scope: Invalid value: "Cluster": field is immutable`}},
		"the scope, before":            {func(*crd) {}, func(c *crd) { c.Spec.Scope = "Cluster" }, nil},
		"the group":                    {func(*crd) {}, func(c *crd) { c.Spec.Group = "a.example.com" }, []string{`spec.group: Invalid value: "a.example.com": field is immutable`}},
		"a version that is stored": {func(*crd) {}, func(c *crd) { c.Spec.Versions[0].Name = "v2" }, []string{
			"status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions " +
				"until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions"}},
		"what another server has stored": {webhook, func(c *crd) { c.Labels = map[string]string{"a": "b"} }, []string{
			`spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook`,
			`spec.conversion.conversionReviewVersions: Required value`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			old := parse(t, good)
			test.old(old)
			c := old.DeepCopy()
			test.change(c)
			definition.PrepareForUpdate(c, old)
			if diff := cmp.Diff(test.want, texts(validator.ValidateUpdate(t.Context(), c, old))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestRulesOfUpdates checks which rules an update may keep: expensive ones in versions whose schema does not change, and
// expressions that new rules may not use yet.
func TestRulesOfUpdates(t *testing.T) {
	validator := validatorOf(t)
	many, short := int64(1500), int64(10)
	costly := func(description string) *apiextensionsv1.CustomResourceValidation {
		return &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "object", Description: description, Properties: map[string]apiextensionsv1.JSONSchemaProps{"l": {
				Type: "array", MaxItems: &many, Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{Type: "string", MaxLength: &short}},
				XValidations: apiextensionsv1.ValidationRules{{Rule: "self.all(x, self.exists(y, x == y))"}},
			}},
		}}
	}
	define := func(schemas ...*apiextensionsv1.CustomResourceValidation) *crd {
		c := parse(t, good)
		v := c.Spec.Versions[0]
		c.Spec.Versions = nil
		for i, schema := range schemas {
			v.Name, v.Storage, v.Schema = fmt.Sprintf("v%d", i+1), i == 0, schema
			c.Spec.Versions = append(c.Spec.Versions, v)
		}
		definition.PrepareForCreate(c)
		return c
	}
	later := &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
		Type: "object", XValidations: apiextensionsv1.ValidationRules{{Rule: "self.l.includes('a')", MessageExpression: "'no'"}},
		Properties: map[string]apiextensionsv1.JSONSchemaProps{"l": {
			Type: "array", MaxItems: &short, Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{Type: "string", MaxLength: &short}},
		}},
	}}
	const top, first, second = "spec.validation.openAPIV3Schema", "spec.versions[0].schema.openAPIV3Schema", "spec.versions[1].schema.openAPIV3Schema"
	const rule = ".properties[l].x-kubernetes-validations[0].rule"
	for name, test := range map[string]struct {
		c, old *crd
		want   []string // fields
	}{
		"a new one":                         {define(costly("")), nil, []string{top + rule}},
		"nothing changes":                   {define(costly("")), define(costly("")), nil},
		"the schema changes":                {define(costly("a")), define(costly("")), []string{top + rule}},
		"the schema of one version changes": {define(costly("a"), costly("b")), define(costly("a"), costly("")), []string{second + rule}},
		"that of the other one":             {define(costly("b"), costly("a")), define(costly(""), costly("a")), []string{first + rule}},
		"all get the schema of the first":   {define(costly("a"), costly("a")), define(costly("a"), costly("")), nil},
		"all get the schema of another":     {define(costly("a"), costly("a")), define(costly(""), costly("a")), []string{top + rule}},
		"versions change their names":       {define(costly("a"), costly("b")), define(costly("b"), costly("a")), []string{first + rule, second + rule}},
		"an expression of a later release":  {define(later), nil, []string{top + ".x-kubernetes-validations[0].rule"}},
		"it was there":                      {define(later), define(later), nil},
		"it was there, in another version":  {define(costly("a"), later), define(later, costly("a")), []string{first + rule}},
	} {
		t.Run(name, func(t *testing.T) {
			var errs field.ErrorList
			if test.old == nil {
				errs = validator.Validate(t.Context(), test.c)
			} else {
				definition.PrepareForUpdate(test.c, test.old)
				errs = validator.ValidateUpdate(t.Context(), test.c, test.old)
			}
			var got []string
			for _, err := range errs {
				got = append(got, err.Field)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff, texts(errs))
			}
		})
	}
}

// TestNonStructuralStays checks that a schema may remain non-structural while it prunes nothing, but not if it gets a feature
// that requires a structural schema.
func TestNonStructuralStays(t *testing.T) {
	validator := validatorOf(t)
	yes := true
	for name, test := range map[string]struct {
		change func(c *crd, a *apiextensionsv1.JSONSchemaProps)
		want   []string
	}{
		"as it was":     {func(*crd, *apiextensionsv1.JSONSchemaProps) {}, nil},
		"now pruned":    {func(c *crd, _ *apiextensionsv1.JSONSchemaProps) { c.Spec.PreserveUnknownFields = false }, []string{"type"}},
		"a default":     {func(_ *crd, a *apiextensionsv1.JSONSchemaProps) { a.Default = &apiextensionsv1.JSON{Raw: []byte("{}")} }, []string{"preserveUnknownFields", "type"}},
		"embedded":      {func(_ *crd, a *apiextensionsv1.JSONSchemaProps) { a.XEmbeddedResource = true }, []string{"properties", "type"}},
		"preserving":    {func(_ *crd, a *apiextensionsv1.JSONSchemaProps) { a.XPreserveUnknownFields = &yes }, []string{"type"}},
		"int or string": {func(_ *crd, a *apiextensionsv1.JSONSchemaProps) { a.XIntOrString = true }, []string{"type"}},
		"keys":          {func(_ *crd, a *apiextensionsv1.JSONSchemaProps) { a.XListMapKeys = []string{"a"} }, []string{"type", "x-kubernetes-list-type"}},
		"a list type":   {func(_ *crd, a *apiextensionsv1.JSONSchemaProps) { set := "set"; a.XListType = &set }, []string{"type", "type"}},
		"rules": {func(_ *crd, a *apiextensionsv1.JSONSchemaProps) {
			a.XValidations = apiextensionsv1.ValidationRules{{Rule: "true"}}
		}, []string{"type"}},
	} {
		t.Run(name, func(t *testing.T) {
			old := parse(t, good)
			old.Spec.PreserveUnknownFields = true
			root := old.Spec.Versions[0].Schema.OpenAPIV3Schema
			root.Type, root.Properties = "", map[string]apiextensionsv1.JSONSchemaProps{"a": {Type: "object"}}
			c := old.DeepCopy()
			root = c.Spec.Versions[0].Schema.OpenAPIV3Schema
			a := root.Properties["a"]
			test.change(c, &a)
			root.Properties["a"] = a
			definition.PrepareForUpdate(c, old)
			var got []string
			for _, err := range validator.ValidateUpdate(t.Context(), c, old) {
				got = append(got, err.Field[strings.LastIndex(err.Field, ".")+1:])
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff, texts(validator.ValidateUpdate(t.Context(), c, old)))
			}
		})
	}
}

// TestWireDefinitions checks that definitions which kube-apiserver accepts are accepted.
func TestWireDefinitions(t *testing.T) {
	validator := validatorOf(t)
	files, err := filepath.Glob("../../../testdata/wire/*.crd.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c := parse(t, string(text))
		definition.PrepareForCreate(c)
		if errs := validator.Validate(t.Context(), c); len(errs) > 0 {
			t.Errorf("%s: %v", file, errs)
		}
		if warnings := definition.Warnings(c, nil); len(warnings) > 0 {
			t.Errorf("%s: %q", file, warnings)
		}
	}
}

// TestPrepareOwns checks that a prepared definition shares nothing with the old one.
func TestPrepareOwns(t *testing.T) {
	old := parse(t, good)
	old.Status.StoredVersions = append(make([]string, 0, 10), "v1")
	untouched := old.DeepCopy()
	c, status := old.DeepCopy(), old.DeepCopy()
	c.Spec.Versions[0].Name = "v2"
	definition.PrepareForUpdate(c, old)
	if want := []string{"v1", "v2"}; !reflect.DeepEqual(c.Status.StoredVersions, want) {
		t.Errorf("stored versions are %q, want %q", c.Status.StoredVersions, want)
	}
	if hidden := old.Status.StoredVersions[:2]; hidden[1] != "" {
		t.Errorf("the old list has %q behind its end", hidden[1])
	}
	definition.PrepareForStatusUpdate(status, old)
	status.Spec.Versions[0].Schema.OpenAPIV3Schema.Type = "changed"
	if !reflect.DeepEqual(old, untouched) {
		t.Error("the old one has changed")
	}
}

// TestVersions tests the accessors.
func TestVersions(t *testing.T) {
	c := parse(t, good)
	c.Spec.Versions = append(c.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: "v2", Storage: true})
	if v := definition.StorageVersion(c); v != &c.Spec.Versions[0] {
		t.Errorf("the storage version is %v", v)
	}
	if v := definition.Version(c, "v2"); v != &c.Spec.Versions[1] || definition.SchemaOf(v) != nil {
		t.Errorf("v2 is %v", v)
	}
	if v := definition.Version(c, "v3"); v != nil || definition.SchemaOf(v) != nil {
		t.Errorf("v3 is %v", v)
	}
	c.Spec.Versions = nil
	if v := definition.StorageVersion(c); v != nil {
		t.Errorf("without versions it is %v", v)
	}
}
