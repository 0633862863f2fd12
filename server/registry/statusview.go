package registry

import (
	"context"
	"fmt"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// StatusView serves the objects of a registry as the status subresource. Reads return the object, and updates change only the
// status. It implements Records and RecordUpdater. All methods may be called concurrently.
type StatusView struct {
	registry *Registry
}

// HasStatus reports whether the kind has a status that users do not write, so that Status returns no error.
func (r *Registry) HasStatus() bool { return r.shape.hasStatus() }

// Status returns the status subresource. It returns an error if the kind has no status.
func (r *Registry) Status() (*StatusView, error) {
	if !r.shape.hasStatus() {
		return nil, fmt.Errorf("registry of %s: the kind has no status", r.kind.GVK)
	}
	return &StatusView{r}, nil
}

// GetRecord implements Records.
func (v *StatusView) GetRecord(call *Call, name string, at storage.Read) (storage.Record, error) {
	return v.registry.GetRecord(call, name, at)
}

// Decode implements Records.
func (v *StatusView) Decode(rec storage.Record) (runtime.Object, error) {
	return v.registry.Decode(rec)
}

// DecodeRecords implements ManyRecords.
func (v *StatusView) DecodeRecords(ctx context.Context, records []storage.Record, gv schema.GroupVersion) ([]runtime.Object, error) {
	return v.registry.DecodeRecords(ctx, records, gv)
}

// ResetFields implements FieldResetter. It returns all fields except the status, and except the metadata if the strategy has
// StatusMetadata.
func (v *StatusView) ResetFields(k *runtime.Kind) [][]string {
	var reset [][]string
	if !v.registry.strategy.statusMetadata {
		reset = append(reset, []string{"metadata"})
	}
	for _, name := range shapeOf(k.Type, true).contentNames() {
		reset = append(reset, []string{name})
	}
	return reset
}

// UpdateRecord implements RecordUpdater. Of the result of update, it uses only the status and metadata.managedFields, the
// metadata that a strategy with StatusMetadata allows, and uid (see Call.Patch) and resourceVersion as preconditions. It does not
// change the generation, and never creates an object.
func (v *StatusView) UpdateRecord(call *Call, name string, update ObjectUpdate, opts *metav1.UpdateOptions) (storage.Record, bool, error) {
	r := v.registry
	return r.update(call, name, update, opts, endpoint{
		subresource: "status",
		kind:        r.kind.GVK,
		settle:      r.settleStatus,
		prepare:     r.strategy.prepareForStatusUpdate,
		validate:    r.strategy.validateStatusUpdate,
	})
}

// settleStatus returns the stored object with the new status and its managedFields.
func (r *Registry) settleStatus(obj, old runtime.Object) runtime.Object {
	out := old.DeepCopyObject()
	r.shape.takeStatus(out, obj)
	to, err := meta.Accessor(out)
	if err != nil {
		return out
	}
	if from, err := meta.Accessor(obj); err == nil {
		to.SetManagedFields(from.GetManagedFields())
		if r.strategy.statusMetadata { // what only the server writes is set back or refused later: see keepSystem
			to.SetGenerateName(from.GetGenerateName())
			to.SetUID(from.GetUID())
			to.SetDeletionTimestamp(from.GetDeletionTimestamp())
			to.SetDeletionGracePeriodSeconds(from.GetDeletionGracePeriodSeconds())
			to.SetLabels(from.GetLabels())
			to.SetAnnotations(from.GetAnnotations())
			to.SetFinalizers(from.GetFinalizers())
			to.SetOwnerReferences(from.GetOwnerReferences())
		}
	}
	return out
}
