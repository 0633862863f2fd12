// Package stored reads and writes the definitions of a server as they are stored, in the name of the system. [Definitions.Get] and
// [Definitions.WriteStatus] are for work in the background: they are bounded by [CallTimeout], and a panic of the program's
// plug-ins and storages is an error.
package stored

import (
	"context"
	"fmt"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
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

// CallTimeout bounds one call to the storage. What hangs for longer is an error, and tried again.
const CallTimeout = 30 * time.Second

// Resource is the resource of the definitions themselves.
func Resource() schema.GroupResource {
	return schema.GroupResource{Group: apiextensionsv1.GroupName, Resource: "customresourcedefinitions"}
}

// Change changes the status or the finalizers of a definition, and reports whether it did. now is in UTC and whole seconds.
type Change func(crd *apiextensionsv1.CustomResourceDefinition, now metav1.Time) bool

// Definitions are those of one server. All methods may be called concurrently.
type Definitions struct {
	// Panics makes errors of the panics of all work on definitions.
	Panics *background.Panics

	registry *registry.Registry
	status   *registry.StatusView
}

// New returns the definitions of a server that serves their kind. Panics are logged.
func New(h *server.Host, log *zap.Logger) (*Definitions, error) {
	r, err := h.Registry(Resource())
	if err != nil {
		return nil, err
	}
	status, err := r.Status()
	if err != nil {
		return nil, err
	}
	return &Definitions{Panics: background.NewPanics(log, "work on definitions panicked"), registry: r, status: status}, nil
}

// Watch watches all definitions, from those that there are.
func (d *Definitions) Watch(ctx context.Context) (storage.Watch, error) {
	return d.registry.WatchRecords(registry.NewCall(ctx, authn.System(), ""), storage.WatchOptions{Initial: true})
}

// Record returns a definition as it is stored; NotFound: there is none. It is bounded by ctx alone, and may panic.
func (d *Definitions) Record(ctx context.Context, name string) (storage.Record, error) {
	return d.registry.GetStored(registry.NewCall(ctx, authn.System(), ""), name)
}

// Get returns a definition; NotFound: there is none.
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

// Decode returns the definition of a record.
func (d *Definitions) Decode(rec storage.Record) (*apiextensionsv1.CustomResourceDefinition, error) {
	obj, err := d.registry.Decode(rec)
	if err != nil {
		return nil, err
	}
	return definitionOf(obj)
}

// WriteStatus changes the status of the definition with a uid, as it is stored now, with its finalizers. It returns a
// NotFound if there is none, and the definition as it is stored then.
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
		change(crd, Now())
		return crd, nil
	}, nil)
	if err != nil {
		return nil, 0, err
	}
	crd, err = d.Decode(rec)
	return crd, rec.Revision, err
}

// Now is the time as metadata has it: in UTC and whole seconds.
func Now() metav1.Time { return metav1.NewTime(time.Now().UTC().Truncate(time.Second)) }

// definitionOf returns what was decoded as a definition.
func definitionOf(obj runtime.Object) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd, ok := obj.(*apiextensionsv1.CustomResourceDefinition)
	if !ok {
		return nil, fmt.Errorf("%T is no definition", obj)
	}
	return crd, nil
}
