package server

import (
	"cmp"
	"fmt"
	"math"
	"runtime/debug"
	"time"

	"github.com/keelson-dev/keelson/flowcontrol"
	"github.com/keelson-dev/keelson/runtime/patch"
	"github.com/keelson-dev/keelson/runtime/selector"
	"github.com/keelson-dev/keelson/server/handlers"
	"github.com/keelson-dev/keelson/server/request"
)

// Limits bound what clients cost. The zero Limits has the defaults. Times and MaxHeaderBytes must not be negative. The table of the
// package documentation has what is bounded without an option as well.
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
	// MaxDecodedBytes bounds the memory that the values of a body take when it is decoded, as far as can be told before: a
	// million empty structs are three megabytes of text. What a request allocates in all is some times that. Beyond it the
	// answer is 413; 0 is 8 MiB, negative is no bound.
	MaxDecodedBytes int
	// MaxMetadataItems bounds each list and map in an object's metadata, such as owner references, finalizers and labels.
	// Beyond it the answer is 422; 0 is 10,000, negative is no bound.
	MaxMetadataItems int
	// Patches bounds what JSON patches, merge patches and strategic merge patches cost. Beyond it the answer is 413. In each of its
	// fields 0 is the default, and negative is no bound.
	Patches patch.Bounds
	// MaxObjectBytes bounds an encoded object; 0 is 1.5 MiB, as etcd has it.
	MaxObjectBytes int
	// Bytes bounds what requests hold in memory at the same time, in all, by user and by address, in bytes; beyond that the answer
	// is 429. Counted are bodies above 16 KiB, and objects above that which a request changes, with sixteen times their length for what
	// is made of them; bodies whose values take more than 32 KiB, with eight times that; objects above 16 KiB that a read answers with,
	// once as they are stored, and sixteen times in another form; what is read at once, about 2 MiB, of a list that no cache has; 160
	// KiB for a watch that begins with all objects, until it has sent them; and events above 16 KiB that watches have not sent. What
	// would need more than a whole bound takes that. Without room for an event the watch ends with the error 429, and the client can
	// go on where it was. Events that a cache makes once for all watches count once and for nobody, and have the bound of all for
	// themselves. 0 in all is a sixth of GOMEMLIMIT if that is set, and else 512 MiB; 0 by user is half of what there is in all, and 0
	// by address is no bound; negative is no bound.
	Bytes flowcontrol.Bounds
	// MaxSelectorRequirements bounds the requirements of a label selector, and those of a field selector, that a request sends;
	// 0 is 400, negative is no bound. With it go the values in the sets of a label selector (a in (x,y)), ten for each
	// requirement that there may be, and the bytes of the text, 256 for each: 4,000 and 102,400. More is answered with 400.
	MaxSelectorRequirements int
	// CacheWindow is how long changes are kept in memory, for watches that resume and for lists of older states; 0 is
	// 5 min. Watches that allow bookmarks get one each minute: with less than three minutes a client that was away may
	// find that it cannot resume and has to list again. How much memory that may take is bounded too, at a quarter of
	// what the objects of the kind take, but at least 8 MiB and at most 128 MiB a kind.
	CacheWindow time.Duration
	// FormBytes bounds the memory for what is made of objects and kept for the next who asks: their encodings other than the
	// stored one, and the compressed blocks of lists, all kinds together. 0 is 64 MiB, but at most a sixteenth of GOMEMLIMIT;
	// negative keeps nothing, and what is asked for is made each time. The metrics keelson_form_cache_* tell what it is used for.
	FormBytes int64
	// CacheWait is how long a list, a watch or a read of a state that need not be the latest waits for the cache of the kind to be
	// filled, as after a start; beyond that the answer is 429. 0 is 3 s.
	CacheWait time.Duration
	// Connections bounds the connections that Run and Serve accept, in all and by address, of which IPv6 addresses count by their
	// first 64 bits. 0 is 10,000 in all, but at most one for each 128 KiB of the memory limit of the process (GOMEMLIMIT), and half
	// of that by address; a negative number is no bound. User is not looked at. A connection beyond a bound takes the place of one
	// without a request in flight, of those from the address that has the most: connections that were never authenticated go
	// first where they are more than a quarter. Where there is none it is closed before the TLS handshake. A proxy in front of the
	// server is one address: name it in Serving.Proxies.
	Connections flowcontrol.Bounds
	// Watches bounds the watches, and other requests that last, such as those of subresources that are streams, that are
	// under way: in all, by user and by address; beyond that the answer is 429. 0 is 10,000 in all, but at most one for each
	// 128 KiB of the memory limit of the process, half of that by user, and no bound by address; a negative number is no
	// bound. The user is the one who was authenticated, whomever the request impersonates.
	Watches flowcontrol.Bounds
	// WriteTimeout is how long a client may read nothing of what is sent to it, before its stream or its connection ends; 0 is 30 s.
	WriteTimeout time.Duration
	// IdleTimeout is how long a connection may have no request before it is closed; 0 is 90 s.
	IdleTimeout time.Duration
	// HeaderTimeout bounds a TLS handshake, and how long the header of a request may take over HTTP/1.1; 0 is 32 s. The connection is
	// closed.
	HeaderTimeout time.Duration
	// MaxHeaderBytes bounds the header of a request, its first line included; 0 is 1 MiB. Beyond that the answer is 431, as it is
	// for a request with more than 10,000 different header fields.
	MaxHeaderBytes int
}

