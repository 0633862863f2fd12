package strategytest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/registry/strategytest"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

type (
	// Harbour is cluster-scoped, and has two versions.
	Harbour = runtime.Resource[struct {
		Depth int32 `json:"depth"`
	}, struct{}]
	HarbourV1beta1 = runtime.Resource[struct {
		Fathoms int32 `json:"fathoms"`
	}, struct{}]
	// Ferry must fit its harbour.
	Ferry = runtime.Resource[struct {
		To      string `json:"to"`
		Draught int32  `json:"draught,omitempty"`
	}, struct{}]
	// Tide is computed from the harbour of the same name.
	Tide = runtime.Resource[struct {
		Height int32 `json:"height"`
	}, struct{}]
)

type tides struct{}

func (tides) Get(call *registry.Call, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	h, err := runtime.Read[*Harbour](call).Get(call, "", name, runtime.Freshness{})
	if err != nil {
		return nil, err
	}
	t := &Tide{ObjectMeta: metav1.ObjectMeta{Name: name}}
	t.Spec.Height = h.Spec.Depth / 10
	return t, nil
}

// fits is a rule of ferries that reads harbours and tides.
func fits(call *registry.Call, f *Ferry) field.ErrorList {
	to := field.NewPath("spec", "to")
	h, err := runtime.Read[*Harbour](call).Get(call, "", f.Spec.To, runtime.Freshness{})
	if apierrors.IsNotFound(err) {
		return field.ErrorList{field.NotFound(to, f.Spec.To)}
	}
	if err != nil {
		return field.ErrorList{field.InternalError(to, err)}
	}
	tide, err := runtime.Read[*Tide](call).Get(call, "", f.Spec.To, runtime.Freshness{})
	if err != nil {
		return field.ErrorList{field.InternalError(to, err)}
	}
	if deep := h.Spec.Depth + tide.Spec.Height; f.Spec.Draught > deep {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "draught"), f.Spec.Draught, fmt.Sprintf("must not be above %d", deep))}
	}
	return nil
}

// oneFerry is a plug-in that allows one ferry in each harbour.
func oneFerry(ctx context.Context, r *admission.Request) error {
	f, ok := r.Object().(*Ferry)
	if !ok || r.Operation != admission.Create {
		return nil
	}
	all, err := runtime.Read[*Ferry](r).List(ctx, runtime.Query{Namespace: r.Namespace})
	if err != nil {
		return err
	}
	for _, other := range all.Items {
		if other.Spec.To == f.Spec.To {
			return fmt.Errorf("%s goes there", other.Name)
		}
	}
	return nil
}

func harbours() server.Options {
	return server.Options{
		Groups: []server.Group{{
			Name: "example.com",
			Versions: []server.Version{
				{Name: "v1", Resources: []server.Resource{
					server.Kind("Harbour", server.KindOptions[*Harbour]{ClusterScoped: true}),
					server.Kind("Ferry", server.KindOptions[*Ferry]{Strategy: registry.Strategy[*Ferry]{Validate: fits}}),
					server.Kind("Tide", server.KindOptions[*Tide]{ClusterScoped: true, Storage: tides{}}),
				}},
				{Name: "v1beta1", Resources: []server.Resource{server.Kind("Harbour", server.KindOptions[*HarbourV1beta1]{ClusterScoped: true, Stored: true})}},
			},
			Conversions: []server.Conversion{server.Convert(
				func(in *HarbourV1beta1, out *Harbour) error { out.Spec.Depth = in.Spec.Fathoms * 2; return nil },
				func(in *Harbour, out *HarbourV1beta1) error { out.Spec.Fathoms = in.Spec.Depth / 2; return nil },
			)},
		}},
		Policy: server.Policy{Admission: admission.Chain{{Validator: admission.ValidatorFunc(oneFerry)}}},
	}
}

// A strategy, a plug-in and a Storage of the program read the other objects that the case has.
func TestStrategiesReadOtherObjects(t *testing.T) {
	t.Parallel()
	harbour := func(name string) runtime.Object {
		h := &Harbour{ObjectMeta: metav1.ObjectMeta{Name: name}}
		h.Spec.Depth = 20
		return h
	}
	old := &HarbourV1beta1{ObjectMeta: metav1.ObjectMeta{Name: "kiel"}}
	old.Spec.Fathoms = 5
	ferry := func(to string, draught int32, name ...string) *Ferry {
		f := &Ferry{}
		if f.Spec.To, f.Spec.Draught = to, draught; len(name) > 0 {
			f.Name = name[0]
		}
		return f
	}
	elsewhere := ferry("kiel", 1, "b")
	elsewhere.Namespace = "other"
	strategytest.Run(t, harbours(), []strategytest.Case{
		{Name: "none", Create: ferry("kiel", 3), Errors: []string{`spec.to: Not found: "kiel"`}},
		{Name: "another", Create: ferry("kiel", 3), Others: []runtime.Object{harbour("husum")}, Errors: []string{`spec.to: Not found: "kiel"`}},
		{Name: "it fits with the tide", Create: ferry("kiel", 22), Others: []runtime.Object{harbour("kiel")}},
		{Name: "it does not fit", Create: ferry("kiel", 23), Others: []runtime.Object{harbour("kiel")}, Errors: []string{"spec.draught: Invalid value: 23: must not be above 22"}},
		{Name: "in another version", Create: ferry("kiel", 12), Others: []runtime.Object{harbour("husum"), old}, Errors: []string{"spec.draught: Invalid value: 12: must not be above 11"}},
		{Name: "an update", Old: ferry("kiel", 3), Update: ferry("kiel", 30), Others: []runtime.Object{harbour("kiel")}, Errors: []string{"spec.draught: Invalid value: 30: must not be above 22"}},
		{Name: "a plug-in", Create: ferry("kiel", 3), Others: []runtime.Object{harbour("kiel"), ferry("kiel", 1, "b")}, Errors: []string{`Forbidden: ferries.example.com "example" is forbidden: b goes there`}},
		{Name: "a plug-in in a namespace", Create: ferry("kiel", 3), Others: []runtime.Object{harbour("kiel"), elsewhere}},
	})
}
