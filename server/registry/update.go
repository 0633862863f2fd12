package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/runtime/excerpt"
	"github.com/keelson-dev/keelson/storage"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// errModified is the reason of a conflict of resourceVersions.
var errModified = errors.New("the object has been modified; please apply your changes to the latest version and try again")

// createAttempts is how often an update that creates is tried, while other requests delete and create the same object.
const createAttempts = 8

// endpoint has the differences between the ways to update an object. The functions receive the new and the stored state, and
// change only the new state.
type endpoint struct {
	subresource string
	// kind is the kind of the admission request: that of the result of subject.
	kind schema.GroupVersionKind
	// subject returns the object that the validators receive; nil means the object itself.
	subject func(obj runtime.Object) (runtime.Object, error)
	// change makes the new state and calls the mutators with req; nil means the caller's update function makes it from the
	// object.
	change func(call *Call, req *admission.Request, obj runtime.Object) (runtime.Object, error)
	// settle returns the new state without the changes that this endpoint does not make. The next three functions are those of
	// the strategy.
	settle   func(obj, old runtime.Object) runtime.Object
	prepare  func(call *Call, obj, old runtime.Object)
	validate func(call *Call, obj, old runtime.Object) field.ErrorList
	warn     func(call *Call, obj, old runtime.Object) []string
	// generation says that a change of content increases the generation.
	generation bool
	// admitted says that admission has reviewed the request already.
	admitted bool
	// creates says that a missing object is created, applied that the update is an apply, and patched that it is a patch: see
	// Call.Patch.
	creates, applied, patched bool
}

// main returns the endpoint of the object itself.
func (r *Registry) main() endpoint {
	e := endpoint{
		kind:       r.kind.GVK,
		settle:     r.settleMain,
		prepare:    r.strategy.prepareForUpdate,
		validate:   r.strategy.validateUpdate,
		warn:       r.strategy.warnOnUpdate,
		generation: !r.strategy.noGeneration,
		creates:    r.strategy.createOnUpdate,
	}
	if f := r.strategy.validate; e.validate == nil && f != nil {
		e.validate = func(call *Call, obj, _ runtime.Object) field.ErrorList { return f(call, obj) }
	}
	return e
}

// settleMain copies the stored status to the new state.
func (r *Registry) settleMain(obj, old runtime.Object) runtime.Object {
	r.shape.takeStatus(obj, old)
	return obj
}

// UpdateRecord implements RecordUpdater. It calls update again with the new state each time another write comes first. If the
// result of update has another resourceVersion than the stored object, UpdateRecord returns a Conflict error. A result without a
// resourceVersion overwrites the stored object.
func (r *Registry) UpdateRecord(call *Call, name string, update ObjectUpdate, opts *metav1.UpdateOptions) (storage.Record, bool, error) {
	e := r.main()
	e.applied = call != nil && call.CreateOnUpdate
	e.creates = e.creates || e.applied
	return r.update(call, name, update, opts, e)
}

func (r *Registry) update(call *Call, name string, update ObjectUpdate, opts *metav1.UpdateOptions, e endpoint) (storage.Record, bool, error) {
	if opts == nil {
		opts = &metav1.UpdateOptions{}
	}
	call, err := call.begin(r.policy, opts.DryRun)
	if err != nil {
		return storage.Record{}, false, err
	}
	e.patched = call.Patch
	call = call.updating()
	key, err := r.key(call, name)
	if err != nil {
		return storage.Record{}, false, err
	}
	var last error
	for range createAttempts {
		c := &change{registry: r, endpoint: e, call: call, name: name, update: update, opts: opts}
		rec, err := r.store.Update(call.Context, key, storage.WriteOptions{DryRun: call.DryRun, Account: call.Account}, c.apply)
		c.end(call.Context, r.status(err, name))
		if err == nil {
			warn(call, c.warnings)
			if c.final != nil {
				rec = *c.final
			}
			return rec, false, nil
		}
		if !errors.Is(err, storage.ErrNotFound) || !e.creates {
			return storage.Record{}, false, r.status(err, name)
		}
		if rec, err = r.createMissing(call, name, update, opts, e); !apierrors.IsAlreadyExists(err) {
			return rec, err == nil, err
		}
		last = err
	}
	return storage.Record{}, false, last
}

