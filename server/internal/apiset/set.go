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

// Options say what a Set needs of its server.
type Options struct {
	Stores

	Scheme  *runtime.Scheme
	Formats []codec.Format // of objects, the default first
	// Life ends when the server does.
	Life       context.Context
	Authorizer authz.Authorizer // of create-on-update

	MaxBodyBytes     int64
	MaxDecodedBytes  int
	MaxMetadataItems int
	Patches          patch.Bounds
	Bytes            *flowcontrol.Budget // held by requests
	MinWatchTimeout  time.Duration
	WriteTimeout     time.Duration
	Selectors        selector.Limit

	Discovery *discovery.Service
	OpenAPI   *openapi.Service
	// NotFound answers requests of resources that are not served.
	NotFound http.Handler
}

// Set is what a server serves. Make one with New. All methods may be called concurrently.
type Set struct {
	opts    Options
	scheme  *runtime.Scheme
	models  *patch.Models
	router  router.Table
	readers readers

	mu      sync.Mutex // guards all below, and is held while what is served changes
	served  []*served
	change  chan struct{}    // closed, and replaced, when served changes
	kinds   []catalogue.Kind // of served; nil: they are to be made
	retired map[*served]bool // served no longer, with a cache that requests still read from
	ended   bool             // nothing may be added any more

	delegated map[schema.GroupVersion]delegation
}

// Errors of a Set that is to change.
var (
	// ErrServed is wrapped by the error of an Exchange that brings what is served.
	ErrServed = errors.New("is served already")
	// ErrEnded is wrapped by the error of a Set that is closed.
	ErrEnded = errors.New("the server has ended")
	// ErrAbandoned is the error of a Change that was abandoned.
	ErrAbandoned = errors.New("server: the extension is not installed, for its Install has failed: the Host is of no use any more")

	errNoRegistry = errors.New("it has a Storage of its own")
	errWithdrawn  = errors.New("the resource was withdrawn, or replaced")
)

// New returns a Set that serves nothing. Close it, if anything is added.
func New(o Options) *Set {
	return &Set{opts: o, scheme: o.Scheme, models: patch.NewModels(o.Scheme), retired: map[*served]bool{}, change: make(chan struct{}), delegated: map[schema.GroupVersion]delegation{}}
}

// Handler serves requests of the resources, whose info must be in their context, and leaves all others to Options.NotFound.
func (s *Set) Handler() http.Handler { return s.router.Handler(s.opts.NotFound) }

// Catalogue says what is served.
func (s *Set) Catalogue() *catalogue.Catalogue { return catalogue.New(listed{s}) }

// listed implements catalogue.Source.
type listed struct{ s *Set }

func (t listed) Kinds() []catalogue.Kind {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	if t.s.kinds == nil {
		t.s.kinds = t.s.catalogued()
	}
	return t.s.kinds
}

func (t listed) Changed() <-chan struct{} {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	return t.s.change
}

// public is what clients see of what is served. The caller holds mu while it goes through it.
func (s *Set) public() iter.Seq[*served] {
	return func(yield func(*served) bool) {
		for _, r := range s.served {
			if !r.Unserved && !r.pending && !yield(r) {
				return
			}
		}
	}
}
