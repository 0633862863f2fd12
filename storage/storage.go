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
// cluster-scoped one. All methods may be called concurrently. Records are shared: nobody changes their bytes.
//
// Errors are the sentinels and types of this package; a context's error is returned as it is. An optional power is a
// further interface: [UnreadableDeleter], [ManyDecoder], [Source], [Differ].
type Interface interface {
	// Get returns one record, or ErrNotFound.
	Get(ctx context.Context, key string, at Read) (Record, error)
	// List returns the records that match, in key order. Errors: ErrBadContinue, an *ExpiredError, a
	// *FutureError, an *UnreadableError, of a cache a *FillingError.
	List(ctx context.Context, opts ListOptions) (Page, error)
	// Watch follows the records that match, until ctx ends or the watch is closed. Errors known before the first
	// event are returned here: a From below the window is an *ExpiredError, an At that does not come a
	// *FutureError, and a cache that is being filled a *FillingError. A From in the future is accepted, and only changes after it are shown.
	Watch(ctx context.Context, opts WatchOptions) (Watch, error)
	// Create stores obj under key, or returns ErrExists. obj is read, not kept; its resourceVersion is ignored.
	Create(ctx context.Context, key string, obj runtime.Object, opts WriteOptions) (Record, error)
	// Update replaces or deletes what is under key by what change makes of it; see ChangeFunc for the contract.
	// It returns the record after the change (for a deletion: the last one, at the deletion's revision).
	Update(ctx context.Context, key string, opts WriteOptions, change ChangeFunc) (Record, error)
	// Decode makes the object of a record, in the hub version, with its resourceVersion set. The object is the
	// caller's own.
	Decode(r Record) (runtime.Object, error)
	// Revision is the store's revision now, by a linearizable read.
	Revision(ctx context.Context) (int64, error)
}

// ManyDecoder is an Interface, and a ManyCodec a Codec, that makes many objects at once, for kinds of which that is cheaper: see
// runtime.KindOptions.ConvertAll.
type ManyDecoder interface {
	// DecodeAll is Decode for many records, in version gv of the kind: as many objects, in their order, or an error for all of
	// them. It ends with ctx. Without a codec that is capable of it the error is ErrUnsupported.
	DecodeAll(ctx context.Context, records []Record, gv schema.GroupVersion) ([]runtime.Object, error)
}

// UnreadableDeleter is an Interface that can delete an object which it cannot read.
type UnreadableDeleter interface {
	// DeleteUnreadable deletes what is under key if it cannot be read, in the very state that was found so: with no
	// regard to finalizers or to anything else in it. It returns the deletion's revision. A watch that had to show
	// the object ends with an *UnreadableError. With opts.DryRun it does everything but delete, and the revision is that
	// of the value; opts.TTL is ignored. Errors: ErrNotFound, ErrReadable.
	DeleteUnreadable(ctx context.Context, key string, opts WriteOptions) (revision int64, err error)
}

// Record is one stored object.
type Record struct {
	Key      string // relative to the resource
	Revision int64  // its resourceVersion; 0 for one that was not stored (dry run)
	Body     codec.Document
	Labels   labels.Labels // never nil; read lazily from Body, or a shared set; has the method that selector.Labels asks for
	// Fields answers metadata.name, metadata.namespace and the kind's selectable fields; shared.
	Fields fields.Fields
	// Stale says that the stored bytes are not Body (they come from another build or are sealed by an old key):
	// the next update rewrites them even if it changes nothing.
	Stale bool
	read  *readBack // what was read of it when it was written; nil: nothing
	// Held says that the storage has the bytes of Body in memory for as long as they are stored, and shares them: who keeps
	// the record as well saves nothing by keeping less of it.
	Held bool
}

// Match says which states of the store a read accepts.
type Match int

