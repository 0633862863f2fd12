package handlers

import (
	"io"
	"math"
	"sync"

	"github.com/keelson-dev/keelson/flowcontrol"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/server/handlers/internal/wire"
	"github.com/keelson-dev/keelson/server/request"
	"github.com/keelson-dev/keelson/server/response"
	"github.com/keelson-dev/keelson/storage"
)

const (
	// portionBytes is how many bytes of a list that is in no cache are read at once.
	portionBytes = 1 << 20
	// freeBody is the size of a body up to which it is not counted. The number of such bodies is bounded by the requests in
	// flight.
	freeBody = 16 << 10
	// bodyWeight is how many bytes are counted for one byte of a body: for the body, the object that is made from it and its
	// encodings.
	bodyWeight = 16
	// freeValues is the memory of a body's values up to which they are not counted. valueWeight is how many bytes are counted for
	// one byte of larger values: for the values, for those of other versions and of the old object, and for comparing and
	// encoding them.
	freeValues  = 32 << 10
	valueWeight = 8
	// initialBytes is what a watch counts until it has sent its initial events: the buffer and those events.
	initialBytes = 160 << 10
	// freeEvents is the size, in bytes, up to which the events that a watch has not sent are not counted.
	freeEvents = 16 << 10
)

// hold counts n more bytes for the request until the request ends. The error is a TooManyRequests.
func (c *call) hold(n int64) error {
	if c.budget == nil || n <= 0 {
		return nil
	}
	return c.take(n)
}

// take is hold for a request with a budget. It makes a share even for n 0: a watch needs a share that can grow later, when the
// watch does not keep the user of the request any more.
func (c *call) take(n int64) (err error) {
	if c.share != nil {
		return response.Rejected(c.share.Grow(n))
	}
	share := new(flowcontrol.Share)
	if *share, err = c.budget.Take(c.holder(), n); err == nil {
		c.share = share
	}
	return response.Rejected(err)
}

// held returns how many bytes are counted for the request now.
func (c *call) held() int64 {
	if c.share == nil {
		return 0
	}
	return c.share.Held()
}

// holder returns the user and the address that the request counts for. Without filters around the handler, that is the user of
// the registry.Call.
func (c *call) holder() flowcontrol.Holder {
	h := request.HolderFrom(c.r.Context())
	if h.User == "" {
		h.User = c.ctx.User.Name
	}
	return h
}

// release ends what the request holds.
func (c *call) release() {
	if c.share != nil {
		c.share.Release()
	}
}

// account counts the bytes of a list that are read and in memory.
type account call

// Hold implements storage.Account. The count of a list in several portions does not decrease before the list ends. What is
// counted in the first reading, when the request can still be refused, is then enough for the second reading, when the list is
// sent.
func (a *account) Hold(bytes int64) error {
	c := (*call)(a)
	if c.budget == nil {
		return nil
	}
	more := min(c.first+bytes, c.most) - c.held()
	if more < 0 && c.first == 0 {
		c.share.Shrink(-more)
	}
	return c.hold(more)
}

// most returns the largest share that a request can have. A request that would need more counts as that share, and is served if
// no other request holds bytes.
func most(b *flowcontrol.Budget) int64 {
	all := b.Bounds()
	out := int64(math.MaxInt64)
	for _, bound := range []int64{all.All, all.User, all.Address} {
		if bound >= 0 {
			out = min(out, bound)
		}
	}
	return max(out, 1)
}

// holdBody counts a body of which n bytes are known, or a stored object of n bytes that is decoded.
func (c *call) holdBody(n int64) error {
	if n <= freeBody || c.budget == nil {
		return nil
	}
	weight := c.most
	if n < weight/bodyWeight {
		weight = n * bodyWeight
	}
	return c.hold(weight - c.held())
}

// holdValues counts a body whose values take so many bytes when they are decoded.
func (c *call) holdValues(bytes int) error {
	n := int64(bytes)
	if n <= freeValues || c.budget == nil {
		return nil
	}
	weight := c.most
	if n < weight/valueWeight {
		weight = n * valueWeight
	}
	return c.hold(weight - c.held())
}

// holdConverted counts objects that another program has converted for the request. It implements request.Hold.
func (c *call) holdConverted(bytes int64) error {
	if c.budget == nil {
		return nil
	}
	return c.hold(min(bytes, c.most) - c.held())
}

// limits returns the limits for the bodies of the request.
func (c *call) limits() codec.BodyLimits {
	l := c.bodyLimits
	if c.budget != nil {
		l.Weighed = c.holdValues
	}
	return l
}

// changed counts the stored object that a request changes. The request may have a small body.
type changed call

// Hold implements storage.Account.
func (c *changed) Hold(bytes int64) error { return (*call)(c).holdBody(bytes) }

// holdAnswer counts the answer to a read: the bytes of a record, or the result of decoding and encoding the record if that is
// necessary.
func (c *call) holdAnswer(it wire.Item, f wire.Form) error {
	n := int64(it.Record.Body.Size())
	if n <= freeBody || c.budget == nil {
		return nil
	}
	if !f.Verbatim() || !c.Direct(it) {
		return c.holdBody(n)
	}
	return c.hold(min(n, c.most) - c.held())
}

// holdInitial counts a watch that begins. A watch with initial events counts their memory before the first is sent, so that the
// watch can still be refused with a status.
func (w *watching) holdInitial() error {
	if w.budget == nil {
		return nil
	}
	if initial := w.asked.SendInitialEvents; initial != nil && *initial {
		w.least = min(initialBytes, w.most)
	}
	return w.take(w.least)
}

// shownEvents are the large events that watches are sending. In each form, an event is counted once, without a holder, for any
// number of watches that send it. The event is in the memory of the cache, and stays there until the last watch has sent it. The
// bytes of these events reduce the room for requests that come later. A watch ends with an error only if the budget has no room
// for its event beside the events that other watches have not sent.
type shownEvents struct {
	mu     sync.Mutex
	events map[shownForm]*shownEvent // guarded by mu, with all that is in it
}

// shownForm identifies an event in one form.
type shownForm struct {
	of   *storage.Forms
	form wire.SharedForm
}

type shownEvent struct {
	watches int
	share   flowcontrol.Share
}

// begin counts an event of n bytes until end is called.
func (s *shownEvents) begin(b *flowcontrol.Budget, of shownForm, n int64) (end func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.events[of]
	if e == nil {
		e = &shownEvent{}
		if e.share, err = b.Count(n); err != nil {
			return nil, response.Rejected(err)
		}
		if s.events == nil {
			s.events = map[shownForm]*shownEvent{}
		}
		s.events[of] = e
	}
	e.watches++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if e.watches--; e.watches == 0 {
			delete(s.events, of)
			e.share.Release()
		}
	}, nil
}

// holdEvents counts the memory of events that are not sent, before that memory is allocated. A TooManyRequests ends the watch:
// the client can continue at the last event that it received.
func (w *watching) holdEvents(bytes int) error {
	if bytes <= freeEvents || w.budget == nil {
		return nil
	}
	return w.hold(min(int64(bytes), w.most) - w.held())
}

// sent stops counting the events, when they are sent.
func (w *watching) sent() {
	if more := w.held() - w.least; more > 0 {
		w.share.Shrink(more)
	}
}

// countedBody is a body of unknown length that is counted while it is read.
type countedBody struct {
	io.Reader
	c    *call
	read int64
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.read += int64(n)
	if full := b.c.holdBody(b.read); full != nil {
		return n, full
	}
	return n, err
}
