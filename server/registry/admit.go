package registry

import (
	"context"
	"fmt"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
)

// request returns the admission request for a call.
func (r *Registry) request(call *Call, op admission.Operation, name string, opts runtime.Object) *admission.Request {
	req := call.admission(op, name)
	req.Kind = r.kind.GVK
	req.Resource = r.kind.GVK.GroupVersion().WithResource(r.resource.Resource) // the hub's, in every group
	req.SentKind = r.kind.GVK
	if k := r.requestKind(call); k != nil {
		req.SentKind = k.GVK
	}
	if req.SentResource.Version == "" { // a call of the program itself
		req.SentResource = req.Resource
	}
	if r.namespaced {
		req.Namespace = call.Namespace
	}
	req.Options = opts
	return req
}

// mutate calls the mutators and returns the new object, which they may have changed or replaced. If they removed managedFields or
// made them invalid, mutate restores them.
func (r *Registry) mutate(call *Call, req *admission.Request, obj, old runtime.Object) (runtime.Object, error) {
	chain := call.Policy.Plugins
	if !chain.Mutates(req) {
		return obj, nil
	}
	m, err := r.accept(obj)
	if err != nil {
		return nil, err
	}
	before := runtime.DeepCopy(m.GetManagedFields())
	req.Show(obj, old, false)
	if err := chain.Mutate(call, req); err != nil {
		return nil, err
	}
	obj = req.Object()
	if m, err = r.accept(obj); err != nil {
		return nil, err
	}
	after := m.GetManagedFields()
	if after == nil {
		m.SetManagedFields(before)
	}
	if err := managedfields.ValidateManagedFields(after); err != nil {
		m.SetManagedFields(before)
		call.Warn(fmt.Sprintf(".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission controller; please fix your requests: %v", err))
	}
	return obj, nil
}

// validateAdmission calls the validators with copies of the objects.
func (r *Registry) validateAdmission(call *Call, req *admission.Request, name string, obj, old runtime.Object) error {
	chain := call.Policy.Plugins
	if !chain.Validates(req) {
		return nil
	}
	req.Name = name
	req.Show(obj, old, true)
	return r.refused(chain.Validate(call, req), name)
}

// refused returns a StatusError for the error of an admission plug-in. An error that is not a StatusError becomes a Forbidden.
func (r *Registry) refused(err error, name string) error {
	return refused(err, r.resource, name)
}

// attempt is one try of a change. What plug-ins charged for it (such as quota) is undone if it fails.
type attempt struct {
	req   *admission.Request // nil if nothing is charged
	kept  int                // the number of charges that are shared by all tries
	asked bool               // the storage was called to make the change
}

// again undoes the charges of the last try, before the next try of the same request.
func (a *attempt) again(ctx context.Context) {
	if a.req != nil {
		a.req.Undo(ctx, a.kept)
	}
	a.asked = false
}

// restart undoes the charges of the last try and drops its request, before a try with another state of the object.
func (a *attempt) restart(ctx context.Context) {
	a.again(ctx)
	*a = attempt{}
}

// end undoes all charges if nothing was changed. err is the error of the change. After the storage was called, only some errors
// mean that nothing was changed.
func (a *attempt) end(ctx context.Context, err error) {
	if a.req != nil && err != nil && (!a.asked || failed(err)) {
		a.req.Undo(ctx, 0)
	}
}
