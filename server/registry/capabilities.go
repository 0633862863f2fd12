package registry

import (
	"context"
	"net/http"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/storage"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The capabilities of a resource: one interface for each verb. A handler serves a verb if and only if the resource has its
// capability. All methods are called concurrently. The Call has the user, the namespace and the deadline, and receives warnings.
// Errors should be StatusErrors of apimachinery; any other error is answered with 500.
//
// Objects that a resource returns are encoded by the handler. They must not be changed afterwards.
type (
	// Getter implements GET of one object.
	Getter interface {
		// Get returns an object.
		Get(call *Call, name string, opts *metav1.GetOptions) (runtime.Object, error)
	}
	// Lister implements GET of a collection.
	Lister interface {
		// List returns a list object. Its Items are objects of the kind, in the namespace of the call, or in all namespaces if
		// the namespace is "".
		//
		// The handler removes objects in other namespaces, and objects that the label selector or the fields metadata.name and
		// metadata.namespace do not select. Therefore List may ignore these selectors, or use them to save work. List itself must
		// apply other fields of the field selector, if the kind has them, and the options limit and continue. The handler removes
		// nothing from a list that has a continue token, nor from the answer to a request that has one: List itself must select
		// the objects of such pages, for example with [Selects].
		List(call *Call, opts *metav1.ListOptions) (runtime.Object, error)
	}
	// Watcher implements watches.
	Watcher interface {
		// Watch starts a watch, which ends with the call.
		Watch(call *Call, opts *metav1.ListOptions) (ObjectWatch, error)
	}
	// Creater implements POST.
	Creater interface {
		// Create creates an object and returns it.
		Create(call *Call, obj runtime.Object, opts *metav1.CreateOptions) (runtime.Object, error)
	}
	// Updater implements PUT and, for resources that are also Getters, PATCH.
	Updater interface {
		// Update replaces the object by the result of update. The result of update has its managedFields. If the resource does
		// not store managedFields, an apply never conflicts. A resource that never creates objects on update can ignore
		// CreateOnUpdate of the call: an apply to a missing object then ends with the NotFound error of Update.
		Update(call *Call, name string, update ObjectUpdate, opts *metav1.UpdateOptions) (obj runtime.Object, created bool, err error)
	}
	// Deleter implements DELETE of one object.
	Deleter interface {
		// Delete deletes an object. deleted says that the object is gone, and not only marked for deletion.
		Delete(call *Call, name string, opts *metav1.DeleteOptions) (obj runtime.Object, deleted bool, err error)
	}
	// CollectionDeleter implements DELETE of a collection.
	CollectionDeleter interface {
		// DeleteCollection deletes the selected objects and returns them as a list.
		DeleteCollection(call *Call, opts *metav1.DeleteOptions, list *metav1.ListOptions) (runtime.Object, error)
	}
	// Connecter implements connections, with the HTTP methods that it names.
	Connecter interface {
		// ConnectMethods returns the HTTP methods, in upper case.
		ConnectMethods() []string
		// Connect returns the handler that answers the request for the object name. subpath is the rest of the path, with its
		// leading slash, or "". The options of the connection, if there are any, are in the query of r. Admission does not
		// receive them.
		Connect(call *Call, name, subpath string, r *http.Request) (http.Handler, error)
	}
	// Tabler makes the tables of a resource. A resource without it has tables with the columns Name and Age.
	Tabler interface {
		// Columns returns the columns of the table.
		Columns() []metav1.TableColumnDefinition
		// Row returns the cells of one object, one for each column. If the kind is in the scheme, the object is of the version of
		// the request. A bookmark of a watch has an empty object without defaults: if Row panics or fails for it, its cells are
		// nil.
		Row(ctx context.Context, obj runtime.Object) ([]any, error)
	}
)

// Untabled is the Storage of a subresource whose answers are never tables: a request for a Table is answered with 406, or in the next
// form that it accepts.
type Untabled interface {
	Untabled()
}

// Identifying is a Creater of a subresource that compares the name and the uid in the metadata of a request with those of the object that
// the path names, as for the tokens of a service account. Without it another name is refused, and the uid is removed, before Create is
// called. A request without a name has the name in the path.
type Identifying interface {
	Identifying()
}

// Opener is the Storage of a subresource that needs the registry of its resource, for example to read the object in Connect.
type Opener interface {
	// Open is called before the first request, once for each version that has the subresource. It must not change what the server
	// serves, and must not call the server to find that out.
	Open(r *Registry) error
}

// ObjectUpdate returns the new state of an object, given the current state, in the hub version. It may be called several times.
// It may change current. current is nil if the object does not exist and the resource, or the call (CreateOnUpdate), creates
// objects on update. If metadata.managedFields of the result is nil, the stored entries stay. An empty slice removes them.
type ObjectUpdate func(call *Call, current runtime.Object) (runtime.Object, error)

// ObjectWatch is the event stream of a Watcher, which returns objects instead of records.
type ObjectWatch interface {
	// Next waits for the next event. An error ends the watch. It is sent to the client as the last event, unless it is the error
	// of the context.
	Next(ctx context.Context) (ObjectEvent, error)
	// Close ends the watch.
	Close()
}

// ObjectEvent is an event of an ObjectWatch.
type ObjectEvent struct {
	Type   string         // ADDED, MODIFIED, DELETED, BOOKMARK
	Object runtime.Object // the object; for a BOOKMARK, only its resourceVersion is needed
}

// Records is the capability of a stored resource to return records (storage.Record: the stored bytes of an object) instead of
// objects, so that handlers can answer with stored bytes. Records has the verb get; the interfaces below have the other verbs. A
// *Registry and its status view implement them. Handlers prefer them to [Getter], [Lister] and the other interfaces for objects.
// Reads and writes are in the namespace of the call.
type Records interface {
	// GetRecord returns one record.
	GetRecord(call *Call, name string, at storage.Read) (storage.Record, error)
	// Decode returns the object of a record, in the hub version. The caller may change the object. Decode must return equal objects
	// for records with the same key, revision and body, because encodings of the objects are cached.
	Decode(r storage.Record) (runtime.Object, error)
}

// ManyRecords is implemented in addition to Records by a kind whose objects should be converted many at a time: see
// runtime.KindOptions.ConvertAll.
type ManyRecords interface {
	// DecodeRecords is Decode for many records. It returns the objects in the order of the records, in version gv of the kind, or
	// an error for all of them. It ends when ctx ends.
	DecodeRecords(ctx context.Context, records []storage.Record, gv schema.GroupVersion) ([]runtime.Object, error)
}

// RecordLister implements GET of a collection with records.
type RecordLister interface {
	// ListRecords returns a page of records. If opts has a Chooser, the page has the records that it chooses: a RecordLister that
	// does not pass opts to a Registry applies it by storage.ListChosen. DeleteRecords of a RecordDeleter has the same rule.
	ListRecords(call *Call, opts storage.ListOptions) (storage.Page, error)
}

// RecordWatcher implements watches with records.
type RecordWatcher interface {
	// WatchRecords starts a watch, which ends with the call. A Chooser in opts is for storage.WatchChosen, as for ListRecords.
	WatchRecords(call *Call, opts storage.WatchOptions) (storage.Watch, error)
}

// RecordChooser says that the RecordLister, RecordWatcher and RecordDeleter of a storage apply the Chooser of a Selection. Without it
// a deletecollection by a field that another version shows would delete the objects that the selector does not match, so that
// package handlers serves no such fields.
type RecordChooser interface {
	ChoosesRecords()
}

// RecordWriter implements POST with records.
type RecordWriter interface {
	// CreateRecord creates an object and returns its record. obj is in the hub version. The registry may change obj, so the
	// caller must not use it afterwards.
	CreateRecord(call *Call, obj runtime.Object, opts *metav1.CreateOptions) (storage.Record, error)
}

// RecordUpdater implements PUT and PATCH with records.
type RecordUpdater interface {
	// UpdateRecord replaces the object by the result of update, and returns its record. created says that the object did not
	// exist before. A result with another uid than the object is refused: see Call.Patch.
	UpdateRecord(call *Call, name string, update ObjectUpdate, opts *metav1.UpdateOptions) (rec storage.Record, created bool, err error)
}

// RecordDeleter implements DELETE with records.
type RecordDeleter interface {
	// DeleteRecord deletes an object. deleted says that the record is gone, and not only marked for deletion. The record is zero if
	// the object could not be read and was deleted by the option IgnoreStoreReadErrorWithClusterBreakingPotential.
	DeleteRecord(call *Call, name string, opts *metav1.DeleteOptions) (rec storage.Record, deleted bool, err error)
	// DeleteRecords deletes the objects that list selects, and returns their records.
	DeleteRecords(call *Call, opts *metav1.DeleteOptions, list storage.ListOptions) (storage.Page, error)
}

// DeletedReturner is a Deleter or RecordDeleter that decides what DELETE answers with.
type DeletedReturner interface {
	// ReturnsDeleted reports whether DELETE answers with the deleted object. If it returns false, or a storage does not have this
	// method, the answer is a Status.
	ReturnsDeleted() bool
}

// FieldResetter is a storage whose updates ignore the values that requests have for some fields. A client does not become the
// manager of such a field by writing it: see https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management.
type FieldResetter interface {
	// ResetFields returns the fields of a version of the kind, each as the path of its JSON names. The caller may change the
	// slices.
	ResetFields(k *runtime.Kind) [][]string
}
