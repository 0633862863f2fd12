package rules_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/keelson-dev/keelson/runtime/cel/rules"
	"github.com/keelson-dev/keelson/runtime/structural"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// twentyRules has twenty typical rules, for an object of 2 KiB.
const twentyRules = `
type: object
x-kubernetes-validations:
- {rule: "self.metadata.name.size() <= 63"}
- {rule: "!has(self.spec.paused) || !self.spec.paused || self.spec.replicas == 0"}
properties:
  spec:
    type: object
    x-kubernetes-validations:
    - {rule: "self.minReplicas <= self.replicas"}
    - {rule: "self.replicas <= self.maxReplicas"}
    - {rule: "has(self.template) == has(self.selector)"}
    - {rule: "self.ports.all(p, p.port != 22)"}
    - {rule: "self.selector.all(k, k in self.template.labels && self.selector[k] == self.template.labels[k])"}
    - {rule: "self.mode == 'A' ? has(self.template) : true"}
    - {rule: "!(self.mode in ['C', 'D'])"}
    - {rule: "self.url.startsWith('https://')"}
    properties:
      replicas: {type: integer}
      minReplicas: {type: integer}
      maxReplicas: {type: integer}
      paused: {type: boolean}
      mode: {type: string, enum: [A, B], x-kubernetes-validations: [{rule: "self != 'B' || true"}, {rule: "self == oldSelf", message: immutable}]}
      url: {type: string, maxLength: 256, x-kubernetes-validations: [{rule: "self.size() > 8"}, {rule: "self.endsWith('.example')"}]}
      selector: {type: object, maxProperties: 16, additionalProperties: {type: string, maxLength: 64}, x-kubernetes-validations: [{rule: "self.size() > 0"}]}
      ports:
        type: array
        maxItems: 16
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [name]
        x-kubernetes-validations: [{rule: "self.size() > 0"}, {rule: "self.exists_one(p, p.name == 'http')"}]
        items:
          type: object
          required: [name, port]
          properties:
            name: {type: string, maxLength: 16}
            port: {type: integer}
            protocol: {type: string}
      template:
        type: object
        x-kubernetes-validations: [{rule: "has(self.image) && self.image.contains(':')"}, {rule: "self.env.size() < 50"}, {rule: "self.labels.size() < 50"}]
        properties:
          image: {type: string, maxLength: 256}
          labels: {type: object, maxProperties: 64, additionalProperties: {type: string, maxLength: 64}}
          env: {type: array, maxItems: 64, items: {type: object, properties: {name: {type: string, maxLength: 64}, value: {type: string, maxLength: 256}}}}
  status:
    type: object
    x-kubernetes-validations: [{rule: "self.ready <= self.replicas"}, {rule: "self.replicas >= 0"}]
    properties: {ready: {type: integer}, replicas: {type: integer}}
`

func schemaOf(t testing.TB, text string) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	props := &apiextensionsv1.JSONSchemaProps{}
	if err := yaml.Unmarshal([]byte(text), props); err != nil {
		t.Fatal(err)
	}
	return props
}

func compilerOf(t testing.TB) *rules.Compiler {
	t.Helper()
	c, err := rules.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func compileText(t testing.TB, c *rules.Compiler, text string) *rules.Rules {
	t.Helper()
	s, err := structural.Compile(schemaOf(t, text))
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// twoKiB returns an object that satisfies the rules.
func twoKiB() map[string]any {
	env := []any{}
	for i := range 24 {
		env = append(env, map[string]any{"name": fmt.Sprintf("VARIABLE_%02d", i), "value": "something that is worth its 40 characters"})
	}
	labels := map[string]any{"app": "web", "tier": "front", "team": "alpha"}
	return map[string]any{
		"apiVersion": "example.com/v1", "kind": "Thing",
		"metadata": map[string]any{"name": "thing", "namespace": "default", "uid": "5f0c", "generation": int64(3)},
		"spec": map[string]any{
			"replicas": int64(3), "minReplicas": int64(1), "maxReplicas": int64(10), "mode": "A", "url": "https://thing.example",
			"selector": map[string]any{"app": "web", "tier": "front"},
			"ports": []any{
				map[string]any{"name": "http", "port": int64(80), "protocol": "TCP"},
				map[string]any{"name": "https", "port": int64(443), "protocol": "TCP"},
				map[string]any{"name": "metrics", "port": int64(9090), "protocol": "TCP"},
			},
			"template": map[string]any{"image": "registry.example/web:1", "labels": labels, "env": env},
		},
		"status": map[string]any{"ready": int64(2), "replicas": int64(3)},
	}
}

func BenchmarkValidate(b *testing.B) {
	r := compileText(b, compilerOf(b), twentyRules)
	object, old := twoKiB(), twoKiB()
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if o := r.ValidateUpdate(ctx, nil, object, old, rules.Budget); len(o.Errors) > 0 {
			b.Fatal(o.Errors)
		}
	}
}

// fiveHundredRules returns a schema with five hundred rules in a hundred objects.
func fiveHundredRules() *apiextensionsv1.JSONSchemaProps {
	spec := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
	limit := int64(16)
	for i := range 100 {
		section := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"a": {Type: "integer"}, "b": {Type: "integer"}, "name": {Type: "string", MaxLength: &limit},
			"items": {Type: "array", MaxItems: &limit, Items: &apiextensionsv1.JSONSchemaPropsOrArray{
				Schema: &apiextensionsv1.JSONSchemaProps{Type: "string", MaxLength: &limit},
			}},
		}}
		for j, rule := range []string{
			"!has(self.a) || !has(self.b) || self.a <= self.b", "self.name.startsWith('x') || self.name.matches('^[a-z]+$')",
			"self.items.all(i, i.size() > 2 && i != self.name)", "has(self.name) ? self.name == oldSelf.name : true", "self.a + self.b < 1000 + %d",
		} {
			if j == 4 {
				rule = fmt.Sprintf(rule, i)
			}
			section.XValidations = append(section.XValidations, apiextensionsv1.ValidationRule{Rule: rule})
		}
		spec.Properties[fmt.Sprintf("section%d", i)] = section
	}
	return &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec}}
}

func BenchmarkCompile500(b *testing.B) {
	c := compilerOf(b)
	s, err := structural.Compile(fiveHundredRules())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Compile(s); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheck500(b *testing.B) {
	c := compilerOf(b)
	props := fiveHundredRules()
	b.ReportAllocs()
	for b.Loop() {
		if errs := c.Check(context.Background(), nil, props, rules.Options{}); len(errs) > 0 {
			b.Fatal(errs)
		}
	}
}
