package widget

import (
	"fmt"
	"math/rand/v2"
	"strconv"
)

// Groups is the number of values of the label "group": each selects one of Groups widgets.
const Groups = 100

// namespaces is the number of namespaces with widgets.
const namespaces = 10

// dataBytes is the length of the field data, which makes a stored widget about 1.7 KiB long.
const dataBytes = 900

// Name returns the name of widget i, from 0.
func Name(i int) string { return fmt.Sprintf("w-%06d", i) }

// Namespace returns the namespace of widget i.
func Namespace(i int) string { return "ns-" + strconv.Itoa(i%namespaces) }

// GroupOf returns the value of the label "group" of widget i. Each value occurs in every namespace, spread over the names.
func GroupOf(i int) string { return fmt.Sprintf("g-%02d", i/namespaces%Groups) }

// JSON returns widget i as a client creates it in a namespace, without the fields that a server adds. Its size has six digits, so
// that changes of it do not change the length. It is the same every time. Half of the text is repetitive and half is not, so that
// it can be compressed about as well as typical objects.
func JSON(namespace string, i int) []byte {
	b := make([]byte, 0, dataBytes+512)
	b = append(b, `{"apiVersion":"`+Group+`/`+Version+`","kind":"`+Kind+`",`...)
	b = appendMetadata(b, namespace, i, "")
	b = append(b, `},"spec":`...)
	return append(appendSpec(b, i), '}')
}

// Stored returns widget i as a server stores it, created by field manager "bench" at a revision.
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

// appendMetadata appends the metadata, with server after the namespace: the fields that the server adds.
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
