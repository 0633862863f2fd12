package crd_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/crd"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// hostile is a definition that is meant to harm the server, with objects.
type hostile struct {
	versions, names string // JSON of spec.versions, and of other fields in spec.names
	code            int    // of the answer to the definition
	says            string // part of the answer
	objects         []hostileObject
}

// hostileObject is an object called x.
type hostileObject struct {
	members string // JSON of the object without its metadata
	code    int
	says    string
}

// listed writes n elements with commas between them.
func listed(n int, element func(i int) string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = element(i)
	}
	return strings.Join(all, ",")
}

func always(text string) func(int) string { return func(int) string { return text } }

// oneVersion is the version v1 with a schema.
func oneVersion(schema string) string {
	return `[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":` + schema + `}}]`
}

// specified returns a version v1 with a schema for the field spec.
func specified(schema string) string {
	return oneVersion(`{"type":"object","properties":{"spec":` + schema + `}}`)
}

func hostiles() map[string]hostile {
	numbered := func(format string) func(int) string { return func(i int) string { return fmt.Sprintf(format, i) } }
	nested := func(n int, open, inner, end string) string {
		return strings.Repeat(open, n) + inner + strings.Repeat(end, n)
	}
	const open, preserve = `{"type":"object","properties":{"a":`, `{"type":"object","x-kubernetes-preserve-unknown-fields":true}`
	long := strings.Repeat("n", 700_000)
	return map[string]hostile{
		"nested": {versions: oneVersion(nested(499, open, `{"type":"string"}`, `}}`)), code: 201, objects: []hostileObject{
			{nested(498, `"a":{`, `"b":1`, `}`), 201, ""},
		}},
		"nestedtoo":   {versions: oneVersion(nested(4000, open, `{"type":"string"}`, `}}`)), code: 422, says: "schemas cannot be nested more than 500 deep"},
		"nestedjson":  {versions: oneVersion(nested(30000, open, `{"type":"string"}`, `}}`)), code: 400, says: "exceeded max depth"},
		"nestedenum":  {versions: specified(`{"type":"string","enum":[` + nested(500_000, `[`, ``, `]`) + `]}`), code: 400, says: "exceeded max depth"},
		"fields":      {versions: specified(`{"type":"object","properties":{` + listed(20_000, numbered(`"p%05d":{"type":"string"}`)) + `}}`), code: 201, objects: []hostileObject{{`"spec":{` + listed(20_000, numbered(`"p%05d":"x"`)) + `}`, 201, ""}}},
		"badfields":   {versions: specified(`{"type":"object","properties":{` + listed(50_000, numbered(`"p%05d":{}`)) + `}}`), code: 422, says: "Required value: must not be empty for specified object fields"},
		"longname":    {versions: specified(`{"type":"object","properties":{"` + long + `":{"type":"object","properties":{` + listed(5000, numbered(`"p%05d":{}`)) + `}}}}`), code: 422, says: "the paths of all fields may not be more than 16777216 bytes together"},
		"patterns":    {versions: specified(`{"type":"object","properties":{` + listed(25_000, numbered(`"p%05d":{"type":"string","pattern":"x{1000}"}`)) + `}}`), code: 422, says: "at most 500000 instructions together"},
		"rules":       {versions: specified(`{"type":"object","x-kubernetes-validations":[` + listed(50_000, always(`{"rule":"true"}`)) + `]}`), code: 422, says: "Too many: 50000: must have at most 1000 items"},
		"longrule":    {versions: specified(`{"type":"object","x-kubernetes-validations":[{"rule":"` + strings.Repeat("self==self&&", 9000) + `true"}]}`), code: 422, says: "Too long: may not be more than 16384 bytes"},
		"keys":        {versions: specified(`{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":[` + listed(60_000, always(`"p"`)) + `],"items":{"type":"object"}}`), code: 422, says: "Too many: 60000: must have at most 64 items"},
		"versions":    {versions: `[` + listed(5000, func(i int) string { return fmt.Sprintf(`{"name":"v%d","served":true,"storage":%t}`, i+1, i == 0) }) + `]`, code: 422, says: "Too many: 5000: must have at most 100 items"},
		"names":       {versions: oneVersion(preserve), names: `"shortNames":[` + listed(90_000, numbered(`"s%d"`)) + `],`, code: 422, says: "Too many: 90000: must have at most 100 items"},
		"columns":     {versions: `[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":` + preserve + `},"additionalPrinterColumns":[` + listed(20_000, always(`{"name":"c","type":"string","jsonPath":".a..*"}`)) + `]}]`, code: 422, says: "Too many: 20000: must have at most 100 items"},
		"slowcolumns": {versions: `[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":` + preserve + `},"additionalPrinterColumns":[` + listed(100, always(`{"name":"c","type":"string","jsonPath":".spec..[*]..*"}`)) + `]}]`, code: 201, objects: []hostileObject{{`"spec":[` + listed(3000, always(`{"a":1}`)) + `]`, 201, ""}}},
		"reference":   {versions: specified(`{"type":"object","properties":{"a":{"$ref":"#"}}}`), code: 422, says: "$ref is not supported"},
		"embedded": {versions: specified(nested(200, `{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"a":`, `{"type":"string"}`, `}}`)), code: 201, objects: []hostileObject{
			{`"spec":` + nested(200, `{"apiVersion":"v1","kind":"X","metadata":{"name":"a","unknown":1},"a":`, `"b"`, `}`), 201, ""},
		}},
		"enum": {versions: specified(`{"type":"array","items":{"type":"string","enum":[` + listed(90_000, numbered(`"e%05d"`)) + `]}}`), code: 201, objects: []hostileObject{
			{`"spec":[` + listed(100_000, always(`"e89999"`)) + `]`, 201, ""}, {`"spec":[` + listed(100_000, always(`"x"`)) + `]`, 422, `spec[0]: Unsupported value: \"x\"`},
		}},
		"slow": {versions: specified(`{"type":"array","items":{"type":"integer","anyOf":[` + listed(30_000, func(i int) string { return fmt.Sprintf(`{"minimum":%d}`, i+9) }) + `]}}`), code: 201, objects: []hostileObject{
			{`"spec":[` + listed(100_000, always("1")) + `]`, 422, "judging it takes too long"},
		}},
		"slowpattern": {versions: specified(`{"type":"string","pattern":"(x?){1000}y"}`), code: 201, objects: []hostileObject{
			{`"spec":"` + strings.Repeat("x", 1_400_000) + `"`, 422, "judging it takes too long"},
		}},
		"longkey": {versions: specified(`{"type":"object","additionalProperties":{"type":"object","properties":{"a":{"type":"string"}}}}`), code: 201, objects: []hostileObject{
			{`"spec":{"` + long + `":{"a":1,` + listed(5000, numbered(`"u%d":1`)) + `}}`, 422, `truncated`},
			{`"spec":{"` + long + `":[` + listed(5000, always("1")) + `]}`, 422, `truncated`},
		}},
		"defaults": {versions: specified(`{"type":"array","items":{"type":"object","properties":{"a":{"type":"string","default":"` + long + `"}}}}`), code: 201, objects: []hostileObject{
			{`"spec":[` + listed(100_000, always("{}")) + `]`, 413, "object is too large"}, {`"spec":[{}]`, 201, ""},
		}},
		"multiplied": {versions: specified(nested(5, `{"type":"object","properties":{"l":{"type":"array","default":[`+listed(100, always("{}"))+`],"items":`, `{"type":"object"}`, `}}}`)), code: 201, objects: []hostileObject{
			{`"spec":{}`, 413, "object is too large"},
		}},
		"maps": {versions: specified(`{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"}}}}`), code: 201, objects: []hostileObject{
			{`"spec":[` + listed(20_000, numbered(`{"k":"%d"}`)) + `]`, 201, ""},
			{`"spec":[` + listed(80_000, func(i int) string { return fmt.Sprintf(`{"k":"%d"}`, i/2) }) + `]`, 422, "Duplicate value"},
		}},
		"anything": {versions: oneVersion(preserve), code: 201, objects: []hostileObject{
			{`"spec":` + nested(4900, `{"a":`, `1`, `}`), 201, ""}, {`"spec":` + nested(9900, `[`, `1`, `]`), 201, ""},
			{`"spec":` + nested(1_000_000, `[`, `1`, `]`), 400, "exceeded max depth"}, {`"spec":{` + listed(50_000, numbered(`"p%05d":1`)) + `}`, 201, ""},
		}},
	}
}

