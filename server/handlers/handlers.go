// Package handlers implements the HTTP handlers of one resource of a Kubernetes-style API.
//
// A [Resource] is an http.Handler for every path of one resource in one version: its collections, its items, their subresources
// and the deprecated /watch/ paths. Mount it at the paths of the API, in any router:
//
//	h, err := handlers.New(handlers.Options{
//		Scheme:   scheme,
//		Resource: gv.WithResource("widgets"),
//		Kind:     gv.WithKind("Widget"),
//		Storage:  reg, // a *registry.Registry, or any value with some of its capabilities
//	})
//	mux.Handle("/apis/example.com/v1/", h)
//
// The handler takes the namespace, the name and the subresource of a request from the request.Info in the request's context.
// Without an Info it takes them from the URL. The handler does not authenticate or authorize users, and does not limit the number
// of requests. Filters around the handler do that.
//
// # Verbs
//
// Options.Storage, and the storage of each subresource, is any value that implements some of the interfaces of package registry.
// The handler serves the verbs that these interfaces make possible ([Resource.Verbs]), and answers every other method with 405.
// If a storage has both, the record interfaces (registry.Records and its companions) are used before the object interfaces
// (registry.Getter and its companions). PATCH needs an update and a get.
//
// # Lists and watches
//
// A list in JSON is one object, and a watch in JSON is a stream of lines:
//
//	{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"15"},"items":[{...},{...}]}
//	{"type":"ADDED","object":{"kind":"Widget",...}}
//
// The rules for resourceVersion, resourceVersionMatch, sendInitialEvents and bookmarks are those of
// https://kubernetes.io/docs/reference/using-api/api-concepts/. Three things differ from kube-apiserver, which these rules permit: a
// watch with bookmarks always gets one shortly before its timeout, so that the client continues with the newest revision, and
// a watch ends when its kind is no longer served. kube-apiserver leaves the watch of a deleted definition open, without events. A
// list of all namespaces with a field selector of one namespace continues after its last object. kube-apiserver begins it again.
//
// Field selectors compare the fields of the objects as they are stored, except those in Options.Shown. For these, objects that are
// stored in another version than that of the URL are converted, many at once, and the values are cached for all lists and watches:
// with the event and in Options.Forms. An object that cannot be converted has the same error as without a selector. A page of
// such a list has a continue token if any object follows, whether it matches or not, and no remainingItemCount, as in
// kube-apiserver.
//
// # What does not exist
//
// Some answers depend on whether the objects have a Go type. Those of CustomResourceDefinitions have none, as in kube-apiserver.
//
// As in kube-apiserver, a path below the resource that does not exist is answered with a Status without details if the objects have
// a Go type, and with the text "404 page not found" if they have none. A method that the resource does not have is answered with
// 405 and a Status that names the resource and the verb. In kube-apiserver this is so for objects without a Go type; for the others
// its Status names neither. HEAD is one of these methods if the objects have a Go type. If they have none, HEAD is GET without a
// body.
//
// For kinds with a Go type, the Accept header must name a media type that there is, or */*, and a patch must have a Content-Type that
// there is. Both are checked before anything else in the request. The other kinds also accept a range such as application/*.
//
// A form that the answer cannot have, such as a PartialObjectMetadataList of one object, is refused before the request is read, so
// that nothing is written. kube-apiserver makes the change, and then refuses to answer with it.
//
// # What is refused
//
// A request that is refused changes nothing. Therefore the options of a Table, such as includeObject, are checked before anything
// else, also those of a read. kube-apiserver checks them when it writes the answer, which is 400 although the change was made.
//
// A patch cannot change the apiVersion to that of another version of the kind: kube-apiserver reads the patched object in that
// version, which may lose fields. An object with a Go type that a patch leaves without apiVersion or kind keeps those of the URL.
// kube-apiserver reads it in an internal version, in which it does not find the metadata, and refuses the patch. An object without
// a Go type is refused then with 422, and not with the 500 of kube-apiserver.
//
// A POST to the path of an object without a Go type creates the object of that name, because that is what was authorized. Another name
// in the body is refused. kube-apiserver does not read the name in the path, and creates the object in the body.
//
// A number that the type of its field cannot have, such as 3000000000 in an int32, is refused. In an applied configuration
// and in a strategic merge patch kube-apiserver reads another number, -1294967296, and stores that if it is valid.
//
// See [Resource] for the wire formats and for the cost of answers.
package handlers

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/flowcontrol"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/runtime/patch"
	"github.com/keelson-dev/keelson/runtime/selector"
	"github.com/keelson-dev/keelson/server/internal/transport"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Defaults of the fields of Options that are zero.
const (
	DefaultMaxBodyBytes      = 3 << 20          // default of MaxBodyBytes, in bytes
	DefaultMaxDecodedBytes   = 8 << 20          // default of MaxDecodedBytes, in bytes
	DefaultMaxMetadataItems  = 10000            // default of MaxMetadataItems
	DefaultMinRequestTimeout = 30 * time.Minute // default of MinRequestTimeout
	DefaultWriteTimeout      = 30 * time.Second // default of WriteTimeout
)