// createMissing creates the object that an update did not find.
func (r *Registry) createMissing(call *Call, name string, update ObjectUpdate, opts *metav1.UpdateOptions, e endpoint) (storage.Record, error) {
	obj, err := update(call, nil)
	if err != nil {
		return storage.Record{}, err
	}
	m, err := r.accept(obj)
	if err != nil {
		return storage.Record{}, err
	}
	if uid := m.GetUID(); uid != "" {
		return storage.Record{}, r.uidConflict(call, name, string(uid), "")
	}
	version, err := versionIn(m) // there is no state to compare with
	if err != nil {
		return storage.Record{}, err
	}
	switch got := m.GetName(); got {
	case "":
		m.SetName(name)
	case name:
	default:
		return storage.Record{}, apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", got, name))
	}
	return r.createBy(&creation{version: version, applied: e.applied}, call, obj, creating(opts))
}

// creating returns the options of an update as options of a create.
func creating(o *metav1.UpdateOptions) *metav1.CreateOptions {
	return &metav1.CreateOptions{
		TypeMeta: metav1.TypeMeta{Kind: "CreateOptions", APIVersion: metav1.SchemeGroupVersion.String()},
		DryRun:   o.DryRun, FieldManager: o.FieldManager, FieldValidation: o.FieldValidation,
	}
}

// change is one running update. The fields after opts are set by the last call of apply.
type change struct {
	registry *Registry
	endpoint endpoint
	call     *Call
	name     string
	update   ObjectUpdate
	opts     *metav1.UpdateOptions

	attempt
	warnings []string
	final    *storage.Record // the record to return if the update deleted the object
}

// apply is the storage.ChangeFunc of an update.
func (c *change) apply(ctx context.Context, old runtime.Object, rec storage.Record) (out storage.Outcome, err error) {
	c.restart(ctx)
	c.warnings, c.final = nil, nil
	defer func() { c.asked = err == nil }()
	call, r := c.call.WithContext(ctx), c.registry
	was, err := r.accept(old)
	if err != nil {
		return storage.Outcome{}, err
	}
	req := r.request(call, admission.Update, c.name, c.opts)
	req.Subresource = c.endpoint.subresource
	if c.endpoint.kind != r.kind.GVK {
		req.Kind, req.SentKind = c.endpoint.kind, c.endpoint.kind
	}
	c.req = req
	var obj runtime.Object
	if f := c.endpoint.change; f != nil {
		obj, err = f(call, req, old.DeepCopyObject())
	} else {
		obj, err = c.update(call, old.DeepCopyObject())
	}
	if err != nil {
		return storage.Outcome{}, c.firstMistake(call, err, was)
	}
	m, err := r.accept(obj)
	if err != nil {
		return storage.Outcome{}, err
	}
	if err := c.preconditions(call, m, was); err != nil {
		return storage.Outcome{}, cmp.Or(c.permit(call, obj, old), err)
	}
	c.warn(dedupOwners(m, ""))
	if c.endpoint.change == nil && !c.endpoint.admitted {
		if obj, err = r.mutate(call, req, obj, old); err != nil {
			return storage.Outcome{}, r.refused(err, c.name)
		}
		if m, err = r.accept(obj); err != nil {
			return storage.Outcome{}, err
		}
		c.warn(dedupOwners(m, afterMutation))
	}
	if c.endpoint.change == nil || r.kind.Schema == nil { // a scale changes only the replicas of a custom resource
		r.setDefaults(call, obj) // for fields that a caller in process or a mutator left out
	}
	if err := normalize(obj); err != nil {
		return storage.Outcome{}, err
	}
	if err := c.permit(call, obj, old); err != nil {
		return storage.Outcome{}, err
	}
	if m.GetName() == "" {
		m.SetName(was.GetName())
	}
	if err := r.settleNamespace(call, m); err != nil {
		return storage.Outcome{}, err
	}
	obj = c.endpoint.settle(obj, old)
	if m, err = r.accept(obj); err != nil {
		return storage.Outcome{}, err
	}
	if err := c.complete(call, obj, old, m, was); err != nil {
		return storage.Outcome{}, err
	}
	if err := c.judge(call, req, obj, old); err != nil {
		return storage.Outcome{}, err
	}
	if finished(m, was) && !r.finalizing(obj) {
		return c.remove(obj, m, rec)
	}
	return storage.Outcome{Object: obj}, nil
}

