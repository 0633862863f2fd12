package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/authz/webhook"
	"github.com/keelson-dev/keelson/authz/webhook/condition"
	"github.com/keelson-dev/keelson/runtime/client"
)

// Options are the options of NewFile. The zero Options has the types Webhook, AlwaysAllow and AlwaysDeny.
type Options struct {
	// Authorizers are those of the types ABAC, Node and RBAC that the program has, by type.
	Authorizers map[string]authz.Authorizer
	// Webhook are the options of webhooks that a file does not say.
	Webhook webhook.Options
	// Grace is how long a webhook that was replaced stays open; 0 means [DefaultGrace]. Requests that began before ask it. After the
	// Grace it denies what they ask, so that it should be longer than the time of a request and the Time of a webhook together.
	Grace time.Duration
	// Decided is called with the verdict of each authorizer, unless it has no opinion: see authz.Observed. nil is not called.
	Decided func(typ, name string, v authz.Verdict)
}

// DefaultGrace is the default of Options.Grace: a minute for a request, as the server has it by default, and a minute for a webhook.
const DefaultGrace = 2 * time.Minute

// File authorizes by the configuration in a file, and by another one when the file has changed. Make one with NewFile, and Close it. All
// methods may be called concurrently, but Use not twice at the same time.
type File struct {
	o       Options
	ended   context.Context
	end     context.CancelFunc
	retired sync.WaitGroup             // goroutines that close webhooks
	now     atomic.Pointer[generation] // nil before Use

	mu       sync.Mutex // held by Use when it replaces now, and by Close
	required []string   // types that the first file has, and that all files must have
}

var (
	_ authz.Authorizer      = (*File)(nil)
	_ authz.Pinner          = (*File)(nil)
	_ authz.RuleResolver    = (*File)(nil)
	_ authz.Explainer       = (*File)(nil)
	_ authz.SubjectResolver = (*File)(nil)
)

// NewFile returns a File, which has no authorizers before Use. The error names the wrong field of the options, such as an authorizer of a
// type that a program cannot give.
func NewFile(o Options) (*File, error) {
	for _, typ := range slices.Sorted(maps.Keys(o.Authorizers)) {
		if !slices.Contains(fixed(), typ) || o.Authorizers[typ] == nil {
			return nil, fmt.Errorf("authorization configuration: Options.Authorizers has %q: want authorizers of %s", typ, strings.Join(fixed(), ", "))
		}
	}
	if o.Decided == nil {
		o.Decided = func(string, string, authz.Verdict) {}
	}
	if o.Grace < 0 {
		return nil, errors.New("authorization configuration: Options.Grace must not be negative")
	}
	o.Grace = cmp.Or(o.Grace, DefaultGrace)
	f := &File{o: o}
	f.ended, f.end = context.WithCancel(context.Background())
	return f, nil
}

// fixed are the types that the program gives, and that a file cannot add or remove while it is used.
func fixed() []string { return []string{ABAC, Node, RBAC} }

// Use uses the content of the file. After an error nothing has changed.
func (f *File) Use(content []byte) error {
	conf, err := Parse(content)
	if err != nil {
		return err
	}
	conditions, err := compile(conf)
	if err != nil {
		return err
	}
	first := f.now.Load() == nil
	if err := f.allowed(conf, first); err != nil {
		return err
	}
	next, err := f.make(conf, conditions)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended.Err() != nil {
		next.close()
		return errClosed
	}
	if before := f.now.Swap(next); before != nil {
		f.retire(before)
	} else {
		f.required = fixedOf(conf)
	}
	return nil
}

var errClosed = errors.New("authorization configuration: the file is closed")

// allowed checks the types of a configuration.
func (f *File) allowed(conf *Configuration, first bool) error {
	has := fixedOf(conf)
	missing := slices.DeleteFunc(slices.Clone(f.required), func(typ string) bool { return slices.Contains(has, typ) })
	if len(missing) > 0 {
		return fmt.Errorf("missing required types: %v", missing)
	}
	for _, typ := range has {
		switch {
		case !first && !slices.Contains(f.required, typ):
			return fmt.Errorf("authorizer type %s is not allowed if it was not enabled at initial server startup", typ)
		case f.o.Authorizers[typ] == nil:
			return fmt.Errorf("authorizer type %s is not available in this server; available are %s", typ, strings.Join(f.available(), ", "))
		}
	}
	return nil
}

// available returns the types that a file may have.
func (f *File) available() []string {
	return slices.DeleteFunc(types(), func(typ string) bool { return slices.Contains(fixed(), typ) && f.o.Authorizers[typ] == nil })
}

// fixedOf returns the types of a configuration that the program gives.
func fixedOf(conf *Configuration) []string {
	var all []string
	for _, typ := range fixed() {
		if slices.ContainsFunc(conf.Authorizers, func(e Entry) bool { return e.Type == typ }) {
			all = append(all, typ)
		}
	}
	return all
}

// generation has the authorizers of one content of the file.
type generation struct {
	members  authz.Live // not changed
	webhooks []*webhook.Authorizer
}

