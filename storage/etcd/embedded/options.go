package embedded

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.uber.org/zap"
)

// Options are the options of Start. Only Dir is required. An address is host:port, without a scheme.
type Options struct {
	// Dir has the member's data, and belongs to one member of one cluster for ever. It is created if it is missing.
	Dir string
	// Name is this member's name in Peers; "" is "default".
	Name string
	// ListenClient is the address on which clients are served; "" is 127.0.0.1:0. Port 0 is a free port, a different one at
	// each start.
	ListenClient string
	// AdvertiseClient is the address for clients in Endpoints and in etcd's member list; "" is ListenClient. It is required
	// when ListenClient has no host, or an unspecified one such as 0.0.0.0.
	AdvertiseClient string
	// Peers are the members of the cluster, including this one: the address for the other members by name. nil is a cluster
	// of this member only, which no other member can join.
	Peers map[string]string
	// ListenPeer is the address on which the other members are served; "" is the address in Peers.
	ListenPeer string
	// ClientTLS, if set, is for the connections of clients, which must then use TLS. With a CAFile, clients need a
	// certificate that this CA has signed.
	ClientTLS TLS
	// PeerTLS is for the connections between members, and needs a CAFile: each member's certificate is verified as a server's
	// and as a client's. Without PeerTLS, everybody who can connect to ListenPeer can change the data.
	PeerTLS TLS
	// QuotaBytes is the size of the database at which etcd refuses to write ("no space"); 0 is etcd's 2 GiB.
	QuotaBytes int64
	// SnapshotCount is the number of commits after which etcd writes a snapshot and shortens its log; 0 is etcd's 10,000.
	SnapshotCount uint64
	// Heartbeat is the interval at which the leader sends a heartbeat to the other members. An election begins when ten
	// heartbeats were missed. It must be the same for all members and longer than the round trip time between them. 0 is
	// 100ms, and 20ms for a single member, which elects itself after at most ten of these intervals.
	Heartbeat time.Duration
	// ProgressInterval is how often an idle watch that requested progress notifications receives one; 0 is 5s, which
	// kube-apiserver needs (the default of etcd is ten minutes).
	ProgressInterval time.Duration
	// AuthTokenTTL is how long an unused login is valid; 0 is etcd's five minutes. It must be whole seconds.
	AuthTokenTTL time.Duration
	// UnsafeNoFsync makes etcd not wait for the disk. A crash of the machine, not of the process, then loses acknowledged
	// commits and can leave data that cannot be opened. It is for tests.
	UnsafeNoFsync bool
	// Logger receives etcd's log; nil discards it.
	Logger *zap.Logger
}

// TLS has the names of PEM files. The zero TLS is no TLS: connections are in clear text.
type TLS struct {
	CertFile, KeyFile string // own certificate and key
	CAFile            string // the CA that must have signed the other side's certificate
}

const loopback = "127.0.0.1:0"

// checked returns the options with their defaults, or an error for invalid ones.
func (o Options) checked() (Options, error) {
	if o.Name == "" {
		o.Name = "default"
	}
	if o.ListenClient == "" {
		o.ListenClient = loopback
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = 100 * time.Millisecond
		if o.Peers == nil {
			o.Heartbeat = 20 * time.Millisecond
		}
	}
	if o.ProgressInterval == 0 {
		o.ProgressInterval = 5 * time.Second
	}
	if o.AuthTokenTTL == 0 {
		o.AuthTokenTTL = 5 * time.Minute
	}
	for _, check := range []func() error{
		o.checkValues, o.checkClientAddresses, o.checkPeers,
		func() error { return o.ClientTLS.check("ClientTLS") },
		func() error { return o.PeerTLS.check("PeerTLS") },
	} {
		if err := check(); err != nil {
			return o, err
		}
	}
	return o, nil
}

func (o Options) checkValues() error {
	const tick, longest = time.Millisecond, 5 * time.Second // etcd's longest election timeout is 50s
	switch {
	case o.Dir == "":
		return invalid("Dir is required: the directory for the member's data")
	case strings.ContainsAny(o.Name, "=,"):
		return invalid("Name %q: a member's name has no %q and no %q", o.Name, "=", ",")
	case o.QuotaBytes < 0:
		return invalid("QuotaBytes is %d: it must not be negative; 0 is etcd's default", o.QuotaBytes)
	case o.Heartbeat < tick || o.Heartbeat > longest || o.Heartbeat%tick != 0:
		return invalid("Heartbeat is %v: it must be whole milliseconds from %v to %v", o.Heartbeat, tick, longest)
	case o.ProgressInterval < 0:
		return invalid("ProgressInterval is %v: it must not be negative", o.ProgressInterval)
	case o.AuthTokenTTL < time.Second || o.AuthTokenTTL%time.Second != 0:
		return invalid("AuthTokenTTL is %v: it must be whole seconds", o.AuthTokenTTL)
	}
	return nil
}

