package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/flowcontrol"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/server/catalogue"
	"github.com/keelson-dev/keelson/server/credentials"
	"github.com/keelson-dev/keelson/server/discovery"
	"github.com/keelson-dev/keelson/server/filters"
	"github.com/keelson-dev/keelson/server/internal/apiset"
	"github.com/keelson-dev/keelson/server/internal/background"
	"github.com/keelson-dev/keelson/server/internal/transport"
	"github.com/keelson-dev/keelson/server/metrics"
	"github.com/keelson-dev/keelson/server/openapi"
	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiversion "k8s.io/apimachinery/pkg/version"
)

// Server is an API server. Make one with New; the zero Server is not usable. A process may have any number of servers, which
// share nothing. All methods may be called concurrently.
type Server struct {
	opts    Options
	scheme  *runtime.Scheme
	formats []codec.Format     // of objects; the default is the first
	forms   *storage.FormCache // encodings of the stored objects of all kinds; nil: none are kept
	backend storage.Backend
	creds   *credentials.Bundle
	version apiversion.Info

	authenticator authn.Authenticator // the policy, or what Policy.WrapAuthenticator made of it
	policy        *policy
	refusals      lineLimit   // bounds the log lines about requests that are not authenticated
	gaps          lineLimit   // bounds the log lines about audit events that are not recorded
	losses        lineLimit   // bounds the log lines about changes without managedFields
	collects      atomic.Bool // an extension called Host.CollectGarbage

	health    *health
	probes    []*probe // health checks of the storage
	discovery *discovery.Service
	openapi   *openapi.Service
	fixed     *fixed
	filters   []NamedFilter
	handler   http.Handler
	requests  *filters.WaitGroup // requests that have not ended, without watches
	lasting   *filters.Lasting   // watches, if they end one after the other, and other requests that last
	inFlight  *flowcontrol.InFlight
	watches   *flowcontrol.Budget // watches and other requests that last
	bytes     *flowcontrol.Budget // bytes that requests hold
	metrics   *metrics.Registry

	connections *transport.Connections
	loopback    *loopback

	hooks      hooks
	panics     *background.Panics // of hooks
	failure    chan error         // what ends the server while it serves
	whole      atomic.Bool        // the server has been ready; set by waitReady
	looking    sync.Once          // look was called
	leaving    atomic.Bool        // /readyz fails, because the server will end
	draining   atomic.Bool        // requests are refused, because the server ends
	life       context.Context    // ends with the server; watches and background work end with it
	end        context.CancelFunc
	unclosed   context.Context // ends when Close is called; life may end before
	beginClose context.CancelFunc
	probing    context.Context // ends when the storage is about to be closed; health checks end with it
	endProbes  context.CancelFunc
	serves     atomic.Bool            // Run or Serve was called
	url        atomic.Pointer[string] // where clients reach the server; nil until Run or Serve is called
	background sync.WaitGroup         // work that extensions have started
	closing    sync.Once
	closed     error // the error of closing the backend; written once, by closing

	set *apiset.Set // the groups and kinds that are served

	mu      sync.Mutex // guards all below; held while background work is started
	ended   bool       // closers may not be added any more
	closers []func()   // functions given to Host.OnClose
}

// ErrServed is wrapped by the error of Host.Serve, Host.Replace and Host.Delegate when the resource or group version is served
// already.
var ErrServed = apiset.ErrServed

