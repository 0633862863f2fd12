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

// Gate has admission judge what is asked of a resource that no Registry serves, or of a subresource: each method
// puts it in front of one capability, and leaves a missing one (nil) missing. A Registry and its views have admission
// judge their writes themselves and need no Gate.
//
// What admission is shown differs from a Registry's writes in two points: nothing is known of the object that a
// Delete is for, so Old is nil, and a DeleteCollection is one request without a name. Of a connection it is shown neither an object
// nor options, as kube-apiserver shows it of a resource whose connections have no options: a [Connecter] reads the query itself.
type Gate struct {
	Admission admission.Source // nil accepts all; the policy of a call comes before it
	// Kind and Resource are those of the objects, in the version in which the capabilities get them.
	Kind        schema.GroupVersionKind
	Resource    schema.GroupVersionResource
	Subresource string
	// SentKind and SentResource are those that clients name, of another version or group perhaps; zero: Kind and Resource.
	SentKind     schema.GroupVersionKind
	SentResource schema.GroupVersionResource
}

// Creater puts the gate before c.
func (g Gate) Creater(c Creater) Creater {
	if c == nil {
		return nil
	}
	return gatedCreater{g, c}
}

// Updater puts the gate before u: it judges every new state that is made.
func (g Gate) Updater(u Updater) Updater {
	if u == nil {
		return nil
	}
	return gatedUpdater{g, u}
}

// Deleter puts the gate before d.
func (g Gate) Deleter(d Deleter) Deleter {
	if d == nil {
		return nil
	}
	return gatedDeleter{g, d}
}

// CollectionDeleter puts the gate before d.
func (g Gate) CollectionDeleter(d CollectionDeleter) CollectionDeleter {
	if d == nil {
		return nil
	}
	return gatedCollectionDeleter{g, d}
}

// Connecter puts the gate before c.
func (g Gate) Connecter(c Connecter) Connecter {
	if c == nil {
		return nil
	}
	return gatedConnecter{g, c}
}

// request returns what admission is shown of a call, without the objects. It is nil if no plug-in handles the request.
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

// judge asks the mutators, which may change obj, and then shows the validators copies. What is charged for an attempt that is
// refused is undone. The request is not nil.
func (g Gate) judge(call *Call, req *admission.Request, obj, old runtime.Object) error {
	chain, name := call.Policy.Plugins, req.Name
	req.Show(obj, old, false)
	err := chain.Mutate(call, req)
	obj = req.Object()
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

// admit makes the request and has it judged. The request is nil if no plug-in handles it.
func (g Gate) admit(call *Call, op admission.Operation, name string, obj, opts runtime.Object) (*admission.Request, error) {
	req := g.request(call, op, name, opts)
	if req == nil {
		return nil, nil
	}
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
	ctx, done := context.WithCancel(call.Context) // plug-ins may count what is under way
	defer done()
	call = call.WithContext(ctx)
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
		if req != nil && current != nil {
			old = current.DeepCopyObject() // update may change current
		}
		obj, err := update(inner, current)
		if err != nil {
			return nil, err
		}
		if req != nil {
			last.req, err = req, u.gate.judge(call, req, obj, old)
			obj = req.Object()
		}
		last.asked = err == nil // what becomes of obj is not known here
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
