package registry

import (
	"cmp"
	"context"
	"net/http"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/runtime"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Gate calls admission for a resource that no Registry serves, or for a subresource, and then validates new objects and new
// states by the struct tags of their Go types. Each method wraps one capability, and returns nil if the capability is nil. A
// Registry and its views call admission and validate objects themselves, and need no Gate.
//
// An admission request of a Gate differs from that of a Registry in two points. For a Delete, the object is not known, so Old is
// nil. A DeleteCollection is one admission request without a name. For a connection, admission receives neither an object nor
// options, as in kube-apiserver for resources whose connections have no options: a [Connecter] reads the query itself.
type Gate struct {
	Admission admission.Source // nil accepts all; the policy of a call is used instead, if the call has one
	// Scheme has the kinds by whose struct tags objects are validated (see package constraint of runtime); nil validates nothing. With
	// a Scheme, an object with a generateName and no name gets a name, and a name must be fit for a path.
	Scheme *runtime.Scheme
	// Kind is the kind of the objects, in the version in which the capabilities receive them.
	Kind schema.GroupVersionKind
	// Resource is the resource of the objects, in the same version.
	Resource schema.GroupVersionResource
	// Subresource is the name of the subresource, or "".
	Subresource string
	// SentKind is the kind that clients use, which may be of another version or group; zero is Kind.
	SentKind schema.GroupVersionKind
	// SentResource is the resource that clients use, which may be of another version or group; zero is Resource.
	SentResource schema.GroupVersionResource
}

// Creater wraps c with admission.
func (g Gate) Creater(c Creater) Creater {
	if c == nil {
		return nil
	}
	return gatedCreater{g, c}
}

// Updater wraps u with admission. Admission reviews each new state that an update function returns.
func (g Gate) Updater(u Updater) Updater {
	if u == nil {
		return nil
	}
	return gatedUpdater{g, u}
}

// Deleter wraps d with admission.
func (g Gate) Deleter(d Deleter) Deleter {
	if d == nil {
		return nil
	}
	return gatedDeleter{g, d}
}

// CollectionDeleter wraps d with admission.
func (g Gate) CollectionDeleter(d CollectionDeleter) CollectionDeleter {
	if d == nil {
		return nil
	}
	return gatedCollectionDeleter{g, d}
}

// Connecter wraps c with admission.
func (g Gate) Connecter(c Connecter) Connecter {
	if c == nil {
		return nil
	}
	return gatedConnecter{g, c}
}

// request returns the admission request for a call, without the objects. It returns nil if no plug-in handles the request.
func (g Gate) request(call *Call, op admission.Operation, name string, opts runtime.Object) *admission.Request {
	chain := call.Policy.Plugins
	if len(chain) == 0 {
		return nil
	}
	req := call.admission(op, name)
	req.Kind, req.Resource, req.Subresource, req.Namespace, req.Options = g.Kind, g.Resource, g.Subresource, call.Namespace, opts
	req.SentKind, req.SentResource = cmp.Or(g.SentKind, g.Kind), cmp.Or(g.SentResource, g.Resource)
	if !chain.Mutates(req) && !chain.Validates(req) {
		return nil
	}
	return req
}

// judge calls the mutators, which may change obj, then validates a new object or a new state by the struct tags, and then calls the
// validators with copies. If the attempt is refused, its charges are undone. req is nil if no plug-in handles the request.
func (g Gate) judge(call *Call, req *admission.Request, obj, old runtime.Object) error {
	if req == nil {
		return g.enforce(call, obj, old)
	}
	chain, name := call.Policy.Plugins, req.Name
	req.Show(obj, old, false)
	err := chain.Mutate(call, req)
	obj = req.Object()
	if err == nil {
		err = g.enforce(call, obj, old)
	}
	if err == nil && chain.Validates(req) {
		req.Show(obj, old, true)
		err = chain.Validate(call, req)
		req.Show(obj, old, false)
	}
	if err != nil {
		req.Undo(call, 0)
	}
	return refused(err, req.SentResource.GroupResource(), name)
}

// admit makes the admission request and calls judge. It returns a nil request if no plug-in handles the request.
func (g Gate) admit(call *Call, op admission.Operation, name string, obj, opts runtime.Object) (*admission.Request, error) {
	req := g.request(call, op, name, opts)
	return req, g.judge(call, req, obj, nil)
}

// orZero returns a copy of the options of a verb, which may be nil.
func orZero[T any](opts *T) T {
	if opts == nil {
		return *new(T)
	}
	return *opts
}

type gatedCreater struct {
	gate Gate
	next Creater
}

func (c gatedCreater) Create(call *Call, obj runtime.Object, opts *metav1.CreateOptions) (runtime.Object, error) {
	o := orZero(opts)
	call, err := call.begin(c.gate.Admission, o.DryRun)
	if err != nil {
		return nil, err
	}
	o.DryRun, opts = call.dryRun(o.DryRun), &o
	ctx, done := context.WithCancel(call.Context) // plug-ins may count running requests by it
	defer done()
	call = call.WithContext(ctx)
	c.gate.complete(obj)
	name := ""
	if m, ok := obj.(metav1.Object); ok {
		name = m.GetName()
	}
	req, err := c.gate.admit(call, admission.Create, name, obj, opts)
	if err != nil {
		return nil, err
	}
	if req != nil {
		obj = req.Object()
	}
	made, err := c.next.Create(call, obj, opts)
	if m, ok := obj.(metav1.Object); ok && lighten(m, err) {
		made, err = c.next.Create(call, obj, opts)
	}
	(&attempt{req: req, asked: true}).end(call, err)
	return made, err
}

type gatedUpdater struct {
	gate Gate
	next Updater
}

func (u gatedUpdater) Update(call *Call, name string, update ObjectUpdate, opts *metav1.UpdateOptions) (runtime.Object, bool, error) {
	o := orZero(opts)
	call, err := call.begin(u.gate.Admission, o.DryRun)
	if err != nil {
		return nil, false, err
	}
	o.DryRun, opts = call.dryRun(o.DryRun), &o
	ctx, done := context.WithCancel(call.Context)
	defer done()
	call = call.WithContext(ctx)
	var last attempt
	judged := func(inner *Call, current runtime.Object) (runtime.Object, error) {
		last.restart(call)
		inner = inner.updating()
		op, options := admission.Create, runtime.Object(creating(opts))
		if current != nil {
			op, options = admission.Update, opts
		}
		req, old := u.gate.request(call, op, name, options), runtime.Object(nil)
		if current != nil && (req != nil || len(u.gate.rules()) > 0) {
			old = current.DeepCopyObject() // update may change current
		}
		obj, err := update(inner, current)
		if err != nil {
			return nil, err
		}
		last.req, err = req, u.gate.judge(call, req, obj, old)
		if req != nil {
			obj = req.Object()
		}
		last.asked = err == nil // what the storage does with obj is not known here
		return obj, err
	}
	obj, created, err := u.next.Update(call, name, judged, opts)
	last.end(call, err)
	return obj, created, err
}

type gatedDeleter struct {
	gate Gate
	next Deleter
}

func (d gatedDeleter) Delete(call *Call, name string, opts *metav1.DeleteOptions) (runtime.Object, bool, error) {
	o := orZero(opts)
	call, err := call.begin(d.gate.Admission, o.DryRun)
	if err != nil {
		return nil, false, err
	}
	o.DryRun, opts = call.dryRun(o.DryRun), &o
	req, err := d.gate.admit(call, admission.Delete, name, nil, opts)
	if err != nil {
		return nil, false, err
	}
	obj, deleted, err := d.next.Delete(call, name, opts)
	(&attempt{req: req, asked: true}).end(call, err)
	return obj, deleted, err
}

func (d gatedDeleter) ReturnsDeleted() bool {
	r, ok := d.next.(DeletedReturner)
	return ok && r.ReturnsDeleted()
}

type gatedCollectionDeleter struct {
	gate Gate
	next CollectionDeleter
}

func (d gatedCollectionDeleter) DeleteCollection(call *Call, opts *metav1.DeleteOptions, list *metav1.ListOptions) (runtime.Object, error) {
	o := orZero(opts)
	call, err := call.begin(d.gate.Admission, o.DryRun)
	if err != nil {
		return nil, err
	}
	o.DryRun, opts = call.dryRun(o.DryRun), &o
	req, err := d.gate.admit(call, admission.Delete, "", nil, opts)
	if err != nil {
		return nil, err
	}
	obj, err := d.next.DeleteCollection(call, opts, list)
	(&attempt{req: req, asked: true}).end(call, err)
	return obj, err
}

type gatedConnecter struct {
	gate Gate
	next Connecter
}

func (c gatedConnecter) ConnectMethods() []string { return c.next.ConnectMethods() }

func (c gatedConnecter) Connect(call *Call, name, subpath string, r *http.Request) (http.Handler, error) {
	call, err := call.begin(c.gate.Admission, nil)
	if err != nil {
		return nil, err
	}
	req, err := c.gate.admit(call, admission.Connect, name, nil, nil)
	if err != nil {
		return nil, err
	}
	h, err := c.next.Connect(call, name, subpath, r)
	(&attempt{req: req, asked: true}).end(call, err)
	return h, err
}