// maxHeaderFields is how many different header fields a request may have: kube-apiserver takes what fits in the bytes.
const maxHeaderFields = 10_000

// memoryLimit is GOMEMLIMIT; false: there is none.
func memoryLimit() (bytes int64, ok bool) {
	limit := debug.SetMemoryLimit(-1) // only reads it
	return limit, limit != math.MaxInt64
}

// ofMemory returns most, or the part of the memory limit of the process if that is less: one by divisor, and at least least.
func ofMemory(most, divisor, least int64) int64 {
	if limit, ok := memoryLimit(); ok {
		return min(most, max(limit/divisor, least))
	}
	return most
}

// of128KiB returns most, or how often 128 KiB fit into the memory limit of the process if that is less.
func of128KiB(most int64) int64 { return ofMemory(most, 128<<10, 16) }

// unhandledBytes is how much may be read of all connections together and cannot be handled yet: headers that have not come whole. A
// header of many short lines takes 14 times as much memory when net/http has read it, and as much again on the way.
func unhandledBytes() int64 { return ofMemory(8<<20, 320, 1<<20) }

// formBytes is how much is kept of what is made of objects.
func formBytes() int64 { return ofMemory(64<<20, 16, 1<<20) }

// complete checks l and fills in what is left to its default.
func (l Limits) complete() (Limits, error) {
	l.RequestTimeout = cmp.Or(l.RequestTimeout, 60*time.Second)
	l.MinWatchTimeout = cmp.Or(l.MinWatchTimeout, 30*time.Minute)
	l.HeaderTimeout = cmp.Or(l.HeaderTimeout, 32*time.Second)
	l.WriteTimeout = cmp.Or(l.WriteTimeout, handlers.DefaultWriteTimeout)
	l.IdleTimeout = cmp.Or(l.IdleTimeout, 90*time.Second)
	l.MaxHeaderBytes = cmp.Or(l.MaxHeaderBytes, 1<<20)
	for _, bound := range []struct {
		name  string
		value int64
	}{
		{"RequestTimeout", int64(l.RequestTimeout)}, {"MinWatchTimeout", int64(l.MinWatchTimeout)}, {"CacheWindow", int64(l.CacheWindow)},
		{"CacheWait", int64(l.CacheWait)}, {"WriteTimeout", int64(l.WriteTimeout)}, {"IdleTimeout", int64(l.IdleTimeout)},
		{"HeaderTimeout", int64(l.HeaderTimeout)}, {"MaxHeaderBytes", int64(l.MaxHeaderBytes)},
	} {
		if bound.value < 0 {
			return l, fmt.Errorf("server: Limits.%s must not be negative", bound.name)
		}
	}
	most := of128KiB(10_000)
	l.Connections = l.Connections.WithDefaults(flowcontrol.Bounds{All: most, User: -1, Address: most / 2})
	l.Watches = l.Watches.WithDefaults(flowcontrol.Bounds{All: most, User: most / 2, Address: -1})
	l.Bytes = bytesWithDefaults(l.Bytes)
	l.FormBytes = cmp.Or(l.FormBytes, formBytes())
	l.MaxReadsInFlight = cmp.Or(l.MaxReadsInFlight, 400)
	l.MaxWritesInFlight = cmp.Or(l.MaxWritesInFlight, 200)
	return l, nil
}

// bytesWithDefaults fills in what is left to its default.
func bytesWithDefaults(b flowcontrol.Bounds) flowcontrol.Bounds {
	all := int64(512 << 20)
	if limit, ok := memoryLimit(); ok {
		all = max(limit/6, 1)
	}
	b = b.WithDefaults(flowcontrol.Bounds{All: all, Address: -1})
	user := int64(-1)
	if b.All > 0 {
		user = max(b.All/2, 1)
	}
	return b.WithDefaults(flowcontrol.Bounds{User: user})
}

// resolver is what tells what requests want.
func (l Limits) resolver() request.Resolver {
	return request.Resolver{Selectors: selector.Limit(l.MaxSelectorRequirements)}
}
