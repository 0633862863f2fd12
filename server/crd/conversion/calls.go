package conversion

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"time"

	"github.com/google/uuid"
	"github.com/keelson-dev/keelson/flowcontrol"
	"github.com/keelson-dev/keelson/runtime/webhook"
	"github.com/keelson-dev/keelson/server/response"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// itemKey is the hash of an object's JSON and the wanted version.
type itemKey [sha256.Size]byte

// item is one object that was sent to the webhook, or will be, for all callers that want it.
type item struct {
	key      itemKey
	sent     []byte   // JSON, without a resourceVersion
	original original // its metadata is nil after the call; shares nothing with the object
	call     *call

	askers int // number of callers that wait for it; guarded by the mu of the Webhook

	// The fields below are written before call.done is closed. Only out is changed after that.
	converted []byte
	problem   *problem
	out       *unstructured.Unstructured // the first caller takes it; guarded by the mu of the Webhook after the call
}

// call is one call to a webhook.
type call struct {
	items  []*item
	to     schema.GroupVersion
	queued time.Time
	done   chan struct{}
	bounds bounds
	share  flowcontrol.Share // the memory of the decoded answer
}

// sentForm returns the JSON of an object as a webhook receives it, without a resourceVersion. The resourceVersion does not matter
// for the conversion. Without it an object that was just written equals the one that is read.
func sentForm(in *unstructured.Unstructured) ([]byte, error) {
	object := in.Object
	if metadata, ok := object["metadata"].(map[string]any); ok {
		if _, ok := metadata["resourceVersion"]; ok {
			metadata = maps.Clone(metadata)
			delete(metadata, "resourceVersion")
			object = maps.Clone(object)
			object["metadata"] = metadata
		}
	}
	return json.Marshal(object)
}

func keyOf(sent []byte, to schema.GroupVersion) itemKey {
	h := sha256.New()
	_, _ = h.Write([]byte(to.String() + "\n"))
	_, _ = h.Write(sent)
	return itemKey(h.Sum(nil))
}

// enqueue makes calls of items and queues them. The caller holds mu.
func (w *Webhook) enqueue(items []*item, to schema.GroupVersion) {
	o := w.factory.opts
	for len(items) > 0 {
		n := o.batchSize(items)
		c := &call{items: items[:n:n], to: to, queued: time.Now(), done: make(chan struct{}), bounds: w.factory.bounds}
		for _, i := range c.items {
			i.call = c
		}
		items = items[n:]
		w.queue = append(w.queue, c)
		if w.running == o.MaxCalls {
			continue
		}
		if w.factory.work(w.run) {
			w.running++
		} else if w.running == 0 { // no goroutine would ever look at the queue
			w.queue = nil
			c.fail(&problem{whole: true, nobody: true, err: errClosed()})
			w.land(c)
		}
	}
}

// batchSize returns how many of items, which is not empty, go into one call. Two states of one object never go into one call,
// and an object without a uid goes alone: if an answer exchanged them, nobody could notice.
func (o Options) batchSize(items []*item) int {
	size, seen := 0, map[string]bool{}
	for n, i := range items {
		uid := i.original.uid
		if n > 0 && (n == o.MaxObjects || size+len(i.sent) > o.MaxBytes || uid == "" || seen[""] || seen[uid]) {
			return n
		}
		size += len(i.sent)
		seen[uid] = true
	}
	return len(items)
}

// run makes queued calls until the queue is empty.
func (w *Webhook) run() {
	for {
		w.mu.Lock()
		if len(w.queue) == 0 {
			w.queue = nil
			w.running--
			w.mu.Unlock()
			return
		}
		c := w.queue[0]
		w.queue[0] = nil
		w.queue = w.queue[1:]
		w.mu.Unlock()
		w.do(c)
	}
}

