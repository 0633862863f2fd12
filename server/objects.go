package server

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Objects are the objects of one served kind, whatever serves it, as far as their metadata goes: for work in the
// background that treats all kinds alike. What it does passes the kind's strategy and admission, which see the user of
// the Catalogue, but neither authentication nor authorization. namespace is "" for a cluster-scoped kind.
//
// A verb that the kind is not capable of is a MethodNotSupported. Errors are apimachinery StatusErrors, but for the
// context's own, those of a Storage of the program's, and those of ObjectsWatch.Next. All methods may be called
// concurrently.
type Objects struct {
	kind       schema.GroupVersionKind
	resource   schema.GroupResource
	namespaced bool
	reg        *registry.Registry
	custom     any             // instead of reg
	gate       registry.Gate   // before what custom changes
	life       context.Context // ends when the kind is withdrawn
	user       *authn.User
}

func (s *Server) objectsOf(r *served) *Objects {
	return &Objects{
		kind: r.gvk, resource: r.gvr.GroupResource(), namespaced: r.namespaced, reg: registryOf(r), custom: r.custom, life: r.life, user: authn.System(),
		gate: registry.Gate{Admission: s.policy, Kind: r.hub, Resource: r.hub.GroupVersion().WithResource(r.gvr.Resource)},
	}
}

// decidedCall is registry.NewCall for a call that may be of a Storage of the program's own, which asks for no policy itself.
func decidedCall(ctx context.Context, user *authn.User, namespace string, policy admission.Source) *registry.Call {
	call := registry.NewCall(ctx, user, namespace)
	if call.Policy == nil {
		call.Policy = admission.PolicyOf(ctx, policy)
	}
	return call
}

// registryOf returns the registry of a resource, be it given by the program; nil when it has another Storage of its own.
func registryOf(r *served) *registry.Registry {
	if reg, ok := r.custom.(*registry.Registry); ok {
		return reg
	}
	return r.reg
}

func (o *Objects) unsupported(verb string) error {
	return apierrors.NewMethodNotSupported(o.resource, verb)
}

