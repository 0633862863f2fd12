package bodycost_test

import (
	"net/http"
	"strings"
	"testing"
)

// targets has the verbs with a body, and their paths.
var targets = []struct{ method, path string }{
	{"POST", configMaps}, {"POST", pods}, {"POST", bindings}, {"POST", crds}, {"POST", things}, {"POST", frees},
	{"PUT", configMaps + "/a"}, {"PUT", things + "/a"}, {"PUT", frees + "/a"},
	{"PATCH", configMaps + "/a"}, {"PATCH", things + "/a"}, {"PATCH", frees + "/a"},
	{"DELETE", configMaps + "/a"}, {"DELETE", configMaps},
}

// FuzzBodies looks for a body that allocates more than mostAllocated. A body has a head, an item that is repeated until the body
// has the longest allowed size, and a tail. Each is sent with every verb, media type and patch type.
func FuzzBodies(f *testing.F) {
	types := []string{jsonType, yamlType, cborType, protobufType}
	patches := []string{jsonPatch, mergePatch, strategicPatch, applyPatch, "application/apply-patch+cbor"}
	bodies := worstBodies(64<<10, each)
	for to, target := range targets {
		formats := types
		if target.method == "PATCH" {
			formats = patches
		}
		for as, format := range formats {
			for i, q := range bodies {
				if q.method != target.method || !strings.HasPrefix(q.path, target.path+"?") || !long() && (format != q.contentType || i%4 != 0) {
					continue
				}
				// The bodies of the table are made like this, or nearly: the item is what their middle repeats.
				half := len(q.body) / 2
				f.Add(uint8(to), uint8(as), q.body[:min(200, half)], q.body[half:half+min(8, half)], q.body[len(q.body)-min(40, half):])
			}
		}
	}
	f.Add(uint8(0), uint8(0), `{"metadata":{"name":"x","ownerReferences":[`, `{},`, `{}]}}`)
	f.Add(uint8(1), uint8(0), `{"metadata":{"name":"x"},"spec":{"containers":[`, `{},`, `{}]}}`)
	f.Add(uint8(5), uint8(1), "apiVersion: e.example.com/v1\nkind: Free\nmetadata: {name: x}\nspec:\n", "- a:\n", "")
	f.Add(uint8(9), uint8(0), `[`, `{"op":"add","path":"/data/b","value":"c"},`, `{"op":"test","path":"/data/a","value":"b"}]`)
	f.Add(uint8(11), uint8(3), `{"apiVersion":"e.example.com/v1","kind":"Free","metadata":{"name":"a"},"spec":{"x":`, `{"a":`, `1}}`)
	r := newRig(f)
	f.Fuzz(func(t *testing.T, to, as uint8, head, item, tail string) {
		target := targets[int(to)%len(targets)]
		contentType := types[int(as)%len(types)]
		if target.method == "PATCH" {
			contentType = patches[int(as)%len(patches)]
		}
		if item == "" || len(head)+len(item)+len(tail) > bodySize/2 {
			return
		}
		body := head + strings.Repeat(item, (bodySize-len(head)-len(tail))/len(item)) + tail
		got := r.send(request{method: target.method, path: target.path + "?dryRun=All&fieldManager=m", contentType: contentType, body: body})
		if got.allocated > mostAllocated && !raceDetector {
			t.Errorf("%s %s %s: %d MiB allocated, want at most %d; answered %d %.200s", target.method, target.path, contentType, got.allocated>>20, mostAllocated>>20, got.code, got.head)
		}
		if got.code >= http.StatusInternalServerError {
			t.Errorf("%s %s %s: answered %d %.200s", target.method, target.path, contentType, got.code, got.head)
		}
	})
}
