package registry

import (
	"context"
	"net/http"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/storage"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The capabilities of a resource, one interface a verb. A handler serves a verb if and only if the resource has
// its capability. All methods are called concurrently; the Call has the user, the namespace,
// the deadline and what warnings go to. Errors should be apimachinery StatusErrors; any other is answered as 500.
//
// Objects that a resource returns are encoded at the edge and must not be changed afterwards.
type (
	// Getter answers GET of one object.
	Getter interface {
		Get(call *Call, name string, opts *metav1.GetOptions) (runtime.Object, error)
	}
	// Lister answers GET of a collection with a list object: its Items are objects of the kind, in the namespace of the
	// call, or in all when that is "". A handler leaves out of the answer what is in another namespace, or what the
	// label selector or the fields metadata.name and metadata.namespace do not choose, so that a lister looks at those only
	// to save work. Further fields, of a kind that has them, are its own business, as limit and continue are: a list that
	// has a continue is answered as it is, and Selects helps to count.
	Lister interface {
		List(call *Call, opts *metav1.ListOptions) (runtime.Object, error)
	}
	// Watcher answers watches. The watch ends with the call.
	Watcher interface {
		Watch(call *Call, opts *metav1.ListOptions) (ObjectWatch, error)
	}
	// Creater answers POST.
	Creater interface {
		Create(call *Call, obj runtime.Object, opts *metav1.CreateOptions) (runtime.Object, error)
	}
	// Updater answers PUT and, for resources that are also Getters, PATCH. What update returns has its managedFields; a
	// resource that does not keep them knows no conflicts. A resource that never creates need not look at CreateOnUpdate:
	// an apply of what it lacks then ends with its NotFound.
	Updater interface {
		Update(call *Call, name string, update ObjectUpdate, opts *metav1.UpdateOptions) (obj runtime.Object, created bool, err error)
	}
	// Deleter answers DELETE of one object. deleted says that the object is gone, not only marked for deletion.
	Deleter interface {
		Delete(call *Call, name string, opts *metav1.DeleteOptions) (obj runtime.Object, deleted bool, err error)
	}
	// CollectionDeleter answers DELETE of a collection with the list of what it deleted.
	CollectionDeleter interface {
		DeleteCollection(call *Call, opts *metav1.DeleteOptions, list *metav1.ListOptions) (runtime.Object, error)
	}
	// Connecter answers the HTTP methods it names itself.
	Connecter interface {
		// ConnectMethods are HTTP methods, upper case.
		ConnectMethods() []string
		// Connect returns what answers the request for the object name; subpath is the rest of the path, with its
		// leading slash, or "". The options of the connection, if there are any, are in the query of r; admission is not
		// shown them.
		Connect(call *Call, name, subpath string, r *http.Request) (http.Handler, error)
	}
	// Tabler makes its own tables; without it a table has the columns Name and Age.
	Tabler interface {
		// Columns describes the table's columns; Row makes the cells of one object, as many as there are columns. Of a
		// kind that is in the scheme, the object is of the version of the request. A bookmark of a watch has an empty
		// object, without defaults: if Row panics or fails on that one, its cells are nil.
		Columns() []metav1.TableColumnDefinition
		Row(ctx context.Context, obj runtime.Object) ([]any, error)
	}
)

// Opener is the Storage of a subresource that wants the registry of its resource, as Connect of one needs to read the object.
// Open is called before the first request, once for each version that has the subresource. It must not change what the server
// serves, nor ask the server what that is.
type Opener interface {
	Open(r *Registry) error
}

// ObjectUpdate makes the new state of an object from the current one, in the hub version. It may be called
// several times. current belongs to the callee and is nil when the object does not exist and the resource
// creates on update, or the call says so (CreateOnUpdate). Of metadata.managedFields, nil leaves what is there, and
// an empty slice takes it away.
type ObjectUpdate func(call *Call, current runtime.Object) (runtime.Object, error)

// ObjectWatch is the stream of a Watcher that has no records.
type ObjectWatch interface {
	// Next waits for the next event. Errors end the watch and are shown to the client as its last event, but for
	// the context's.
	Next(ctx context.Context) (ObjectEvent, error)
	Close()
}

// ObjectEvent is an event of an ObjectWatch. Object of a BOOKMARK needs only a resourceVersion.
type ObjectEvent struct {
	Type   string // ADDED, MODIFIED, DELETED, BOOKMARK
	Object runtime.Object
}

// Records is the capability of a stored resource: every verb in records, so that handlers can answer in bytes.
// A *Registry and its status view have it; handlers prefer it to the interfaces above. Reads and writes are in
// the namespace of the call.
type Records interface {
	// GetRecord returns one record.
	GetRecord(call *Call, name string, at storage.Read) (storage.Record, error)
	// Decode makes the caller's own object, in the hub version, of a record. Of the same key, revision and body it makes
	// the same: the answers made of it are kept for others.
	Decode(r storage.Record) (runtime.Object, error)
}

// ManyRecords is Records for a kind of which many objects are best converted at once: see runtime.KindOptions.ConvertAll.
type ManyRecords interface {
	// DecodeRecords is Decode for many records, in version gv of the kind: as many objects, in their order, or an error for all.
	// It ends with ctx.
	DecodeRecords(ctx context.Context, records []storage.Record, gv schema.GroupVersion) ([]runtime.Object, error)
}

// RecordLister is Records for collections.
type RecordLister interface {
	ListRecords(call *Call, opts storage.ListOptions) (storage.Page, error)
}

// RecordWatcher is Records for watches.
type RecordWatcher interface {
	WatchRecords(call *Call, opts storage.WatchOptions) (storage.Watch, error)
}

// RecordWriter is Records for writes. obj, in the hub version, belongs to the registry from the call on.
type RecordWriter interface {
	CreateRecord(call *Call, obj runtime.Object, opts *metav1.CreateOptions) (storage.Record, error)
}

// RecordUpdater is Records for PUT and PATCH.
type RecordUpdater interface {
	UpdateRecord(call *Call, name string, update ObjectUpdate, opts *metav1.UpdateOptions) (rec storage.Record, created bool, err error)
}

// RecordDeleter is Records for DELETE. deleted says that the record is gone, not only marked. Of one that could not be
// read, and is gone by the option for these, the record is zero.
type RecordDeleter interface {
	DeleteRecord(call *Call, name string, opts *metav1.DeleteOptions) (rec storage.Record, deleted bool, err error)
	DeleteRecords(call *Call, opts *metav1.DeleteOptions, list storage.ListOptions) (storage.Page, error)
}

// DeletedReturner is a Deleter or RecordDeleter that may want DELETE answered with the deleted object. Without it,
// or when it says false, the answer is a Status.
type DeletedReturner interface {
	ReturnsDeleted() bool
}

// FieldResetter is a storage whose updates throw away what requests say of some fields. Those fields are not managed by
// who writes them: see https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management.
type FieldResetter interface {
	// ResetFields returns the fields of a version of the kind, each as the path of JSON names to it. The slices are the
	// caller's own.
	ResetFields(k *runtime.Kind) [][]string
}