// Get reads one object past every cache: a NotFound is the truth at a moment after the call began.
func (o *Objects) Get(ctx context.Context, namespace, name string) (*metav1.PartialObjectMetadata, error) {
	call := decidedCall(ctx, o.user, namespace, o.gate.Admission)
	if o.reg != nil {
		return o.metaOf(o.reg.GetStored(call, name))
	}
	getter, ok := o.custom.(registry.Getter)
	if !ok {
		return nil, o.unsupported("get")
	}
	obj, err := getter.Get(call, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return o.partial(obj)
}

// List reads the objects of a namespace, or of all with "", as they are now.
func (o *Objects) List(ctx context.Context, namespace string) ([]metav1.PartialObjectMetadata, error) {
	call := decidedCall(ctx, o.user, namespace, o.gate.Admission)
	if o.reg == nil {
		return o.listCustom(call)
	}
	page, err := o.reg.ListRecords(call, storage.ListOptions{})
	if err != nil {
		return nil, err
	}
	out := make([]metav1.PartialObjectMetadata, 0, page.Count)
	for rec := range page.Records {
		m, err := o.metaOf(rec, nil)
		if err != nil {
			return nil, err
		}
		out = append(out, *m)
	}
	return out, nil
}

func (o *Objects) listCustom(call *registry.Call) ([]metav1.PartialObjectMetadata, error) {
	lister, ok := o.custom.(registry.Lister)
	if !ok {
		return nil, o.unsupported("list")
	}
	out, _, err := o.listAll(call, lister)
	return out, err
}

// listAll asks a Lister for the metadata of all, and the resourceVersion of the list.
func (o *Objects) listAll(call *registry.Call, lister registry.Lister) (out []metav1.PartialObjectMetadata, revision string, err error) {
	list, err := lister.List(call, &metav1.ListOptions{})
	if err != nil {
		return nil, "", err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, "", fmt.Errorf("list of %s: %w", o.resource, err)
	}
	out = make([]metav1.PartialObjectMetadata, 0, len(items))
	for _, item := range items {
		m, err := o.partial(item)
		if err != nil {
			return nil, "", err
		}
		if ns := call.Namespace; ns == "" || m.Namespace == "" || m.Namespace == ns {
			out = append(out, *m)
		}
	}
	if m, err := meta.ListAccessor(list); err == nil {
		revision = m.GetResourceVersion()
	}
	return out, revision, nil
}

// Change changes the metadata of one object, from what it is now, again and again until nobody came between. An error of
// change ends it and is returned; change may be called several times.
func (o *Objects) Change(ctx context.Context, namespace, name string, change func(m metav1.Object) error) error {
	call := decidedCall(ctx, o.user, namespace, o.gate.Admission)
	update := func(_ *registry.Call, current runtime.Object) (runtime.Object, error) {
		if current == nil { // the kind creates on update
			return nil, apierrors.NewNotFound(o.resource, name)
		}
		m, err := meta.Accessor(current)
		if err != nil {
			return nil, err
		}
		return current, change(m)
	}
	if o.reg != nil {
		_, _, err := o.reg.UpdateRecord(call, name, update, nil)
		return err
	}
	updater, ok := o.custom.(registry.Updater)
	if !ok {
		return o.unsupported("update")
	}
	_, _, err := o.gate.Updater(updater).Update(call, name, update, &metav1.UpdateOptions{})
	return err
}

// Delete deletes one object, or marks it for deletion. opts may be nil.
func (o *Objects) Delete(ctx context.Context, namespace, name string, opts *metav1.DeleteOptions) error {
	call := decidedCall(ctx, o.user, namespace, o.gate.Admission)
	if o.reg != nil {
		_, _, err := o.reg.DeleteRecord(call, name, opts)
		return err
	}
	deleter, ok := o.custom.(registry.Deleter)
	if !ok {
		return o.unsupported("delete")
	}
	if opts == nil {
		opts = &metav1.DeleteOptions{}
	}
	_, _, err := o.gate.Deleter(deleter).Delete(call, name, opts)
	return err
}

// Watch shows every object as Added, then a Bookmark, and from then on every change. It ends with an error of Next when
// the kind is withdrawn, or when the reader was too slow: then it is begun anew.
func (o *Objects) Watch(ctx context.Context) (*ObjectsWatch, error) {
	call := decidedCall(ctx, o.user, "", o.gate.Admission)
	if o.reg != nil {
		w, err := o.reg.WatchRecords(call, storage.WatchOptions{Initial: true})
		if err != nil {
			return nil, err
		}
		return &ObjectsWatch{of: o, records: w}, nil
	}
	watcher, ok := o.custom.(registry.Watcher)
	if !ok {
		return nil, o.unsupported("watch")
	}
	return o.watchCustom(call, watcher)
}

// watchCustom lists and then watches, as a client without WatchList does: a Watcher of the program's need not know that.
func (o *Objects) watchCustom(call *registry.Call, watcher registry.Watcher) (*ObjectsWatch, error) {
	lister, ok := o.custom.(registry.Lister)
	if !ok {
		return nil, o.unsupported("list")
	}
	all, revision, err := o.listAll(call, lister)
	if err != nil {
		return nil, err
	}
	out := &ObjectsWatch{of: o}
	for _, m := range all {
		out.initial = append(out.initial, ObjectsEvent{Type: watch.Added, Object: m})
	}
	out.initial = append(out.initial, bookmark(revision))
	out.objects, err = watcher.Watch(call, &metav1.ListOptions{ResourceVersion: revision})
	return out, err
}

func bookmark(revision string) ObjectsEvent {
	return ObjectsEvent{Type: watch.Bookmark, Object: metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: revision}}}
}

// ObjectsEvent is a change as an ObjectsWatch shows it: Added, Modified, Deleted with the object as it was last, or a
// Bookmark, whose Object has only a resourceVersion.
type ObjectsEvent struct {
	Type   watch.EventType
	Object metav1.PartialObjectMetadata
}

// ObjectsWatch is a stream of events, read at the reader's own pace. One goroutine at a time calls Next; Close may be
// called by any, and must be called.
type ObjectsWatch struct {
	of      *Objects
	initial []ObjectsEvent // shown first, of objects
	records storage.Watch  // one of the two
	objects registry.ObjectWatch
}