// Options describes a resource. Scheme, Resource, Kind and Storage are required.
type Options struct {
	// Scheme has the kinds of the resource, in all versions of the resource. Objects of a kind that is not in Scheme can be read
	// and deleted. They cannot be created or updated, because there is no type to decode a body into.
	Scheme *runtime.Scheme
	// Resource is the group, version and plural name in the URL.
	Resource schema.GroupVersionResource
	// Kind is the kind of the objects in requests and answers. Its group and version are those of Resource.
	Kind schema.GroupVersionKind
	// Namespaced says that the objects are in namespaces: their paths contain /namespaces/{namespace}/.
	Namespaced bool
	// Storage implements some of the capabilities of package registry.
	Storage any
	// Admission is for a Storage that is not a registry.Records. It reviews writes and connections, and if it is set, the objects
	// of writes are also validated by the struct tags of their Go types: see registry.Gate. If it is nil, the handler does
	// neither. A registry.Records does both itself.
	Admission admission.Source
	// Verbs are the verbs to serve, out of those that Storage implements. nil serves all of them. New returns an error for a verb
	// that Storage does not implement.
	Verbs []string
	// Shown are the fields that field selectors compare as the version of Kind shows them: an object that is stored in another
	// version is converted to look at them. They must be selectable in Kind, which has no Go type, and Storage must be a
	// registry.RecordChooser, as a *registry.Registry is.
	Shown []string
	// Authorizer is called for permissions that a request needs in addition to that of its verb. For a PUT or an apply that
	// creates its object, it decides if the user may create the object; if Authorizer is nil, the user may. For a DELETE of an
	// object that cannot be read, it decides if the user has the verb unsafe-delete-ignore-read-errors; if Authorizer is nil,
	// such a DELETE is refused. If the request's policy has an authorizer, that one is called instead.
	Authorizer authz.Authorizer
	// Subresources are the subresources by name ("status"). The kind of a subresource may be of another group and version
	// ("scale").
	Subresources map[string]Subresource
	// Models are the models of Scheme that a server-side apply uses to merge objects. nil makes them from the Go types, without
	// the markers in doc comments.
	Models *patch.Models
	// Table makes the tables of the resource. nil uses Storage if it is a registry.Tabler, or else the columns Name and Age.
	Table registry.Tabler
	// Formats are the wire formats, the default first. nil means JSON, YAML and protobuf. Objects are written in protobuf only if
	// the Go type of their kind supports it. The metadata of every object can be written in protobuf.
	Formats []codec.Format
	// Forms caches encodings of records other than the stored one. Several resources may have the same cache. If Forms is nil,
	// only the encodings that a page of records or an event keeps itself are cached.
	Forms *storage.FormCache
	// MaxBodyBytes limits the length of request bodies, in bytes. 0 is 3 MiB, negative is no limit.
	MaxBodyBytes int64
	// Budget bounds the bytes that requests hold. A request counts these bytes:
	//
	//   - For a body above 16 KiB, 16 times its length, for all that is made from the body. These bytes count from before the
	//     body is read until the request ends. A stored object above 16 KiB counts in the same way if the request changes it, or
	//     if the answer has it in another encoding than the stored one.
	//   - For a body whose values take more than 32 KiB in memory, 8 times the size of the values.
	//   - For a list that is in no cache, the records that are read at once.
	//   - For a watch, the events that are not sent yet.
	//
	// A request beyond a bound is answered with TooManyRequests. A request that needs more than a whole bound counts as the whole
	// bound. If Budget is nil, there is no bound. Several resources may have the same Budget.
	Budget *flowcontrol.Budget
	// Selectors limits the label selectors and field selectors of requests.
	Selectors selector.Limit
	// MaxDecodedBytes limits the memory, in bytes, that the values of a request body take when it is decoded, as estimated before
	// decoding: see codec.BodyLimits.Bytes. A larger body is answered with 413. 0 is 8 MiB, negative is no limit.
	MaxDecodedBytes int
	// MaxMetadataItems limits the number of items of each list and map in the metadata of a body: see codec.BodyLimits.Items. A
	// body with more is answered with 422. 0 is 10,000, negative is no limit.
	MaxMetadataItems int
	// Patches limits the cost of patches. A patch beyond a limit is answered with 413.
	Patches patch.Bounds
	// MinRequestTimeout is the shortest duration of a watch without timeoutSeconds. The duration is chosen at random, up to twice
	// as long. 0 is 30 minutes.
	MinRequestTimeout time.Duration
	// WriteTimeout is how long a client that does not read may block one write of a watch. After that, the watch is aborted. 0 is
	// 30 seconds, negative is no limit.
	WriteTimeout time.Duration
	// Deprecated, if it is not empty, says that the version is deprecated: every answer has the text in a Warning header, and audit
	// events have the annotation k8s.io/deprecated.
	Deprecated string
	// Stop ends all watches cleanly when it is closed. If it is nil, watches end only with their requests.
	Stop <-chan struct{}
	// Hooks are called for the events of requests that their comments describe. They are for metrics.
	Hooks Hooks
}

