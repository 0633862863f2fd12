package server

import (
	"cmp"
	"errors"
	"time"

	"github.com/keelson-dev/keelson/runtime/selector"
	"github.com/keelson-dev/keelson/server/request"
)

// Limits bound what clients cost. The zero Limits has the defaults. Bounded without an option are the reason of an authorizer
// that a client is shown, at 1 KiB, and the lines about requests without a valid credential, at 10 a second.
type Limits struct {
	// RequestTimeout bounds every request that is not a watch; 0 is 60 s.
	RequestTimeout time.Duration
	// MinWatchTimeout is the least time after which a watch without timeoutSeconds is ended; the time is drawn
	// between it and its double. 0 is 30 min.
	MinWatchTimeout time.Duration
	// MaxReadsInFlight and MaxWritesInFlight bound the requests served at the same time, watches aside; beyond
	// that the answer is 429. 0 is 400 and 200; negative is no bound.
	MaxReadsInFlight, MaxWritesInFlight int
	// MaxBodyBytes bounds a request's body; 0 is 3 MiB.
	MaxBodyBytes int64
	// MaxObjectBytes bounds an encoded object; 0 is 1.5 MiB, as etcd has it.
	MaxObjectBytes int
	// MaxSelectorRequirements bounds the requirements of a label selector, and those of a field selector, that a request sends;
	// 0 is 400, negative is no bound. With it go the values in the sets of a label selector (a in (x,y)), ten for each
	// requirement that there may be, and the bytes of the text, 160 for each: 4,000 and 64,000. More is answered with 400.
	MaxSelectorRequirements int
	// CacheWindow is how long changes are kept in memory, for watches that resume and for lists of older states; 0 is
	// 5 min. Watches that allow bookmarks get one each minute: with less than three minutes a client that was away may
	// find that it cannot resume and has to list again. How much memory that may take is bounded too, at a quarter of
	// what the objects of the kind take, but at least 8 MiB and at most 128 MiB a kind.
	CacheWindow time.Duration
	// FormBytes bounds the memory for what is made of objects and kept for the next who asks: their encodings other than the
	// stored one, and the compressed blocks of lists, all kinds together. 0 is 64 MiB; negative keeps nothing, and what
	// is asked for is made each time. The metrics keelson_form_cache_* tell what it is used for.
	FormBytes int64
}

// complete checks l and fills in what is left to its default.
func (l Limits) complete() (Limits, error) {
	l.RequestTimeout = cmp.Or(l.RequestTimeout, 60*time.Second)
	l.MinWatchTimeout = cmp.Or(l.MinWatchTimeout, 30*time.Minute)
	if l.RequestTimeout < 0 || l.MinWatchTimeout < 0 || l.CacheWindow < 0 {
		return l, errors.New("server: Limits.RequestTimeout, Limits.MinWatchTimeout and Limits.CacheWindow must not be negative")
	}
	l.FormBytes = cmp.Or(l.FormBytes, 64<<20)
	l.MaxReadsInFlight = cmp.Or(l.MaxReadsInFlight, 400)
	l.MaxWritesInFlight = cmp.Or(l.MaxWritesInFlight, 200)
	return l, nil
}

// resolver is what tells what requests want.
func (l Limits) resolver() request.Resolver {
	return request.Resolver{Selectors: selector.Limit(l.MaxSelectorRequirements)}
}
