package storage

import (
	"context"
	"sync"
	"sync/atomic"
)

// Forms keeps what readers derive from one event or from a block of records, such as its encoding in another version or media
// type. Each form is made once for all readers. A Forms that the function NewForms made keeps all its forms until Drop is
// called. A cache has the Forms of an event as long as the event is in its log. The forms in a Forms that FormCache.NewForms
// made count against the budget of that FormCache. All methods may be called concurrently; a nil *Forms keeps nothing.
type Forms struct {
	cache *FormCache      // the cache whose budget counts the forms; nil: none
	grown func(bytes int) // called for each form that is kept; may be nil
	first atomic.Pointer[form]
	mu    sync.Mutex  // held while the list that begins at first is changed
	over  atomic.Bool // no form is kept any more
}

// NewForms returns an empty Forms. grown, which may be nil, is called with the number of bytes of each form that is kept.
// grown must not call the Forms.
func NewForms(grown func(bytes int)) *Forms { return &Forms{grown: grown} }

// Get returns the form for key, a comparable value. It calls make if the form does not exist yet. The bytes are shared and
// must not be changed. If several callers ask for the same form at a time, one of them makes it, and the others wait for it.
// A caller does not wait if it asks for a form that exists, or for another form than the one that is being made. A caller that
// waits returns the error of its ctx when ctx ends; make must end by itself. An error of make is returned to the callers that
// waited, too, so that they do not fail one after the other. The error is not kept: the next caller calls make again. A caller
// that waited also calls make itself if make panicked or ended with a context's error, because the context belongs to one reader
// only. make must not ask f for the same form.
func (f *Forms) Get(ctx context.Context, key any, make func() ([]byte, error)) ([]byte, error) {
	if f == nil {
		return make()
	}
	for {
		e := f.find(key)
		if e == nil {
			if e = f.add(key); e == nil {
				return make()
			}
		}
		if text, ok, err := e.get(ctx, f.cache, make); ok {
			return text, err
		}
	}
}

// Has reports whether the form for key exists: Get would return it at once, unless it is dropped meanwhile.
func (f *Forms) Has(key any) bool {
	if f == nil {
		return false
	}
	e := f.find(key)
	return e != nil && e.made.Load()
}

// Keeps reports whether Get keeps the forms it makes. A cache that is full may still not keep them.
func (f *Forms) Keeps() bool { return f != nil && !f.over.Load() }

// Drop removes all forms and frees their bytes; forms that are being made are freed when they are complete. From now on
// nothing is kept. Callers that have a form may continue to use it.
func (f *Forms) Drop() {
	if f == nil {
		return
	}
	f.mu.Lock()
	f.over.Store(true)
	first := f.first.Swap(nil)
	f.mu.Unlock()
	if f.cache != nil && first != nil {
		f.cache.drop(first)
	}
}

func (f *Forms) find(key any) *form {
	for e := f.first.Load(); e != nil; e = e.next.Load() {
		if e.key == key {
			return e
		}
	}
	return nil
}

// add returns the form of a key. It puts a new one into the list if there is none; it returns nil when nothing is kept any
// more.
func (f *Forms) add(key any) *form {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over.Load() {
		return nil
	}
	if e := f.find(key); e != nil {
		return e
	}
	e := &form{key: key, in: f}
	e.next.Store(f.first.Load())
	f.first.Store(e)
	return e
}
