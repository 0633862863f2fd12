package handlers

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/runtime/patch"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/request"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// endpoint is a resource or one of its subresources, with the capabilities of its storage. It is immutable.
type endpoint struct {
	*Resource
	sub     string // "" for the resource itself
	kind    schema.GroupVersionKind
	version string        // kind's, as apiVersion has it
	known   *runtime.Kind // nil: not in the scheme
	table   registry.Tabler
	verbs   []string
	only    []string // the verbs that may be served; nil: all
	marks   func() (bookmarks, error)
	formats []codec.Format // those of the resource that the Go type of kind has: of bodies, and of kind's own form
	proto   bool           // one of them is protobuf
	usual   map[usual]codec.Accept
	formKey any                 // a formKey: of JSON, which other media types are made of
	goneKey any                 // the same of what was deleted
	fields  *patch.FieldManager // nil: objects are not stored, or of no known kind
	patches []string            // media types of the patches that are accepted; nil: none

	records       registry.Records
	many          registry.ManyRecords // nil: objects are converted one by one
	recordLister  registry.RecordLister
	recordWatcher registry.RecordWatcher
	recordWriter  registry.RecordWriter
	recordUpdater registry.RecordUpdater
	recordDeleter registry.RecordDeleter

	getter            registry.Getter
	lister            registry.Lister
	watcher           registry.Watcher
	creater           registry.Creater
	updater           registry.Updater
	deleter           registry.Deleter
	collectionDeleter registry.CollectionDeleter
	connecter         registry.Connecter
}

// may reports whether a verb is served if the storage is capable of it.
func (e *endpoint) may(verb string) bool { return e.only == nil || slices.Contains(e.only, verb) }

func (e *endpoint) hasGet() bool    { return e.records != nil || e.getter != nil }
func (e *endpoint) hasUpdate() bool { return e.recordUpdater != nil || e.updater != nil }

func (e *endpoint) canGet() bool  { return e.hasGet() && e.may("get") }
func (e *endpoint) canList() bool { return (e.recordLister != nil || e.lister != nil) && e.may("list") }
func (e *endpoint) canWatch() bool {
	return (e.recordWatcher != nil || e.watcher != nil) && e.may("watch")
}
func (e *endpoint) canCreate() bool {
	return (e.recordWriter != nil || e.creater != nil) && e.may("create")
}
func (e *endpoint) canUpdate() bool { return e.hasUpdate() && e.may("update") }
func (e *endpoint) canPatch() bool  { return e.hasUpdate() && e.hasGet() && e.may("patch") }
func (e *endpoint) canDelete() bool {
	return (e.recordDeleter != nil || e.deleter != nil) && e.may("delete")
}
func (e *endpoint) canDeleteCollection() bool {
	return (e.recordDeleter != nil || e.collectionDeleter != nil) && e.may("deletecollection")
}

func (e *endpoint) listVerbs() {
	add := func(ok bool, verb string) {
		if ok && !slices.Contains(e.verbs, verb) {
			e.verbs = append(e.verbs, verb)
		}
	}
	item := e.sub != "" // a subresource has no collection
	add(e.canCreate(), "create")
	add(e.canDelete(), "delete")
	add(!item && e.canDeleteCollection(), "deletecollection")
	add(e.canGet(), "get")
	add(!item && e.canList(), "list")
	add(e.canPatch(), "patch")
	add(e.canUpdate(), "update")
	add(!item && e.canWatch(), "watch")
	if e.connecter != nil {
		for _, method := range e.connecter.ConnectMethods() {
			add(true, request.MethodVerb(method))
		}
	}
	e.verbs = slices.DeleteFunc(e.verbs, func(v string) bool { return v == "" })
	slices.Sort(e.verbs)
}

// connects reports whether method is the connecter's.
func (e *endpoint) connects(method string) bool {
	return e.connecter != nil && slices.Contains(e.connecter.ConnectMethods(), method)
}