// New makes a server: it opens the storage, makes or reads the credentials, and registers the groups. Server.Handler works from
// then on. The caller must call Run or Serve, whose end also ends the server, or end the server with Shutdown or Close. The error
// names the option that is wrong, or says what could not be opened.
func New(opts Options) (*Server, error) {
	opts, err := opts.complete()
	if err != nil {
		return nil, err
	}
	s := &Server{
		opts: opts, scheme: opts.Scheme, version: versionInfo(),
		formats: []codec.Format{codec.JSON(), codec.YAML(), codec.Protobuf()},
	}
	s.forms = storage.NewFormCache(opts.Limits.FormBytes)
	if opts.CBOR {
		s.formats = append(s.formats, codec.CBOR())
	}
	if s.policy, err = newPolicy(opts.Policy); err != nil {
		return nil, err
	}
	s.life, s.end = context.WithCancel(context.Background())
	s.unclosed, s.beginClose = context.WithCancel(context.Background())
	s.failure = make(chan error, 1)
	s.panics = background.NewPanics(opts.Observe.Logger, "a hook panicked")
	s.probing, s.endProbes = context.WithCancel(context.Background())
	if err := s.open(); err != nil {
		s.end()
		s.endProbes()
		return nil, err
	}
	if err := s.set.Exchange(nil, nil, described(opts.Groups)); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// open makes the parts of the server to which groups are added.
func (s *Server) open() error {
	backend, err := s.opts.Storage(s.life)
	if err != nil {
		return fmt.Errorf("server: open storage: %w", err)
	}
	s.backend = backend
	// Credentials are opened after the storage. If the storage cannot be opened, no files are left behind, and only the process
	// that has the storage makes keys.
	if err := s.openCredentials(); err != nil {
		return errors.Join(err, backend.Close())
	}
	s.requests = filters.NewWaitGroup()
	s.lasting = filters.NewLasting(s.opts.Serving.ShutdownWatchGrace > 0)
	s.inFlight = flowcontrol.NewInFlight(s.opts.Limits.MaxReadsInFlight, s.opts.Limits.MaxWritesInFlight)
	s.policy.change(false, func(m *members) { m.turns = s.inFlight })
	s.openMetrics()
	s.openBudgets()
	s.health = &health{logger: s.opts.Observe.Logger, onCheck: s.metrics.Checked, grace: time.Now().Add(s.opts.Serving.LivezGrace)}
	s.health.add(s.standardChecks()...)
	s.health.add(s.opts.Observe.Checks...)
	s.checkOptions()
	s.discovery = discovery.New(discovery.Options{CBOR: s.opts.CBOR, NotFound: s.notFound})
	s.openapi = openapi.New(openapi.Options{Title: "Kubernetes", Version: s.version.GitVersion, NotFound: s.elsewhere})
	s.fixed = newFixed(s)
	s.set = apiset.New(s.setOptions())
	s.policy.readers = s.set.Readers()
	if err := s.serveMetrics(); err != nil {
		return errors.Join(err, backend.Close())
	}
	s.loopback = newLoopback(s)
	if s.handler, err = s.buildHandler(); err != nil {
		return errors.Join(err, backend.Close())
	}
	return nil
}

// setOptions returns the options of the set of served kinds.
func (s *Server) setOptions() apiset.Options {
	l := s.opts.Limits
	return apiset.Options{
		Stores: apiset.Stores{
			Backend: s.backend, Policy: s.policy, CollectsGarbage: s.collects.Load, Now: s.opts.Now, MaxObjectBytes: l.MaxObjectBytes,
			CacheWindow: l.CacheWindow, CacheWait: l.CacheWait, Forms: s.forms, Metrics: s.metrics, Logger: s.opts.Observe.Logger,
		},
		Scheme: s.scheme, Formats: s.formats, Life: s.life, Authorizer: pinned{s.policy},
		MaxBodyBytes: l.MaxBodyBytes, MaxDecodedBytes: l.MaxDecodedBytes, MaxMetadataItems: l.MaxMetadataItems, Patches: l.Patches, Bytes: s.bytes,
		MinWatchTimeout: l.MinWatchTimeout, WriteTimeout: l.WriteTimeout, Selectors: l.resolver().Selectors,
		Discovery: s.discovery, OpenAPI: s.openapi, Untracked: s.untracked, NotFound: s.fixed,
	}
}

// standardChecks returns the health checks of every server. Those of the storage depend on the interfaces that the backend
// implements.
func (s *Server) standardChecks() []Check {
	healthy := func(context.Context) error { return nil }
	if h, ok := storage.As[storage.Healther](s.backend); ok {
		healthy = s.probe(h.Health)
	}
	checks := []Check{
		{Name: "ping", Check: func(context.Context) error { return nil }},
		{Name: "storage", Check: healthy},
	}
	if r, ok := storage.As[storage.Readier](s.backend); ok {
		checks = append(checks, Check{Name: "storage-readiness", ReadyOnly: true, Check: s.probe(r.Ready)})
	}
	checks = append(checks, Check{Name: "cache-readiness", ReadyOnly: true, Check: func(ctx context.Context) error { return s.set.CachesReady(ctx) }})
	return append(checks, Check{Name: "shutdown", ReadyOnly: true, Check: func(context.Context) error {
		if s.leaving.Load() || s.life.Err() != nil {
			return errors.New("process is shutting down")
		}
		return nil
	}})
}

// probe makes the function of a health check from a function that checks the storage.
func (s *Server) probe(ask func(ctx context.Context) error) func(ctx context.Context) error {
	p := newProbe(s.probing, ask)
	s.probes = append(s.probes, p)
	return p.check
}

// Scheme returns the scheme of the server, which has every kind that is served.
func (s *Server) Scheme() *runtime.Scheme { return s.scheme }

// Readers returns readers of the objects of every kind that is served. Readers read without authentication, authorization,
// admission and flow control, and can be used until the server ends. A Reader of a stored kind reads from the cache that requests
// are answered from; see package storage/reader for what it returns, and for kinds with NoCache. A Reader of a kind with a
// Storage of its own calls that Storage, and needs it to be a registry.Getter to get and a registry.Lister to list objects.
func (s *Server) Readers() runtime.Readers { return s.set.Readers() }

// Catalogue returns the list of the kinds that the server serves, with access to their objects.
func (s *Server) Catalogue() *catalogue.Catalogue { return s.set.Catalogue() }

// Credentials returns the CA, the serving certificate and the administrator's credentials of this server.
func (s *Server) Credentials() *credentials.Bundle { return s.creds }

// MigrateStorage rewrites the stored objects of a served resource whose stored bytes are not those that a write would store now:
// in the version with KindOptions.Stored, with the fields and defaults of its Go type. It does not call strategies or admission,
// since clients see the same objects as before. It reads from the storage and not from the cache. storage.Migrate documents the
// effects on watches and other writers, what can go wrong, and how to continue afterwards.
//
// resource names the group and the plural, such as {Group: "example.com", Resource: "widgets"}. Look at the error and at the
// result's Failed to find out whether all objects were migrated. MigrateStorage returns an error when the server ends, and when
// the resource is withdrawn or replaced, since the version to store may have changed.
//
// Call it from Serving.Ready, or in a goroutine of the program while Run serves. Before that, all servers that share the storage
// must have the version that is Stored now. To change the version that is stored:
//
//  1. Release a program that serves the new version, and wait until every server of the storage runs it.
//  2. Set KindOptions.Stored in the new version, release that program, and wait again.
//  3. Call MigrateStorage, which rewrites the objects that are stored in another version, and look at Failed.
//  4. After that a version may be removed from the program. Before that, objects that are stored in the removed version could no
//     longer be read.
func (s *Server) MigrateStorage(ctx context.Context, resource schema.GroupResource, opts storage.MigrateOptions) (storage.Migrated, error) {
	return s.set.Migrate(ctx, resource, opts)
}
