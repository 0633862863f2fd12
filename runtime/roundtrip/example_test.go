package roundtrip_test

import (
	"fmt"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/roundtrip"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

type (
	// Raft is version v1 of a kind.
	Raft = runtime.Resource[struct {
		Logs  int32  `json:"logs"`
		Color string `json:"color,omitempty"`
	}, struct{}]
	// RaftV2 is version v2, which has no color.
	RaftV2 = runtime.Resource[struct {
		Logs int32 `json:"logs"`
	}, struct{}]
)

// A program checks that an object is the same after a conversion to another version and back. A test calls Test instead, which
// makes random objects. Here v2 loses the color.
func ExampleCheck() {
	kind := schema.GroupKind{Group: "example.com", Kind: "Raft"}
	scheme := runtime.NewScheme()
	if err := runtime.Register[*Raft](scheme, kind.WithVersion("v1"), runtime.KindOptions[*Raft]{}); err != nil {
		fmt.Println(err)
		return
	}
	if err := runtime.Register[*RaftV2](scheme, kind.WithVersion("v2"), runtime.KindOptions[*RaftV2]{}); err != nil {
		fmt.Println(err)
		return
	}
	err := runtime.AddConversion(scheme,
		func(in *RaftV2, out *Raft) error { out.Spec.Logs = in.Spec.Logs; return nil },
		func(in *Raft, out *RaftV2) error { out.Spec.Logs = in.Spec.Logs; return nil })
	if err != nil {
		fmt.Println(err)
		return
	}

	raft := &Raft{}
	raft.Spec.Logs = 9
	fmt.Println(roundtrip.Check(scheme, raft, roundtrip.Options{}))
	raft.Spec.Color = "red"
	fmt.Println(roundtrip.Check(scheme, raft, roundtrip.Options{}) != nil)
	fmt.Println(roundtrip.Check(scheme, raft, roundtrip.Options{Tolerate: []roundtrip.Tolerance{{
		Kind: kind.WithVersion("v1"), Through: "v2", Path: "spec.color", Reason: "rafts of v2 are never painted",
	}}}))
	// Output:
	// <nil>
	// true
	// <nil>
}
