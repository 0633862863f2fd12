package conversion

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/runtime/webhook"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Options refines New. The zero Options is valid.
type Options struct {
	// MaxCalls bounds how many calls to the webhook of one definition there are at once; 0 is 16.
	MaxCalls int
	// MaxWaiting bounds how many calls of Convert wait for the webhook of one definition; more fail with 429. 0 is 400.
	MaxWaiting int
	// MaxObjects and MaxBytes bound what is sent in one call; 0 is 500 objects, and 4 MiB of them. An object that is longer
	// is sent alone.
	MaxObjects, MaxBytes int
	// Memory bounds the bytes of the latest answers that are remembered, of all definitions together. 0 is 32 MiB; a negative
	// one remembers nothing.
	Memory int
	// Remember is for how long an answer is remembered; 0 is a minute.
	Remember time.Duration
	// Hooks are told what happens.
	Hooks Hooks
}

// Hooks are told what happens. Each may be nil; they are called concurrently, and must not block.
type Hooks struct {
	// Converted is called when a call of Convert ends that had something to convert.
	Converted func(Conversion)
	// Called is called when a call to the webhook of a definition ends.
	Called func(Call)
}

// Call is one call to a webhook.
type Call struct {
	Definition string // its name, widgets.example.com
	Objects    int    // that were sent
	Took       time.Duration
	Failure    Failure // "" when it went well
	// Err is what was wrong, nil when nothing was. It is for the log of the server: it says what answered, or did not, which
	// clients are not told, see package webhook. The webhook may have written any part of its text.
	Err error
}

// Conversion is one call of Convert.
type Conversion struct {
	Definition string // its name, widgets.example.com
	From, To   string // versions; From is that of the first object which was not of the other one
	Took       time.Duration
	Err        error
	// Sent, Shared and Remembered are how many objects were sent to the webhook, were with it already because somebody else
	// asked for the same, and were remembered.
	Sent, Shared, Remembered int
}

// Failure is how a call to a webhook fails.
type Failure string

// The ways in which a call fails, as kube-apiserver names them in its metrics.
const (
	CallFailure            Failure = "conversion_webhook_call_failure"
	MalformedResponse      Failure = "conversion_webhook_malformed_response_failure"
	PartialResponse        Failure = "conversion_webhook_partial_response_failure"
	InvalidConvertedObject Failure = "conversion_webhook_invalid_converted_object_failure"
)

const (
	defaultMaxCalls   = 16
	defaultMaxWaiting = 400
	defaultMaxObjects = 500
	defaultMaxBytes   = 4 << 20
	defaultMemory     = 32 << 20
	defaultRemember   = time.Minute
)

// errClosed is what becomes of a conversion after Close.
func errClosed() error { return apierrors.NewServiceUnavailable("the server is shutting down") }

// Factory owns the conversion webhooks of all definitions. All methods may be called concurrently.
type Factory struct {
	opts    Options
	caller  *webhook.Caller
	reviews *reviews
	broken  error // why there are no reviews
	memory  *memory
	life    context.Context
	end     context.CancelFunc
	big     sync.Mutex // is held by who reads an answer that is big

	mu     sync.Mutex // guards all below
	closed bool
	calls  sync.WaitGroup // Add under mu, while not closed
	made   uint64         // webhooks so far
	hooks  map[string]*Webhook
}

// New returns a factory whose webhooks are called by caller, which stays the owner's: it is closed after the factory.
func New(caller *webhook.Caller, o Options) *Factory {
	for _, n := range []struct {
		is    *int
		least int
	}{
		{&o.MaxCalls, defaultMaxCalls}, {&o.MaxWaiting, defaultMaxWaiting},
		{&o.MaxObjects, defaultMaxObjects}, {&o.MaxBytes, defaultMaxBytes},
	} {
		if *n.is <= 0 {
			*n.is = n.least
		}
	}
	if o.Memory == 0 {
		o.Memory = defaultMemory
	}
	if o.Remember <= 0 {
		o.Remember = defaultRemember
	}
	f := &Factory{opts: o, caller: caller, memory: newMemory(o.Memory, o.Remember), hooks: map[string]*Webhook{}}
	f.reviews, f.broken = newReviews()
	f.life, f.end = context.WithCancel(context.Background())
	return f
}

// Webhook returns the webhook of a definition whose strategy is Webhook, or says what is wrong with it. While that part of the
// definition stays the same, so does the Webhook; when it does not, the one before answers those who have it for as long as they
// do, and what it remembered is gone. crd is not kept.
func (f *Factory) Webhook(crd *apiextensionsv1.CustomResourceDefinition) (*Webhook, error) {
	conversion := crd.Spec.Conversion
	if conversion == nil || conversion.Strategy != apiextensionsv1.WebhookConverter ||
		conversion.Webhook == nil || conversion.Webhook.ClientConfig == nil {
		return nil, fmt.Errorf("conversion: the definition %s names no webhook", crd.Name)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken != nil {
		return nil, fmt.Errorf("conversion: %w", f.broken)
	}
	if f.closed {
		return nil, errClosed()
	}
	before := f.hooks[crd.Name]
	if before != nil && apiequality.Semantic.DeepEqual(before.spec, conversion.Webhook) {
		return before, nil
	}
	spec := conversion.Webhook.DeepCopy()
	client, err := f.caller.Client(clientConfig(spec.ClientConfig))
	if err != nil {
		return nil, err
	}
	if before != nil {
		f.memory.forget(before.id)
	}
	f.made++
	w := &Webhook{
		factory: f, client: client, id: f.made, name: crd.Name, spec: spec,
		review: reviewVersion(spec.ConversionReviewVersions), flights: map[itemKey]*item{},
	}
	f.hooks[crd.Name] = w
	return w, nil
}

// clientConfig says in general terms where a webhook is.
func clientConfig(c *apiextensionsv1.WebhookClientConfig) webhook.Config {
	out := webhook.Config{CABundle: c.CABundle}
	if len(bytes.TrimSpace(out.CABundle)) == 0 {
		out.CABundle = nil
	}
	if c.URL != nil {
		out.URL = *c.URL
	}
	if s := c.Service; s != nil {
		out.Service = &webhook.Service{Namespace: s.Namespace, Name: s.Name}
		if s.Port != nil {
			out.Service.Port = *s.Port
		}
		if s.Path != nil {
			out.Service.Path = *s.Path
		}
	}
	return out
}

// Forget drops what there is of the definition of a name: it is gone, or needs no webhook any more. Who has its Webhook may go on
// using it.
func (f *Factory) Forget(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if w := f.hooks[name]; w != nil {
		f.memory.forget(w.id)
		delete(f.hooks, name)
	}
}

// Close ends the calls under way, waits for them, and forgets everything. Conversions fail from now on.
func (f *Factory) Close() {
	f.mu.Lock()
	f.closed = true
	clear(f.hooks)
	f.mu.Unlock()
	f.end()
	f.calls.Wait()
	f.memory.close()
}

// work runs a function, which Close waits for; false if the factory is closed.
func (f *Factory) work(do func()) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.calls.Go(do)
	return true
}
