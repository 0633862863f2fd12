package server_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/storage/memory"
)

// A costlyWrite is a request of at most 3 MiB that is made to be expensive. before are the writes that make the object that it
// changes.
type costlyWrite struct {
	name   string
	before []write
	write
}

type write struct {
	method, path, contentType, body string
}

const (
	rigPath    = rigList + "/r"
	gadgetPath = untypedPath + "/g"
)

func rigText(rest string) string {
	return `{"apiVersion":"rig.example.com/v1","kind":"Rig","metadata":{"name":"r"` + rest + `}`
}

func gadgetText(rest string) string {
	return `{"apiVersion":"untyped.example.com/v1","kind":"Gadget","metadata":{"name":"g"` + rest + `}`
}

// list returns the results of each for 0 to n-1, joined by commas.
func list(n int, each func(i int) string) string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = each(i)
	}
	return strings.Join(texts, ",")
}

func same(text string) func(int) string { return func(int) string { return text } }

// entriesText returns managedFields with n managers.
func entriesText(n int, apiVersion func(i int) string, operation, fields string) string {
	return `"managedFields":[` + list(n, func(i int) string {
		return fmt.Sprintf(`{"manager":"m%d","operation":%q,"apiVersion":%q,"fieldsType":"FieldsV1","fieldsV1":%s}`, i, operation, apiVersion(i), fields)
	}) + `]`
}

func nested(depth int, inner string) string {
	return strings.Repeat(`{"a":`, depth) + inner + strings.Repeat(`}`, depth)
}