// TestHostile creates harmful definitions, and writes, applies, reads, lists and changes objects of them. Refusals must be client
// errors. No request may allocate more than some hundred times its size, which also indicates its CPU time.
func TestHostile(t *testing.T) {
	if testing.Short() {
		t.Skip("it is about memory and time, of which the race detector needs many times as much")
	}
	// With the default limit most of the bodies would be refused before the code under test is reached.
	s := startSite(t, server.Options{Limits: server.Limits{MaxDecodedBytes: -1}}, crd.New(crd.Options{}))
	const most = 3 << 30
	ask := func(t *testing.T, method, path, body string, headers ...string) (int, string) {
		t.Helper()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var answer string
		code := s.do(method, path, body, &answer, headers...)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > most || code >= 500 || code == 429 {
			t.Errorf("%s %s: %d, %d MiB: %.300s", method, path, code, took>>20, answer)
		}
		return code, answer
	}
	for plural, h := range hostiles() {
		t.Run(plural, func(t *testing.T) {
			kind := "K" + plural
			definition := fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%s.example.com"},"spec":{
				"group":"example.com","scope":"Namespaced","names":{%s"plural":"%s","kind":"%s"},"versions":%s}}`, plural, h.names, plural, kind, h.versions)
			code, answer := ask(t, "POST", crdsPath, definition)
			if code != h.code || !strings.Contains(answer, h.says) {
				t.Fatalf("definition: %d %.400s, want %d %s", code, answer, h.code, h.says)
			}
			if code != 201 {
				return
			}
			name := plural + ".example.com"
			s.await(name, isTrue(apiextensionsv1.Established))
			ask(t, "GET", "/openapi/v3/apis/example.com/v1", "")
			ask(t, "GET", "/openapi/v2", "")
			path := "/apis/example.com/v1/namespaces/default/" + plural
			for _, o := range h.objects {
				object := fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"%s","metadata":{"name":"x"},%s}`, kind, o.members)
				code, answer := ask(t, "POST", path, object)
				if code != o.code || !strings.Contains(answer, o.says) {
					t.Errorf("object: %d %.400s, want %d %s", code, answer, o.code, o.says)
				}
				ask(t, "PATCH", path+"/x?fieldManager=m&force=true", object, "Content-Type", "application/apply-patch+yaml")
				ask(t, "PATCH", path+"/x", `{"metadata":{"labels":{"a":"b"}}}`, "Content-Type", "application/merge-patch+json")
				ask(t, "PATCH", path+"/x", `[{"op":"copy","from":"/spec","path":"/copied"}]`, "Content-Type", "application/json-patch+json")
				ask(t, "GET", path, "", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
				ask(t, "DELETE", path+"/x", "")
			}
			ask(t, "PATCH", crdsPath+"/"+name, `{"metadata":{"labels":{"a":"b"}}}`, "Content-Type", "application/merge-patch+json")
			ask(t, "DELETE", crdsPath+"/"+name, "")
			s.awaitGone(name)
		})
	}
}
