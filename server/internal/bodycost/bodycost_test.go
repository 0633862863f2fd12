package bodycost_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// above has the bodies that allocate more than mostAllocated, with a bound in megabytes. A number may only become lower.
var above = map[string]uint64{
	"pod affinity":         200, // selectors are copied several times
	"crd properties typed": 200, // the checks of a definition
	"crb subjects":         200, // the checks of a binding
}

// long reports whether a long run is requested, by the environment variable KEELSON_SOAK.
func long() bool { return os.Getenv("KEELSON_SOAK") != "" }

// each requests all bodies.
func each(string) bool { return true }

// One request of three megabytes allocates little, whatever its body is. If a body is refused because of the limits, the longest
// body of its form that is not refused, or nearly the longest, is measured, too. A long run measures all bodies, and comes nearer
// to the longest. The test is not parallel, since it counts all allocations of the process.
func TestBodiesCostLittle(t *testing.T) {
	if testing.Short() || raceDetector {
		t.Skip("takes some 20 seconds of computing, and means nothing with the race detector")
	}
	r := newRig(t)
	passed := map[string]bool{}
	left := func(name string) bool { return !passed[name] }
	next := func(size int) int { return size * 4 / 5 }
	if !long() {
		next = func(size int) int { return size / 3 }
		for i, q := range worstBodies(1<<10, each) {
			passed[q.name] = i%2 > 0 && above[q.name] == 0
		}
	}
	for size := bodySize; size > 4<<10; size = next(size) {
		for _, q := range worstBodies(size, left) {
			got := r.send(q)
			refused := beyondLimits(got)
			if passed[q.name] = !refused; !refused {
				t.Logf("%4d MiB %6d ms, %4d KiB: %s: %d, %d bytes: %.120s", got.allocated>>20, got.cpu.Milliseconds(), len(q.body)>>10, q.name, got.code, got.size, message(got))
			}
			if most := max(mostAllocated, above[q.name]<<20); got.allocated > most {
				t.Errorf("%s, %d KiB: %d MiB allocated, want at most %d", q.name, len(q.body)>>10, got.allocated>>20, most>>20)
			}
			if got.code >= http.StatusInternalServerError {
				t.Errorf("%s, %d KiB: answered %d %s", q.name, len(q.body)>>10, got.code, got.head)
			}
		}
	}
}

// beyondLimits reports whether a body was refused before it was decoded.
func beyondLimits(a answer) bool {
	return strings.Contains(string(a.head), "the values in the body take too much memory") || strings.Contains(string(a.head), ": must have at most ") || strings.Contains(string(a.head), `too large: limit is`)
}

// message returns the message of a Status.
func message(a answer) string {
	_, rest, _ := strings.Cut(string(a.head), `"message":`)
	return rest
}

// ordinaryBodies returns large bodies that are valid.
func ordinaryBodies() []request {
	const objectSize = 1 << 20
	text := strings.Repeat("some line of a configuration, with: [brackets] - and {braces}\n", objectSize/80)
	post := func(name, path, contentType, body string) request {
		return request{name, "POST", path + "?dryRun=All", contentType, body}
	}
	all := []request{
		post("ConfigMap", configMaps, jsonType, `{"metadata":{"name":"big"},"data":{"a":`+quoted(text)+`}}`),
		post("ConfigMap with a literal", configMaps, yamlType, "metadata:\n  name: big\ndata:\n  a: |\n    "+strings.ReplaceAll(text, "\n", "\n    ")),
		post("ConfigMap with JSON in a literal", configMaps, yamlType, "metadata:\n  name: big\ndata:\n  a: |\n    "+strings.Repeat(`{"a":1,"b":[1,2,3]},`, objectSize/20)),
		post("ConfigMap of many keys", configMaps, jsonType, `{"metadata":{"name":"big"},"data":{`+list(9000, `"key-%d":"value"`)+`}}`),
		post("Secret", secrets, jsonType, `{"metadata":{"name":"big"},"data":{"a":"`+strings.Repeat("AAAA", objectSize/4-100)+`"}}`),
		post("Endpoints", endpoints, jsonType, `{"metadata":{"name":"big"},"subsets":[{"ports":[{"port":80}],"addresses":[`+
			list(10000, `{"ip":"10.0.0.1","nodeName":"node-%[1]d","targetRef":{"kind":"Pod","name":"p-%[1]d","namespace":"d","uid":"0-%[1]d"}}`)+`]}]}`),
		post("Endpoints in YAML", endpoints, yamlType, "metadata:\n  name: big\nsubsets:\n- ports:\n  - port: 80\n  addresses:\n"+
			strings.ReplaceAll(list(10000, "  - ip: 10.0.0.1\n    nodeName: node-%d\n"), ",", "")),
		post("owners", configMaps, jsonType, `{"metadata":{"name":"big","ownerReferences":[`+list(5000, `{"apiVersion":"v1","kind":"Pod","name":"p-%[1]d","uid":"0-%[1]d"}`)+`]}}`),
		post("custom resource", frees, jsonType, `{"apiVersion":"e.example.com/v1","kind":"Free","metadata":{"name":"big"},"spec":{"items":[`+
			list(9000, `{"name":"item-%d","number":1,"enabled":true,"labels":{"app":"x","tier":"y"}}`)+`]}}`),
		post("definition", crds, jsonType, bigDefinition()),
	}
	endpointsObject := corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: "big"}, Subsets: []corev1.EndpointSubset{{ //nolint:staticcheck // deprecated, and large
		Ports: []corev1.EndpointPort{{Port: 80}},
	}}}
	for i := range 10000 {
		endpointsObject.Subsets[0].Addresses = append(endpointsObject.Subsets[0].Addresses, corev1.EndpointAddress{IP: "10.0.0.1", Hostname: fmt.Sprint("p-", i)})
	}
	if m, err := endpointsObject.Marshal(); err == nil {
		all = append(all, post("Endpoints in protobuf", endpoints, protobufType, enveloped("v1", "Endpoints", m)))
	}
	return all
}

