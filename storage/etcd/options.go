package etcd

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Options are the options of Open. The zero value of every field except Endpoints is valid.
type Options struct {
	// Endpoints are the client URLs of the members: http://host:port, https://host:port, unix://path, unixs://path
	// (with TLS), or host:port, which means https when TLS is given and http otherwise. All of them use TLS, or none.
	Endpoints []string
	// TLS is used for https and unixs; nil is a client without certificate that trusts the system's roots. TLS together with
	// http endpoints is an error.
	TLS *tls.Config
	// Username and Password are for an etcd with authentication enabled. An etcd without it ignores them. The user needs
	// permission to read and write the keys under Prefix, the key Prefix followed by /health, and the keys that begin with
	// compact_rev_key. Compact, Raise and the compaction loop need the role root. For any other
	// user set CompactionInterval to -1, and let another client compact.
	Username, Password string
	// Prefix is put before every key. It may end in any byte, but must not contain a NUL byte.
	Prefix string

	// DialTimeout is how long Open waits for an endpoint that does not answer; 0 is 5 seconds.
	DialTimeout time.Duration
	// RequestTimeout bounds reads of one key, counts and commits, in addition to their contexts; 0 is 10 seconds.
	RequestTimeout time.Duration
	// RangeTimeout bounds the read of one page of a range, which has some MiB; 0 is 60 seconds.
	RangeTimeout time.Duration
	// CompactionInterval is how often history is compacted, at the revision that was current an interval before. 0 is 5
	// minutes; a negative value leaves compaction to other clients.
	CompactionInterval time.Duration
	// LeaseReuse bounds how long a lease is given to new keys, and so how much longer than their TTL keys may live, which is
	// at most a twentieth of the TTL. 0 is 60 seconds; a negative value makes a lease for every commit with a TTL.
	LeaseReuse time.Duration
	// LeaseMaxObjects is the maximum number of keys that share a lease; 0 is 1000.
	LeaseMaxObjects int
	// KeepaliveTime is how long a connection may be idle before it is pinged; 0 is 30 seconds. An etcd closes connections
	// that ping more often than its --grpc-keepalive-min-time, which is 5 seconds by default.
	KeepaliveTime time.Duration
	// KeepaliveTimeout is how long a ping waits for its answer before the connection is closed; 0 is 10 seconds.
	KeepaliveTimeout time.Duration
	// Hooks are called about the backend's work; nil funcs are not called.
	Hooks Hooks
}

// Hooks are called by the goroutines that do the work, which wait for them. They must return quickly, may be called
// concurrently, and must not call the Backend.
type Hooks struct {
	// Requested is called after a request to etcd, which may have taken several attempts, with its duration and error.
	// operation is get, range, count, commit, lease, compact, alarms or status.
	Requested func(operation string, took time.Duration, err error)
	// Compacted is called in each interval in which it is this backend's turn to compact, with the revision at which it
	// compacts. It is also called, with the revision 0, if the backend cannot find out whose turn it is, or has no permission
	// to compact. err is nil if the history was compacted.
	Compacted func(revision int64, err error)
	// Reconnecting is called when a watch has lost its stream, and each time the stream could not be opened again.
	Reconnecting func(prefix string, err error)
}

func (o Options) withDefaults() (Options, error) {
	if o.DialTimeout < 0 || o.RequestTimeout < 0 || o.RangeTimeout < 0 || o.KeepaliveTime < 0 || o.KeepaliveTimeout < 0 {
		return o, errors.New("etcd: DialTimeout, RequestTimeout, RangeTimeout, KeepaliveTime and KeepaliveTimeout must not be negative")
	}
	if o.LeaseMaxObjects < 0 {
		return o, fmt.Errorf("etcd: LeaseMaxObjects is %d, and must not be negative", o.LeaseMaxObjects)
	}
	if strings.IndexByte(o.Prefix, 0) >= 0 {
		return o, fmt.Errorf("etcd: Prefix %q contains a NUL byte", o.Prefix)
	}
	if hidden(o.Prefix) {
		return o, fmt.Errorf("etcd: Prefix %q is reserved: keys of an etcd that begin with %s belong to its compaction", o.Prefix, compactKey)
	}
	if (o.Username == "") != (o.Password == "") {
		return o, errors.New("etcd: Username and Password must be given together")
	}
	o.DialTimeout = orDefault(o.DialTimeout, 5*time.Second)
	o.RequestTimeout = orDefault(o.RequestTimeout, 10*time.Second)
	o.RangeTimeout = orDefault(o.RangeTimeout, time.Minute)
	o.CompactionInterval = orDefault(o.CompactionInterval, 5*time.Minute)
	o.LeaseReuse = max(orDefault(o.LeaseReuse, time.Minute), 0)
	o.LeaseMaxObjects = orDefault(o.LeaseMaxObjects, 1000)
	o.KeepaliveTime = orDefault(o.KeepaliveTime, 30*time.Second)
	o.KeepaliveTimeout = orDefault(o.KeepaliveTimeout, 10*time.Second)
	return o, nil
}

func orDefault[T time.Duration | int](v, def T) T {
	if v == 0 {
		return def
	}
	return v
}
