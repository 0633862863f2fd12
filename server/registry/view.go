package registry

import (
	"context"
	"fmt"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/storage"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// View serves the objects of a registry as a subresource with rules of the program. Reads return the object. Updates use a
// strategy of the View. A View implements Records and RecordUpdater, so it can be the Storage of a subresource. The Storage of a
// subresource with another kind, such as an Eviction, can call a View to make its changes. All methods may be called
// concurrently.
type View struct {
	registry *Registry
	name     string
	opts     ViewOptions
}

// ViewOptions are the options of a View. With the zero ViewOptions, an update can change everything that an update of the object
// can, and also the status. Admission reviews the update.
type ViewOptions struct {
	// Strategy has the rules of updates: PrepareForUpdate, which restores the fields that the subresource does not change, and
	// ValidateUpdate, WarnOnUpdate and ResetFields. The other fields are ignored; the kind's strategy has them.
	Strategy Erased
	// Admitted says that admission has reviewed the request before the View is called. That is so if a Creater or Updater that is
	// the Storage of a subresource calls the View. Such a Storage must have the View in a field, and not embed it. If the View
	// itself is the Storage, or is embedded in it, handlers use its methods for records, without a call of admission before.
	// Therefore such a Storage is refused if Admitted is set.
	Admitted bool
}

// View returns a view for the subresource of that name. It returns an error if the name is "", or if the strategy is for another
// Go type.
func (r *Registry) View(name string, o ViewOptions) (*View, error) {
	if name == "" {
		return nil, fmt.Errorf("registry of %s: a view needs the name of its subresource", r.kind.GVK)
	}
	if err := checkStrategy(r.kind, o.Strategy); err != nil {
		return nil, fmt.Errorf("registry of %s: view %q: %w", r.kind.GVK, name, err)
	}
	return &View{r, name, o}, nil
}

// Admitted reports whether admission must review a request before the View is called: see ViewOptions.
func (v *View) Admitted() bool { return v != nil && v.opts.Admitted }

// GetRecord implements Records.
func (v *View) GetRecord(call *Call, name string, at storage.Read) (storage.Record, error) {
	return v.registry.GetRecord(call, name, at)
}

// Decode implements Records.
func (v *View) Decode(rec storage.Record) (runtime.Object, error) { return v.registry.Decode(rec) }

// DecodeRecords implements ManyRecords.
func (v *View) DecodeRecords(ctx context.Context, records []storage.Record, gv schema.GroupVersion) ([]runtime.Object, error) {
	return v.registry.DecodeRecords(ctx, records, gv)
}

// ResetFields implements FieldResetter. It returns the ResetFields of the view's strategy.
func (v *View) ResetFields(k *runtime.Kind) [][]string {
	return resetPaths(k, v.opts.Strategy.resetFields)
}

// UpdateRecord implements RecordUpdater. It does not change the generation, and never creates an object.
func (v *View) UpdateRecord(call *Call, name string, update ObjectUpdate, opts *metav1.UpdateOptions) (storage.Record, bool, error) {
	r, s := v.registry, v.opts.Strategy
	return r.update(call, name, update, opts, endpoint{
		subresource: v.name,
		kind:        r.kind.GVK,
		settle:      func(obj, _ runtime.Object) runtime.Object { return obj },
		prepare:     s.prepareForUpdate,
		validate:    s.validateUpdate,
		warn:        s.warnOnUpdate,
		admitted:    v.opts.Admitted,
	})
}

// DeleteRecord deletes the object with the rules of its kind, for example for an eviction. See [Registry.DeleteRecord].
func (v *View) DeleteRecord(call *Call, name string, opts *metav1.DeleteOptions) (storage.Record, bool, error) {
	return v.registry.deleteRecord(call, name, opts, v.opts.Admitted)
}
