package registry

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/storage"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// CreateRecord implements RecordWriter.
func (r *Registry) CreateRecord(ctx context.Context, obj runtime.Object, opts *metav1.CreateOptions) (storage.Record, error) {
	if opts == nil {
		opts = &metav1.CreateOptions{}
	}
	m, err := r.accept(obj)
	if err != nil {
		return storage.Record{}, err
	}
	if rv := m.GetResourceVersion(); rv != "" && rv != "0" {
		return storage.Record{}, apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	m.SetResourceVersion("")
	if !r.chain().IsZero() {
		var done context.CancelFunc
		ctx, done = context.WithCancel(ctx) // plug-ins may count what is under way
		defer done()
	}
	if r.namespaced && NamespaceFrom(ctx) == "" {
		return storage.Record{}, apierrors.NewBadRequest("Namespace parameter required.")
	}
	wipe(m)
	if err := r.settleNamespace(ctx, m); err != nil {
		return storage.Record{}, err
	}
	warnings := []string{dedupOwners(m, "")}
	req := r.request(ctx, admission.Create, m.GetName(), isDryRun(opts.DryRun))
	req.Object, req.Options = obj, opts
	called := nameOrPrefix(m)
	if m, err = r.mutate(ctx, req, m); err != nil {
		return storage.Record{}, r.refused(err, called)
	}
	obj = req.Object
	r.setDefaults(ctx, obj) // of what a caller in process or a mutator left out
	if err := normalize(obj); err != nil {
		return storage.Record{}, err
	}
	if err := r.settleNamespace(ctx, m); err != nil {
		return storage.Record{}, err
	}
	warnings = append(warnings, dedupOwners(m, afterMutation))
	warn(ctx, warnings)
	return r.createNamed(ctx, obj, m, req)
}

// createNamed stores obj, under a name of the server's choosing when it has only a generateName.
func (r *Registry) createNamed(ctx context.Context, obj runtime.Object, m metav1.Object, req *admission.Request) (storage.Record, error) {
	if m.GetName() != "" || m.GetGenerateName() == "" {
		rec, err := r.create(ctx, obj, m, req)
		if m.GetGenerateName() != "" && apierrors.IsAlreadyExists(err) { // as if the name had been the server's choice
			err = apierrors.NewGenerateNameConflict(r.resource, m.GetName(), generateRetry)
		}
		return rec, err
	}
	var err error
	for range generateNames {
		try := obj.DeepCopyObject()
		if m, err = r.accept(try); err != nil {
			return storage.Record{}, err
		}
		m.SetName(generateName(m.GetGenerateName()))
		var rec storage.Record
		if rec, err = r.create(ctx, try, m, req); !apierrors.IsAlreadyExists(err) {
			return rec, err
		}
	}
	return storage.Record{}, apierrors.NewGenerateNameConflict(r.resource, m.GetName(), generateRetry)
}

// create completes, judges and stores an object that has passed the mutators.
func (r *Registry) create(ctx context.Context, obj runtime.Object, m metav1.Object, req *admission.Request) (storage.Record, error) {
	m.SetUID(types.UID(uuid.NewString()))
	m.SetCreationTimestamp(r.timestamp())
	if !r.strategy.noGeneration {
		m.SetGeneration(1)
	}
	r.shape.dropStatus(obj)
	if f := r.strategy.prepareForCreate; f != nil {
		f(ctx, obj)
		if err := normalize(obj); err != nil {
			return storage.Record{}, err
		}
	}
	unqualified, doubts := r.checkFinalizers(m, nil)
	problems, err := r.checkConstraints(ctx, append(r.checkNew(m), unqualified...), obj, nil)
	if err != nil {
		return storage.Record{}, err
	}
	problems = append(problems, r.checkScale(ctx, obj, false)...)
	if f := r.strategy.validate; f != nil {
		problems = append(problems, f(ctx, obj)...)
	}
	if len(problems) > 0 {
		return storage.Record{}, r.invalid(m.GetName(), problems)
	}
	warn(ctx, doubts)
	if f := r.strategy.warnOnCreate; f != nil {
		warn(ctx, f(ctx, obj))
	}
	if f := r.strategy.canonicalize; f != nil {
		f(obj)
		if err := normalize(obj); err != nil {
			return storage.Record{}, err
		}
	}
	key, err := r.key(ctx, m.GetName())
	if err != nil {
		return storage.Record{}, err
	}
	if err := r.validateAdmission(ctx, req, m.GetName(), obj, nil); err != nil {
		return storage.Record{}, err
	}
	rec, err := r.store.Create(ctx, key, obj, storage.WriteOptions{DryRun: req.DryRun})
	if err == nil {
		return rec, nil
	}
	err = r.status(err, m.GetName())
	if apierrors.IsAlreadyExists(err) {
		err = r.explainExists(ctx, key, err)
	}
	return storage.Record{}, err
}

// explainExists says so when the object in the way is only waiting for its finalizers.
func (r *Registry) explainExists(ctx context.Context, key string, exists error) error {
	rec, err := r.store.Get(ctx, key, storage.Read{})
	if err != nil {
		return exists
	}
	obj, err := r.store.Decode(rec)
	if err != nil {
		return exists
	}
	m, err := r.accept(obj)
	if err != nil || m.GetDeletionTimestamp() == nil {
		return exists
	}
	var status *apierrors.StatusError
	if errors.As(exists, &status) {
		status.ErrStatus.Message = fmt.Sprintf("object is being deleted: %s", status.ErrStatus.Message)
	}
	return exists
}

// validateAdmission shows copies of the objects to the validators.
func (r *Registry) validateAdmission(ctx context.Context, req *admission.Request, name string, obj, old runtime.Object) error {
	chain := r.chain()
	if len(chain.Validators) == 0 {
		return nil
	}
	shown := *req
	shown.Name, shown.Object, shown.Old = name, nil, nil
	if obj != nil {
		shown.Object = obj.DeepCopyObject()
	}
	if old != nil {
		shown.Old = old.DeepCopyObject()
	}
	return r.refused(chain.Validate(ctx, &shown), name)
}

// nameOrPrefix is how an object without a name yet is called in messages.
func nameOrPrefix(m metav1.Object) string {
	if m.GetName() != "" {
		return m.GetName()
	}
	return m.GetGenerateName()
}