// permit calls Strategy.Permit, if the update is one of the object itself.
func (c *change) permit(call *Call, obj, old runtime.Object) error {
	if c.endpoint.subresource != "" {
		return nil
	}
	return c.registry.permit(call, obj, old)
}

// permit calls Strategy.Permit for a call of a client. old is nil for a new object.
func (r *Registry) permit(call *Call, obj, old runtime.Object) error {
	if f := r.strategy.permit; f != nil && call.Verb != "" {
		return f(call, obj, old)
	}
	return nil
}

func (c *change) warn(texts ...string) { c.warnings = append(c.warnings, texts...) }

// firstMistake returns the error of the caller's update function, or a mistake of the same request that is found before that.
func (c *change) firstMistake(call *Call, err error, was metav1.Object) error {
	var unfit *UnfitError
	if !errors.As(err, &unfit) {
		return err
	}
	m, ok := unfit.Object.(metav1.Object)
	if !ok {
		return err
	}
	if err := c.preconditions(call, m, was); err != nil {
		return err
	}
	keepManagedFields(m, was)
	keepSystem(m, was)
	return unfit.with(c.registry.checkChanged(m, was))
}

// preconditions compares the uid and resourceVersion of the request with the stored ones.
func (c *change) preconditions(call *Call, m, was metav1.Object) error {
	r := c.registry
	if uid := m.GetUID(); uid != "" && uid != was.GetUID() && !c.endpoint.patched {
		return r.uidConflict(call, c.name, string(uid), string(was.GetUID()))
	}
	version, err := versionIn(m)
	if err != nil {
		return err
	}
	switch {
	case version == 0 && r.strategy.requireResourceVersion:
		return excerpt.Invalid(schema.GroupKind{Group: r.resource.Group, Kind: r.resource.Resource}, c.name, field.ErrorList{
			field.Invalid(metadataPath.Child("resourceVersion"), version, "must be specified for an update"),
		})
	case version != 0 && m.GetResourceVersion() != was.GetResourceVersion():
		return apierrors.NewConflict(r.resource, c.name, errModified)
	}
	return nil
}

// versionIn returns the resourceVersion of the new state of an object, 0 if it has none.
func versionIn(m metav1.Object) (int64, error) {
	rv := m.GetResourceVersion()
	if rv == "" {
		return 0, nil
	}
	version, err := strconv.ParseUint(rv, 10, 64)
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version %q: %v", rv, err))
	}
	return int64(min(version, math.MaxInt64)), nil //nolint:gosec // within the range
}

// uidConflict returns the error of kube-apiserver's storage, which has the key of the object. In the answer to a dry run, the key of
// kube-apiserver has no prefix; the one here is always the whole key.
func (r *Registry) uidConflict(call *Call, name, want, got string) error {
	key := r.path
	if ns := call.Namespace; r.namespaced {
		key += "/" + ns
	}
	return apierrors.NewConflict(r.resource, name, fmt.Errorf(
		"StorageError: invalid object, Code: 4, Key: %s/%s, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: %s, UID in object meta: %s",
		key, name, want, got))
}

