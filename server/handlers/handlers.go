// Package handlers answers the HTTP requests for one resource of a Kubernetes-style API.
//
// # One resource, one handler
//
// A [Resource] is an http.Handler for every path of one resource in one version: its collections, its items,
// their subresources and the deprecated /watch/ paths. Mount it at the API's own paths, in any router:
//
//	h, err := handlers.New(handlers.Options{
//		Scheme:   scheme,
//		Resource: gv.WithResource("widgets"),
//		Kind:     gv.WithKind("Widget"),
//		Storage:  reg, // a *registry.Registry, or anything with some of its capabilities
//	})
//	mux.Handle("/apis/example.com/v1/", h)
//
// What a request wants is taken from the request.Info of its context, or else from its URL. The handler
// authenticates and authorizes nobody and counts nothing: that is the business of filters around it.
//
// # Capabilities decide
//
// Options.Storage, and the storage of each subresource, is any value that implements some of the interfaces of
// package registry; it is served with exactly those verbs ([Resource.Verbs]), and every other method is answered
// with 405. The record interfaces (registry.Records and its companions) come before those of objects
// (registry.Getter and its companions). PATCH needs an update and a get.
//
// # Bytes
//
// A record that is stored in the version of the URL, asked for as JSON, is written as its own bytes: a single
// object, an item of a list, a watch event, and the metadata inside a PartialObjectMetadata or a Table row. No
// object is decoded for these. Every other answer is decoded, converted and encoded anew, unless somebody asked for the
// same before and it is kept: for an event beside it in the log, for a record in Options.Forms, for a run of neighbours in
// a list by the cache that has it.
//
// The forms are JSON, YAML, protobuf (https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding) and
// CBOR (https://www.rfc-editor.org/rfc/rfc8949), each of them of the object, of its metadata alone, and the text forms of a
// Table. Watches are not in YAML.
//
// A list in any form takes no more memory the longer it is: it is written while it is made, and what no cache has of it is read
// in portions of about 1 MiB. Whatever can fail is done
// before the first byte of an answer, so that a long list of what is not bytes already is made twice. A failure after the
// first byte aborts the connection, so that a client never takes half a list for a whole one.
//
// A list that is compressed (gzip, above 128 KiB) is one member joined from the compressed runs that the cache keeps, so
// that what did not change is not compressed again; see package gzipparts.
//
// # Lists and watches
//
// A list is:
//
//	{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"15"},"items":[{...},{...}]}
//
// and a watch is a stream of lines:
//
//	{"type":"ADDED","object":{"kind":"Widget",...}}
//
// The rules for resourceVersion, resourceVersionMatch, sendInitialEvents and bookmarks are those of
// https://kubernetes.io/docs/reference/using-api/api-concepts/.
//
// # What will bite
//
//   - A client that does not answer the end of a watch over a WebSocket holds its connection for five seconds.
//   - Warnings go to the recorder in the request's context (request.WithWarnings), and without one to the headers
//     of the answer.
//   - PATCH takes JSON patches, merge patches, for kinds of a Go type strategic merge patches, and server-side apply; see
//     [Resource.PatchTypes]. All others are refused with 415.
//   - Whoever can be updated or is stored as a record gets its metadata.managedFields here, under the name of the option
//     fieldManager, or of the User-Agent up to its first slash.
//   - A watch needs a ResponseWriter that can flush. Wrappers must have Unwrap, as http.ResponseController asks.
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

// Defaults of Options.
const (
	DefaultMaxBodyBytes      = 3 << 20
	DefaultMaxDecodedBytes   = 8 << 20
	DefaultMaxMetadataItems  = 10000
	DefaultMinRequestTimeout = 30 * time.Minute
	DefaultWriteTimeout      = 30 * time.Second
)

