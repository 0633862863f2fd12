// Package stored reads and writes the stored definitions of a server as the user system:apiserver. [Definitions.Get] and
// [Definitions.WriteStatus] are for background work: [CallTimeout] bounds them, and they return a panic of the program's plug-ins
// and storages as an error.
package stored

import (
	"context"
	"fmt"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/patch"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/internal/background"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	"go.uber.org/zap"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// CallTimeout bounds one call to the storage. A call that hangs longer is an error and is tried again.
const CallTimeout = 30 * time.Second

// Resource returns the resource of the definitions themselves.
func Resource() schema.GroupResource {
	return schema.GroupResource{Group: apiextensionsv1.GroupName, Resource: "customresourcedefinitions"}
}

// Change changes the status or the finalizers of a definition, and reports whether it changed anything. now is in UTC and whole
// seconds.
type Change func(crd *apiextensionsv1.CustomResourceDefinition, now metav1.Time) bool

// Definitions reads and writes the definitions of one server. All methods may be called concurrently.
type Definitions struct {
	// Panics turns panics of all work on definitions into errors.
	Panics *background.Panics

	registry *registry.Registry
	status   *registry.StatusView
	fields   *patch.FieldManager // of the status
}

// manager is the name by which managedFields has the status that a server writes.
const manager = "kube-apiserver"

// New returns the Definitions of a server that serves the kind CustomResourceDefinition. Panics are logged to log.
func New(h *server.Host, log *zap.Logger) (*Definitions, error) {
	r, err := h.Registry(Resource())
	if err != nil {
		return nil, err
	}
	status, err := r.Status()
	if err != nil {
		return nil, err
	}
	fields, err := status.FieldManager()
	if err != nil {
		return nil, err
	}
	return &Definitions{Panics: background.NewPanics(log, "work on definitions panicked"), registry: r, status: status, fields: fields}, nil
}

// Watch watches all definitions, beginning with the existing ones.
func (d *Definitions) Watch(ctx context.Context) (storage.Watch, error) {
	return d.registry.WatchRecords(registry.NewCall(ctx, authn.System(), ""), storage.WatchOptions{Initial: true})
}

// Record returns a definition as it is stored, or a NotFound error. Only ctx bounds it, and it may panic.
func (d *Definitions) Record(ctx context.Context, name string) (storage.Record, error) {
	return d.registry.GetStored(registry.NewCall(ctx, authn.System(), ""), name)
}

// Get returns a definition, or a NotFound error.
func (d *Definitions) Get(ctx context.Context, name string) (crd *apiextensionsv1.CustomResourceDefinition, err error) {
	defer d.Panics.Caught(&err)
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	rec, err := d.Record(ctx, name)
	if err != nil {
		return nil, err
	}
	return d.Decode(rec)
}

// Decode decodes the definition in a record.
func (d *Definitions) Decode(rec storage.Record) (*apiextensionsv1.CustomResourceDefinition, error) {
	obj, err := d.registry.Decode(rec)
	if err != nil {
		return nil, err
	}
	return definitionOf(obj)
}

// WriteStatus applies change to the status and the finalizers of the stored definition with this uid. It returns the definition
// as it is stored then and its revision, or a NotFound error if there is no such definition.
func (d *Definitions) WriteStatus(ctx context.Context, name string, uid types.UID, change Change) (crd *apiextensionsv1.CustomResourceDefinition, revision int64, err error) {
	defer d.Panics.Caught(&err)
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	rec, _, err := d.status.UpdateRecord(registry.NewCall(ctx, authn.System(), ""), name, func(_ *registry.Call, current runtime.Object) (runtime.Object, error) {
		crd, err := definitionOf(current)
		if err != nil {
			return nil, err
		}
		if crd.UID != uid {
			return nil, apierrors.NewNotFound(Resource(), name)
		}
		before := withoutSpec(crd)
		if !change(crd, Now()) {
			return crd, nil
		}
		return crd, d.track(before, crd)
	}, nil)
	if err != nil {
		return nil, 0, err
	}
	crd, err = d.Decode(rec)
	return crd, rec.Revision, err
}

// track records what has changed since before, which has no spec, in the managedFields of a definition.
func (d *Definitions) track(before, crd *apiextensionsv1.CustomResourceDefinition) error {
	after := withoutSpec(crd)
	err := d.fields.Update(before, after, manager)
	if refused := registry.EntriesStatus(err, apiextensionsv1.Kind("CustomResourceDefinition"), crd); refused != nil {
		return refused
	}
	if err == nil {
		crd.ManagedFields = after.ManagedFields
	}
	return nil // after an error the entries are as they were
}

// withoutSpec copies a definition except for its spec, which may be large. An update of the status does not change it.
func withoutSpec(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{TypeMeta: crd.TypeMeta, ObjectMeta: *crd.ObjectMeta.DeepCopy(), Status: *crd.Status.DeepCopy()}
}

// Now returns the current time as in metadata: in UTC and whole seconds.
func Now() metav1.Time { return metav1.NewTime(time.Now().UTC().Truncate(time.Second)) }

// definitionOf asserts that a decoded object is a definition.
func definitionOf(obj runtime.Object) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd, ok := obj.(*apiextensionsv1.CustomResourceDefinition)
	if !ok {
		return nil, fmt.Errorf("%T is no definition", obj)
	}
	return crd, nil
}