// complete copies the fields that the request cannot change to the new state, and sets the generation.
func (c *change) complete(call *Call, obj, old runtime.Object, m, was metav1.Object) error {
	keepManagedFields(m, was)
	keepSystem(m, was)
	if f := c.endpoint.prepare; f != nil {
		f(call, obj, old)
		if err := normalize(obj); err != nil {
			return err
		}
	}
	if c.endpoint.generation && !c.registry.sameContent(call, obj, old) {
		m.SetGeneration(was.GetGeneration() + 1)
	}
	return nil
}

// keepSystem copies the metadata that only the server writes to the new state. A deletionTimestamp cannot be removed. Validation
// refuses a new one, because the field is immutable, and another deletionGracePeriodSeconds or uid.
func keepSystem(m, was metav1.Object) {
	m.SetResourceVersion(was.GetResourceVersion())
	m.SetGeneration(was.GetGeneration())
	if m.GetUID() == "" {
		m.SetUID(was.GetUID())
	}
	m.SetCreationTimestamp(was.GetCreationTimestamp())
	m.SetSelfLink(was.GetSelfLink())
	if was.GetDeletionTimestamp() != nil {
		m.SetDeletionTimestamp(was.GetDeletionTimestamp())
	}
	if was.GetDeletionGracePeriodSeconds() != nil && m.GetDeletionGracePeriodSeconds() == nil {
		m.SetDeletionGracePeriodSeconds(was.GetDeletionGracePeriodSeconds())
	}
}

// judge validates the new state, changes it to its normal form and calls the validators. An error in the metadata is one cause of the
// refusal; kube-apiserver makes it two, because its strategies check the metadata once more.
func (c *change) judge(call *Call, req *admission.Request, obj, old runtime.Object) error {
	r := c.registry
	m, err := r.accept(obj)
	if err != nil {
		return err
	}
	was, err := r.accept(old)
	if err != nil {
		return err
	}
	problems := r.checkChanged(m, was)
	unqualified, doubts := r.checkFinalizers(m, was.GetFinalizers())
	problems = append(problems, unqualified...)
	problems, err = r.checkConstraints(call, problems, obj, old)
	if err != nil {
		return err
	}
	problems = append(problems, r.checkScale(call, obj, c.endpoint.subresource == "status")...)
	if f := c.endpoint.validate; f != nil {
		problems = appendDistinct(problems, r.forClient(call, r.ratchet(f(call, obj, old), obj, old), obj))
	}
	if len(problems) > 0 {
		return r.invalid(c.name, problems)
	}
	c.warn(doubts...)
	if f := c.endpoint.warn; f != nil {
		c.warn(f(call, obj, old)...)
	}
	if f := r.strategy.canonicalize; f != nil {
		f(obj)
		if err := normalize(obj); err != nil {
			return err
		}
		if c.endpoint.generation && r.sameContent(call, obj, old) {
			m.SetGeneration(was.GetGeneration())
		}
	}
	keepTimes(obj, old, m, was)
	if c.endpoint.admitted || !call.Policy.Plugins.Validates(req) {
		return nil
	}
	if f := c.endpoint.subject; f != nil {
		if obj, err = f(obj); err != nil {
			return err
		}
		if old, err = f(old); err != nil {
			return err
		}
	}
	return r.validateAdmission(call, req, c.name, obj, old)
}

// finished reports whether nothing keeps an object that was marked for deletion.
func finished(m, was metav1.Object) bool {
	if len(m.GetFinalizers()) > 0 || was.GetDeletionTimestamp() == nil {
		return false
	}
	grace := was.GetDeletionGracePeriodSeconds()
	return grace == nil || *grace == 0
}

// remove deletes the object, and keeps its new state for the answer, because that state is never stored.
func (c *change) remove(obj runtime.Object, m metav1.Object, rec storage.Record) (storage.Outcome, error) {
	doc, err := codec.EncodeDocument(obj, c.registry.kind.GVK)
	if err != nil {
		return storage.Outcome{}, apierrors.NewInternalError(err)
	}
	c.final = &storage.Record{
		Key: rec.Key, Revision: rec.Revision, Body: doc,
		Labels: labels.Set(m.GetLabels()), Fields: rec.Fields,
	}
	return storage.Outcome{Delete: true}, nil
}
