package catalogue

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

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

// Objects gives access to the metadata of the objects of one served kind, whatever its storage is. It is for background work that
// treats all kinds alike. Its changes pass the strategy of the kind and admission, which see the user of the Catalogue. The user
// is not authenticated or authorized. The argument namespace is "" for a cluster-scoped kind.
//
// If the storage of the kind does not have a verb, the error is a MethodNotSupported. If the kind is not served any more, every
// method returns storage.ErrClosed, which does not say whether an object exists. Other errors are StatusErrors of apimachinery,
// except errors of the context, errors of a Storage of the program, and those of Watch.Next. All methods may be called
// concurrently.
type Objects struct {
	of   Options
	user *authn.User
}

// Options describes the Objects of a kind.
type Options struct {
	Kind       schema.GroupVersionKind // the kind, in the hub version
	Resource   schema.GroupResource    // the group and the plural name of the resource
	Namespaced bool                    // the objects are in namespaces
	// Registry stores the objects; nil if Storage does.
	Registry *registry.Registry
	// Storage stores the objects if Registry is nil. It is any value that implements some of the capabilities of package registry.
	Storage any
	// Gate calls admission for changes to Storage. The field Admission of Gate is also the source of the policy for calls to
	// Storage.
	Gate registry.Gate
	// Life ends when the kind is not served any more.
	Life context.Context
}

// NewObjects returns the Objects of a kind, for work of the user authn.System().
func NewObjects(o Options) *Objects { return &Objects{of: o, user: authn.System()} }

func (o *Objects) unsupported(verb string) error {
	return apierrors.NewMethodNotSupported(o.of.Resource, verb)
}

// ended returns storage.ErrClosed if the kind is not served any more, or nil.
func (o *Objects) ended() error {
	if o.of.Life.Err() != nil {
		return storage.ErrClosed
	}
	return nil
}

// Get reads one object without a cache. A NotFound error is reliable: at a time after the call began, the kind was served and the
// object did not exist.
func (o *Objects) Get(ctx context.Context, namespace, name string) (*metav1.PartialObjectMetadata, error) {
	m, err := o.get(ctx, namespace, name)
	if ended := o.ended(); ended != nil {
		return nil, ended
	}
	return m, err
}

