package widget

import (
	"fmt"
	"math/rand/v2"
	"strconv"
)

// Groups is how many values the label "group" has: each selects one widget in so many.
const Groups = 100

// namespaces is how many namespaces the widgets are in.
const namespaces = 10

// dataBytes makes a stored widget about 1.7 KiB long.
const dataBytes = 900

// Name is the name of widget i, from 0.
func Name(i int) string { return fmt.Sprintf("w-%06d", i) }

// Namespace is where widget i lives.
func Namespace(i int) string { return "ns-" + strconv.Itoa(i%namespaces) }

// GroupOf is the value of the label "group" of widget i. Each is in every namespace, and all over the names.
func GroupOf(i int) string { return fmt.Sprintf("g-%02d", i/namespaces%Groups) }

// JSON is widget i as a client creates it, in a namespace: without what a server adds. Its size is six digits, for a
// change that changes the length of nothing. It is the same every time, half text that repeats and half text that
// does not, so that it can be compressed about as well as objects elsewhere.
func JSON(namespace string, i int) []byte {
	b := make([]byte, 0, dataBytes+512)
	b = append(b, `{"apiVersion":"`+Group+`/`+Version+`","kind":"`+Kind+`",`...)
	b = appendMetadata(b, namespace, i, "")
	b = append(b, `},"spec":`...)
	return append(appendSpec(b, i), '}')
}

// Stored is widget i as a server has it, created through it by field manager "bench" at a revision.
func Stored(namespace string, i int, revision int64) []byte {
	const created = "2026-01-02T03:04:05Z"
	b := make([]byte, 0, dataBytes+1024)
	b = append(b, `{"kind":"`+Kind+`","apiVersion":"`+Group+`/`+Version+`",`...)
	server := fmt.Sprintf(`"uid":"00000000-0000-4000-8000-%012d","resourceVersion":"%d","generation":1,"creationTimestamp":"%s",`, i, revision, created)
	b = appendMetadata(b, namespace, i, server)
	b = append(b, `,"managedFields":[{"manager":"bench","operation":"Update","apiVersion":"`+Group+`/`+Version+`","time":"`+created+`",`+
		`"fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:example.com/owner":{}},`+
		`"f:labels":{".":{},"f:app":{},"f:group":{},"f:tier":{}}},"f:spec":{"f:color":{},"f:data":{},"f:replicas":{},"f:size":{}}}}]},"spec":`...)
	b = appendSpec(b, i)
	return append(b, `,"status":{}}`...)
}

// appendMetadata begins the metadata, with what the server adds after the namespace.
func appendMetadata(b []byte, namespace string, i int, server string) []byte {
	tiers := [...]string{"frontend", "backend", "storage"}
	return fmt.Appendf(b, `"metadata":{"name":"%s","namespace":"%s",%s`+
		`"labels":{"app":"bench","group":"%s","tier":"%s"},"annotations":{"example.com/owner":"team-%d@example.com"}`,
		Name(i), namespace, server, GroupOf(i), tiers[i%len(tiers)], i%17)
}

func appendSpec(b []byte, i int) []byte {
	colors := [...]string{"red", "green", "blue", "black"}
	words := [...]string{
		"axle", "beam", "bolt", "cable", "clamp", "cover", "drive", "flange", "gasket", "gear", "hinge", "joint", "lever",
		"motor", "panel", "pulley", "rotor", "sensor", "shaft", "spring", "switch", "valve", "washer", "wheel",
	}
	r := rand.New(rand.NewPCG(uint64(i), 1))
	b = fmt.Appendf(b, `{"size":%d,"color":"%s","data":"`, 100_000+i*7919%900_000, colors[i%len(colors)])
	for end := len(b) + dataBytes; len(b) < end; {
		b = append(append(b, words[r.IntN(len(words))]...), '-')
		b = append(strconv.AppendUint(b, uint64(r.Uint32()), 36), ' ')
	}
	return fmt.Appendf(b, `","replicas":%d}`, 1+i%5)
}
