package conversion

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/runtime/webhook"
	"github.com/keelson-dev/keelson/server/request"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxQueued is the maximum time that a call waits in the queue.
const maxQueued = 30 * time.Second

// Webhook converts the objects of one definition. It need not be closed. It may be used concurrently.
type Webhook struct {
	factory *Factory
	client  *webhook.Client
	id      uint64
	name    string                             // the name of the definition
	spec    *apiextensionsv1.WebhookConversion // never changed
	review  string                             // the version of ConversionReview; "" if none is supported

	mu      sync.Mutex // guards all fields below
	waiting int        // number of calls of Convert that wait
	running int        // number of goroutines that make calls
	queue   []*call    // the oldest call first
	flights map[itemKey]*item
}

// String returns a description of the webhook for messages.
func (w *Webhook) String() string {
	return fmt.Sprintf("the conversion webhook of %s (%s)", w.name, w.client)
}

// Convert returns the objects of in, in the same order, in another version. An object that already has the version is returned
// itself; the webhook converts the others. in is not changed. The new objects in the result belong to the caller.
//
// # Sharing
//
// Concurrent calls of Convert that want an equal object in the same version share one call to the webhook, and each call of
// Convert receives its own objects. The call to the webhook belongs to the factory. If ctx ends, only this call of Convert
// returns. The other calls of Convert, and later ones, still receive the result. A call that is still queued is dropped when no
// call of Convert waits for it any more.
//
// Answers are remembered for a minute ([Options].Remember) as long as there is room, because the same object is converted several
// times: when it is read for an update, when it is written, when it is read again for the answer, and for watches. kube-apiserver
// remembers them as long as the objects are in its caches. In both cases a webhook must convert equal objects to equal objects.
// Failures are not remembered. Objects that differ only in their resourceVersion are equal. The resourceVersion is not sent;
// kube-apiserver does not send that of stored objects either. So an update makes three calls at most: for the old object, for the
// wanted one, and for the stored one.
//
// Two states of one object are never sent in one call, and an object without a uid is sent alone. Otherwise this package could
// not notice that the webhook exchanged them in its answer.
//
// # Errors
//
// There is one error for all objects: the error of the first object that could not be converted, with the kind of that object
// also for lists. If a call to the webhook fails, it is repeated for calls of Convert that wanted only some of its objects,
// unless the webhook gave no answer. If ctx ends, the error wraps that of ctx, and the call to the webhook goes on. All other
// errors are *apierrors.StatusErrors. The code is 429 if too many calls wait. If the webhook is to blame, the code is 500 without
// a reason, as in kube-apiserver.
//
// The text is that of kube-apiserver if the webhook itself answered: with a ConversionReview that has the uid of the request or,
// in v1beta1, a result.
//
//	conversion webhook for example.com/v1, Kind=Widget failed: the size must not be negative
//	conversion webhook for example.com/v1, Kind=Widget returned 0 objects, expected 1
//
// Otherwise there is only one text, unless webhook.Options.ShowErrors is set:
//
//	conversion webhook for example.com/v1, Kind=Widget failed: Post "https://hooks.example.com/convert?timeout=30s": no usable answer; the log of the server says why
//
// kube-apiserver adds the cause instead: that the connection was refused, the code, the beginning of the body, or why the body is
// not JSON. With that, a client that may create definitions can find out which hosts and ports exist in the network of the
// server, and what they answer. Here the cause is for the log only: [Hooks].Called receives it, and package crd logs it. See
// package webhook.
func (w *Webhook) Convert(ctx context.Context, in []*unstructured.Unstructured, to schema.GroupVersion) ([]*unstructured.Unstructured, error) {
	began := time.Now()
	a := &asking{w: w, to: to, in: in, out: make([]*unstructured.Unstructured, len(in))}
	if err := a.prepare(); err != nil {
		return nil, failed(err.Error())
	}
	if len(a.wanted) == 0 {
		return a.out, nil
	}
	err := a.convert(ctx)
	request.Took(ctx, request.Converting, began)
	if converted := w.factory.opts.Hooks.Converted; converted != nil {
		a.report.Definition, a.report.To, a.report.Took, a.report.Err = w.name, to.Version, time.Since(began), err
		a.report.From = in[a.wanted[0].index].GroupVersionKind().Version
		converted(a.report)
	}
	if err != nil {
		return nil, err
	}
	return a.out, nil
}

