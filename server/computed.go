package server

import (
	"errors"
	"fmt"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/internal/apiset"
	"github.com/keelson-dev/keelson/server/registry"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Computed has the functions of a kind whose objects are not in the storage of the server: they are computed, or another system
// keeps them:
//
//	server.Kind("Outfit", server.KindOptions[*Outfit]{Computed: &server.Computed[*Outfit]{Get: getOutfit, List: listOutfits}})
//
// The kind has the verbs of the functions that are set. At least one function must be set. The functions are called concurrently,
// after authorization, admission and the rules of struct tags. The argument call has the user and the namespace, and is the
// context of the request. If its DryRun is true, the function must not store anything. The functions check the preconditions in
// their opts. Errors should be those of k8s.io/apimachinery/pkg/api/errors; any other error is answered with 500. Objects that a
// function returns are encoded by the server, and must not be changed afterwards.
//
// If the kind has several versions, each version has functions of its own, and only the hub (see Version) may have Create and
// Update. A kind that needs more, such as a list in pages, has a Storage: see package registry.
type Computed[P runtime.Object] struct {
	// Get returns the object with a name. With Update it serves PATCH, too.
	Get func(call *registry.Call, name string) (P, error)
	// List returns the objects in the namespace of the call, or in all namespaces if the namespace is "". The function may ignore
	// the selectors in opts, since the server itself selects objects by labels, name and namespace. A function that uses the
	// selectors can save work. The list has no resourceVersion and is never divided into pages.
	List func(call *registry.Call, opts *metav1.ListOptions) ([]P, error)
	// Watch begins a watch, which ends with the call. The objects of its events are of type P.
	Watch func(call *registry.Call, opts *metav1.ListOptions) (registry.ObjectWatch, error)
	// Create serves POST. It may change obj. It returns the object that was made. For a kind whose objects are questions, such as
	// an access review, it returns the object with the answer.
	Create func(call *registry.Call, obj P, opts *metav1.CreateOptions) (P, error)
	// Update serves PUT and, with Get, PATCH. It calls change with the current object, which change may modify, and stores the
	// object that change returns. It may call change again with a newer object. If change returns an error, Update returns that
	// error and stores nothing. If there is no such object, Update returns a NotFound.
	Update func(call *registry.Call, name string, change func(current P) (P, error), opts *metav1.UpdateOptions) (P, error)
	// Delete deletes an object and returns it.
	Delete func(call *registry.Call, name string, opts *metav1.DeleteOptions) (P, error)
}

// storage returns the functions that are set as the capabilities of a Storage. newList returns an empty list of the kind.
func (c *Computed[P]) storage(newList func() runtime.Object) registry.Parts {
	var parts registry.Parts
	if c.Get != nil {
		parts = append(parts, computedGet[P](c.Get))
	}
	if c.List != nil {
		parts = append(parts, computedList[P]{c.List, newList})
	}
	if c.Watch != nil {
		parts = append(parts, computedWatch(c.Watch))
	}
	if c.Create != nil {
		parts = append(parts, computedCreate[P](c.Create))
	}
	if c.Update != nil {
		parts = append(parts, computedUpdate[P](c.Update))
	}
	if c.Delete != nil {
		parts = append(parts, computedDelete[P](c.Delete))
	}
	return parts
}

// check returns what is wrong with c and the Storage beside it, which is nil if there is none.
func (c *Computed[P]) check(storage any) error {
	switch {
	case storage != nil:
		return errors.New("the options Computed and Storage are both set; remove one")
	case c.Get == nil && c.List == nil && c.Watch == nil && c.Create == nil && c.Update == nil && c.Delete == nil:
		return errors.New("Computed has no function, so that nothing could be served; set Get, List or another")
	}
	return nil
}

// result returns the object of a function as a runtime.Object. A nil pointer without an error is an error of the function.
func result[P runtime.Object](obj P, err error) (runtime.Object, error) {
	if err != nil {
		return nil, err
	}
	if apiset.IsNil(obj) {
		return nil, fmt.Errorf("a function of server.Computed returned a nil %T and no error", obj)
	}
	return obj, nil
}

type computedGet[P runtime.Object] func(call *registry.Call, name string) (P, error)

// Get implements registry.Getter.
func (get computedGet[P]) Get(call *registry.Call, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	return result(get(call, name))
}

type computedList[P runtime.Object] struct {
	list    func(call *registry.Call, opts *metav1.ListOptions) ([]P, error)
	newList func() runtime.Object
}

// List implements registry.Lister.
func (l computedList[P]) List(call *registry.Call, opts *metav1.ListOptions) (runtime.Object, error) {
	if opts.Continue != "" {
		return nil, apierrors.NewBadRequest("continue: the lists of this resource have one page, so that there is no such token")
	}
	all, err := l.list(call, opts)
	if err != nil {
		return nil, err
	}
	items := make([]runtime.Object, len(all))
	for i, obj := range all {
		if items[i], err = result(obj, nil); err != nil {
			return nil, err
		}
	}
	list := l.newList()
	return list, meta.SetList(list, items)
}

type computedWatch func(call *registry.Call, opts *metav1.ListOptions) (registry.ObjectWatch, error)

// Watch implements registry.Watcher.
func (w computedWatch) Watch(call *registry.Call, opts *metav1.ListOptions) (registry.ObjectWatch, error) {
	return w(call, opts)
}

type computedCreate[P runtime.Object] func(call *registry.Call, obj P, opts *metav1.CreateOptions) (P, error)

// Create implements registry.Creater.
func (create computedCreate[P]) Create(call *registry.Call, obj runtime.Object, opts *metav1.CreateOptions) (runtime.Object, error) {
	own, err := typed[P](obj)
	if err != nil {
		return nil, err
	}
	return result(create(call, own, opts))
}

type computedUpdate[P runtime.Object] func(call *registry.Call, name string, change func(current P) (P, error), opts *metav1.UpdateOptions) (P, error)

// Update implements registry.Updater.
func (update computedUpdate[P]) Update(call *registry.Call, name string, next registry.ObjectUpdate, opts *metav1.UpdateOptions) (runtime.Object, bool, error) {
	obj, err := result(update(call, name, func(current P) (out P, err error) {
		obj, err := result(current, nil)
		if err == nil {
			obj, err = next(call, obj)
		}
		if err != nil {
			return out, err
		}
		return typed[P](obj)
	}, opts))
	return obj, false, err
}

type computedDelete[P runtime.Object] func(call *registry.Call, name string, opts *metav1.DeleteOptions) (P, error)

// Delete implements registry.Deleter.
func (remove computedDelete[P]) Delete(call *registry.Call, name string, opts *metav1.DeleteOptions) (runtime.Object, bool, error) {
	obj, err := result(remove(call, name, opts))
	return obj, true, err
}

// typed returns an object as one of the Go type P.
func typed[P runtime.Object](obj runtime.Object) (P, error) {
	own, ok := obj.(P)
	if !ok {
		return own, fmt.Errorf("a function for objects of Go type %T was called with a %T", own, obj)
	}
	return own, nil
}

// Action returns a subresource to which clients POST an object of Go type T, and which answers with another one, like pods/eviction
// and serviceaccounts/token:
//
//	Subresources: map[string]server.Subresource{"rotate": server.Action("Rotation", rotate)}
//
// T is registered as kind in the version of the resource. do is called concurrently, after authorization, admission and the rules
// of struct tags. Its name is that of the object whose subresource is requested. The server does not check whether that object
// exists: do has to. do may change in. If do returns nil and no error, the answer is a Status. Errors are like those of
// [Computed].
func Action[P runtime.Pointer[T], T any](kind string, do func(call *registry.Call, name string, in P) (P, error)) Subresource {
	if do == nil {
		return SubresourceKind[P](kind, nil)
	}
	return SubresourceKind[P](kind, action[P](do))
}

type action[P runtime.Object] func(call *registry.Call, name string, in P) (P, error)

// Create implements registry.Creater.
func (do action[P]) Create(call *registry.Call, obj runtime.Object, _ *metav1.CreateOptions) (runtime.Object, error) {
	in, err := typed[P](obj)
	if err != nil {
		return nil, err
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	out, err := do(call, m.GetName(), in)
	if err != nil || apiset.IsNil(out) {
		return nil, err
	}
	return out, nil
}