// Options describes a resource. Scheme, Resource, Kind and Storage are required.
type Options struct {
	// Scheme knows the kinds of the resource, in all its versions. A kind that it does not know can be read and
	// deleted, but not created or updated: there is nothing to decode a body into.
	Scheme *runtime.Scheme
	// Resource is the group, version and plural of the URL; Kind is the kind that the URL speaks, of the same
	// group and version.
	Resource schema.GroupVersionResource
	Kind     schema.GroupVersionKind
	// Namespaced resources live under /namespaces/{namespace}/.
	Namespaced bool
	// Storage has some of the capabilities of package registry.
	Storage any
	// Admission judges writes and connections to a Storage that is no registry.Records, which has its own judged by
	// itself; nil accepts all.
	Admission admission.Source
	// Verbs are those that are served, of the ones that Storage is capable of; nil is all of them. A verb that it is not
	// capable of is refused.
	Verbs []string
	// Authorizer is asked for what the permission to make the request does not cover. Of a PUT or an apply which creates
	// its object: whether the user may create it; nil: he may. Of a DELETE of an object which cannot be read: whether he
	// has the verb unsafe-delete-ignore-read-errors; nil: such a DELETE is an error.
	Authorizer authz.Authorizer
	// Subresources by name ("status"). The kind of one may be of another group and version ("scale").
	Subresources map[string]Subresource
	// Models are those of Scheme, by which objects are merged in a server-side apply. nil: made of the Go types, without
	// the markers in doc comments.
	Models *patch.Models
	// Table makes the resource's tables. nil: Storage, if it is a registry.Tabler, else the columns Name and Age.
	Table registry.Tabler
	// Formats are the wire formats, the default first. nil: JSON, YAML and protobuf. Protobuf is for kinds whose Go types
	// have it, and for the metadata of all.
	Formats []codec.Format
	// Forms keeps what records are encoded as in other forms than the stored one, for all resources it is given to; nil:
	// nothing is kept, but what a page of records or an event keeps itself.
	Forms *storage.FormCache
	// MaxBodyBytes limits request bodies; 0 is 3 MiB, negative is no limit.
	MaxBodyBytes int64
	// Budget bounds the bytes that requests hold: of a body above 16 KiB sixteen times its length, for what is made of it, from
	// before it is read until the request ends, and so of an object that is changed or shown in another form than the stored one;
	// of a body whose values take more than 32 KiB eight times that; of a list that no cache has, what is read of it at once; of a
	// watch what it has not sent. Beyond that the answer is TooManyRequests. What would need more than a whole bound takes that.
	// nil is no bound. Several resources may have the same.
	Budget *flowcontrol.Budget
	// Selectors bounds the selectors of requests.
	Selectors selector.Limit
	// MaxDecodedBytes limits the memory that the values of a request body take when it is decoded, as far as can be told
	// before: see codec.BodyLimits.Bytes. More is answered with 413. 0 is 8 MiB, negative is no limit.
	MaxDecodedBytes int
	// MaxMetadataItems limits each list and map in the metadata of a body: see codec.BodyLimits.Items. More is answered with
	// 422. 0 is 10,000, negative is no limit.
	MaxMetadataItems int
	// Patches bounds what patches cost. Beyond it the answer is 413.
	Patches patch.Bounds
	// MinRequestTimeout is the least time a watch lasts that asks for no timeoutSeconds; it lasts up to twice as
	// long, at random. 0 is 30 minutes.
	MinRequestTimeout time.Duration
	// WriteTimeout is how long one write of a watch may be blocked by a client that does not read, before its
	// connection is given up. 0 is 30 seconds, negative is for ever.
	WriteTimeout time.Duration
	// Warnings are shown with every answer, such as that the version is deprecated.
	Warnings []string
	// Stop, once closed, ends all watches cleanly. nil: they end with their requests only.
	Stop <-chan struct{}
	// Hooks are told what happens.
	Hooks Hooks
}

// Subresource is one subresource of a resource.
type Subresource struct {
	// Kind is the kind of its objects; zero is the resource's own.
	Kind schema.GroupVersionKind
	// Storage has some of the capabilities of package registry.
	Storage any
	// Admission is as in Options, for this subresource. It must be nil for the views of a Registry.
	Admission admission.Source
}

// Resource serves one resource. Its methods may be called concurrently.
type Resource struct {
	scheme      *runtime.Scheme
	models      *patch.Models
	gvr         schema.GroupVersionResource
	owner       schema.GroupVersionKind // the kind of the resource, whatever those of its subresources are
	namespaced  bool
	formats     []codec.Format
	maxBody     int64
	budget      *flowcontrol.Budget
	most        int64          // that one request can hold of budget
	selectors   selector.Limit // of requests
	watched     watchSelectors
	sending     shownEvents
	making      chan struct{} // full while as many events of objects are made as may be at once
	bodyLimits  codec.BodyLimits
	patchBounds patch.Bounds
	minTimeout  time.Duration
	write       time.Duration
	warnings    []string
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

// Verbs returns the verbs of the resource (subresource "") or of a subresource, sorted, as discovery shows them;
// nil for a subresource that it does not have.
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

// ServeHTTP answers one request. A path that is none of this resource's is answered with 404.
func (r *Resource) ServeHTTP(w http.ResponseWriter, req *http.Request) { r.route(w, req) }

// MediaTypes are those in which an object can be answered.
func (r *Resource) MediaTypes() []string { return codec.MediaTypes(r.main.forms.Own()) }

// StreamTypes are those in which a watch can be answered.
func (r *Resource) StreamTypes() []string { return codec.StreamTypes(r.main.forms.Own()) }
