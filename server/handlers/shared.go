package handlers

import (
	"strings"
	"sync"

	"github.com/keelson-dev/keelson/runtime/selector"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// sharedFrom is the length in bytes from which the selectors of watches are shared. Shorter ones take less memory than a watch
// itself.
const sharedFrom = 512

// watchSelectors has one copy of each long selector of the watches of a resource. The zero value is empty.
type watchSelectors struct {
	labels shared[labels.Selector]
	fields shared[fields.Selector]
}

// share replaces the long selectors of l by equal ones of other watches, if there are any. release must be called when the watch
// ends.
func (s *watchSelectors) share(l *listRequest) (release func()) {
	if len(l.LabelSelector) < sharedFrom && len(l.FieldSelector) < sharedFrom {
		return keepNothing
	}
	releaseLabels, releaseFields := keepNothing, keepNothing
	if len(l.LabelSelector) >= sharedFrom {
		l.labels, releaseLabels = s.labels.hold(l.LabelSelector, func(text string) labels.Selector {
			own, err := labels.Parse(text) // the text was parsed before, so there is no error
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

// shared keeps one value for each text, as long as it is held. The zero value is empty.
type shared[V any] struct {
	mu     sync.Mutex // guards byText and the uses of its values
	byText map[string]*held[V]
}

type held[V any] struct {
	text  string
	value V
	uses  int
}

// hold returns the value for a text. If no value is held for it, hold makes one from a copy of the text. release must be called
// once.
func (s *shared[V]) hold(text string, made func(text string) V) (value V, release func()) {
	h := s.use(text, nil)
	if h == nil {
		text = strings.Clone(text) // the text of a request is a substring of its whole query, which must not stay in memory
		h = s.use(text, &held[V]{text: text, value: made(text)})
	}
	return h.value, func() { s.release(h) }
}

// use returns the value that is held for a text. If there is none, use stores fresh, if it is not nil.
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