// Next waits for the next events; there is at least one. After an error other than the context's the watch is over: one of
// package storage when the reader was too slow or the kind is withdrawn (storage.ErrClosed).
func (w *ObjectsWatch) Next(ctx context.Context) ([]ObjectsEvent, error) {
	alive, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(w.of.life, end)()
	events, err := w.next(alive)
	if err != nil && w.of.life.Err() != nil && ctx.Err() == nil {
		return nil, storage.ErrClosed
	}
	return events, err
}

func (w *ObjectsWatch) next(ctx context.Context) ([]ObjectsEvent, error) {
	if w.records == nil {
		return w.nextObjects(ctx)
	}
	events, err := w.records.Next(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]ObjectsEvent, 0, len(events))
	for _, e := range events {
		if e.Type == watch.Bookmark {
			out = append(out, bookmark(strconv.FormatInt(e.Record.Revision, 10)))
			continue
		}
		m, err := w.of.metaOf(e.Record, nil)
		if err != nil {
			return nil, err
		}
		out = append(out, ObjectsEvent{Type: e.Type, Object: *m})
	}
	return out, nil
}

func (w *ObjectsWatch) nextObjects(ctx context.Context) ([]ObjectsEvent, error) {
	if out := w.initial; out != nil {
		w.initial = nil
		return out, nil
	}
	e, err := w.objects.Next(ctx)
	switch {
	case err != nil:
		return nil, err
	case e.Type == string(watch.Error):
		return nil, apierrors.FromObject(e.Object)
	}
	m, err := w.of.partial(e.Object)
	if err != nil {
		return nil, err
	}
	return []ObjectsEvent{{Type: watch.EventType(e.Type), Object: *m}}, nil
}

// Close ends the watch.
func (w *ObjectsWatch) Close() {
	if w.records != nil {
		w.records.Close()
		return
	}
	w.objects.Close()
}

// recordMeta is what is read of a record's metadata: all but managedFields and what is of no use to anybody.
type recordMeta struct {
	Name                       string                  `json:"name"`
	Namespace                  string                  `json:"namespace"`
	UID                        types.UID               `json:"uid"`
	Generation                 int64                   `json:"generation"`
	CreationTimestamp          metav1.Time             `json:"creationTimestamp"`
	DeletionTimestamp          *metav1.Time            `json:"deletionTimestamp"`
	DeletionGracePeriodSeconds *int64                  `json:"deletionGracePeriodSeconds"`
	Labels                     map[string]string       `json:"labels"`
	Annotations                map[string]string       `json:"annotations"`
	OwnerReferences            []metav1.OwnerReference `json:"ownerReferences"`
	Finalizers                 []string                `json:"finalizers"`
}

// metaOf returns the metadata of a record, without decoding the rest of it.
func (o *Objects) metaOf(rec storage.Record, err error) (*metav1.PartialObjectMetadata, error) {
	if err != nil {
		return nil, err
	}
	var m recordMeta
	if err := json.Unmarshal(rec.Body.AppendMetadata(nil, 0), &m); err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("metadata of %s %s: %w", o.resource, rec.Key, err))
	}
	out := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: m.Name, Namespace: m.Namespace, UID: m.UID, ResourceVersion: strconv.FormatInt(rec.Revision, 10), Generation: m.Generation,
		CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp, DeletionGracePeriodSeconds: m.DeletionGracePeriodSeconds,
		Labels: m.Labels, Annotations: m.Annotations, OwnerReferences: m.OwnerReferences, Finalizers: m.Finalizers,
	}}
	out.SetGroupVersionKind(o.kind)
	return out, nil
}

// partial returns the metadata of an object.
func (o *Objects) partial(obj runtime.Object) (*metav1.PartialObjectMetadata, error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, fmt.Errorf("object of %s: %w", o.resource, err)
	}
	out := meta.AsPartialObjectMetadata(accessor)
	out.ManagedFields = nil
	out = out.DeepCopy()
	out.SetGroupVersionKind(o.kind)
	return out, nil
}