func (o *Objects) get(ctx context.Context, namespace, name string) (*metav1.PartialObjectMetadata, error) {
	call := registry.NewDecidedCall(ctx, o.user, namespace, o.of.Gate.Admission)
	if o.of.Registry != nil {
		return o.metaOf(o.of.Registry.GetStored(call, name))
	}
	getter, ok := registry.As[registry.Getter](o.of.Storage)
	if !ok {
		return nil, o.unsupported("get")
	}
	obj, err := getter.Get(call, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return o.partial(obj)
}

// List returns the current objects of a namespace, or of all namespaces if namespace is "".
func (o *Objects) List(ctx context.Context, namespace string) ([]metav1.PartialObjectMetadata, error) {
	items, err := o.list(ctx, namespace)
	if ended := o.ended(); ended != nil {
		return nil, ended
	}
	return items, err
}

func (o *Objects) list(ctx context.Context, namespace string) ([]metav1.PartialObjectMetadata, error) {
	call := registry.NewDecidedCall(ctx, o.user, namespace, o.of.Gate.Admission)
	if o.of.Registry == nil {
		return o.listCustom(call)
	}
	page, err := o.of.Registry.ListRecords(call, storage.ListOptions{})
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
	lister, ok := registry.As[registry.Lister](o.of.Storage)
	if !ok {
		return nil, o.unsupported("list")
	}
	out, _, err := o.listAll(call, lister)
	return out, err
}

// listAll calls a Lister. It returns the metadata of all objects, and the resourceVersion of the list.
func (o *Objects) listAll(call *registry.Call, lister registry.Lister) (out []metav1.PartialObjectMetadata, revision string, err error) {
	list, err := lister.List(call, &metav1.ListOptions{})
	if err != nil {
		return nil, "", err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, "", fmt.Errorf("list of %s: %w", o.of.Resource, err)
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

// Change applies change to the current metadata of one object and stores the result. If another write comes between, Change
// starts again, so change may be called several times. An error of change ends Change and is returned.
func (o *Objects) Change(ctx context.Context, namespace, name string, change func(m metav1.Object) error) error {
	if err := o.ended(); err != nil {
		return err
	}
	call := registry.NewDecidedCall(ctx, o.user, namespace, o.of.Gate.Admission)
	update := func(_ *registry.Call, current runtime.Object) (runtime.Object, error) {
		if current == nil { // the kind creates objects on update
			return nil, apierrors.NewNotFound(o.of.Resource, name)
		}
		m, err := meta.Accessor(current)
		if err != nil {
			return nil, err
		}
		return current, change(m)
	}
	if o.of.Registry != nil {
		_, _, err := o.of.Registry.UpdateRecord(call, name, update, nil)
		return err
	}
	updater, ok := registry.As[registry.Updater](o.of.Storage)
	if !ok {
		return o.unsupported("update")
	}
	_, _, err := o.of.Gate.Updater(updater).Update(call, name, update, &metav1.UpdateOptions{})
	return err
}

// Delete deletes one object, or marks it for deletion. opts may be nil.
func (o *Objects) Delete(ctx context.Context, namespace, name string, opts *metav1.DeleteOptions) error {
	if err := o.ended(); err != nil {
		return err
	}
	call := registry.NewDecidedCall(ctx, o.user, namespace, o.of.Gate.Admission)
	if o.of.Registry != nil {
		_, _, err := o.of.Registry.DeleteRecord(call, name, opts)
		return err
	}
	deleter, ok := registry.As[registry.Deleter](o.of.Storage)
	if !ok {
		return o.unsupported("delete")
	}
	if opts == nil {
		opts = &metav1.DeleteOptions{}
	}
	_, _, err := o.of.Gate.Deleter(deleter).Delete(call, name, opts)
	return err
}

// Watch returns an Added event for every object, then a Bookmark, and then every change. It ends with an error of Next when the
// kind is not served any more, or when the reader was too slow. In the latter case, call Watch again.
func (o *Objects) Watch(ctx context.Context) (*Watch, error) {
	if err := o.ended(); err != nil {
		return nil, err
	}
	call := registry.NewDecidedCall(ctx, o.user, "", o.of.Gate.Admission)
	if o.of.Registry != nil {
		w, err := o.of.Registry.WatchRecords(call, storage.WatchOptions{Initial: true})
		if err != nil {
			return nil, err
		}
		return &Watch{of: o, records: w}, nil
	}
	watcher, ok := registry.As[registry.Watcher](o.of.Storage)
	if !ok {
		return nil, o.unsupported("watch")
	}
	return o.watchCustom(call, watcher)
}

// watchCustom lists and then watches, as a client without WatchList does, because a Watcher of the program may not support
// initial events.
func (o *Objects) watchCustom(call *registry.Call, watcher registry.Watcher) (*Watch, error) {
	lister, ok := registry.As[registry.Lister](o.of.Storage)
	if !ok {
		return nil, o.unsupported("list")
	}
	all, revision, err := o.listAll(call, lister)
	if err != nil {
		return nil, err
	}
	out := &Watch{of: o}
	for _, m := range all {
		out.initial = append(out.initial, Event{Type: watch.Added, Object: m})
	}
	out.initial = append(out.initial, bookmark(revision))
	out.objects, err = watcher.Watch(call, &metav1.ListOptions{ResourceVersion: revision})
	return out, err
}

func bookmark(revision string) Event {
	return Event{Type: watch.Bookmark, Object: metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: revision}}}
}

// Event is an event of a Watch: Added, Modified, Deleted with the last state of the object, or a Bookmark, whose Object has only
// a resourceVersion.
type Event struct {
	Type   watch.EventType              // watch.Added, watch.Modified, watch.Deleted or watch.Bookmark
	Object metav1.PartialObjectMetadata // the metadata of the object
}

// Watch is a stream of events. A slow reader does not block writers. Only one goroutine at a time may call Next. Close may be
// called by any goroutine, and must be called.
type Watch struct {
	of      *Objects
	initial []Event       // the first events, if objects is used
	records storage.Watch // the source of events: records or objects
	objects registry.ObjectWatch
}

// Next waits for the next events; there is at least one. After an error other than the context's, the watch has ended. The error
// is one of package storage if the reader was too slow, or if the kind is not served any more (storage.ErrClosed).
func (w *Watch) Next(ctx context.Context) ([]Event, error) {
	alive, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(w.of.of.Life, end)()
	events, err := w.next(alive)
	if err != nil && w.of.of.Life.Err() != nil && ctx.Err() == nil {
		return nil, storage.ErrClosed
	}
	return events, err
}

func (w *Watch) next(ctx context.Context) ([]Event, error) {
	if w.records == nil {
		return w.nextObjects(ctx)
	}
	events, err := w.records.Next(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]Event, 0, len(events))
	for _, e := range events {
		if e.Type == watch.Bookmark {
			out = append(out, bookmark(strconv.FormatInt(e.Record.Revision, 10)))
			continue
		}
		m, err := w.of.metaOf(e.Record, nil)
		if err != nil {
			return nil, err
		}
		out = append(out, Event{Type: e.Type, Object: *m})
	}
	return out, nil
}

func (w *Watch) nextObjects(ctx context.Context) ([]Event, error) {
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
	return []Event{{Type: watch.EventType(e.Type), Object: *m}}, nil
}

// Close ends the watch.
func (w *Watch) Close() {
	if w.records != nil {
		w.records.Close()
		return
	}
	w.objects.Close()
}

// recordMeta is the metadata that is read from a record: all useful fields except managedFields.
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

// metaOf returns the metadata of a record. It does not decode the rest of the record.
func (o *Objects) metaOf(rec storage.Record, err error) (*metav1.PartialObjectMetadata, error) {
	if err != nil {
		return nil, err
	}
	var m recordMeta
	if err := json.Unmarshal(rec.Body.AppendMetadata(nil, 0), &m); err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("metadata of %s %s: %w", o.of.Resource, rec.Key, err))
	}
	out := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: m.Name, Namespace: m.Namespace, UID: m.UID, ResourceVersion: strconv.FormatInt(rec.Revision, 10), Generation: m.Generation,
		CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp, DeletionGracePeriodSeconds: m.DeletionGracePeriodSeconds,
		Labels: m.Labels, Annotations: m.Annotations, OwnerReferences: m.OwnerReferences, Finalizers: m.Finalizers,
	}}
	out.SetGroupVersionKind(o.of.Kind)
	return out, nil
}

// partial returns the metadata of an object.
func (o *Objects) partial(obj runtime.Object) (*metav1.PartialObjectMetadata, error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, fmt.Errorf("object of %s: %w", o.of.Resource, err)
	}
	out := meta.AsPartialObjectMetadata(accessor)
	out.ManagedFields = nil
	out = out.DeepCopy()
	out.SetGroupVersionKind(o.of.Kind)
	return out, nil
}
