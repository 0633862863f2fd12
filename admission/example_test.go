package admission_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Boat is for the example.
type Boat = runtime.Resource[struct {
	Masts int32 `json:"masts"`
}, struct{}]

// One plug-in sets a label on new boats, and another refuses boats with too many masts. A program gives such a chain to its
// server as server.Policy.Admission. Here the chain is called as the server calls it.
func Example() {
	boats := []schema.GroupResource{{Group: "example.com", Resource: "boats"}}
	chain := admission.Chain{{
		Name:    "example.com/owner",
		Handles: admission.Handles{Operations: []admission.Operation{admission.Create}, Resources: boats},
		Mutator: admission.MutatorFunc(func(_ context.Context, r *admission.Request) error {
			r.Object().(*Boat).Labels = map[string]string{"owner": r.User.Name}
			return nil
		}),
	}, {
		Name:    "example.com/masts",
		Handles: admission.Handles{Operations: []admission.Operation{admission.Create, admission.Update}, Resources: boats},
		Validator: admission.ValidatorFunc(func(_ context.Context, r *admission.Request) error {
			if r.Object().(*Boat).Spec.Masts > 3 {
				return errors.New("a boat has at most three masts")
			}
			return nil
		}),
	}}

	ctx := context.Background()
	for _, masts := range []int32{2, 5} {
		boat := &Boat{}
		boat.Spec.Masts = masts
		r := &admission.Request{
			Operation: admission.Create, User: &authn.User{Name: "anna"},
			Resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "boats"},
		}
		r.SetObject(boat)
		if err := errors.Join(chain.Mutate(ctx, r), chain.Validate(ctx, r)); err != nil {
			fmt.Println("refused:", err)
			continue
		}
		fmt.Println("accepted, of", boat.Labels["owner"])
	}
	// Output:
	// accepted, of anna
	// refused: a boat has at most three masts
}

// A Live is a chain whose plug-ins change while it is in use. It calls plug-ins that kube-apiserver has too in the order of
// kube-apiserver, and other plug-ins between those.
func ExampleLive() {
	accept := admission.ValidatorFunc(func(context.Context, *admission.Request) error { return nil })
	var live admission.Live
	for _, name := range []string{"ResourceQuota", "example.com/masts", "NamespaceLifecycle"} {
		if err := live.Set(admission.Plugin{Name: name, Validator: accept}); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(live.Names())
	fmt.Println(live.Remove("example.com/masts"), live.Names())
	// Output:
	// [NamespaceLifecycle example.com/masts ResourceQuota]
	// true [NamespaceLifecycle ResourceQuota]
}