// do makes one call.
func (w *Webhook) do(c *call) {
	began := time.Now()
	switch {
	case w.factory.life.Err() != nil:
		c.fail(&problem{whole: true, nobody: true, err: errClosed()})
	case began.Sub(c.queued) > maxQueued:
		c.fail(&problem{whole: true, nobody: true, err: w.busy()})
	default:
		report := Call{Definition: w.name, Objects: len(c.items)}
		if p := w.ask(c); p != nil {
			report.Failure, report.Err = p.failure, p.forLog()
		}
		if called := w.factory.opts.Hooks.Called; called != nil {
			report.Took = time.Since(began)
			called(report)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.land(c)
	c.share.Release() // each caller counts the objects that it receives
}

// land ends a call and wakes its waiters. The caller holds mu.
func (w *Webhook) land(c *call) {
	for _, i := range c.items {
		if i.problem == nil {
			w.factory.memory.put(memoryKey{w.id, i.key}, i.converted) // before it leaves flights: it is always in one of them
		}
		if w.flights[i.key] == i {
			delete(w.flights, i.key)
		}
	}
	close(c.done)
}

// ask sends a call to the webhook and stores the results in the items. It returns the first problem, or nil.
func (w *Webhook) ask(c *call) *problem {
	uid := types.UID(uuid.NewString())
	answer, err := w.client.Post(w.factory.life, w.factory.reviews.request(w.review, uid, c.to, c.items))
	if err != nil {
		p := c.rejected(CallFailure, err)
		p.nobody = errors.As(p.reason, new(*url.Error)) || errors.Is(p.reason, context.DeadlineExceeded)
		if w.factory.life.Err() != nil {
			p.err = errClosed()
			p.nobody = true
		}
		return c.fail(p)
	}
	if len(answer) > bigAnswer {
		w.factory.big.Lock()
		defer w.factory.big.Unlock()
	}
	var p *problem
	if c.share, p = w.admit(c, uid, answer); p != nil {
		return c.fail(p)
	}
	return w.factory.reviews.judge(w.review, uid, c, answer, w.client.Reject)
}

const (
	// bigAnswer is the length in bytes from which answers are decoded one after another. Decoding takes many times their length.
	bigAnswer = 1 << 20
	// maxCrowd is the number of surplus objects in an answer up to which the answer is decoded, so that other errors can be
	// reported.
	maxCrowd = 1000
)

// judge stores the objects of an answer in the items of a call. It returns the first problem, or nil. reject makes the error for
// an answer that is not from a conversion webhook.
func (r *reviews) judge(version string, uid types.UID, c *call, answer []byte, reject func(reason error) *webhook.Error) *problem {
	if n := crowd(answer); n > len(c.items)+maxCrowd {
		return c.fail(c.rejected(PartialResponse, reject(fmt.Errorf("returned %d objects, expected %d", n, len(c.items)))))
	}
	objects, err := r.converted(version, uid, answer)
	switch {
	case err == nil:
	case errors.As(err, new(reportedError)):
		return c.fail(c.problem(MalformedResponse, "failed: %v", err))
	case errors.As(err, new(unreadError)):
		return c.fail(c.rejected(CallFailure, reject(err)))
	default:
		return c.fail(c.rejected(MalformedResponse, reject(err)))
	}
	if len(objects) != len(c.items) {
		return c.fail(c.problem(PartialResponse, "returned %d objects, expected %d", len(objects), len(c.items)))
	}
	var first *problem
	for n, i := range c.items {
		i.take(objects[n], c.to, c.bounds)
		if first == nil {
			first = i.problem
		}
	}
	return first
}

// take checks and stores the converted object of an item.
func (i *item) take(converted runtime.RawExtension, to schema.GroupVersion, b bounds) {
	if err := b.errObject(converted.Raw); err != nil {
		i.problem = problemOf(InvalidConvertedObject, i.original.gvk, "returned invalid object: %v", err)
		return
	}
	i.out, i.problem = restored(i.original, converted.Raw, to)
	i.original.metadata = nil // the new object has it now
	if i.problem == nil {
		i.converted = converted.Raw
	}
}

// problem returns a problem that all items of a call have.
func (c *call) problem(failure Failure, format string, args ...any) *problem {
	p := problemOf(failure, c.items[0].original.gvk, format, args...)
	p.whole = true
	return p
}

// rejected returns a problem for all items of a call without a usable answer. A *webhook.Error has a text that clients may see.
func (c *call) rejected(failure Failure, err error) *problem {
	p := c.problem(failure, "failed: %v", err)
	p.reason = err
	if call := (*webhook.Error)(nil); errors.As(err, &call) {
		p.reason = call.Reason
	}
	return p
}

// fail sets the problem of all items of a call, and returns it.
func (c *call) fail(p *problem) *problem {
	for _, i := range c.items {
		i.problem = p
	}
	return p
}

// busy returns the error for a call of Convert that is refused because too many wait.
func (w *Webhook) busy() error {
	return apierrors.NewTooManyRequests(fmt.Sprintf("too many requests wait for the conversion webhook of %s, please try again later", w.name), 1)
}

// admit checks an answer before it is decoded, and counts the memory of its values in the budget until the share is released. The
// memory has no user, because several callers may wait for the objects.
func (w *Webhook) admit(c *call, uid types.UID, answer []byte) (flowcontrol.Share, *problem) {
	sent, text, most := c.bounds.whole(c.items)
	if text > 0 && len(answer) > text {
		return flowcontrol.Share{}, w.tooLarge(c, uid, answer, fmt.Errorf("the answer to %d bytes of objects is longer than %d bytes", sent, text))
	}
	values, err := weigh(answer, most)
	if err != nil {
		err = fmt.Errorf("the values of the answer to %d bytes of objects take too much memory: the limit is %d bytes", sent, most)
		return flowcontrol.Share{}, w.tooLarge(c, uid, answer, err)
	}
	if values <= freeValues {
		return flowcontrol.Share{}, nil
	}
	budget, n := w.factory.opts.Budget, int64(values+len(answer))
	if all := budget.Bounds().All; all >= 0 {
		n = min(n, all) // it is refused only if something else is held
	}
	share, err := budget.Count(n)
	if err != nil {
		p := c.rejected(CallFailure, err)
		p.nobody, p.err = true, response.Rejected(err)
		return flowcontrol.Share{}, p
	}
	return share, nil
}

// tooLarge returns the problem of an answer that is too large to be decoded. The uid in the answer proves that a conversion
// webhook made it. Otherwise clients do not learn the reason.
func (w *Webhook) tooLarge(c *call, uid types.UID, answer []byte, reason error) *problem {
	if bytes.Contains(answer, []byte(uid)) {
		p := c.problem(MalformedResponse, "returned too much: %v", reason)
		p.reason = reason
		return p
	}
	return c.rejected(MalformedResponse, w.client.Reject(reason))
}
