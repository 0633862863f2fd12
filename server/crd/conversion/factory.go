package conversion

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/flowcontrol"
	"github.com/keelson-dev/keelson/runtime/webhook"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Options are the options of New. The zero Options is valid.
//
// For each definition, the calls in flight and the waiting calls of Convert are bounded. For each call, the time, the objects and
// the bytes in both directions are bounded, and so is the memory of the values in the answer. Further calls wait, or fail with
// 429 if too many wait. Answers of more than a MiB are decoded one at a time. So a webhook that hangs keeps a bounded number of
// requests waiting. It does not affect other definitions, nor the versions that need no webhook.
type Options struct {
	// MaxCalls is the maximum number of concurrent calls to the webhook of one definition; 0 means 16.
	MaxCalls int
	// MaxWaiting is the maximum number of calls of Convert that wait for the webhook of one definition; more fail with 429. 0
	// means 400.
	MaxWaiting int
	// MaxObjects and MaxBytes bound the objects that are sent in one call; 0 means 500 objects and 4 MiB. An object of more than
	// MaxBytes is sent alone.
	MaxObjects, MaxBytes int
	// MaxDecodedBytes bounds the memory, in bytes, of the values of a converted object, as estimated before it is decoded: see
	// codec.BodyLimits. All values of an answer together may take MaxDecodedBytes, plus the memory of the values that were sent,
	// plus 8 bytes for each byte that was sent. 0 means 8 MiB; a negative number is no bound.
	MaxDecodedBytes int
	// MaxObjectBytes bounds the JSON of a converted object, in bytes. A whole answer may have MaxObjectBytes plus four times the
	// bytes that were sent. 0 means 3 MiB; a negative number is no bound. webhook.Options.MaxAnswer bounds the answer too.
	MaxObjectBytes int
	// Budget counts the memory of answers while they are decoded. After that, request.Hold counts the objects that a request
	// receives, until the request ends. If Budget is nil, answers are not counted.
	Budget *flowcontrol.Budget
	// Memory is the maximum number of bytes of remembered answers, for all definitions together. 0 means 32 MiB; with a negative
	// number no answer is remembered.
	Memory int
	// Remember is how long an answer is remembered; 0 means a minute.
	Remember time.Duration
	// Hooks are called after conversions and calls.
	Hooks Hooks
}

// Hooks are functions that are called after conversions and calls. Each may be nil. They are called concurrently and must not
// block.
type Hooks struct {
	// Converted is called at the end of each call of Convert that had an object to convert.
	Converted func(Conversion)
	// Called is called at the end of each call to a webhook.
	Called func(Call)
}

// Call describes one call to a webhook.
type Call struct {
	Definition string        // the name of the definition, such as widgets.example.com
	Objects    int           // the number of objects sent
	Took       time.Duration // the duration of the call
	Failure    Failure       // "" if the call succeeded
	// Err is the cause of the failure, nil on success. It is for the log of the server. Clients must not see it, because it says
	// which address did or did not answer, and how: see package webhook. Any part of its text may come from the webhook.
	Err error
}

// Conversion describes one call of Convert.
type Conversion struct {
	Definition string        // the name of the definition, such as widgets.example.com
	From, To   string        // versions; From is that of the first object that was converted
	Took       time.Duration // the duration of the call of Convert
	Err        error         // the error that Convert returned
	// Sent is the number of objects that this call of Convert sent to the webhook. Shared is the number of objects that another
	// call of Convert had already sent. Remembered is the number of objects whose answers were remembered from earlier calls.
	Sent, Shared, Remembered int
}

// Failure is the way in which a call to a webhook failed.
type Failure string

// These are the ways in which a call fails, with the values that kube-apiserver's metrics have for them.
const (
	// CallFailure means that the call failed, or that its answer could not be decoded.
	CallFailure Failure = "conversion_webhook_call_failure"
	// MalformedResponse means that the answer was not a valid ConversionReview, or that the webhook refused to convert.
	MalformedResponse Failure = "conversion_webhook_malformed_response_failure"
	// PartialResponse means that the answer had another number of objects than the request.
	PartialResponse Failure = "conversion_webhook_partial_response_failure"
	// InvalidConvertedObject means that a converted object was invalid.
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

// errClosed returns the error of a conversion after Close.
func errClosed() error { return apierrors.NewServiceUnavailable("the server is shutting down") }

// Factory owns the conversion webhooks of all definitions. All methods may be called concurrently.
type Factory struct {
	opts    Options
	bounds  bounds
	caller  *webhook.Caller
	reviews *reviews
	broken  error // why reviews is nil
	memory  *memory
	life    context.Context
	end     context.CancelFunc
	big     sync.Mutex // is held while an answer longer than bigAnswer is decoded

	mu     sync.Mutex // guards all fields below
	closed bool
	calls  sync.WaitGroup // Add under mu, while not closed
	made   uint64         // number of webhooks made so far
	hooks  map[string]*Webhook
}

// New returns a factory that calls webhooks with caller. The owner of caller closes it after the factory.
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
	f := &Factory{opts: o, bounds: boundsOf(o), caller: caller, memory: newMemory(o.Memory, o.Remember), hooks: map[string]*Webhook{}}
	f.reviews, f.broken = newReviews()
	f.life, f.end = context.WithCancel(context.Background())
	return f
}

// Webhook returns the webhook of a definition whose conversion strategy is Webhook. It returns an error if spec.conversion is
// invalid. It returns the same Webhook until spec.conversion.webhook changes. The old Webhook can still be used after a change,
// but its remembered answers are dropped. Webhook does not keep crd.
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

// clientConfig returns the configuration of package webhook for c.
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

// Forget drops the webhook of the definition with a name and its remembered answers. Call it when the definition is gone or no
// longer needs a webhook. Callers that have the Webhook may go on using it.
func (f *Factory) Forget(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if w := f.hooks[name]; w != nil {
		f.memory.forget(w.id)
		delete(f.hooks, name)
	}
}

// Close cancels the calls in flight, waits for them, and drops all remembered answers. Conversions fail from then on.
func (f *Factory) Close() {
	f.mu.Lock()
	f.closed = true
	clear(f.hooks)
	f.mu.Unlock()
	f.end()
	f.calls.Wait()
	f.memory.close()
}

// work runs a function in a goroutine that Close waits for. It returns false if the factory is closed.
func (f *Factory) work(do func()) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.calls.Go(do)
	return true
}
