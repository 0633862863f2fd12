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
	// portionBytes is how much of a list that no cache has is read at once.
	portionBytes = 1 << 20
	// freeBody is the size up to which a body counts nothing: how many there are is bounded by the requests in flight.
	freeBody = 16 << 10
	// bodyWeight is how many bytes are counted for one of a body: the body, the object that is made of it and its encodings.
	bodyWeight = 16
	// freeValues is how much the values of a body may take that count nothing, and valueWeight how many bytes are counted for each
	// byte of more: the values themselves, those in other versions and of before, and what is made to compare and encode them.
	freeValues  = 32 << 10
	valueWeight = 8
	// initialBytes is what a watch counts until it has sent its initial events: the buffer and those events.
	initialBytes = 160 << 10
	// freeEvents is the size up to which the events that a watch has not sent count nothing.
	freeEvents = 16 << 10
)

// hold counts n more bytes for the request until its end. The error is a TooManyRequests.
func (c *call) hold(n int64) error {
	if c.budget == nil || n <= 0 {
		return nil
	}
	return c.take(n)
}

// take is hold for a request that counts: a share of nothing can grow when it is no longer known whose the request is.
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

// held is how many bytes are counted for the request now.
func (c *call) held() int64 {
	if c.share == nil {
		return 0
	}
	return c.share.Held()
}

// holder is for whom the request counts: without filters around the handler the user that the storage is told.
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

// account counts what a list has read and holds.
type account call

// Hold implements storage.Account. Of a list of several portions nothing is given back before its end: what is counted while it
// is read for the first time, so that it can be refused, is enough for when it is sent.
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

// most is the largest share that a request can have: one that would need more is served when nobody else holds anything.
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

// holdBody counts a body of which so many bytes are known, or an object of so many bytes that is decoded.
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

// holdValues counts a body whose values take so many bytes when it is decoded, however short it is.
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

// limits are those of the bodies of the request.
func (c *call) limits() codec.BodyLimits {
	l := c.bodyLimits
	if c.budget != nil {
		l.Weighed = c.holdValues
	}
	return l
}

// changed counts the stored object that a request changes, however small the body of the request is.
type changed call

// Hold implements storage.Account.
func (c *changed) Hold(bytes int64) error { return (*call)(c).holdBody(bytes) }

// holdAnswer counts what a read answers with: the text of a record, or what is made of one that has to be decoded for it.
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

// holdInitial counts a watch that begins. One with initial events counts before them what it needs for all of them, so that it can be
// refused with a status.
func (w *watching) holdInitial() error {
	if w.budget == nil {
		return nil
	}
	if initial := w.asked.SendInitialEvents; initial != nil && *initial {
		w.least = min(initialBytes, w.most)
	}
	return w.take(w.least)
}

// shownEvents are the large events that watches are sending. Each counts once in each form, however many watches send it, for nobody:
// it is in the memory of the cache, and stays for as long as a watch has not sent it. What it leaves no room for is turned away.
// A watch is only if its event is one too many of those that stay because watches do not read.
type shownEvents struct {
	mu     sync.Mutex
	events map[shownForm]*shownEvent // guarded by mu, as all in it
}

// shownForm is an event in one form.
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

// holdEvents counts the memory of the events that are not sent, before it is taken. A TooManyRequests ends the watch: the client goes
// on where it was.
func (w *watching) holdEvents(bytes int) error {
	if bytes <= freeEvents || w.budget == nil {
		return nil
	}
	return w.hold(min(int64(bytes), w.most) - w.held())
}

// sent gives back what was counted for events, when they are sent.
func (w *watching) sent() {
	if more := w.held() - w.least; more > 0 {
		w.share.Shrink(more)
	}
}

// countedBody is a body of unknown length, which is counted while it is read.
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