func (g *generation) close() {
	for _, w := range g.webhooks {
		w.Close()
	}
}

// make makes the authorizers of a configuration, which is valid.
func (f *File) make(conf *Configuration, conditions []*condition.Conditions) (*generation, error) {
	g := &generation{}
	for i, e := range conf.Authorizers {
		a := f.o.Authorizers[e.Type]
		switch e.Type {
		case AlwaysAllow:
			a = authz.AlwaysAllow()
		case AlwaysDeny:
			a = authz.AlwaysDeny()
		case WebhookType:
			w, err := f.webhook(e, conditions[i])
			if err != nil {
				g.close()
				return nil, fmt.Errorf("authorizers[%d] (%s): %w", i, e.Name, err)
			}
			a, g.webhooks = w, append(g.webhooks, w)
		}
		told := func(v authz.Verdict) {
			if v != authz.NoOpinion {
				f.o.Decided(e.Type, e.Name, v)
			}
		}
		if err := g.members.Set(e.Name, authz.Observed(a, told)); err != nil {
			g.close()
			return nil, err
		}
	}
	return g, nil
}

// webhook makes a webhook.
func (f *File) webhook(e Entry, conditions *condition.Conditions) (*webhook.Authorizer, error) {
	var cfg client.Config
	var err error
	if w := e.Webhook.ConnectionInfo; w.Type == inCluster {
		cfg, err = client.InCluster()
	} else {
		cfg, err = client.Kubeconfig(*w.KubeConfigFile, "")
	}
	if err != nil {
		return nil, err
	}
	o, w := f.o.Webhook, e.Webhook
	o.Name, o.Version, o.Deny, o.Timeout = e.Name, w.SubjectAccessReviewVersion, w.FailurePolicy == policyDeny, w.Timeout.Duration
	o.Authorized, o.Unauthorized = kept(w.AuthorizedTTL.Duration, w.CacheAuthorizedRequests), kept(w.UnauthorizedTTL.Duration, w.CacheUnauthorizedRequests)
	if o.Match = nil; conditions != nil {
		o.Match = conditions.Match
	}
	return webhook.New(cfg, o)
}

// kept returns how long a webhook's answers are remembered; 0 is the default of package webhook.
func kept(d time.Duration, cached *bool) time.Duration {
	if cached != nil && !*cached {
		return -1
	}
	return d
}

// retire closes the webhooks that were replaced after Options.Grace. A request that still has them then is denied.
func (f *File) retire(g *generation) {
	if len(g.webhooks) == 0 {
		return
	}
	f.retired.Go(func() {
		ctx, cancel := context.WithTimeout(f.ended, f.o.Grace)
		defer cancel()
		<-ctx.Done()
		g.close()
	})
}

// Close closes the webhooks: see webhook.Authorizer.Close. A second call has no effect.
func (f *File) Close() {
	f.mu.Lock()
	f.end()
	f.mu.Unlock() // Use replaces nothing anymore
	if now := f.now.Load(); now != nil {
		now.close()
	}
	f.retired.Wait()
}

// Pin implements authz.Pinner.
func (f *File) Pin(ctx context.Context) authz.Authorizer {
	now := f.now.Load()
	if now == nil {
		return unused{}
	}
	return now.members.Pin(ctx)
}

// unused is what a File is before Use.
type unused struct{}

var errUnused = errors.New("authorization configuration: no file is used yet")

// Authorize implements authz.Authorizer.
func (unused) Authorize(context.Context, authz.Attributes) (authz.Verdict, string, error) {
	return authz.Deny, "", errUnused
}

// Ready returns an error.
func (unused) Ready(context.Context) error { return errUnused }

// Authorize implements authz.Authorizer, with the authorizers of now.
func (f *File) Authorize(ctx context.Context, a authz.Attributes) (authz.Verdict, string, error) {
	return f.Pin(ctx).Authorize(ctx, a)
}

// RulesFor implements authz.RuleResolver.
func (f *File) RulesFor(ctx context.Context, user *authn.User, namespace string) (authz.Rules, error) {
	return authz.RulesOf(ctx, f.Pin(ctx), user, namespace)
}

// Explain implements authz.Explainer.
func (f *File) Explain(ctx context.Context, a authz.Attributes) authz.Explanation {
	return authz.Explain(ctx, f.Pin(ctx), a)
}

// SubjectsFor implements authz.SubjectResolver.
func (f *File) SubjectsFor(ctx context.Context, a authz.Attributes, limit int) authz.Subjects {
	return authz.SubjectsOf(ctx, f.Pin(ctx), a, limit)
}

// Ready returns an error before Use, and if an authorizer is not ready.
func (f *File) Ready(ctx context.Context) error {
	var a any = unused{}
	if now := f.now.Load(); now != nil {
		a = now.members.Now()
	}
	if r, ok := a.(interface{ Ready(context.Context) error }); ok {
		return r.Ready(ctx)
	}
	return nil
}
