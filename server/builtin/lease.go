package builtin

import (
	"strings"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Lease returns the kind Lease for v1 of the group coordination.k8s.io, as kube-apiserver serves it: leader election and the
// heartbeats of nodes work with it. A PUT creates a lease that does not exist. A PUT to an existing lease must have its
// resourceVersion.
//
// See https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/lease-v1/.
func Lease() server.Resource {
	return server.Kind("Lease", server.KindOptions[*coordinationv1.Lease]{
		StoragePath: "leases", // the storage path of kube-apiserver
		Strategy: registry.Strategy[*coordinationv1.Lease]{
			PrepareForCreate: func(_ *registry.Call, l *coordinationv1.Lease) {
				withdrawCoordination(&l.Spec, coordinationv1.LeaseSpec{})
			},
			PrepareForUpdate: func(_ *registry.Call, l, old *coordinationv1.Lease) {
				withdrawCoordination(&l.Spec, old.Spec)
			},
			Validate: func(_ *registry.Call, l *coordinationv1.Lease) field.ErrorList {
				return validateLease(&l.Spec, field.NewPath("spec"))
			},
			NoGeneration:           true,
			PlainFinalizers:        true,
			RequireResourceVersion: true,
			CreateOnUpdate:         true,
		},
		Columns: []server.Column[*coordinationv1.Lease]{
			{Name: "Holder", Description: coordinationv1.LeaseSpec{}.SwaggerDoc()["holderIdentity"], Value: func(l *coordinationv1.Lease) any {
				if l.Spec.HolderIdentity == nil {
					return ""
				}
				return *l.Spec.HolderIdentity
			}},
			ageColumn[*coordinationv1.Lease](),
		},
	})
}

// withdrawCoordination removes the fields of coordinated leader election (KEP-4355) from a spec, unless they are stored already.
// kube-apiserver does the same unless the feature is enabled. No controller here would act on the fields.
func withdrawCoordination(spec *coordinationv1.LeaseSpec, old coordinationv1.LeaseSpec) {
	if old.Strategy == nil {
		spec.Strategy = nil
	}
	if old.PreferredHolder == nil {
		spec.PreferredHolder = nil
	}
}

func validateLease(spec *coordinationv1.LeaseSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if d := spec.LeaseDurationSeconds; d != nil && *d <= 0 {
		errs = append(errs, field.Invalid(at.Child("leaseDurationSeconds"), *d, "must be greater than 0"))
	}
	if n := spec.LeaseTransitions; n != nil && *n < 0 {
		errs = append(errs, field.Invalid(at.Child("leaseTransitions"), *n, "must be greater than or equal to 0"))
	}
	strategy := coordinationv1.CoordinatedLeaseStrategy("")
	if spec.Strategy != nil {
		strategy = *spec.Strategy
		errs = append(errs, validateLeaseStrategy(strategy, at.Child("strategy", "strategy"))...) // sic: the path of kube-apiserver
	}
	if holder := spec.PreferredHolder; holder != nil && *holder != "" && strategy == "" {
		errs = append(errs, field.Forbidden(at.Child("preferredHolder"), "may only be specified if `strategy` is defined"))
	}
	return errs
}

// validateLeaseStrategy accepts one name of Kubernetes; others must have a domain before a slash.
func validateLeaseStrategy(strategy coordinationv1.CoordinatedLeaseStrategy, at *field.Path) field.ErrorList {
	if !strings.Contains(string(strategy), "/") {
		if strategy == coordinationv1.OldestEmulationVersion {
			return nil
		}
		return field.ErrorList{field.NotSupported(at, strategy, []coordinationv1.CoordinatedLeaseStrategy{coordinationv1.OldestEmulationVersion})}
	}
	var errs field.ErrorList
	for _, why := range validation.IsQualifiedName(string(strategy)) {
		errs = append(errs, field.Invalid(at, strategy, why))
	}
	return errs
}

// ageColumn returns the column Age as it is in kube-apiserver's tables of its own kinds: a text.
func ageColumn[P interface {
	runtime.Object
	metav1.Object
}]() server.Column[P] {
	return server.Column[P]{
		Name: "Age", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"],
		Value: func(obj P) any { return ago(obj.GetCreationTimestamp().Time) },
	}
}
