package structural_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime/structural"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// widgetSchema returns a schema of about 200 lines of YAML.
func widgetSchema() string {
	part := func(name string) string {
		return fmt.Sprintf(`"%s":{"type":"object","description":"a part","required":["name"],"properties":{
			"name":{"type":"string","description":"its name","maxLength":63,"pattern":"^[a-z]([-a-z0-9]*[a-z0-9])?$"},
			"replicas":{"type":"integer","format":"int32","minimum":0,"default":1},
			"strategy":{"type":"string","enum":["Recreate","RollingUpdate"],"default":"RollingUpdate"},
			"limit":{"x-kubernetes-int-or-string":true},
			"labels":{"type":"object","additionalProperties":{"type":"string"}},
			"when":{"type":"string","format":"date-time"},
			"ports":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["port","protocol"],"items":{"type":"object",
				"required":["port"],"properties":{"port":{"type":"integer","minimum":1,"maximum":65535},"protocol":{"type":"string","default":"TCP"},"name":{"type":"string"}}}},
			"zones":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}}}`, name)
	}
	var parts []string
	for i := range 4 {
		parts = append(parts, part(fmt.Sprintf("part%d", i)))
	}
	return `{"type":"object","properties":{"spec":{"type":"object","properties":{` + strings.Join(parts, ",") + `}},
		"status":{"type":"object","properties":{"phase":{"type":"string"},"conditions":{"type":"array","x-kubernetes-list-type":"map",
		"x-kubernetes-list-map-keys":["type"],"items":{"type":"object","required":["type","status"],"properties":{"type":{"type":"string"},
		"status":{"type":"string","enum":["True","False","Unknown"]},"reason":{"type":"string"},"message":{"type":"string"}}}}}}}}`
}

// widget returns an object of about 2 KiB that is valid by the schema.
func widget(tb testing.TB) map[string]any {
	part := `{"name":"abc","replicas":3,"strategy":"Recreate","limit":"25%","labels":{"app":"web","tier":"front","zone":"a"},"when":"2026-01-02T03:04:05Z",
		"ports":[{"port":80,"protocol":"TCP","name":"http"},{"port":443,"protocol":"TCP","name":"https"},{"port":53,"protocol":"UDP"}],"zones":["a","b","c"]}`
	condition := `{"type":"%s","status":"True","reason":"AllIsWell","message":"everything is as it should be, and has been for a while"}`
	text := `{"apiVersion":"g/v1","kind":"Widget","metadata":{"name":"w","namespace":"default","uid":"u","resourceVersion":"12","generation":2,
		"creationTimestamp":"2026-01-02T03:04:05Z","labels":{"a":"b"}},"spec":{` +
		fmt.Sprintf(`"part0":%[1]s,"part1":%[1]s,"part2":%[1]s,"part3":%[1]s`, part) + `},"status":{"phase":"Ready","conditions":[` +
		fmt.Sprintf(condition, "Ready") + "," + fmt.Sprintf(condition, "Available") + `]}}`
	return decodeObject(tb, []byte(text))
}

func BenchmarkValidate(b *testing.B) {
	s, object := mustCompile(b, widgetSchema()), widget(b)
	b.Run("valid", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if errs := s.Validate(nil, object); errs != nil {
				b.Fatal(errs)
			}
		}
	})
	b.Run("valid, kube-openapi", func(b *testing.B) {
		schema := openAPI(b, mustProps(b, widgetSchema()))
		b.ReportAllocs()
		for b.Loop() {
			if !validate.NewSchemaValidator(schema, nil, "", strfmt.Default).Validate(object).IsValid() {
				b.Fatal("not valid")
			}
		}
	})
	wrong := apiruntime.DeepCopyJSON(object)
	wrong["spec"].(map[string]any)["part0"].(map[string]any)["replicas"] = "x"
	b.Run("wrong", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if errs := s.Validate(nil, wrong); len(errs) != 1 {
				b.Fatal(errs)
			}
		}
	})
	b.Run("wrong and ratcheted", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if errs := s.ValidateUpdate(nil, wrong, wrong); len(errs) != 0 {
				b.Fatal(errs)
			}
		}
	})
}

func BenchmarkConform(b *testing.B) {
	s, object := mustCompile(b, widgetSchema()), widget(b)
	b.ReportAllocs()
	for b.Loop() {
		if unknown, err := s.Conform(object, structural.ConformOptions{Report: 100}); err != nil || len(unknown) > 0 {
			b.Fatal(unknown, err)
		}
	}
}

func BenchmarkSetDefaults(b *testing.B) {
	s, object := mustCompile(b, widgetSchema()), widget(b)
	b.ReportAllocs()
	for b.Loop() {
		s.SetDefaults(object)
	}
}

func BenchmarkCheckLists(b *testing.B) {
	s, object := mustCompile(b, widgetSchema()), widget(b)
	b.ReportAllocs()
	for b.Loop() {
		if errs := s.CheckLists(nil, object); errs != nil {
			b.Fatal(errs)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	p := mustProps(b, widgetSchema())
	b.Run("Compile", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := structural.Compile(p); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Check", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if errs := structural.Check(field.NewPath("schema"), p, structural.Options{}); len(errs) > 0 {
				b.Fatal(errs)
			}
		}
	})
	b.Run("FingerprintOf", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := structural.FingerprintOf(p); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestCosts checks the allocations: none for valid values, and little for a schema.
func TestCosts(t *testing.T) {
	s, object := mustCompile(t, widgetSchema()), widget(t)
	if errs := s.Validate(nil, object); len(errs) > 0 {
		t.Fatal(errs)
	}
	for what, do := range map[string]func(){
		"Validate":       func() { s.Validate(nil, object) },
		"ValidateUpdate": func() { s.ValidateUpdate(nil, object, object) },
		"CheckLists":     func() { s.CheckLists(nil, object) },
		"SetDefaults":    func() { s.SetDefaults(object) },
		"DropNulls":      func() { s.DropNulls(object) },
	} {
		if n := testing.AllocsPerRun(100, do); n > 4 { // regular expressions match with memory from a pool, which the race detector empties
			t.Errorf("%s allocates %v times", what, n)
		}
	}
	text := []byte(widgetSchema())
	kept := make([]*structural.Schema, 50)
	before := heap()
	for i := range kept {
		p := &props{}
		if err := json.Unmarshal(text, p); err != nil {
			t.Fatal(err)
		}
		kept[i], _ = structural.Compile(p)
	}
	each := int64(heap()-before) / int64(len(kept))
	if each > 64<<10 {
		t.Errorf("a schema takes %d bytes", each)
	}
	t.Logf("a schema takes %d bytes, its JSON %d", each, len(text))
	runtime.KeepAlive(kept)
}

func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