// asking is the state of one call of Convert.
type asking struct {
	w      *Webhook
	to     schema.GroupVersion
	in     []*unstructured.Unstructured
	out    []*unstructured.Unstructured
	wanted []wanted
	keys   map[itemKey]bool // of wanted; nil until needed
	report Conversion
}

// wanted is one object to convert.
type wanted struct {
	index  int // the index in in and out
	key    itemKey
	sent   []byte
	item   *item  // the source of the result,
	ours   bool   // whether item was made for this object,
	memory []byte // or the remembered answer
}

// prepare finds the objects to convert. Objects that need no conversion are put into out.
func (a *asking) prepare() error {
	version := a.to.String()
	for i, obj := range a.in {
		switch {
		case obj.GetAPIVersion() == version:
			a.out[i] = obj
		case bare(obj):
			a.out[i] = &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": obj.GetKind()}}
		case a.w.review == "":
			return errNoReview
		default:
			sent, err := sentForm(obj)
			if err != nil {
				return err
			}
			a.wanted = append(a.wanted, wanted{index: i, key: keyOf(sent, a.to), sent: sent})
		}
	}
	return nil
}

// bare reports whether an object has only apiVersion and kind, so that there is nothing to convert.
func bare(obj *unstructured.Unstructured) bool {
	_, version := obj.Object["apiVersion"]
	_, kind := obj.Object["kind"]
	return version && kind && len(obj.Object) == 2
}

// convert waits for all wanted objects. If an object failed in a call that had objects of other callers, it is requested again in
// a call that may also be shared. If that was not fair either, it is requested once more without sharing.
func (a *asking) convert(ctx context.Context) error {
	rest := make([]*wanted, len(a.wanted))
	for i := range a.wanted {
		rest[i] = &a.wanted[i]
	}
	for round := 0; len(rest) > 0; round++ {
		err := a.join(rest, round < 2)
		if err == nil {
			err = a.wait(ctx, rest)
		}
		if err != nil {
			return err
		}
		rest = a.unfair(rest)
	}
	if err := a.hold(ctx); err != nil {
		return err
	}
	for n := range a.wanted {
		if err := a.finish(n); err != nil {
			return err
		}
	}
	return nil
}

// join looks for items in flight and remembered answers, and makes items for the other objects. With share, other calls of
// Convert may wait for the new items.
func (a *asking) join(all []*wanted, share bool) error {
	w := a.w
	w.mu.Lock()
	defer w.mu.Unlock()
	var fresh []*item
	for _, o := range all {
		o.item, o.ours = nil, false
		if share {
			if o.item = w.flights[o.key]; o.item != nil {
				continue
			}
			if o.memory = w.factory.memory.get(memoryKey{w.id, o.key}); o.memory != nil {
				continue
			}
		}
		o.item = &item{key: o.key, sent: o.sent, original: originalOf(a.in[o.index])}
		o.ours = true
		fresh = append(fresh, o.item)
		if share {
			w.flights[o.key] = o.item // also found by later equal objects in all
		}
	}
	waits := false
	for _, o := range all {
		waits = waits || o.item != nil
	}
	if waits && w.waiting >= w.factory.opts.MaxWaiting {
		for _, i := range fresh {
			if w.flights[i.key] == i {
				delete(w.flights, i.key)
			}
		}
		return w.busy()
	}
	if waits {
		w.waiting++
	}
	for _, o := range all {
		switch {
		case o.item == nil:
			a.report.Remembered++
			continue
		case o.ours:
			a.report.Sent++
		default:
			a.report.Shared++
		}
		o.item.askers++
	}
	w.enqueue(fresh, a.to)
	return nil
}

