package handlers

import (
	"strings"
	"sync"

	"github.com/keelson-dev/keelson/runtime/selector"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// sharedFrom is the length in bytes from which selectors of watches are shared: below, they take less than a watch does.
const sharedFrom = 512

// watchSelectors are the long selectors of the watches of a resource, each once. The zero value is empty.
type watchSelectors struct {
	labels shared[labels.Selector]
	fields shared[fields.Selector]
}

// share puts the selectors that other watches have in the place of equal ones of l, which is to watch. The watch must call release
// when it ends.
func (s *watchSelectors) share(l *listRequest) (release func()) {
	if len(l.LabelSelector) < sharedFrom && len(l.FieldSelector) < sharedFrom {
		return keepNothing
	}
	releaseLabels, releaseFields := keepNothing, keepNothing
	if len(l.LabelSelector) >= sharedFrom {
		l.labels, releaseLabels = s.labels.hold(l.LabelSelector, func(text string) labels.Selector {
			own, err := labels.Parse(text) // which has parsed before
			if err != nil {
				own = l.labels
			}
			return selector.Labels(own)
		})
	}
	if len(l.FieldSelector) >= sharedFrom {
		l.fields, releaseFields = s.fields.hold(l.FieldSelector, func(string) fields.Selector {
			own, err := l.fields.Transform(func(field, value string) (string, string, error) {
				return strings.Clone(field), strings.Clone(value), nil
			})
			if err != nil {
				own = l.fields
			}
			return selector.Fields(own)
		})
	}
	return func() {
		releaseLabels()
		releaseFields()
	}
}

func keepNothing() {}

// shared keeps one value for each text, for as long as somebody holds it. The zero value is empty.
type shared[V any] struct {
	mu     sync.Mutex // guards byText and the uses of what it has
	byText map[string]*held[V]
}

type held[V any] struct {
	text  string
	value V
	uses  int
}

// hold returns the value of a text. It is made of a copy of the text unless somebody holds it. release must be called once.
func (s *shared[V]) hold(text string, made func(text string) V) (value V, release func()) {
	h := s.use(text, nil)
	if h == nil {
		text = strings.Clone(text) // that of a request is a part of its whole query
		h = s.use(text, &held[V]{text: text, value: made(text)})
	}
	return h.value, func() { s.release(h) }
}

// use returns what is held of a text, and holds fresh if that is nothing.
func (s *shared[V]) use(text string, fresh *held[V]) *held[V] {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.byText[text]
	if h == nil {
		if h = fresh; h == nil {
			return nil
		}
		if s.byText == nil {
			s.byText = map[string]*held[V]{}
		}
		s.byText[text] = h
	}
	h.uses++
	return h
}

func (s *shared[V]) release(h *held[V]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.uses--; h.uses == 0 {
		delete(s.byText, h.text)
	}
}
