package conversion

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/runtime/webhook"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxQueued bounds how long a call waits for its turn.
const maxQueued = 30 * time.Second

// Webhook converts the objects of one definition. It has nothing to close, and may be used concurrently.
type Webhook struct {
	factory *Factory
	client  *webhook.Client
	id      uint64
	name    string                             // of the definition
	spec    *apiextensionsv1.WebhookConversion // never changed
	review  string                             // the version of ConversionReview; "" is none that is known

	mu      sync.Mutex // guards all below
	waiting int        // calls of Convert
	running int        // goroutines that make calls
	queue   []*call    // the oldest in front
	flights map[itemKey]*item
}

// String says which webhook it is.
func (w *Webhook) String() string {
	return fmt.Sprintf("the conversion webhook of %s (%s)", w.name, w.client)
}

// Convert returns objects in another version, in their order: those that are of that version as they are, and of all others what
// the webhook makes of them. in is not changed; what is new in the result belongs to the caller. The error is for all. It is an
// *apierrors.StatusError, of code 500 without a reason if the webhook is to blame, with the text of kube-apiserver, and of code 429
// if too many wait for it; or ctx has ended, and the error is ctx's, wrapped. The call to the webhook goes on then.
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
	if converted := w.factory.opts.Hooks.Converted; converted != nil {
		a.told.Definition, a.told.To, a.told.Took, a.told.Err = w.name, to.Version, time.Since(began), err
		a.told.From = in[a.wanted[0].index].GroupVersionKind().Version
		converted(a.told)
	}
	if err != nil {
		return nil, err
	}
	return a.out, nil
}

// asking is one call of Convert.
type asking struct {
	w      *Webhook
	to     schema.GroupVersion
	in     []*unstructured.Unstructured
	out    []*unstructured.Unstructured
	wanted []wanted
	keys   map[itemKey]bool // of wanted, if they were needed
	told   Conversion
}

// wanted is one object that is to be converted.
type wanted struct {
	index  int // in in and out
	key    itemKey
	sent   []byte
	item   *item  // where it comes from,
	ours   bool   // and whether that is there because of it,
	memory []byte // or this
}

// prepare finds out what is to be converted.
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

// bare reports whether an object has nothing that could be converted.
func bare(obj *unstructured.Unstructured) bool {
	_, version := obj.Object["apiVersion"]
	_, kind := obj.Object["kind"]
	return version && kind && len(obj.Object) == 2
}

// convert waits for all that is wanted. What failed with objects of others in the same call is asked for again, which they may
// share who are in the same place; and if that is not fair either, once more without sharing.
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
	for n := range a.wanted {
		if err := a.finish(n); err != nil {
			return err
		}
	}
	return nil
}

// join finds what there is already, and asks the webhook for all other. With share, others may wait for what it asks for.
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
			w.flights[o.key] = o.item // also for the same object once more in all
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
			a.told.Remembered++
			continue
		case o.ours:
			a.told.Sent++
		default:
			a.told.Shared++
		}
		o.item.askers++
	}
	w.enqueue(fresh, a.to)
	return nil
}

// wait waits for what is with the webhook. It leaves when ctx ends.
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

// leave ends the waiting, perhaps early: a call that has not begun and that nobody waits for then is not made.
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

// wanted reports whether anybody waits for anything of a call. The caller holds mu.
func (c *call) wanted() bool {
	for _, i := range c.items {
		if i.askers > 0 {
			return true
		}
	}
	return false
}

// unfair returns what failed because of a call in which there was something that was not asked for here: the webhook may have
// failed because of that. If it did not answer at all, it would not now. What was not shared is fair.
func (a *asking) unfair(all []*wanted) []*wanted {
	var out []*wanted
	for _, o := range all {
		if o.item != nil && !o.ours && o.item.problem != nil && o.item.problem.whole && !o.item.problem.nobody && a.foreign(o.item.call) {
			out = append(out, o)
		}
	}
	return out
}

// foreign reports whether there is something in a call that is not wanted here.
func (a *asking) foreign(c *call) bool {
	if a.keys == nil {
		a.keys = make(map[itemKey]bool, len(a.wanted))
		for _, o := range a.wanted {
			a.keys[o.key] = true
		}
	}
	return slices.ContainsFunc(c.items, func(i *item) bool { return !a.keys[i.key] })
}

// finish makes the result of the n-th object that was wanted.
func (a *asking) finish(n int) error {
	o := &a.wanted[n]
	converted := o.memory
	if o.item != nil {
		if p := o.item.problem; p != nil {
			return p.error()
		}
		converted = o.item.converted
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