// The four ways resourceVersion and resourceVersionMatch can be meant, and one that no request can ask for.
const (
	Latest       Match = iota // the most recent state, by a linearizable read
	Any                       // any state at all (resourceVersion "0")
	NotOlderThan              // any state at Revision or later
	Exact                     // the state at Revision
	// Acknowledged is a state with all writes that this Interface had acknowledged before the read, and all changes that it
	// knew of. A cache answers it without asking the storage below, any other Interface as Latest. It is for Get, List and
	// [Differ.Delta].
	Acknowledged
)

// Read says at which state to read. The zero Read is the most recent state.
type Read struct {
	Match    Match
	Revision int64 // for NotOlderThan and Exact
}

// Selection chooses records. Zero fields choose everything.
type Selection struct {
	Namespace string // only in this namespace
	Name      string // only with this name (without Namespace: in any)
	Labels    labels.Selector
	Fields    fields.Selector
}

// Matches reports whether the selectors choose r. Namespace and Name are the business of the key.
func (s Selection) Matches(r Record) bool {
	return (s.Labels == nil || s.Labels.Matches(r.Labels)) && (s.Fields == nil || s.Fields.Matches(r.Fields))
}

// Selective reports whether s has a label or field selector that can refuse a record.
func (s Selection) Selective() bool {
	return s.Labels != nil && !s.Labels.Empty() || s.Fields != nil && !s.Fields.Empty()
}

// ListOptions says what List returns. With Continue, At must be the zero Read.
type ListOptions struct {
	Selection
	At       Read
	Limit    int64  // at most this many records; 0 is all. Ignored with Match Any, as kube-apiserver does
	Continue string // a token from an earlier Page

	// Portion, if positive, is about how many bytes of records are read at once where they have to be read: a page that is
	// longer comes in portions, see Page.Next. An Interface that has the records in memory, as a cache has, needs none.
	Portion int64
	// Account is asked before each portion is read; nil is nobody.
	Account Account
}

// Account bounds what is held of lists that are read in portions, and of objects that are changed.
type Account interface {
	// Hold is told that the reader of a list will hold, of the portion that is read next, about so many bytes, in place of what
	// it was told before; once the portion is read it is told how many they are. For an update they are those of the state that
	// is changed. An error ends the list or the update, and is returned as it is.
	Hold(bytes int64) error
}

// Page is the answer of List: a state of the store, not a copy of it.
type Page struct {
	Records iter.Seq[Record] // may be walked more than once, and cannot fail
	// Blocks are the same records in the same order, by runs of them that the storage keeps together; nil when it keeps
	// none so. They may be walked more than once.
	Blocks   iter.Seq[Block]
	Count    int    // how many Records has
	Revision int64  // of the state, the same for all pages of a list
	Continue string // token for the next page; "" at the end
	// Version is the apiVersion that every record is written in; "" when that is not known, or not one.
	Version string
	// Remaining is how many records follow this page; nil when unknown (there are selectors) or none follow.
	Remaining *int64

	// Next reads the next portion of the page: another Page at the same Revision, whose Count is that of the portion. The last
	// portion has the page's Continue and Remaining, and no Next. It may be called more than once, later and by several
	// goroutines; what it reads, others that read the same at that time share. Its errors are those of List: all the page
	// is known to be readable only when the last portion is. nil: there is none, as ever without ListOptions.Portion.
	Next func(ctx context.Context) (Page, error)
	// Bytes is about what was read of the backend for this portion and is held by it; 0 where that is shared with a cache.
	Bytes int64
}

// Block is a run of neighbouring records of a Page.
type Block struct {
	Records iter.Seq[Record] // may be walked more than once, and cannot fail
	Count   int              // how many Records has; never 0
	// Forms keeps what is made of exactly these records, for the readers of every state that has them unchanged; nil where
	// they are not all of what the storage keeps together.
	Forms *Forms
}

// WatchOptions says what Watch follows.
type WatchOptions struct {
	Selection
	// From is the revision after which events begin, unless Initial is set; 0 is now.
	From int64
	// Initial begins with an ADDED event for every record of a state that At accepts, followed by a BOOKMARK
	// whose InitialEnd is set, followed by all events after that state.
	Initial bool
	At      Read // Latest, Any or NotOlderThan; only with Initial
	// Bookmarks asks for a Bookmark event also when the watch has been told no revision for so long that the last
	// one is about to leave the retained history. A storage that cannot tell sends none.
	Bookmarks bool
}

