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

// Limits bound the memory, time and connections that clients can take. The zero Limits has the defaults. Times and MaxHeaderBytes
// must not be negative. The table in the package documentation also has the bounds that are not options. In the fields of type
// flowcontrol.Bounds, All is the bound of all clients together, User that of each user, and Address that of each address.
// Connections, HeaderTimeout, IdleTimeout and MaxHeaderBytes hold for Run and Serve; Server.Handler says what to set in another
// http.Server.
//
// # Memory
//
// Memory that a burst of requests took goes back to the operating system without a call of the program. Go returns memory within
// seconds after a collection has found it free, collects at least every two minutes, and empties the pools of buffers with two
// collections. No pool keeps a buffer of more than a MiB. examples/hello takes 29 MB when it starts. While 64 clients sent it 192
// bodies of 2.7 MB, it took 441 MB. It took 122 MB one second after the last answer, and 47 MB after two minutes without
// requests, with 9 MB in use. Without requests a server keeps the objects of stored kinds in memory, and the changes and
// encodings that CacheWindow and FormBytes bound.
//
// The objects themselves are not bounded by Limits: a kind that is read is kept in memory as a whole, at about one and a half times
// the size of its JSON. Bound them by the size of the storage (bolt.Options.Quota, or the quota of etcd), or leave a large kind out
// of memory with KindOptions.NoCache. A bolt file has two to three times the size of its objects, so that a Quota of half of
// GOMEMLIMIT leaves the other half to requests.
//
// Where memory is limited, as in a container, set the environment variable GOMEMLIMIT to nine tenths of the limit, such as
// GOMEMLIMIT=460MiB for 512 MiB. The limit of a container is not read, and without GOMEMLIMIT the bounds that depend on the
// memory are too large for the container. With GOMEMLIMIT Go collects garbage before the limit is reached, and not only when the
// memory in use has doubled. Where address space is limited (RLIMIT_DATA), set GOMEMLIMIT to little more than half of it: the
// tables of the Go runtime, 70 MiB, and memory that was returned count there too.
type Limits struct {
	// RequestTimeout bounds the time of every request that is not a watch; 0 is 60 s.
	RequestTimeout time.Duration
	// MinWatchTimeout is the least time after which the server ends a watch without timeoutSeconds. The time is random, between
	// MinWatchTimeout and its double. 0 is 30 min.
	MinWatchTimeout time.Duration
	// MaxReadsInFlight and MaxWritesInFlight bound the requests that are served at the same time, without watches. Above the
	// bound the answer is 429; members of the group system:masters are counted, but never refused. 0 is 400 reads and 200 writes;
	// negative is no bound.
	MaxReadsInFlight, MaxWritesInFlight int
	// MaxBodyBytes bounds the body of a request, in bytes. Above it the answer is 413; 0 is 3 MiB, negative is no bound.
	MaxBodyBytes int64
	// MaxDecodedBytes bounds the memory, in bytes, of the values that a body is decoded to, as estimated before decoding: three
	// megabytes of text can be a million empty objects. A request may allocate several times this number in all. Above the bound
	// the answer is 413. 0 is 8 MiB, negative is no bound.
	MaxDecodedBytes int
	// MaxMetadataItems bounds the items of each list and map in an object's metadata, such as owner references, finalizers and
	// labels. Above it the answer is 422; 0 is 10,000, negative is no bound.
	MaxMetadataItems int
	// Patches bounds what JSON patches, merge patches and strategic merge patches cost. Above a bound the answer is 413. In each
	// field of Patches 0 is the default, and negative is no bound.
	Patches patch.Bounds
	// MaxObjectBytes bounds an encoded object, in bytes. Above it the answer is 413; 0 is 1.5 MiB, as in etcd, negative is no bound.
	MaxObjectBytes int
	// Bytes bounds the bytes of memory that requests hold at the same time. Above a bound the answer is 429. If All is 0, it is a
	// sixth of GOMEMLIMIT if that is set, and else 512 MiB. If User is 0, it is half of All, or no bound if All is none. If
	// Address is 0, there is no bound by address. A negative number is no bound. These are counted:
	//
	//   - A body above 16 KiB, and an object above 16 KiB that a request changes: sixteen times the length, for the values and
	//     encodings that are made from it.
	//   - A body whose values take more than 32 KiB: eight times that.
	//   - An object above 16 KiB in an answer to a read: its length as it is stored, and sixteen times that in another form.
	//   - A header above 16 KiB, with the URL.
	//   - A list that no cache has: the part of it that is in memory, 1 to 3 MiB.
	//   - A list from a cache: an item, or a block of items that is sent compressed, above 384 KiB. It counts twice in a form that is
	//     not the stored one.
	//   - A watch that begins with all objects: 160 KiB until they are sent.
	//   - Events above 16 KiB that a watch has not sent.
	//   - The answer of a conversion webhook whose values take more than 32 KiB: its length and its values while it is decoded, for
	//     no user. After that, twice the values for each request that receives them.
	//
	// A request that needs more than a whole bound takes the whole bound. If there is no room for an event, the watch ends with
	// the error 429, and the client can resume it from the last event that it has. Events that a cache makes once for all watches
	// count once, and for no user. Such events may take as much as All, even if requests already hold memory. The memory that
	// they take is not available to later requests.
	Bytes flowcontrol.Bounds
	// MaxSelectorRequirements bounds the requirements of the label selector, and those of the field selector, of a request. Above
	// it the answer is 400; 0 is 400 requirements, negative is no bound. Two other bounds follow from it: ten values in the sets
	// of a label selector (a in (x,y)) for each requirement, and 256 bytes of text for each requirement. By default these are
	// 4,000 and 102,400.
	MaxSelectorRequirements int
	// CacheWindow is the time for which changes are kept in memory, for watches that resume and for lists of older states; 0 is 5
	// min. Watches that allow bookmarks get one each minute. With less than three minutes a client that was disconnected may be
	// unable to resume its watch, and then has to list again. The memory for changes is bounded at a quarter of the memory of the
	// kind's objects, but at least 8 MiB and at most 128 MiB a kind.
	CacheWindow time.Duration
	// FormBytes bounds the memory, in bytes, for results that are kept for later requests: encodings of objects other than the
	// stored one, compressed blocks of lists, and the values of KindOptions.ShownFields. It is one bound for all kinds. 0 is 64 MiB,
	// but at most a sixteenth of GOMEMLIMIT. With a negative number no result is kept, and each request computes its own. The
	// metrics keelson_form_cache_* show how it is used.
	FormBytes int64
	// CacheWait is how long a list, a watch, or a read that need not return the latest state waits for the cache of the kind to
	// be filled, for example after a start. After it the answer is 429. 0 is 3 s.
	CacheWait time.Duration
	// Connections bounds the connections that Run and Serve accept. IPv6 addresses with the same first 64 bits count as one. If
	// All is 0, it is 10,000, but at most one for each 128 KiB of the memory limit of the process (GOMEMLIMIT). If Address is 0,
	// it is half of that default. A negative number is no bound. User is not used.
	//
	// A connection above a bound takes the place of a connection without a request in flight, which is chosen from the address
	// that has the most connections. Connections that were never authenticated are closed first if they are more than a quarter
	// of all. If there is no such connection, the new connection is closed before the TLS handshake. All connections of a proxy
	// in front of the server come from one address: name the proxy in Serving.Proxies.
	Connections flowcontrol.Bounds
	// Watches bounds the concurrent watches and other requests that last, such as subresources that are streams. Above a bound
	// the answer is 429. If All is 0, it is 10,000, but at most one for each 128 KiB of the memory limit of the process. If User
	// is 0, it is half of that default. If Address is 0, there is no bound by address. A negative number is no bound. The user is
	// the one who was authenticated, also if the request impersonates another user.
	Watches flowcontrol.Bounds
	// WriteTimeout is the time for which the client of a watch may read nothing of what is sent to it. After this time the watch
	// ends; 0 is 30 s. A connection over HTTP/2 whose client reads nothing at all is closed after the same time. The client has
	// the same time to read the rest of an answer after the handler has ended. All other answers have to be read within
	// RequestTimeout.
	WriteTimeout time.Duration
	// IdleTimeout is the time for which a connection may have no request. After this time the connection is closed; 0 is 90 s.
	IdleTimeout time.Duration
	// HeaderTimeout bounds the time of a TLS handshake, and the time in which the header of a request over HTTP/1.1 has to
	// arrive. After this time the connection is closed; 0 is 32 s.
	HeaderTimeout time.Duration
	// MaxHeaderBytes bounds the header of a request, in bytes, with its first line; 0 is 1 MiB. Above it the answer is 431, or the
	// connection ends: over HTTP/2 if the header is much larger. net/http lets some 4 KiB more pass. A request with more than
	// 10,000 different header fields gets the same answer.
	MaxHeaderBytes int
}