func (o Options) checkClientAddresses() error {
	if err := checkAddress("ListenClient", o.ListenClient); err != nil {
		return err
	}
	if o.AdvertiseClient != "" {
		return checkDialable("AdvertiseClient", o.AdvertiseClient)
	}
	if host, _, _ := net.SplitHostPort(o.ListenClient); unspecified(host) {
		return invalid("ListenClient is %q: every address of the machine; AdvertiseClient must say which one clients are to use", o.ListenClient)
	}
	return nil
}

func (o Options) checkPeers() error {
	if o.Peers == nil {
		switch {
		case o.ListenPeer != "":
			return invalid("ListenPeer is set without Peers: a member alone has no other to listen to")
		case o.PeerTLS != TLS{}:
			return invalid("PeerTLS is set without Peers: a member alone has no connections to others")
		}
		return nil
	}
	if _, there := o.Peers[o.Name]; !there {
		return invalid("Peers has %q, and must have this member, %q", slices.Sorted(maps.Keys(o.Peers)), o.Name)
	}
	addresses := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(o.Peers)) {
		if name == "" || strings.ContainsAny(name, "=,") {
			return invalid("Peers: a member's name is not empty and has no %q and no %q: %q", "=", ",", name)
		}
		addr := o.Peers[name]
		if err := checkDialable(fmt.Sprintf("Peers[%q]", name), addr); err != nil {
			return err
		}
		if other, twice := addresses[addr]; twice {
			return invalid("Peers: %q and %q have the same address %s", other, name, addr)
		}
		addresses[addr] = name
	}
	if (o.PeerTLS != TLS{}) && o.PeerTLS.CAFile == "" {
		return invalid("PeerTLS has no CAFile: it says which other members to trust")
	}
	if o.ListenPeer == "" {
		return nil
	}
	return checkAddress("ListenPeer", o.ListenPeer)
}

// checkAddress checks an address to listen on. etcd requires that a host is an IP address or localhost.
func checkAddress(field, addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || strings.Contains(addr, "/") {
		return invalid("%s is %q: it must be host:port", field, addr)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil {
		return invalid("%s is %q: the port must be a number from 0 to 65535", field, addr)
	} else if n == 0 && field == "ListenPeer" {
		return invalid("%s is %q: the port must be the one that the other members know", field, addr)
	}
	if host != "" && host != "localhost" && net.ParseIP(host) == nil {
		return invalid("%s is %q: the host must be an IP address or localhost", field, addr)
	}
	return nil
}

// checkDialable checks an address that other processes connect to.
func checkDialable(field, addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || strings.Contains(addr, "/") {
		return invalid("%s is %q: it must be host:port", field, addr)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || unspecified(host) {
		return invalid("%s is %q: others connect to it, so it needs a host and a port", field, addr)
	}
	return nil
}

// invalid returns the error for an invalid option.
func invalid(format string, args ...any) error { return fmt.Errorf("embedded etcd: "+format, args...) }

func unspecified(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}

// check reads the files now: etcd would find an error only when it serves.
func (t TLS) check(field string) error {
	if (t == TLS{}) {
		return nil
	}
	if t.CertFile == "" || t.KeyFile == "" {
		return invalid("%s needs both CertFile and KeyFile", field)
	}
	if _, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile); err != nil {
		return invalid("%s: %w", field, err)
	}
	if t.CAFile == "" {
		return nil
	}
	pem, err := os.ReadFile(t.CAFile)
	if err != nil {
		return invalid("%s: CAFile: %w", field, err)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(pem) {
		return invalid("%s: CAFile %s has no certificate", field, t.CAFile)
	}
	return nil
}

func (t TLS) info() transport.TLSInfo {
	return transport.TLSInfo{CertFile: t.CertFile, KeyFile: t.KeyFile, TrustedCAFile: t.CAFile, ClientCertAuth: t.CAFile != ""}
}

func (t TLS) url(addr string) url.URL {
	u := url.URL{Scheme: "http", Host: addr}
	if (t != TLS{}) {
		u.Scheme = "https"
	}
	return u
}
