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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// CreateRecord implements RecordWriter.
func (r *Registry) CreateRecord(call *Call, obj runtime.Object, opts *metav1.CreateOptions) (storage.Record, error) {
	m, err := r.accept(obj)
	if err != nil {
		return storage.Record{}, err
	}
	version, err := versionIn(m)
	if err != nil { // as in kube-apiserver, a text that is no number is no version
		version = 0
	}
	return r.createBy(&creation{version: version, refused: version != 0}, call, obj, opts)
}

// creation is one running request that creates an object.
type creation struct {
	attempt
	version int64 // the resourceVersion in the request, 0 if it is no number: the answer to a dry run has it unless it is 0
	refused bool  // the version is a mistake: the object is not created, unless the request is a dry run
	applied bool  // an apply creates the object
}

// createBy is CreateRecord for a running request.
func (r *Registry) createBy(c *creation, call *Call, obj runtime.Object, opts *metav1.CreateOptions) (rec storage.Record, err error) {
	if opts == nil {
		opts = &metav1.CreateOptions{}
	}
	if call, err = call.begin(r.policy, opts.DryRun); err != nil {
		return storage.Record{}, err
	}
	m, err := r.accept(obj)
	if err != nil {
		return storage.Record{}, err
	}
	m.SetResourceVersion("")
	if len(call.Policy.Plugins) > 0 {
		ctx, done := context.WithCancel(call.Context) // plug-ins may count running requests by it
		defer done()
		call = call.WithContext(ctx)
	}
	if r.namespaced && call.Namespace == "" {
		return storage.Record{}, apierrors.NewBadRequest("Namespace parameter required.")
	}
	wipe(m)
	if err := r.settleNamespace(call, m); err != nil {
		return storage.Record{}, err
	}
	warnings := []string{dedupOwners(m, "")}
	c.req = r.request(call, admission.Create, m.GetName(), opts)
	defer func() { c.end(call, err) }()
	called := nameOrPrefix(m)
	if obj, err = r.mutate(call, c.req, obj, nil); err != nil {
		return storage.Record{}, r.refused(err, called)
	}
	if m, err = r.accept(obj); err != nil {
		return storage.Record{}, err
	}
	c.kept = c.req.Charges()
	r.setDefaults(call, obj) // for fields that a caller in process or a mutator left out
	if err := normalize(obj); err != nil {
		return storage.Record{}, err
	}
	if err := r.settleNamespace(call, m); err != nil {
		return storage.Record{}, err
	}
	if err := r.permit(call, obj, nil); err != nil {
		return storage.Record{}, err
	}
	warnings = append(warnings, dedupOwners(m, afterMutation))
	warn(call, warnings)
	return r.createNamed(c, call, obj, m)
}

// createNamed stores obj. If obj has only a generateName, the server generates the name.
func (r *Registry) createNamed(c *creation, call *Call, obj runtime.Object, m metav1.Object) (storage.Record, error) {
	if m.GetName() != "" || m.GetGenerateName() == "" {
		rec, err := r.create(c, call, obj, m)
		if m.GetGenerateName() != "" && apierrors.IsAlreadyExists(err) { // the same error as for a generated name
			err = r.generatedTaken(m.GetName())
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
		if rec, err = r.create(c, call, try, m); !apierrors.IsAlreadyExists(err) {
			return rec, err
		}
		c.again(call)
	}
	return storage.Record{}, r.generatedTaken(m.GetName())
}

// generatedTaken returns the error for an object with a generateName whose name is taken. As in kube-apiserver, it names the resource
// in the group of the hub.
func (r *Registry) generatedTaken(name string) error {
	return apierrors.NewGenerateNameConflict(schema.GroupResource{Group: r.kind.GVK.Group, Resource: r.resource.Resource}, name, generateRetry)
}

// create is insert. If the object is too large with its managedFields, create stores it without them, as kube-apiserver does; an
// object that an apply creates keeps them, because later applies need them.
func (r *Registry) create(c *creation, call *Call, obj runtime.Object, m metav1.Object) (storage.Record, error) {
	rec, err := r.insert(c, call, obj, m)
	if !c.applied && lighten(m, err) {
		c.again(call)
		rec, err = r.insert(c, call, obj, m)
	}
	return rec, err
}

// lighten removes the managedFields of an object, if its creation failed because it was too large. It reports whether it did.
func lighten(m metav1.Object, err error) bool {
	if err == nil || len(m.GetManagedFields()) == 0 || !apierrors.IsRequestEntityTooLargeError(err) {
		return false
	}
	m.SetManagedFields(nil)
	return true
}

// insert completes, validates and stores an object after the mutators.
func (r *Registry) insert(c *creation, call *Call, obj runtime.Object, m metav1.Object) (storage.Record, error) {
	m.SetUID(types.UID(uuid.NewString()))
	m.SetCreationTimestamp(r.timestamp())
	if !r.strategy.noGeneration {
		m.SetGeneration(1)
	}
	r.shape.dropStatus(obj)
	if f := r.strategy.prepareForCreate; f != nil {
		f(call, obj)
		if err := normalize(obj); err != nil {
			return storage.Record{}, err
		}
	}
	if err := r.judgeNew(call, obj, m); err != nil {
		return storage.Record{}, err
	}
	if f := r.strategy.warnOnCreate; f != nil {
		warn(call, f(call, obj))
	}
	if f := r.strategy.canonicalize; f != nil {
		f(obj)
		if err := normalize(obj); err != nil {
			return storage.Record{}, err
		}
	}
	key, err := r.key(call, m.GetName())
	if err != nil {
		return storage.Record{}, err
	}
	if err := r.validateAdmission(call, c.req, m.GetName(), obj, nil); err != nil {
		return storage.Record{}, err
	}
	if c.refused && !call.DryRun {
		return storage.Record{}, apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	c.asked = true
	rec, err := r.store.Create(call.Context, key, obj, storage.WriteOptions{DryRun: call.DryRun})
	if err == nil {
		if call.DryRun {
			rec.Revision = c.version
		}
		return rec, nil
	}
	err = r.status(err, m.GetName())
	if apierrors.IsAlreadyExists(err) {
		err = r.explainExists(call, key, err)
	}
	return storage.Record{}, err
}

// judgeNew validates a new object. If it is valid, the client is warned of its finalizers.
func (r *Registry) judgeNew(call *Call, obj runtime.Object, m metav1.Object) error {
	metadata := r.checkNew(m)
	unqualified, doubts := r.checkFinalizers(m, nil)
	metadata = append(metadata, unqualified...)
	var problems field.ErrorList
	if !r.strategy.metadataLast {
		problems, metadata = metadata, nil
	}
	problems, err := r.checkConstraints(call, problems, obj, nil)
	if err != nil {
		return err
	}
	problems = append(problems, r.checkScale(call, obj, false)...)
	if f := r.strategy.validate; f != nil {
		problems = append(problems, r.forClient(call, f(call, obj), obj)...)
	}
	if len(problems) == 0 {
		problems = metadata
	}
	if len(problems) > 0 {
		return r.invalid(m.GetName(), problems)
	}
	warn(call, doubts)
	return nil
}

// explainExists adds to the error that the existing object is being deleted, if it is.
func (r *Registry) explainExists(call *Call, key string, exists error) error {
	rec, err := r.store.Get(call.Context, key, storage.Read{})
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

// nameOrPrefix returns the name of an object for messages, or the generateName if it has no name yet.
func nameOrPrefix(m metav1.Object) string {
	if m.GetName() != "" {
		return m.GetName()
	}
	return m.GetGenerateName()
}
