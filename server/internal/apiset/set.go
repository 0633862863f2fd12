package apiset

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/flowcontrol"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/runtime/patch"
	"github.com/keelson-dev/keelson/runtime/selector"
	"github.com/keelson-dev/keelson/server/catalogue"
	"github.com/keelson-dev/keelson/server/discovery"
	"github.com/keelson-dev/keelson/server/internal/router"
	"github.com/keelson-dev/keelson/server/openapi"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Options are the parts of the server that a Set needs. server.Limits documents the bounds.
type Options struct {
	Stores

	// Scheme is the scheme of the server.
	Scheme  *runtime.Scheme
	Formats []codec.Format // of objects; the default is the first
	// Life ends with the server.
	Life       context.Context
	Authorizer authz.Authorizer // authorizes the creation of objects by updates

	MaxBodyBytes     int64               // of the body of a request
	MaxDecodedBytes  int                 // of the values of a body in memory
	MaxMetadataItems int                 // of each list or map in metadata
	Patches          patch.Bounds        // of patches
	Bytes            *flowcontrol.Budget // bytes that requests hold
	MinWatchTimeout  time.Duration       // of a watch without timeoutSeconds
	WriteTimeout     time.Duration       // in which a client reads nothing
	Selectors        selector.Limit      // of selectors

	Discovery *discovery.Service // receives the served groups
	OpenAPI   *openapi.Service   // receives the served group versions
	// Untracked is called for changes whose effect on managedFields could not be computed; nil is not called.
	Untracked func(ctx context.Context, err error)
	// NotFound answers requests for resources that are not served.
	NotFound http.Handler
}

// Set is the set of kinds that a server serves. Make one with New. All methods may be called concurrently.
type Set struct {
	opts    Options
	scheme  *runtime.Scheme
	models  *patch.Models
	router  router.Table
	readers readers

	mu      sync.Mutex // guards all below; held while the served resources change
	served  []*served
	change  chan struct{}    // closed, and replaced, when served changes
	kinds   []catalogue.Kind // descriptions of served; nil: not made yet
	retired map[*served]bool // not served any more, with a cache that requests still read from
	ended   bool             // the Set may not change any more

	delegated map[schema.GroupVersion]delegation
}

// Errors of a Set that is to change.
var (
	// ErrServed is wrapped by the error of an Exchange that adds a resource that is served already.
	ErrServed = errors.New("is served already")
	// ErrEnded is wrapped by the errors of a Set that has ended.
	ErrEnded = errors.New("the server has ended")
	// ErrAbandoned is the error of a Change that was abandoned.
	ErrAbandoned = errors.New("server: the extension is not installed, for its Install has failed: the Host is of no use any more")

	errNoRegistry = errors.New("it has a Storage of its own")
	errWithdrawn  = errors.New("the resource was withdrawn, or replaced")
)

// New returns a Set that serves nothing. It must be closed if anything is added.
func New(o Options) *Set {
	return &Set{opts: o, scheme: o.Scheme, models: patch.NewModels(o.Scheme), retired: map[*served]bool{}, change: make(chan struct{}), delegated: map[schema.GroupVersion]delegation{}}
}

// Handler returns a handler that serves requests of the resources, whose info must be in their context. Options.NotFound serves
// all others.
func (s *Set) Handler() http.Handler { return s.router.Handler(s.opts.NotFound) }

// Catalogue returns the catalogue of the served kinds.
func (s *Set) Catalogue() *catalogue.Catalogue { return catalogue.New(listed{s}) }

// listed implements catalogue.Source.
type listed struct{ s *Set }

// Kinds implements catalogue.Source.
func (t listed) Kinds() []catalogue.Kind {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	if t.s.kinds == nil {
		t.s.kinds = t.s.catalogued()
	}
	return t.s.kinds
}

// Changed implements catalogue.Source.
func (t listed) Changed() <-chan struct{} {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	return t.s.change
}

// public returns the resources that clients can see. The caller holds mu during the iteration.
func (s *Set) public() iter.Seq[*served] {
	return func(yield func(*served) bool) {
		for _, r := range s.served {
			if !r.Unserved && !r.pending && !yield(r) {
				return
			}
		}
	}
}
