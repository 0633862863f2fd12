package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/flowcontrol"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/server/catalogue"
	"github.com/keelson-dev/keelson/server/credentials"
	"github.com/keelson-dev/keelson/server/discovery"
	"github.com/keelson-dev/keelson/server/filters"
	"github.com/keelson-dev/keelson/server/internal/apiset"
	"github.com/keelson-dev/keelson/server/internal/transport"
	"github.com/keelson-dev/keelson/server/metrics"
	"github.com/keelson-dev/keelson/server/openapi"
	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiversion "k8s.io/apimachinery/pkg/version"
)

// Server is an API server. Make one with New; the zero Server is not usable. Its methods may be called
// concurrently.
type Server struct {
	opts    Options
	scheme  *runtime.Scheme
	formats []codec.Format     // of objects, the default first
	forms   *storage.FormCache // what is made of all kinds' records; nil: nothing is kept
	backend storage.Backend
	creds   *credentials.Bundle
	version apiversion.Info

	authenticator authn.Authenticator // the policy's, wrapped perhaps
	policy        *policy
	refusals      lineLimit   // of lines about requests that are not authenticated
	collects      atomic.Bool // a garbage collector looks after the objects

	health    *health
	probes    []*probe // of the storage
	discovery *discovery.Service
	openapi   *openapi.Service
	fixed     *fixed
	filters   []NamedFilter
	handler   http.Handler
	requests  *filters.WaitGroup // requests under way, watches aside
	inFlight  *flowcontrol.InFlight
	watches   *flowcontrol.Budget // of requests that last
	bytes     *flowcontrol.Budget // held by requests
	metrics   *metrics.Registry

	connections *transport.Connections

	life       context.Context // ends when the server does: watches and background work end with it
	end        context.CancelFunc
	serves     atomic.Bool    // Run or Serve was called
	background sync.WaitGroup // what extensions run
	closing    sync.Once
	closed     error // of the backend; written once by closing

	set *apiset.Set // what is served

	mu      sync.Mutex // guards all below, and is held while background work is begun
	ended   bool       // nothing may be added any more
	closers []func()   // of Host.OnClose
}

// ErrServed is wrapped by the error of Serve, Replace or Delegate when what is to be served is served already.
var ErrServed = apiset.ErrServed

// New makes a server: it opens the storage, makes or reads the credentials and registers the groups. The caller
// must end it, by Run, Serve or Close. An error says which option is wrong, or what could not be opened.
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
	if err := s.open(); err != nil {
		s.end()
		return nil, err
	}
	if err := s.set.Exchange(nil, nil, described(opts.Groups)); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// open makes all that groups are added to.
func (s *Server) open() error {
	backend, err := s.opts.Storage(s.life)
	if err != nil {
		return fmt.Errorf("server: open storage: %w", err)
	}
	s.backend = backend
	// After the storage: where that is refused nothing is left behind, and only the process that has it makes keys.
	if err := s.openCredentials(); err != nil {
		return errors.Join(err, backend.Close())
	}
	s.requests = filters.NewWaitGroup()
	s.inFlight = flowcontrol.NewInFlight(s.opts.Limits.MaxReadsInFlight, s.opts.Limits.MaxWritesInFlight)
	s.policy.change(false, func(m *members) { m.turns = s.inFlight })
	s.openMetrics()
	s.openBudgets()
	s.health = &health{logger: s.opts.Observe.Logger, onCheck: s.metrics.Checked}
	s.health.add(s.standardChecks()...)
	s.health.add(s.opts.Observe.Checks...)
	s.checkOptions()
	s.discovery = discovery.New(discovery.Options{CBOR: s.opts.CBOR, NotFound: s.notFound})
	s.openapi = openapi.New(openapi.Options{Title: "Kubernetes", Version: s.version.GitVersion, NotFound: s.notFound})
	s.fixed = newFixed(s)
	s.set = apiset.New(s.setOptions())
	s.policy.readers = s.set.Readers()
	if err := s.serveMetrics(); err != nil {
		return errors.Join(err, backend.Close())
	}
	if s.handler, err = s.buildHandler(); err != nil {
		return errors.Join(err, backend.Close())
	}
	return nil
}

// setOptions are what the set of served kinds needs of the server.
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
		Discovery: s.discovery, OpenAPI: s.openapi, NotFound: s.fixed,
	}
}

// standardChecks are those of every server, and of its storage what that can tell.
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
		if s.life.Err() != nil {
			return errors.New("process is shutting down")
		}
		return nil
	}})
}

// probe makes a check of a question to the storage.
func (s *Server) probe(ask func(ctx context.Context) error) func(ctx context.Context) error {
	p := newProbe(s.life, ask)
	s.probes = append(s.probes, p)
	return p.check
}

// Scheme is the server's: it knows every kind that is served.
func (s *Server) Scheme() *runtime.Scheme { return s.scheme }

// Readers reads the objects of what the server serves, past authentication, authorization, admission and flow control.
// It is good for as long as the server. A Reader of a stored kind reads from the cache that requests are answered from;
// see package storage/reader for what it returns, and for kinds with NoCache. A kind with a Storage of the program's own is
// asked each time, as far as that is a registry.Getter and a registry.Lister.
func (s *Server) Readers() runtime.Readers { return s.set.Readers() }

// Catalogue says what the server serves.
func (s *Server) Catalogue() *catalogue.Catalogue { return s.set.Catalogue() }

// Handler is the whole server as an http.Handler, filter chain included. It works until the server ends. The http.Server that it is
// mounted in has to bound what its connections cost, which Run and Serve do by themselves: set ReadHeaderTimeout (which bounds TLS
// handshakes too), IdleTimeout, MaxHeaderBytes, and HTTP2.MaxConcurrentStreams, HTTP2.MaxReadFrameSize and HTTP2.WriteByteTimeout,
// and give it a listener that bounds how many connections there are. Leave ReadTimeout and WriteTimeout at 0: they would end
// watches. Bodies that are not sent, and watches, are bounded there as well.
func (s *Server) Handler() http.Handler { return s.handler }

// Credentials are the CA, the serving certificate and the administrator's credentials of this server.
func (s *Server) Credentials() *credentials.Bundle { return s.creds }

// MigrateStorage stores every object of a served resource anew that is not stored as it would be now: in the version
// that is Stored, with the fields and defaults its Go type has. See storage.Migrate for what that means to others, for
// what can go wrong and for how to go on afterwards. It asks neither strategies nor admission, since it changes no
// object, and reads past the cache.
//
// Call it when all servers of the storage know the version that is stored now, such as after a rollout; from Serving.Ready
// or beside Run, in a goroutine of the program's own. It ends with an error when the server ends, and when the resource is
// withdrawn or replaced: what its objects are to be is something else then. resource is that of any version, such as
// {Group: "example.com", Resource: "widgets"}. To find out whether it went well look at the error and at the result's
// Failed.
func (s *Server) MigrateStorage(ctx context.Context, resource schema.GroupResource, opts storage.MigrateOptions) (storage.Migrated, error) {
	return s.set.Migrate(ctx, resource, opts)
}