func costlyWrites() []costlyWrite {
	newRig := write{"POST", rigList, "application/json", rigText(`},"spec":{"count":1}`)}
	newGadget := write{"POST", untypedPath, "application/json", gadgetText(`},"spec":{}`)}
	rigEntries := func(n int, v func(int) string, operation, fields string) write {
		return write{"PUT", rigPath, "application/json", rigText(`,` + entriesText(n, v, operation, fields) + `},"spec":{"count":2}`)}
	}
	gadgetEntries := func(n int, v func(int) string, operation, fields string) write {
		return write{"PATCH", gadgetPath, mergePatch, `{"metadata":{` + entriesText(n, v, operation, fields) + `},"spec":{"count":2}}`}
	}
	gadgetApply := func(spec string) write {
		return write{"PATCH", gadgetPath + "?fieldManager=a&force=true", applyPatch, gadgetText(`},"spec":` + spec)}
	}
	small := write{"PATCH", gadgetPath, mergePatch, `{"metadata":{"labels":{"a":"b"}}}`}
	smallRig := write{"PATCH", rigPath, mergePatch, `{"metadata":{"labels":{"a":"b"}}}`}
	deep := gadgetApply(`{` + list(50, func(i int) string { return fmt.Sprintf(`"f%d":%s`, i, nested(900, "1")) }) + `}`)
	wide := gadgetApply(`{` + list(6900, func(i int) string { return fmt.Sprintf(`"f%d":%d`, i*7919%10007, i) }) + `}`)
	numbers := func(n int) string { return `[` + list(n, same("1")) + `]` }
	operations := func(n int, each func(i int) string) write {
		return write{"PATCH", gadgetPath, jsonPatch, `[{"op":"add","path":"/spec","value":{"l":` + numbers(1_000_000) + `}},` + list(n, each) + `,{"op":"replace","path":"/spec","value":{}}]`}
	}
	return []costlyWrite{
		{"small patch", []write{newGadget}, small},
		{"entries/typed", []write{newRig}, rigEntries(10000, same("rig.example.com/v1"), "Update", `{}`)},
		{"entries/typed with fields", []write{newRig}, rigEntries(10000, same("rig.example.com/v1"), "Update", `{"f:spec":{"f:count":{}}}`)},
		{"entries/typed appliers", []write{newRig}, rigEntries(10000, same("rig.example.com/v1"), "Apply", `{"f:spec":{"f:count":{}}}`)},
		{"entries/typed other version", []write{newRig}, rigEntries(10000, same("rig.example.com/v1beta1"), "Apply", `{"f:spec":{"f:count":{}}}`)},
		{"entries/typed unknown versions", []write{newRig}, rigEntries(10000, func(i int) string { return fmt.Sprintf("x/v%d", i) }, "Apply", `{"f:spec":{"f:count":{}}}`)},
		{"entries/untyped", []write{newGadget}, gadgetEntries(10000, same("untyped.example.com/v1"), "Update", `{}`)},
		{"entries/untyped appliers", []write{newGadget}, gadgetEntries(10000, same("untyped.example.com/v1"), "Apply", `{"f:spec":{"f:count":{}}}`)},
		{"entries/untyped appliers, then a small patch", []write{newGadget, gadgetEntries(8000, same("untyped.example.com/v1"), "Apply", `{"f:spec":{"f:count":{}}}`)}, small},
		{"entries/typed appliers, then a small patch", []write{newRig, rigEntries(8000, same("rig.example.com/v1"), "Apply", `{"f:spec":{"f:count":{}}}`)}, smallRig},
		{"entries/untyped wide", []write{newGadget}, gadgetEntries(1, same("untyped.example.com/v1"), "Apply", `{"f:spec":{`+list(40_000, func(i int) string { return fmt.Sprintf(`"f:%d":{}`, i*7919%100003) })+`}}`)},
		{"entries/untyped one deep", []write{newGadget}, gadgetEntries(1, same("untyped.example.com/v1"), "Apply", strings.Repeat(`{"f:a":`, 9000)+"{}"+strings.Repeat("}", 9000))},
		{"entries/untyped 100 wide", []write{newGadget}, gadgetEntries(100, same("untyped.example.com/v1"), "Apply", `{"f:spec":{`+list(1000, func(i int) string { return fmt.Sprintf(`"f:%d":{}`, i) })+`}}`)},
		{"entries/untyped 100 wide of another version", []write{newGadget}, gadgetEntries(100, same("untyped.example.com/v1beta1"), "Apply", `{"f:spec":{`+list(1000, func(i int) string { return fmt.Sprintf(`"f:%d":{}`, i) })+`}}`)},
		{"apply/deep", nil, deep},
		{"apply/deep, then a small patch", []write{deep}, small},
		{"apply/deep, then again", []write{deep}, deep},
		{"apply/wide", nil, wide},
		{"apply/wide, then a small patch", []write{wide}, small},
		{"apply/wide, then again", []write{wide}, wide},
		{"apply/200,000 values in small maps", nil, gadgetApply(`{` + list(400, func(i int) string {
			return fmt.Sprintf(`"f%d":{%s}`, i, list(400, func(i int) string { return fmt.Sprintf(`"f%d":1`, i) }))
		}) + `}`)},
		{"post/wide", nil, write{"POST", untypedPath, "application/json", gadgetText(`},"spec":{` + list(6900, func(i int) string { return fmt.Sprintf(`"f%d":%d`, i*7919%10007, i) }) + `}`)}},
		{"post/deep", nil, write{"POST", untypedPath, "application/json", gadgetText(`},"spec":{` + list(50, func(i int) string { return fmt.Sprintf(`"f%d":%s`, i, nested(900, "1")) }) + `}`)}},
		{"post/deep, then a small patch", []write{{"POST", untypedPath, "application/json", gadgetText(`},"spec":{` + list(50, func(i int) string { return fmt.Sprintf(`"f%d":%s`, i, nested(900, "1")) }) + `}`)}}, small},
		{"json patch/moves to the end", []write{newGadget}, operations(9990, same(`{"op":"move","from":"/spec/l/0","path":"/spec/l/-"}`))},
		{"json patch/inserts at the start", []write{newGadget}, operations(9990, same(`{"op":"add","path":"/spec/l/0","value":0}`))},
		{"json patch/removes at the start", []write{newGadget}, operations(9990, same(`{"op":"remove","path":"/spec/l/0"}`))},
		{"json patch/empty operations", []write{newGadget}, write{"PATCH", gadgetPath, jsonPatch, `[` + list(1_000_000, same(`{}`)) + `]`}},
		{"json patch/null operations", []write{newGadget}, write{"PATCH", gadgetPath, jsonPatch, `[` + list(600_000, same(`null`)) + `]`}},
		{"json patch/a path of slashes", []write{newGadget}, write{"PATCH", gadgetPath, jsonPatch, `[{"op":"add","path":"` + strings.Repeat("/", 3_000_000) + `","value":1}]`}},
		{"json patch/a million members", []write{newGadget}, write{"PATCH", gadgetPath, jsonPatch, `[{` + list(400_000, func(i int) string { return fmt.Sprintf(`"%x":1`, i) }) + `}]`}},
		{"json patch/copies", []write{newGadget}, operations(20, same(`{"op":"copy","from":"/spec/l/0","path":"/spec/l/0"}`))},
		{"merge patch/a million numbers", []write{newGadget}, write{"PATCH", gadgetPath, mergePatch, `{"spec":{"l":` + numbers(1_000_000) + `}}`}},
		{"merge patch/a million members", []write{newGadget}, write{"PATCH", gadgetPath, mergePatch, `{"spec":{` + list(200_000, func(i int) string { return fmt.Sprintf(`"%x":null`, i) }) + `}}`}},
		{"merge patch/empty lists", []write{newGadget}, write{"PATCH", gadgetPath, mergePatch, `{"spec":{"l":[` + list(1_000_000, same("{}")) + `]}}`}},
		{"merge patch/deep", []write{newGadget}, write{"PATCH", gadgetPath, mergePatch, `{"spec":` + nested(9990, "1") + `}`}},
		{"strategic/100,000 keys", []write{newRig}, write{"PATCH", rigPath, strategicPatch, `{"spec":{"parts":[` + list(100_000, func(i int) string { return fmt.Sprintf(`{"id":%d}`, i) }) + `]}}`}},
		{"strategic/2,000 keys", []write{newRig}, write{"PATCH", rigPath, strategicPatch, `{"spec":{"parts":[` + list(2000, func(i int) string { return fmt.Sprintf(`{"id":%d}`, i) }) + `]}}`}},
		{"strategic/2,000 keys with order", []write{newRig}, write{"PATCH", rigPath, strategicPatch, `{"spec":{"$setElementOrder/parts":[` + list(1400, func(i int) string { return fmt.Sprintf(`{"id":%d}`, i) }) +
			`],"parts":[` + list(1400, func(i int) string { return fmt.Sprintf(`{"id":%d}`, i) }) + `]}}`}},
		{"strategic/2,000 keys, then again", []write{newRig, {"PATCH", rigPath, strategicPatch, `{"spec":{"parts":[` + list(2000, func(i int) string { return fmt.Sprintf(`{"id":%d}`, i) }) + `]}}`}},
			write{"PATCH", rigPath, strategicPatch, `{"spec":{"parts":[` + list(1400, func(i int) string { return fmt.Sprintf(`{"id":%d}`, i+100000) }) + `]}}`}},
		{"strategic/deletes of 100,000", []write{newRig}, write{"PATCH", rigPath, strategicPatch, `{"spec":{"$deleteFromPrimitiveList/tags":[` + list(100_000, func(i int) string { return fmt.Sprintf(`"%d"`, i) }) + `]}}`}},
		{"strategic/many lists", []write{newRig}, write{"PATCH", rigPath, strategicPatch, `{"spec":{"parts":[` + list(1000, func(i int) string {
			return fmt.Sprintf(`{"id":%d,"parts":[%s]}`, i, list(60, func(i int) string { return fmt.Sprintf(`{"id":%d}`, i) }))
		}) + `]}}`}},
		{"strategic/retain keys", []write{newRig}, write{"PATCH", rigPath, strategicPatch, `{"spec":{"$retainKeys":[` + list(50_000, func(i int) string { return fmt.Sprintf(`"k%d"`, i) }) + `]}}`}},
		{"strategic/empty parts", []write{newRig}, write{"PATCH", rigPath, strategicPatch, `{"spec":{"order":[` + list(700_000, same(`{}`)) + `]}}`}},
		{"refused/merge patch", []write{newRig}, write{"PATCH", rigPath, mergePatch, `{"spec":{"count":"` + strings.Repeat("\\u0001<", 100_000) + `"}}`}},
		{"refused/strategic patch", []write{newRig}, write{"PATCH", rigPath, strategicPatch, `{"spec":{"count":"` + strings.Repeat("<", 1_000_000) + `"}}`}},
		{"refused/unknown fields", []write{newRig}, write{"PATCH", rigPath + "?fieldValidation=Strict", mergePatch, `{"spec":{` + list(100_000, func(i int) string { return fmt.Sprintf(`"x%d":1`, i) }) + `}}`}},
		{"warned/unknown fields", []write{newRig}, write{"PATCH", rigPath, mergePatch, `{"spec":{` + list(100_000, func(i int) string { return fmt.Sprintf(`"x%d":1`, i) }) + `}}`}},
		{"refused/conflicts", []write{newGadget, {"PATCH", gadgetPath + "?fieldManager=u", mergePatch, `{"spec":{` + list(5000, func(i int) string { return fmt.Sprintf(`"f%d":1`, i) }) + `}}`}},
			write{"PATCH", gadgetPath + "?fieldManager=b", applyPatch, gadgetText(`},"spec":{` + list(5000, func(i int) string { return fmt.Sprintf(`"f%d":2`, i) }) + `}`)}},
	}
}

