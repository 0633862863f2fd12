package storage

import (
	"sync"
	"sync/atomic"
)

// Forms keeps what readers have made of one event or of a block of records, such as its encoding in another version or
// media type, so that it is made once for all who read it. Those of NewForms keep all for as long as they live, which is
// that of the event in a cache's log; those of FormCache.NewForms are under its budget. All methods may be called
// concurrently; a nil *Forms keeps nothing.
type Forms struct {
	cache *FormCache      // under whose budget they are; nil: under none
	grown func(bytes int) // told of what is kept; may be nil
	first atomic.Pointer[form]
	mu    sync.Mutex  // held while the list that begins with first changes
	over  atomic.Bool // nothing is kept any more
}

// NewForms returns an empty Forms. grown, which may be nil, is told of the bytes of each form that is kept; it must
// not call the Forms.
func NewForms(grown func(bytes int)) *Forms { return &Forms{grown: grown} }

// Get returns the form that key, a comparable value, stands for, which make makes if nobody has yet. The bytes are
// shared and must not be changed. Of all who ask for a form at a time one makes it, and the others wait for that; who
// asks for another one, or for one that is there, waits for nobody. An error of make is returned to who waited as well, so that
// many do not wait for one failure after the other, and not kept: the next one makes it again. So does who waited where make
// panicked, or has ended with a context, which is that of one reader. make must not ask f for the same form.
func (f *Forms) Get(key any, make func() ([]byte, error)) ([]byte, error) {
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
		if text, ok, err := e.get(f.cache, make); ok {
			return text, err
		}
	}
}

// Has reports whether the form that key stands for is there: Get would return it at once, unless it is dropped meanwhile.
func (f *Forms) Has(key any) bool {
	if f == nil {
		return false
	}
	e := f.find(key)
	return e != nil && e.made.Load()
}

// Keeps reports whether Get keeps what it makes, but for a cache that is full.
func (f *Forms) Keeps() bool { return f != nil && !f.over.Load() }

// Drop forgets all forms and gives their bytes back, and those of forms that are being made when they are there: nothing
// is kept from now on. Who has a form may go on using it.
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

// add returns the form of a key, which it puts into the list when nobody else has; nil when nothing is kept any more.
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