// path names the endpoint as discovery does: "widgets", "widgets/status".
func (e *endpoint) path() string {
	if e.sub == "" {
		return e.gvr.Resource
	}
	return e.gvr.Resource + "/" + e.sub
}

// inVersion returns obj in the version of the URL. obj is of any version of a known kind, or of an unknown one,
// which is left as it is.
func (e *endpoint) inVersion(ctx context.Context, obj runtime.Object) (runtime.Object, error) {
	k := e.scheme.KindOf(obj)
	if k == nil || k.GVK == e.kind || !e.scheme.OneKind(k.GVK.GroupKind(), e.kind.GroupKind()) {
		return obj, nil
	}
	return e.scheme.ToVersionContext(ctx, obj, e.kind.GroupVersion())
}

// inHub returns obj, of the URL's version, in the hub version, which registries work in.
func (e *endpoint) inHub(ctx *registry.Call, obj runtime.Object) (runtime.Object, error) {
	hub, ok := e.scheme.Hub(e.kind.GroupKind())
	if !ok || hub == e.kind {
		return obj, nil
	}
	sent := obj
	obj, err := e.scheme.ToVersionContext(ctx.Context, obj, hub.GroupVersion())
	if err != nil {
		return nil, err
	}
	ctx.KeepSent(sent, obj)
	_, err = e.shown(ctx, obj) // or the answer to what was done could only be an error
	return obj, err
}

// shown is inVersion for the objects of a call, which keeps what it was asked for. The result is not to be changed.
func (e *endpoint) shown(ctx *registry.Call, obj runtime.Object) (runtime.Object, error) {
	k := e.scheme.KindOf(obj)
	if k == nil || k.GVK == e.kind || !e.scheme.OneKind(k.GVK.GroupKind(), e.kind.GroupKind()) {
		return obj, nil
	}
	return ctx.InVersion(e.scheme, obj, e.kind.GroupVersion())
}

// untyped reports whether obj may stand for an object of any kind.
func untyped(obj runtime.Object) bool {
	switch obj.(type) {
	case apiruntime.Unstructured, *metav1.PartialObjectMetadata:
		return true
	}
	return false
}

// encode returns obj as JSON, kind and apiVersion included, without the newline that ends a body.
func (e *endpoint) encode(ctx context.Context, obj runtime.Object) ([]byte, error) {
	if status, ok := obj.(*metav1.Status); ok {
		obj = withKind(status, schema.GroupVersionKind{Version: "v1", Kind: "Status"})
	} else {
		var err error
		if obj, err = e.inVersion(ctx, obj); err != nil {
			return nil, err
		}
		gvk := e.kind
		if k := e.scheme.KindOf(obj); k != nil {
			gvk = k.GVK
		} else if e.known != nil && !untyped(obj) {
			return nil, fmt.Errorf("the storage of %s returned a %T, which is no kind of the scheme", e.path(), obj)
		}
		obj = withKind(obj, gvk)
	}
	b, err := codec.Encode(obj)
	return bytes.TrimSuffix(b, []byte("\n")), err
}

// untyped reports whether the kind is known and has no Go type.
func (e *endpoint) untyped() bool { return e.known != nil && e.known.Untyped() }

// withKind returns obj if it is of gvk, else a shallow copy that is. obj is not changed.
func withKind(obj runtime.Object, gvk schema.GroupVersionKind) runtime.Object {
	if obj.GetObjectKind().GroupVersionKind() == gvk {
		return obj
	}
	v := reflect.ValueOf(obj)
	if _, untyped := obj.(apiruntime.Unstructured); untyped || v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		obj = obj.DeepCopyObject()
	} else {
		c := reflect.New(v.Elem().Type())
		c.Elem().Set(v.Elem())
		obj = c.Interface().(runtime.Object)
	}
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	return obj
}

// isConvertedKind reports whether a function of the program's makes objects of the kind's versions: those of one may have what
// those of another have not.
func (e *endpoint) isConvertedKind() bool { return e.known != nil && e.known.HasConvert() }