// writer returns the handler of a server in memory, which is called without a network.
type writer struct {
	handler http.Handler
	token   string
}

func newWriter(tb testing.TB) *writer {
	tb.Helper()
	o := writeOptions()
	o.Storage, o.Groups = memory.Open(), append(o.Groups, untypedGolden())
	srv, err := server.New(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = srv.Close() })
	return &writer{srv.Handler(), "Bearer " + srv.Credentials().Token}
}

func (w *writer) do(ctx context.Context, what write) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, what.method, what.path, strings.NewReader(what.body))
	r.Header.Set("Authorization", w.token)
	r.Header.Set("Content-Type", what.contentType)
	answer := httptest.NewRecorder()
	w.handler.ServeHTTP(answer, r)
	return answer
}

// allocated returns the number of bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A request of 3 MiB allocates at most 150 MiB, whatever its contents are, and a refusal is short. The objects that such requests
// store do not make small requests expensive.
func TestCostlyWritesAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("it makes large requests")
	}
	for _, c := range costlyWrites() {
		w := newWriter(t)
		for _, s := range c.before {
			w.do(t.Context(), s)
		}
		var a *httptest.ResponseRecorder
		n := allocated(func() { a = w.do(t.Context(), c.write) })
		if n > 150<<20 {
			t.Errorf("%s: %d bytes are allocated", c.name, n)
		}
		if a.Code >= 500 || a.Code >= 300 && a.Body.Len() > 120<<10 {
			t.Errorf("%s: %d, with %d bytes: %.300s", c.name, a.Code, a.Body.Len(), a.Body)
		}
	}
}

// Writes that are refused because of their cost get an error that says so.
func TestCostlyWritesAreRefused(t *testing.T) {
	want := map[string]string{
		"entries/typed":                      `metadata.managedFields: Too many: 10000: must have at most 1000 items`,
		"json patch/moves to the end":        `a patch can have 100000 values`,
		"json patch/empty operations":        `The allowed maximum operations in a JSON patch is 10000, got 1000000`,
		"strategic/2,000 keys":               ``,
		"refused/merge patch":                `... (truncated, `,
		"entries/untyped wide":               `metadata.managedFields: Forbidden: the entries name too many fields`,
		"apply/200,000 values in small maps": `the values in the body take too much memory`,
	}
	for _, c := range costlyWrites() {
		text, ok := want[c.name]
		if !ok {
			continue
		}
		w := newWriter(t)
		for _, s := range c.before {
			w.do(t.Context(), s)
		}
		if a := w.do(t.Context(), c.write); text != "" && (a.Code < 400 || !strings.Contains(a.Body.String(), text)) || text == "" && a.Code >= 300 {
			t.Errorf("%s: %d %.500s; want %q", c.name, a.Code, a.Body, text)
		}
	}
}