func quoted(text string) string { return `"` + strings.ReplaceAll(text, "\n", `\n`) + `"` }

// list returns an array of n items.
func list(n int, format string) string {
	var b bytes.Buffer
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// bigDefinition returns a definition with a schema of a megabyte, whose depth and descriptions are like those of generated
// schemas.
func bigDefinition() string {
	leaf := `{"type":"string","description":"` + strings.Repeat("What the field means. ", 10) + `"}`
	object := func(of string, n int) string {
		return `{"type":"object","properties":{` + strings.ReplaceAll(list(n, `"field%d":@`), "@", of) + `}}`
	}
	list := `{"type":"array","items":` + object(`{"type":"array","items":`+object(leaf, 12)+`}`, 12) + `}`
	return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"bigs.e.example.com"},"spec":{"group":"e.example.com",
		"scope":"Namespaced","names":{"plural":"bigs","kind":"Big"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":
		{"type":"object","properties":{"spec":` + object(list, 25) + `}}}}]}}`
}

func TestLargeOrdinaryBodiesPass(t *testing.T) {
	r := newRig(t)
	for _, q := range ordinaryBodies() {
		got := r.send(q)
		t.Logf("%4d MiB %6d ms, %7d bytes: %s", got.allocated>>20, got.cpu.Milliseconds(), len(q.body), q.name)
		if got.code != http.StatusCreated {
			t.Errorf("%s: answered %d %.300s", q.name, got.code, got.head)
		}
	}
}

// An answer to a client names the limit, and the part of the body that is above it.
func TestBodiesBeyondTheLimits(t *testing.T) {
	r := newRig(t)
	owners := `{"metadata":{"name":"a","ownerReferences":[` + list(10001, `{"apiVersion":"v1","kind":"Pod","name":"p","uid":"%d"}`) + `]}}`
	for _, row := range []struct {
		request
		code int
		want string
	}{
		{request{"owners", "POST", configMaps, jsonType, owners}, 422, `metadata.ownerReferences: Too many: 10001: must have at most 10000 items"`},
		{request{"owners", "PATCH", configMaps + "/a", mergePatch, owners}, 422, `metadata.ownerReferences: Too many: 10001: must have at most 10000 items"`},
		{request{"labels", "PUT", configMaps + "/a", yamlType, `{"metadata":{"name":"a","labels":{` + list(10001, `"l%d":""`) + `}}}`}, 422, `metadata.labels: Too many: 10001: must have at most 10000 items"`},
		{request{"finalizers of a custom resource", "PUT", frees + "/a", jsonType, `{"apiVersion":"e.example.com/v1","kind":"Free","metadata":{"name":"a","finalizers":[` + list(10001, `"a/b%d"`) + `]}}`},
			422, `metadata.finalizers: Too many: 10001: must have at most 10000 items"`},
		{request{"values", "POST", pods, jsonType, fillTo(bodySize, `{"metadata":{"name":"a"},"spec":{"containers":[`, `{},`, `]}}`)},
			413, `"message":"Request entity too large: the values in the body take too much memory: limit is 8388608 bytes","reason":"RequestEntityTooLarge"`},
	} {
		if got := r.send(row.request); got.code != row.code || !strings.Contains(string(got.head), row.want) {
			t.Errorf("%s %s: answered %d %s\nwant %d %s", row.method, row.name, got.code, got.head, row.code, row.want)
		}
	}
}

// BenchmarkBodies measures the time of the worst bodies.
func BenchmarkBodies(b *testing.B) {
	r := newRig(b)
	for _, q := range append(worstBodies(bodySize, each), ordinaryBodies()...) {
		b.Run(q.name, func(b *testing.B) {
			var cpu time.Duration
			for b.Loop() {
				cpu += r.send(q).cpu
			}
			b.ReportMetric(float64(cpu.Milliseconds())/float64(b.N), "cpu-ms/op")
		})
	}
}