// maxHeaderFields bounds the different header fields of a request. kube-apiserver bounds only their bytes.
const maxHeaderFields = 10_000

// memoryLimit returns GOMEMLIMIT. ok is false if there is no limit.
func memoryLimit() (bytes int64, ok bool) {
	limit := debug.SetMemoryLimit(-1) // only reads it
	return limit, limit != math.MaxInt64
}

// ofMemory returns most, or the memory limit of the process divided by divisor if that is less. Of a limit it returns at least
// least.
func ofMemory(most, divisor, least int64) int64 {
	if limit, ok := memoryLimit(); ok {
		return min(most, max(limit/divisor, least))
	}
	return most
}

// of128KiB returns most, or the number of 128 KiB units in the memory limit of the process if that is less.
func of128KiB(most int64) int64 { return ofMemory(most, 128<<10, 16) }

// unhandledBytes bounds the bytes that are read of all connections together and cannot be handled yet, because the header is
// incomplete. A header of many short lines takes 14 times as much memory after net/http has read it, and as much again while it
// is read.
func unhandledBytes() int64 { return ofMemory(8<<20, 320, 1<<20) }

// formBytes returns the default of Limits.FormBytes.
func formBytes() int64 { return ofMemory(64<<20, 16, 1<<20) }

// complete checks l and sets the defaults of the fields that are 0.
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
			return l, fmt.Errorf("server: Limits.%s must not be negative; 0 is the default", bound.name)
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

// bytesWithDefaults sets the defaults of the fields that are 0.
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

// resolver returns the Resolver for requests.
func (l Limits) resolver() request.Resolver {
	return request.Resolver{Selectors: selector.Limit(l.MaxSelectorRequirements)}
}