// Event is one change as a watcher sees it. With selectors, a record that begins to match is ADDED, one that
// ceases to match is DELETED with its previous content; every DELETED carries the revision of the change.
type Event struct {
	Type   watch.EventType // Added, Modified, Deleted or Bookmark
	Record Record          // of a Bookmark only Revision is set
	// InitialEnd marks the bookmark at the end of the initial events.
	InitialEnd bool
	// Forms keeps what is made of Record for all who watch; nil keeps nothing. A Deleted event may have the Forms of
	// events of another type, with another Record: what is made of it has a key of its own.
	Forms *Forms
}

// Watch is a stream of events, read at the reader's own pace. One goroutine at a time calls Next; the others may
// be called by any.
type Watch interface {
	// Next waits for the next events; there is at least one, and those of one revision come together. The slice is the
	// caller's until the next call.
	// Errors: an *ExpiredError when the reader was too slow for the retained window, ErrClosed when the store or
	// the watch is closed, an *UnreadableError, the context's error. After an error other than the context's the
	// watch is over.
	Next(ctx context.Context) ([]Event, error)
	// RequestProgress asks for one Bookmark event with the revision reached; none comes for a revision below the
	// watch's own start. It does not wait.
	RequestProgress()
	// Close ends the watch; a second Close does nothing.
	Close()
}

// WriteOptions refines Create and Update.
type WriteOptions struct {
	// DryRun does everything but store. The record of a created object has Revision 0, that of an updated one the
	// revision it has now.
	DryRun bool
	// TTL deletes the object after that time; 0 is that of the store, which may be never.
	TTL time.Duration
	// Account is told by Update, before a state of the object is decoded for the change, how many bytes that has; nil is nobody.
	Account Account
}

// hold tells the account of a write about a state of the object.
func (o *WriteOptions) hold(before Record) error {
	if o.Account == nil {
		return nil
	}
	return o.Account.Hold(int64(before.Body.Size()))
}

// ChangeFunc makes the new state of an object from the current one. It may be called several times, each time with
// what is stored then: on a conflict, and when a first answer came from a cache and would be an error or no
// change. current is the caller's own decoded object; record is what it was decoded from. It must not have side
// effects that may not happen twice. An error ends the update and is returned as it is.
type ChangeFunc func(ctx context.Context, current runtime.Object, record Record) (Outcome, error)

// ManyCodec is described at ManyDecoder.
type ManyCodec interface {
	DecodeAll(ctx context.Context, docs []codec.Document, gv schema.GroupVersion) ([]runtime.Object, error)
}

// CheckedCodec is a Codec that reads what it writes, to see that it can be read, and returns that object, which belongs to the
// caller, or nil where it reads nothing: the first Decode of what a write returns need not read it again.
type CheckedCodec interface {
	EncodeChecked(obj runtime.Object) (codec.Document, runtime.Object, error)
}

// Outcome is what a ChangeFunc decides. The zero Outcome leaves the object as it is.
type Outcome struct {
	// Object is the new object; nil leaves the stored one. An object whose canonical bytes equal the stored
	// ones is not written.
	Object runtime.Object
	// Delete removes the object; Object is ignored.
	Delete bool
}

// Codec is what a Store asks of a kind's encoding. Implementations must be safe for concurrent use.
type Codec interface {
	// Encode writes obj, of any version of the kind, in the storage version.
	Encode(obj runtime.Object) (codec.Document, error)
	// Decode makes the object of a document, in the hub version and defaulted.
	Decode(d codec.Document) (runtime.Object, error)
	// Entry makes the canonical document of stored bytes: decoded, defaulted, pruned and encoded again.
	// stale says that the result differs from value. A value that cannot be decoded is an error.
	Entry(value []byte) (d codec.Document, stale bool, err error)
}
