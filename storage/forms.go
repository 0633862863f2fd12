package storage

import "sync"

// Forms keeps what readers have made of one event, such as its encoding in another version or media type, so that
// it is made once for all who watch. It lives as long as the event is in a cache's log. All methods may be called
// concurrently; a nil *Forms keeps nothing.
type Forms struct {
	mu    sync.Mutex // guards forms, and is held while one is made
	forms []form
	grown func(bytes int)
}

type form struct {
	key  any
	text []byte
}

// Get returns the form that key, a comparable value, stands for, which make makes if nobody has yet. The bytes are
// shared and must not be changed. An error of make is returned, and not kept. make must not call f, and others wait
// for it.
func (f *Forms) Get(key any, make func() ([]byte, error)) ([]byte, error) {
	if f == nil {
		return make()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, kept := range f.forms {
		if kept.key == key {
			return kept.text, nil
		}
	}
	text, err := make()
	if err != nil {
		return nil, err
	}
	f.forms = append(f.forms, form{key, text})
	if f.grown != nil {
		f.grown(len(text))
	}
	return text, nil
}

// NewForms returns an empty Forms. grown, which may be nil, is told of the bytes of each form that is kept; it must
// not call the Forms.
func NewForms(grown func(bytes int)) *Forms { return &Forms{grown: grown} }