// wait waits for the items in flight. It returns early when ctx ends.
func (a *asking) wait(ctx context.Context, all []*wanted) (err error) {
	waited := false
	for _, o := range all {
		if o.item == nil {
			continue
		}
		waited = true
		if err != nil {
			continue
		}
		select {
		case <-o.item.call.done:
		case <-ctx.Done():
			err = fmt.Errorf("waiting for %s: %w", a.w, ctx.Err())
		}
	}
	if waited {
		a.leave(all, err != nil)
	}
	return err
}

// leave ends the waiting. If early is true, queued calls that nobody waits for any more are dropped.
func (a *asking) leave(all []*wanted, early bool) {
	w := a.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting--
	for _, o := range all {
		if o.item != nil {
			o.item.askers--
		}
	}
	if !early {
		return
	}
	kept := w.queue[:0]
	for _, c := range w.queue {
		if c.wanted() {
			kept = append(kept, c)
			continue
		}
		for _, i := range c.items {
			if w.flights[i.key] == i {
				delete(w.flights, i.key)
			}
		}
	}
	clear(w.queue[len(kept):])
	w.queue = kept
}

// wanted reports whether anybody waits for an item of a call. The caller holds mu.
func (c *call) wanted() bool {
	for _, i := range c.items {
		if i.askers > 0 {
			return true
		}
	}
	return false
}

// unfair returns the objects that failed as part of a shared call that also had objects which this call of Convert did not want:
// those may have caused the failure. If the webhook did not answer at all, a repetition would not help. Calls that were not
// shared are fair.
func (a *asking) unfair(all []*wanted) []*wanted {
	var out []*wanted
	for _, o := range all {
		if o.item != nil && !o.ours && o.item.problem != nil && o.item.problem.whole && !o.item.problem.nobody && a.foreign(o.item.call) {
			out = append(out, o)
		}
	}
	return out
}

// foreign reports whether a call has an object that this call of Convert does not want.
func (a *asking) foreign(c *call) bool {
	if a.keys == nil {
		a.keys = make(map[itemKey]bool, len(a.wanted))
		for _, o := range a.wanted {
			a.keys[o.key] = true
		}
	}
	return slices.ContainsFunc(c.items, func(i *item) bool { return !a.keys[i.key] })
}

// hold counts the memory of the results for the request of ctx, until the request ends.
func (a *asking) hold(ctx context.Context) error {
	values := 0
	for i := range a.wanted {
		n, _ := weigh(a.wanted[i].converted(), 0)
		values += n
	}
	if values <= freeValues {
		return nil
	}
	return request.Hold(ctx, heldWeight*int64(values))
}

// converted returns the JSON of the result, or nil if there is none.
func (o *wanted) converted() []byte {
	if o.item != nil {
		return o.item.converted
	}
	return o.memory
}

// finish makes the result of the n-th wanted object.
func (a *asking) finish(n int) error {
	o := &a.wanted[n]
	converted := o.converted()
	if o.item != nil {
		if p := o.item.problem; p != nil {
			return p.error()
		}
		a.w.mu.Lock()
		a.out[o.index], o.item.out = o.item.out, nil
		a.w.mu.Unlock()
	}
	if a.out[o.index] == nil {
		var p *problem
		if a.out[o.index], p = restored(originalOf(a.in[o.index]), converted, a.to); p != nil {
			return p.error()
		}
	}
	was, _ := a.in[o.index].Object["metadata"].(map[string]any)
	if version, ok := was["resourceVersion"]; ok {
		is, _ := a.out[o.index].Object["metadata"].(map[string]any)
		is["resourceVersion"] = runtime.DeepCopyJSONValue(version)
	}
	return nil
}
