package storage

import (
	"context"
	"iter"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// Interface is the storage of one resource. Keys are relative to the resource: "namespace/name", or "name" for a
// cluster-scoped one. All methods may be called concurrently. Records are shared: nobody may change their bytes.
//
// Errors are the sentinels and types of this package; a context's error is returned unchanged. An Interface may implement
// further interfaces for optional abilities: [UnreadableDeleter], [ManyDecoder], [Source], [Differ].
type Interface interface {
	// Get returns one record, or ErrNotFound.
	Get(ctx context.Context, key string, at Read) (Record, error)
	// List returns the records that match, in key order. Errors: ErrBadContinue, an *ExpiredError, a *FutureError, an
	// *UnreadableError; a cache may return a *FillingError.
	List(ctx context.Context, opts ListOptions) (Page, error)
	// Watch follows the records that match, until ctx ends or the watch is closed. Errors that are known before the first
	// event are returned here: an *ExpiredError for a From below the window, a *FutureError for an At that the store does not
	// reach in time, and a *FillingError of a cache that is being filled. A From in the future is accepted, and only changes
	// after it are shown.
	Watch(ctx context.Context, opts WatchOptions) (Watch, error)
	// Create stores obj under key, or returns ErrExists. It reads obj and does not keep it, and ignores its resourceVersion.
	Create(ctx context.Context, key string, obj runtime.Object, opts WriteOptions) (Record, error)
	// Update replaces or deletes the object under key with the outcome of change; see ChangeFunc for the contract. It returns
	// the record after the change (for a deletion: the last record, with the deletion's revision).
	Update(ctx context.Context, key string, opts WriteOptions, change ChangeFunc) (Record, error)
	// Decode makes the object of a record, in the hub version, with its resourceVersion set. The object belongs to the
	// caller.
	Decode(r Record) (runtime.Object, error)
	// Revision returns the store's current revision by a linearizable read.
	Revision(ctx context.Context) (int64, error)
}

// ManyDecoder is an Interface that decodes many objects at once, for kinds for which that is cheaper: see
// runtime.KindOptions.ConvertAll.
type ManyDecoder interface {
	// DecodeAll is Decode for many records, in version gv of the kind. It returns the objects in the order of the records, or
	// one error for all of them. It ends when ctx ends. If the codec cannot do this, the error is ErrUnsupported.
	DecodeAll(ctx context.Context, records []Record, gv schema.GroupVersion) ([]runtime.Object, error)
}

// UnreadableDeleter is an Interface that can delete an object that it cannot read.
type UnreadableDeleter interface {
	// DeleteUnreadable deletes the value under key if it cannot be read, and only in the state that was found to be
	// unreadable. Finalizers and everything else in the value are ignored. It returns the deletion's revision. A watch that
	// had to show the object ends with an *UnreadableError. With opts.DryRun it does everything except the deletion, and the
	// revision is that of the value; opts.TTL is ignored. Errors: ErrNotFound, ErrReadable.
	DeleteUnreadable(ctx context.Context, key string, opts WriteOptions) (revision int64, err error)
}

// Record is one stored object.
type Record struct {
	Key      string         // relative to the resource
	Revision int64          // its resourceVersion; 0 for one that was not stored (dry run)
	Body     codec.Document // the object in canonical bytes
	Labels   labels.Labels  // never nil; read lazily from Body, or a shared set; has the method that selector.Labels needs
	// Fields has metadata.name, metadata.namespace and the kind's selectable fields; shared.
	Fields fields.Fields
	// Stale means that the stored bytes differ from Body, because another build wrote them or an old key sealed them. The
	// next update rewrites them even if it changes nothing.
	Stale bool
	read  *readBack // the object that was decoded when the record was written; nil: none
	// Held means that the storage has the bytes of Body in memory for as long as they are stored, and shares them. A holder
	// of the record saves no memory by keeping less of it.
	Held bool
}

// Match says which states of the store a read accepts.
type Match int

// The four possible meanings of resourceVersion and resourceVersionMatch, and one Match that no client's request can have.
const (
	Latest       Match = iota // the most recent state, by a linearizable read
	Any                       // any state at all (resourceVersion "0")
	NotOlderThan              // any state at Revision or later
	Exact                     // the state at Revision
	// Acknowledged is a state with all writes that this Interface had acknowledged before the read, and all changes that it
	// had received by then. A cache serves it without a read of the storage below. Any other Interface treats it as Latest.
	// It is valid for Get, List and [Differ.Delta].
	Acknowledged
)

// Read selects the state to read. The zero Read is the most recent state.
type Read struct {
	Match    Match // which states are accepted
	Revision int64 // only for NotOlderThan and Exact
}

// Selection chooses records. Zero fields choose everything.
type Selection struct {
	Namespace string          // only in this namespace
	Name      string          // only with this name (without Namespace: in any)
	Labels    labels.Selector // only records whose labels match; nil matches all
	Fields    fields.Selector // only records whose fields match; nil matches all
	// Chooser chooses among the records that match; nil chooses all. Only ListChosen and WatchChosen apply it. An Interface that
	// gets a Chooser returns ErrUnsupported.
	Chooser Chooser
}

// Matches reports whether the selectors match r. It does not compare Namespace and Name, which are part of the key.
func (s Selection) Matches(r Record) bool {
	return (s.Labels == nil || s.Labels.Matches(r.Labels)) && (s.Fields == nil || s.Fields.Matches(r.Fields))
}

// Selective reports whether s has a label or field selector that can exclude a record.
func (s Selection) Selective() bool {
	return s.Labels != nil && !s.Labels.Empty() || s.Fields != nil && !s.Fields.Empty()
}

// ListOptions are the options of List. With Continue, At must be the zero Read.
type ListOptions struct {
	Selection
	At       Read   // the state to list
	Limit    int64  // at most this many records; 0 is all. Ignored with Match Any, as in kube-apiserver
	Continue string // a token from an earlier Page

	// Portion, if positive, is about how many bytes of records are read at once. A longer page comes in portions, see
	// Page.Next. An Interface that has the records in memory, such as a cache, does not use it.
	Portion int64
	// Account is called before and after each portion is read; nil is no account.
	Account Account
}

// Account bounds the bytes that are held for lists that are read in portions, and for objects that are updated.
type Account interface {
	// Hold is called with about the number of bytes that the reader of a list will hold once the next portion is read; the
	// number replaces the one of the call before. After the portion is read, Hold is called with the real number. For an
	// update, the bytes are those of the state that is changed. An error ends the list or the update, and is returned
	// unchanged.
	Hold(bytes int64) error
}

// Page is the result of List: a state of the store, not a copy of it.
type Page struct {
	Records iter.Seq[Record] // may be walked more than once; cannot fail
	// Blocks has the same records in the same order, grouped into the runs that the storage keeps together. It is nil when
	// the storage keeps no such runs. It may be walked more than once.
	Blocks   iter.Seq[Block]
	Count    int    // number of records
	Revision int64  // the revision of the state, the same for all pages of a list
	Continue string // token for the next page; "" at the end
	// Version is the apiVersion in which every record is written; "" when it is not known, or when the records differ.
	Version string
	// Remaining is the number of records after this page. It is nil when unknown (there are selectors) or when none follow.
	Remaining *int64

	// Next reads the next portion of the page: another Page at the same Revision, whose Count is that of the portion. The
	// last portion has the page's Continue and Remaining, and no Next. Next may be called more than once, later, and by
	// several goroutines. Readers that read the same portion at the same time share its records. Its errors are those of
	// List: the whole page is known to be readable only when the last portion was read. It is nil if no portion follows,
	// which is always so without ListOptions.Portion.
	Next func(ctx context.Context) (Page, error)
	// Bytes is about the number of bytes that were read from the backend for this portion and are held by it. It is 0 where
	// they are shared with a cache.
	Bytes int64
}

// Block is a run of neighbouring records of a Page.
type Block struct {
	Records iter.Seq[Record] // may be walked more than once; cannot fail
	Count   int              // number of records; never 0
	// Forms keeps what is derived from exactly these records, for the readers of every state that has them unchanged. It is
	// nil if the records are only a part of a run that the storage keeps together.
	Forms *Forms
}

// WatchOptions are the options of Watch.
type WatchOptions struct {
	Selection
	// From is the revision after which events begin, unless Initial is set; 0 is the present.
	From int64
	// Initial begins the watch with an ADDED event for every record of a state that At accepts. Then follow a BOOKMARK whose
	// InitialEnd is set, and all events after that state.
	Initial bool
	At      Read // Latest, Any or NotOlderThan; only with Initial
	// Bookmarks also asks for a Bookmark event when the watch has received no revision for so long that its last one is about
	// to leave the retained history. A storage that cannot determine that sends no such event.
	Bookmarks bool
	// Before asks for Event.Before.
	Before bool
}

// Event is one change as a watcher sees it. With selectors, a record that begins to match is ADDED. A record that no longer
// matches is DELETED with its previous content. Every DELETED event has the revision of the change.
type Event struct {
	Type   watch.EventType // Added, Modified, Deleted or Bookmark
	Record Record          // of a Bookmark only Revision is set
	// InitialEnd marks the bookmark at the end of the initial events.
	InitialEnd bool
	// Before is the record before the change, with its own revision. It is set with WatchOptions.Before for a Modified or
	// Deleted event, and may be set without. If that record cannot be read, the event is Added. It is shared and must not be
	// changed.
	Before *Record
	// Forms keeps what is derived from Record for all watchers; nil keeps nothing. A Deleted event may share the Forms of
	// events of another type, whose Record is different. So the keys for forms of a Deleted event must differ from those for
	// forms of other events.
	Forms *Forms
}

// Watch is a stream of events that its reader reads at its own pace. Only one goroutine at a time may call Next. The other
// methods may be called by any goroutine.
type Watch interface {
	// Next waits for the next events. It returns at least one, and the events of one revision come together. The slice
	// belongs to the caller until the next call. Errors: an *ExpiredError when the reader was too slow for the retained
	// window, ErrClosed when the store or the watch is closed, an *UnreadableError, the context's error. After any error
	// other than the context's the watch has ended.
	Next(ctx context.Context) ([]Event, error)
	// RequestProgress asks for one Bookmark event with the revision that the watch has reached. No event comes for a revision
	// below the watch's own start. RequestProgress does not wait.
	RequestProgress()
	// Close ends the watch; a second Close does nothing.
	Close()
}

// WriteOptions are the options of Create and Update.
type WriteOptions struct {
	// DryRun does everything except the write. The record of a created object has Revision 0. The record of an updated one
	// has the revision of the stored object.
	DryRun bool
	// TTL is the time after which the object is deleted; 0 is the TTL of the store, which may be none.
	TTL time.Duration
	// Account, if not nil, is called by Update with the size of a state of the object before that state is decoded for the
	// change.
	Account Account
}

// hold reports the size of a state of the object to the account of a write.
func (o *WriteOptions) hold(before Record) error {
	if o.Account == nil {
		return nil
	}
	return o.Account.Hold(int64(before.Body.Size()))
}

// ChangeFunc makes the new state of an object from the current one. It may be called several times, each time with the state
// that is stored then. This happens on a conflict. It also happens when the first call got a state from a cache, and its
// outcome was an error or no change. current is a decoded object that belongs to the function; record is the record it was
// decoded from. The function must not have side effects that may not happen twice. An error ends the update and is returned
// unchanged.
type ChangeFunc func(ctx context.Context, current runtime.Object, record Record) (Outcome, error)

// ManyCodec is a Codec that decodes many documents at once; see ManyDecoder.
type ManyCodec interface {
	// DecodeAll is Decode for many documents, in version gv of the kind; see ManyDecoder.DecodeAll.
	DecodeAll(ctx context.Context, docs []codec.Document, gv schema.GroupVersion) ([]runtime.Object, error)
}

// CheckedCodec is a Codec that decodes what it encodes, to check that it can be read.
type CheckedCodec interface {
	// EncodeChecked is Encode. It also returns the object that it decoded for the check, or nil where it decodes nothing.
	// That object belongs to the caller: it saves the first Decode of the record that a write returns.
	EncodeChecked(obj runtime.Object) (codec.Document, runtime.Object, error)
}

// Outcome is the decision of a ChangeFunc. The zero Outcome leaves the object unchanged.
type Outcome struct {
	// Object is the new object; nil keeps the stored one. An object whose canonical bytes equal the stored bytes is not
	// written.
	Object runtime.Object
	// Delete removes the object; Object is ignored.
	Delete bool
}

// Codec encodes and decodes the objects of one kind for a Store. Implementations must be safe for concurrent use.
type Codec interface {
	// Encode writes obj, of any version of the kind, in the storage version.
	Encode(obj runtime.Object) (codec.Document, error)
	// Decode makes the object of a document, in the hub version and with defaults set.
	Decode(d codec.Document) (runtime.Object, error)
	// Entry makes the canonical document of stored bytes: it decodes them, sets defaults, prunes and encodes again. stale
	// reports whether the result differs from value. A value that cannot be decoded is an error.
	Entry(value []byte) (d codec.Document, stale bool, err error)
}
