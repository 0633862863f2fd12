package registry

import (
	"context"
	"fmt"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/storage"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// View is a registry's objects as a subresource of the program's own shows them: reads are those of the object, and updates
// go by a strategy of their own. It implements Records and RecordUpdater, and so can be the Storage of a subresource; a Storage
// that shows objects of another kind, such as an Eviction, makes its changes by one. All methods may be called concurrently.
type View struct {
	registry *Registry
	name     string
	opts     ViewOptions
}

// ViewOptions refines a View. The zero ViewOptions lets an update change everything that an update of the object may, the
// status included, and asks admission.
type ViewOptions struct {
	// Strategy has the rules of updates: PrepareForUpdate, which puts back what the subresource does not change, and
	// ValidateUpdate, WarnOnUpdate and ResetFields. Its other fields mean nothing: they are those of the kind.
	Strategy Erased
	// Admitted says that admission has judged the request before the View is called, as it has what is asked of a Creater or
	// an Updater that is the Storage of a subresource. Such a Storage has the View in a field: the View itself, and what embeds
	// it, is asked for records, which admission does not judge, and is refused as a Storage.
	Admitted bool
}

// View returns the subresource of that name. It refuses a strategy for another Go type.
func (r *Registry) View(name string, o ViewOptions) (*View, error) {
	if name == "" {
		return nil, fmt.Errorf("registry of %s: a view needs the name of its subresource", r.kind.GVK)
	}
	if err := checkStrategy(r.kind, o.Strategy); err != nil {
		return nil, fmt.Errorf("registry of %s: view %q: %w", r.kind.GVK, name, err)
	}
	return &View{r, name, o}, nil
}

// Admitted reports whether admission has to judge a request before the View is called: see ViewOptions.
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

// ResetFields implements FieldResetter with those of the strategy.
func (v *View) ResetFields(k *runtime.Kind) [][]string {
	return resetPaths(k, v.opts.Strategy.resetFields)
}

// UpdateRecord implements RecordUpdater. The generation stays, and nothing is ever created.
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

// DeleteRecord deletes the object by the rules of its kind, as an eviction does.
func (v *View) DeleteRecord(call *Call, name string, opts *metav1.DeleteOptions) (storage.Record, bool, error) {
	return v.registry.deleteRecord(call, name, opts, v.opts.Admitted)
}
