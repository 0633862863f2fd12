package protobuf_test

import (
	"reflect"
	"testing"

	"github.com/keelson-dev/keelson/runtime/internal/protobuf"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// For any message, tables decode what generated methods decode, and encode the result so that decoding it again gives the same
// value.
func FuzzUnmarshal(f *testing.F) {
	all, c := mirrors{}, &protobuf.Compiler{}
	likes := []reflect.Type{reflect.TypeFor[corev1.Pod](), reflect.TypeFor[corev1.ConfigMap](), reflect.TypeFor[networkingv1.Ingress](), reflect.TypeFor[authenticationv1.TokenReview](), reflect.TypeFor[admissionv1.AdmissionReview]()}
	types := []reflect.Type{reflect.TypeFor[texts](), reflect.TypeFor[numbers](), reflect.TypeFor[promoted]()}
	for i, t := range likes {
		types = append(types, all.of(t))
		for seed := range int64(3) {
			obj := reflect.New(t).Interface()
			filler(seed).Fill(obj)
			f.Add(marshal(f, obj.(kubernetesMessage)), uint8(i+3))
		}
	}
	f.Add(joined(text(1, "a"), counted(6, text(4, "b")), counted(8, text(1, "x"), counted(2, text(1, "y"))), counted(9, counted(2, text(1, "v"))), counted(14, counted(1, text(1, "z"), number(2, 1)))), uint8(0))
	f.Add(joined(number(1, 1), number(16, 300), counted(16, []byte{1, 2}), number(536870911, 1)), uint8(1))
	f.Fuzz(func(t *testing.T, message []byte, which uint8) {
		at := int(which) % len(types)
		m, err := c.Of(types[at])
		must(t, err)
		if like := at - 3; like >= 0 {
			sameReading(t, likes[like], m, types[at], message)
		}
		one, other := reflect.New(types[at]).Interface(), reflect.New(types[at]).Interface()
		if m.Unmarshal(message, one) != nil {
			return
		}
		written, err := m.Append(nil, one)
		must(t, err)
		if size, err := m.Size(one); err != nil || size != len(written) {
			t.Errorf("%d bytes, the size was %d, %v", len(written), size, err)
		}
		must(t, m.Unmarshal(written, other))
		again, err := m.Append(nil, other)
		must(t, err)
		if string(again) != string(written) {
			t.Errorf("%x is written as\n%x and then as\n%x", message, written, again)
		}
	})
}
