package strategytest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Boat has a field for each rule that a strategy can have.
type (
	Boat     = runtime.Resource[BoatSpec, BoatStatus]
	BoatSpec struct {
		Length   int32             `json:"length" minimum:"1" maximum:"100"`
		Rig      string            `json:"rig,omitempty" enum:"sloop,ketch,yawl" default:"sloop"`
		Port     string            `json:"port,omitempty" immutable:"true"`
		Sails    []Sail            `json:"sails,omitempty"`
		Notes    map[string]string `json:"notes,omitempty"`
		Berths   int32             `json:"berths,omitempty"`
		Owner    string            `json:"owner,omitempty"` // who created it
		Launched string            `json:"launched,omitempty"`
	}
	Sail struct {
		Name string `json:"name"`
		Area int32  `json:"area,omitempty"`
	}
	BoatStatus struct {
		Phase  string `json:"phase,omitempty"`
		Berths int32  `json:"berths,omitempty"`
	}
)

// BoatV1beta1 has the length in the field size, as a text.
type (
	BoatV1beta1     = runtime.Resource[BoatSpecV1beta1, BoatStatus]
	BoatSpecV1beta1 struct {
		Size string `json:"size" pattern:"^[0-9]+m$"`
		Rig  string `json:"rig,omitempty" enum:"sloop,ketch,yawl" default:"sloop"`
	}
)

// Buoy is a cluster-scoped kind without a status and a generation.
type (
	Buoy     = runtime.Resource[BuoySpec, struct{}]
	BuoySpec struct {
		Color string `json:"color"`
	}
)

// boats returns the rules of a Boat.
func boats() registry.Strategy[*Boat] {
	return registry.Strategy[*Boat]{
		PrepareForCreate: func(ctx *registry.Call, b *Boat) {
			b.Spec.Launched = fmt.Sprint(rand.Int()) // a value that a test cannot know
			b.Spec.Owner = ctx.User.Name
		},
		PrepareForUpdate: func(_ *registry.Call, b, old *Boat) { b.Spec.Owner = old.Spec.Owner },
		PrepareForStatusUpdate: func(_ *registry.Call, b, _ *Boat) {
			b.Status.Phase = strings.ToLower(b.Status.Phase)
		},
		Validate: func(_ *registry.Call, b *Boat) field.ErrorList {
			var errs field.ErrorList
			for i, s := range b.Spec.Sails {
				at := field.NewPath("spec", "sails").Index(i)
				if s.Name == "" {
					errs = append(errs, field.Required(at.Child("name"), ""))
				}
				if s.Area > 10*b.Spec.Length {
					errs = append(errs, field.Invalid(at.Child("area"), s.Area, "too much for the boat: it would capsize"))
				}
				if s.Area > 500 {
					errs = append(errs, field.Forbidden(at.Child("area"), "no mast holds that"))
				}
			}
			return errs
		},
		ValidateStatusUpdate: func(_ *registry.Call, b, old *Boat) field.ErrorList {
			if old.Status.Phase == "sunk" && b.Status.Phase != "sunk" {
				return field.ErrorList{field.Forbidden(field.NewPath("status", "phase"), "what has sunk stays down")}
			}
			return nil
		},
		WarnOnCreate: func(_ *registry.Call, b *Boat) []string {
			if len(b.Spec.Sails) == 0 {
				return []string{"spec.sails: the boat has none"}
			}
			return nil
		},
		Canonicalize: func(b *Boat) {
			slices.SortFunc(b.Spec.Sails, func(a, b Sail) int { return strings.Compare(a.Name, b.Name) })
		},
		ValidateName: func(name string, _ bool) []string {
			if strings.HasPrefix(name, "ghost") {
				return []string{"brings bad luck"}
			}
			return nil
		},
		GracefulDelete: func(_ *registry.Call, b *Boat, o *metav1.DeleteOptions) bool {
			if b.Status.Phase != "sailing" {
				return false
			}
			if o.GracePeriodSeconds == nil {
				o.GracePeriodSeconds = new(int64)
				*o.GracePeriodSeconds = 30
			}
			return true
		},
		Ratcheting: true,
	}
}

// options are the options of a program that serves boats and buoys.
func options() server.Options {
	return server.Options{
		Groups: []server.Group{{
			Name: "example.com",
			Versions: []server.Version{
				{Name: "v1", Resources: []server.Resource{
					server.Kind("Boat", server.KindOptions[*Boat]{
						Strategy: boats(),
						Scale:    &registry.Scale{SpecReplicas: ".spec.berths", StatusReplicas: ".status.berths"},
					}),
					server.Kind("Buoy", server.KindOptions[*Buoy]{
						Plural: "buoys", ClusterScoped: true,
						Strategy: registry.Strategy[*Buoy]{NoGeneration: true, RequireResourceVersion: true, CreateOnUpdate: true},
					}),
				}},
				{Name: "v1beta1", Resources: []server.Resource{
					server.Kind("Boat", server.KindOptions[*BoatV1beta1]{Stored: true}),
				}},
			},
			Conversions: []server.Conversion{server.Convert(toV1, fromV1)},
		}},
		Policy: server.Policy{Admission: admission.Chain{{Validator: admission.ValidatorFunc(onlyCaptains)}}},
	}
}

// onlyCaptains refuses deletions by the user "sailor".
func onlyCaptains(_ context.Context, r *admission.Request) error {
	if r.Operation == admission.Delete && r.User.Name == "sailor" {
		return fmt.Errorf("a sailor deletes no %s", strings.ToLower(r.Kind.Kind))
	}
	return nil
}

// restAnnotation is the annotation with the spec of a Boat in v1beta1, which has no fields for most of it.
const restAnnotation = "example.com/rest"

func toV1(in *BoatV1beta1, out *Boat) error {
	if rest, ok := in.Annotations[restAnnotation]; ok {
		if err := json.Unmarshal([]byte(rest), &out.Spec); err != nil {
			return err
		}
		if delete(out.Annotations, restAnnotation); len(out.Annotations) == 0 {
			out.Annotations = nil
		}
	}
	length, err := strconv.ParseInt(strings.TrimSuffix(in.Spec.Size, "m"), 10, 32)
	if err != nil {
		return fmt.Errorf("spec.size: %q is no length", in.Spec.Size)
	}
	out.Spec.Length, out.Spec.Rig, out.Status = int32(length), in.Spec.Rig, in.Status
	return nil
}

func fromV1(in *Boat, out *BoatV1beta1) error {
	rest, err := json.Marshal(in.Spec)
	metav1.SetMetaDataAnnotation(&out.ObjectMeta, restAnnotation, string(rest))
	out.Spec = BoatSpecV1beta1{Size: fmt.Sprintf("%dm", in.Spec.Length), Rig: in.Spec.Rig}
	out.Status = in.Status
	return err
}
