package conversion_test

import (
	"fmt"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/conversion"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

type (
	// Raft is version v2 of a kind, the hub.
	Raft = runtime.Resource[struct {
		Logs  int32  `json:"logs"`
		Color string `json:"color,omitempty"`
	}, struct{}]
	// RaftV1 is version v1, which has no color.
	RaftV1 = runtime.Resource[struct {
		Logs int32 `json:"logs"`
	}, struct{}]
)

func toV2(in *RaftV1, out *Raft) error   { out.Spec.Logs = in.Spec.Logs; return nil }
func fromV2(in *Raft, out *RaftV1) error { out.Spec.Logs = in.Spec.Logs; return nil }

// A client changes a raft in version v1, which has no color. The raft keeps its color.
func ExampleKeep() {
	kind := schema.GroupKind{Group: "example.com", Kind: "Raft"}
	scheme := runtime.NewScheme()
	if err := runtime.Register[*Raft](scheme, kind.WithVersion("v2"), runtime.KindOptions[*Raft]{}); err != nil {
		fmt.Println(err)
		return
	}
	if err := runtime.Register[*RaftV1](scheme, kind.WithVersion("v1"), runtime.KindOptions[*RaftV1]{}); err != nil {
		fmt.Println(err)
		return
	}
	toHub, fromHub := conversion.Keep(toV2, fromV2)
	if err := runtime.AddConversion(scheme, toHub, fromHub); err != nil {
		fmt.Println(err)
		return
	}
	raft := &Raft{}
	raft.Spec.Logs, raft.Spec.Color = 9, "red"
	obj, err := scheme.ToVersion(raft, schema.GroupVersion{Group: "example.com", Version: "v1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	v1 := obj.(*RaftV1)
	fmt.Println(v1.Annotations[conversion.Annotation])
	v1.Spec.Logs = 12
	obj, err = scheme.ToVersion(v1, schema.GroupVersion{Group: "example.com", Version: "v2"})
	if err != nil {
		fmt.Println(err)
		return
	}
	raft = obj.(*Raft)
	fmt.Println(raft.Spec.Logs, raft.Spec.Color, len(raft.Annotations))
	// Output:
	// {"fields":{"members":{"spec":{"members":{"color":{"value":"red"}}}}}}
	// 12 red 0
}
