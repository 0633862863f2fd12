package server

import (
	"math"
	"runtime/debug"
	"testing"

	"github.com/keelson-dev/keelson/flowcontrol"
)

// By default the bounds of what clients may hold depend on GOMEMLIMIT. The test is not parallel: the limit is that of the
// process.
func TestLimitsOfLittleMemory(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	for _, tc := range []struct {
		memory             int64
		given              Limits
		conns, watches     flowcontrol.Bounds
		bytesOfUnaskedData int64
	}{
		{math.MaxInt64, Limits{}, flowcontrol.Bounds{All: 10_000, User: -1, Address: 5_000}, flowcontrol.Bounds{All: 10_000, User: 5_000, Address: -1}, 8 << 20},
		{512 << 20, Limits{}, flowcontrol.Bounds{All: 4096, User: -1, Address: 2048}, flowcontrol.Bounds{All: 4096, User: 2048, Address: -1}, 512 << 20 / 320},
		{1, Limits{}, flowcontrol.Bounds{All: 16, User: -1, Address: 8}, flowcontrol.Bounds{All: 16, User: 8, Address: -1}, 1 << 20},
		{512 << 20, Limits{Connections: flowcontrol.Bounds{All: -1, Address: 7}, Watches: flowcontrol.Bounds{User: 9, Address: 5}},
			flowcontrol.Bounds{All: -1, User: -1, Address: 7}, flowcontrol.Bounds{All: 4096, User: 9, Address: 5}, 512 << 20 / 320},
	} {
		debug.SetMemoryLimit(tc.memory)
		l, err := tc.given.complete()
		unasked := unhandledBytes()
		debug.SetMemoryLimit(before)
		if err != nil || l.Connections != tc.conns || l.Watches != tc.watches || unasked != tc.bytesOfUnaskedData {
			t.Errorf("%d bytes: %+v, %+v, %d, %v", tc.memory, l.Connections, l.Watches, unasked, err)
		}
	}
}

// The defaults of Limits.Bytes depend on GOMEMLIMIT. The test is not parallel: the limit is that of the process.
func TestBytesByDefault(t *testing.T) {
	was := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(was)
	for _, c := range []struct {
		limit       int64
		given, want flowcontrol.Bounds
	}{
		{math.MaxInt64, flowcontrol.Bounds{}, flowcontrol.Bounds{All: 512 << 20, User: 256 << 20, Address: -1}},
		{600 << 20, flowcontrol.Bounds{}, flowcontrol.Bounds{All: 100 << 20, User: 50 << 20, Address: -1}},
		{512 << 20, flowcontrol.Bounds{All: 100}, flowcontrol.Bounds{All: 100, User: 50, Address: -1}},
		{512 << 20, flowcontrol.Bounds{All: -1}, flowcontrol.Bounds{All: -1, User: -1, Address: -1}},
		{512 << 20, flowcontrol.Bounds{All: 7, User: -1, Address: 3}, flowcontrol.Bounds{All: 7, User: -1, Address: 3}},
	} {
		debug.SetMemoryLimit(c.limit)
		l, err := Limits{Bytes: c.given}.complete()
		if err != nil || l.Bytes != c.want {
			t.Errorf("%+v under a limit of %d: %+v, %v; want %+v", c.given, c.limit, l.Bytes, err, c.want)
		}
	}
}

// The default of FormBytes depends on GOMEMLIMIT, too. The test is not parallel, as above.
func TestFormBytesByDefault(t *testing.T) {
	was := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(was)
	for _, c := range []struct{ limit, given, want int64 }{
		{math.MaxInt64, 0, 64 << 20}, {2 << 30, 0, 64 << 20}, {512 << 20, 0, 32 << 20}, {1, 0, 1 << 20}, {512 << 20, 7, 7}, {512 << 20, -1, -1},
	} {
		debug.SetMemoryLimit(c.limit)
		l, err := Limits{FormBytes: c.given}.complete()
		if err != nil || l.FormBytes != c.want {
			t.Errorf("%d under a limit of %d: %d, %v; want %d", c.given, c.limit, l.FormBytes, err, c.want)
		}
	}
}

// A negative value is an error, with the name of the bound, if the bound must not be negative. For other bounds it is no error.
func TestNegativeLimits(t *testing.T) {
	for name, l := range map[string]Limits{
		"RequestTimeout": {RequestTimeout: -1}, "MinWatchTimeout": {MinWatchTimeout: -1}, "CacheWindow": {CacheWindow: -1}, "CacheWait": {CacheWait: -1},
		"WriteTimeout": {WriteTimeout: -1}, "IdleTimeout": {IdleTimeout: -1}, "HeaderTimeout": {HeaderTimeout: -1}, "MaxHeaderBytes": {MaxHeaderBytes: -1},
	} {
		if srv, err := New(Options{Limits: l}); err == nil || err.Error() != "server: Limits."+name+" must not be negative; 0 is the default" {
			t.Errorf("%s: %v", name, err)
			if err == nil {
				_ = srv.Close()
			}
		}
	}
	none := flowcontrol.Bounds{All: -1, User: -1, Address: -1}
	l, err := Limits{
		MaxReadsInFlight: -1, MaxWritesInFlight: -1, MaxBodyBytes: -1, MaxDecodedBytes: -1, MaxMetadataItems: -1, MaxObjectBytes: -1, Bytes: none,
		MaxSelectorRequirements: -1, FormBytes: -1, Connections: none, Watches: none,
	}.complete()
	if err != nil || l.MaxReadsInFlight != -1 || l.MaxWritesInFlight != -1 || l.MaxBodyBytes != -1 || l.Bytes != none || l.Connections != none || l.Watches != none {
		t.Errorf("%+v, %v", l, err)
	}
}
