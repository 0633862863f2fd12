package handlers

import (
	"slices"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/patch"
	"github.com/keelson-dev/keelson/server/handlers/internal/wire"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/request"
)

// endpoint is a resource or one of its subresources, with the capabilities of its storage. It is immutable.
type endpoint struct {
	*Resource
	*wire.Objects
	policy  admission.Source // nil if there is none
	sub     string           // "" for the resource itself
	forms   *wire.Forms
	verbs   []string
	only    []string // the verbs that may be served; nil is all
	marks   func() (bookmarks, error)
	fields  *patch.FieldManager // nil if the objects are not stored, or their kind is not known
	patches []string            // media types of the patches that are accepted; nil is none

	many          registry.ManyRecords // nil if objects are converted one by one
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

	identifying bool // the storage compares the name and uid of a new object itself
}

// may reports whether the options allow to serve a verb that the storage is capable of.
func (e *endpoint) may(verb string) bool { return e.only == nil || slices.Contains(e.only, verb) }

func (e *endpoint) hasGet() bool    { return e.Records != nil || e.getter != nil }
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

// connects reports whether the connecter serves a method.
func (e *endpoint) connects(method string) bool {
	return e.connecter != nil && slices.Contains(e.connecter.ConnectMethods(), method)
}

// pathOf returns the name of an endpoint as discovery shows it: "widgets", "widgets/status".
func pathOf(resource, sub string) string {
	if sub == "" {
		return resource
	}
	return resource + "/" + sub
}

// inHub converts obj from the URL's version to the hub version, which is the version that registries use.
func (e *endpoint) inHub(ctx *registry.Call, obj runtime.Object) (runtime.Object, error) {
	hub, ok := e.scheme.Hub(e.Kind.GroupKind())
	if !ok || hub == e.Kind {
		return obj, nil
	}
	sent := obj
	obj, err := e.scheme.ToVersionContext(ctx.Context, obj, hub.GroupVersion())
	if err != nil {
		return nil, inTime(err)
	}
	ctx.KeepSent(sent, obj)
	_, err = e.shown(ctx, obj) // an object that cannot be converted back is refused now: the answer could not show it after the change
	return obj, inTime(err)
}

// shown is InVersion for the objects of a call. The call caches the result, which must not be changed.
func (e *endpoint) shown(ctx *registry.Call, obj runtime.Object) (runtime.Object, error) {
	if !e.Differs(obj) {
		return obj, nil
	}
	return ctx.InVersion(e.scheme, obj, e.Kind.GroupVersion())
}