// Subresource describes one subresource of a resource.
type Subresource struct {
	// Kind is the kind of the objects of the subresource. Zero is the kind of the resource.
	Kind schema.GroupVersionKind
	// Storage implements some of the capabilities of package registry.
	Storage any
	// Admission is like Options.Admission, for this subresource. It must be nil if Storage is a view of a Registry.
	Admission admission.Source
}

// Resource serves one resource. Its methods may be called concurrently.
//
// # Formats
//
// The formats are JSON, YAML, protobuf (https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding) and CBOR
// (https://www.rfc-editor.org/rfc/rfc8949). In each of them, a client can ask for whole objects or for metadata alone. A Table is
// only available in the text formats. A watch is not available in YAML.
//
// PATCH accepts JSON patches, merge patches, strategic merge patches (for kinds with a Go type) and server-side apply: see
// [Resource.PatchTypes]. Other media types are answered with 415.
//
// # Answers
//
// A record that is stored in the version of the URL is written to a JSON answer as the stored bytes, without decoding an object.
// This is true for a single object, for an item of a list, for a watch event, and for the metadata in a PartialObjectMetadata or
// in a row of a Table. For any other answer, the object is decoded, converted and encoded, unless the result of an earlier
// request is cached. The encoding of an event is cached with the event, that of a record in Options.Forms, and that of adjacent
// records of a list in the cache that the records come from.
//
// The memory for a list does not grow with the length of the list, in any format. The list is written while it is made. Records
// that are in no cache are read in portions of about 1 MiB. Everything that can fail is done before the first byte of the answer.
// Therefore a long list whose items must be encoded is encoded twice. A failure after the first byte aborts the connection, so
// that a client never takes a part of a list for the whole list.
//
// A list above 128 KiB is compressed if the client accepts gzip. The answer is one gzip member, joined from compressed runs of
// records that the cache keeps, so that unchanged records are not compressed again; see package gzipparts.
//
// Warnings go to the recorder in the request's context (request.WithWarnings). Without a recorder, they go to the header of the
// answer.
//
// The handlers compute metadata.managedFields of objects that are stored as records or can be updated. The manager is the option
// fieldManager of the request, or else the User-Agent up to its first slash.
//
// A watch needs a ResponseWriter that can flush. ResponseWriters that wrap another one must have the method Unwrap that
// http.ResponseController calls. A client that does not respond when the server closes a WebSocket holds its connection for five
// seconds.
type Resource struct {
	scheme      *runtime.Scheme
	models      *patch.Models
	gvr         schema.GroupVersionResource
	owner       schema.GroupVersionKind // the kind of the resource, also in endpoints of subresources of another kind
	namespaced  bool
	formats     []codec.Format
	maxBody     int64
	budget      *flowcontrol.Budget
	most        int64          // the largest share of budget that one request can have
	selectors   selector.Limit // limits the selectors of requests
	watched     watchSelectors
	sending     shownEvents
	making      chan struct{} // a semaphore: how many object events are made at once
	bodyLimits  codec.BodyLimits
	patchBounds patch.Bounds
	minTimeout  time.Duration
	write       time.Duration
	deprecated  string
	stop        stopper
	writeLimit  transport.WriteLimit // of writes of watches
	hooks       Hooks
	zippers     sync.Pool // of *gzip.Writer, for watches
	joiners     sync.Pool // of *gzipparts.Writer, for bodies
	compressors sync.Pool // of *gzipparts.Compressor
	buffers     sync.Pool // of *[]byte, for bodies being written
	authorizer  authz.Authorizer
	main        *endpoint
	subs        map[string]*endpoint
}

// Verbs returns the verbs of the resource (subresource "") or of a subresource, sorted, as discovery shows them. It returns nil
// if the resource does not have the subresource. The slice is a copy.
func (r *Resource) Verbs(subresource string) []string {
	e := r.main
	if subresource != "" {
		e = r.subs[subresource]
	}
	if e == nil {
		return nil
	}
	return slices.Clone(e.verbs)
}

// ServeHTTP answers one request. It answers a path that does not belong to the resource with 404.
func (r *Resource) ServeHTTP(w http.ResponseWriter, req *http.Request) { r.route(w, req) }

// MediaTypes returns the media types in which an object of the resource can be answered.
func (r *Resource) MediaTypes() []string { return codec.MediaTypes(r.main.forms.Own()) }

// StreamTypes returns the media types in which a watch of the resource can be answered.
func (r *Resource) StreamTypes() []string { return codec.StreamTypes(r.main.forms.Own()) }
