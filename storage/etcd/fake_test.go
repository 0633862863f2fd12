package etcd_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
)

// member imitates an etcd that is not available in a test: an old release, or one with other users.
type member struct {
	pb.UnimplementedMaintenanceServer
	pb.UnimplementedKVServer
	pb.UnimplementedAuthServer
	pb.UnimplementedLeaseServer
	pb.UnimplementedWatchServer

	version  string
	cluster  uint64
	password string // when set, authentication is enabled
	writes   atomic.Int64
	reads    atomic.Int64
	requests atomic.Int64
	leases   atomic.Int64 // granted

	// Results of transactions, reads and compactions; nil is success.
	txn     func(context.Context, *pb.TxnRequest) (*pb.TxnResponse, error)
	read    func(context.Context) error
	ranged  func(*pb.RangeRequest) *pb.RangeResponse // after read; the header is added
	compact func() error
	granted func(ttl int64)
	watched func(*pb.WatchCreateRequest, pb.Watch_WatchServer) error
}

func (m *member) header() *pb.ResponseHeader {
	return &pb.ResponseHeader{ClusterId: m.cluster, MemberId: 1, Revision: 7}
}

func (m *member) permitted(ctx context.Context) error {
	if m.password == "" {
		return nil
	}
	md, _ := metadata.FromIncomingContext(ctx)
	switch token := md.Get(rpctypes.TokenFieldNameGRPC); {
	case len(token) == 0:
		return rpctypes.ErrGRPCUserEmpty
	case token[0] != "a token":
		return rpctypes.ErrGRPCInvalidAuthToken
	}
	return nil
}

func (m *member) Status(ctx context.Context, _ *pb.StatusRequest) (*pb.StatusResponse, error) {
	if err := m.permitted(ctx); err != nil {
		return nil, err
	}
	return &pb.StatusResponse{Header: m.header(), Version: m.version}, nil
}

func (m *member) Authenticate(_ context.Context, r *pb.AuthenticateRequest) (*pb.AuthenticateResponse, error) {
	switch {
	case m.password == "":
		return nil, rpctypes.ErrGRPCAuthNotEnabled
	case r.Password != m.password:
		return nil, rpctypes.ErrGRPCAuthFailed
	}
	return &pb.AuthenticateResponse{Header: m.header(), Token: "a token"}, nil
}

func (m *member) Range(ctx context.Context, r *pb.RangeRequest) (*pb.RangeResponse, error) {
	if err := m.permitted(ctx); err != nil {
		return nil, err
	}
	m.reads.Add(1)
	if m.read != nil {
		if err := m.read(ctx); err != nil {
			return nil, err
		}
	}
	res := &pb.RangeResponse{}
	if m.ranged != nil {
		res = m.ranged(r)
	}
	res.Header = m.header()
	return res, nil
}

func (m *member) Compact(context.Context, *pb.CompactionRequest) (*pb.CompactionResponse, error) {
	if m.compact != nil {
		if err := m.compact(); err != nil {
			return nil, err
		}
	}
	return &pb.CompactionResponse{Header: m.header()}, nil
}

func (m *member) Watch(s pb.Watch_WatchServer) error {
	r, err := s.Recv()
	if err != nil {
		return err
	}
	return m.watched(r.GetCreateRequest(), s)
}

func (m *member) LeaseGrant(_ context.Context, r *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	if m.granted != nil {
		m.granted(r.TTL)
	}
	return &pb.LeaseGrantResponse{Header: m.header(), ID: m.leases.Add(1), TTL: r.TTL}, nil
}

func (m *member) Txn(ctx context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
	m.writes.Add(1)
	if m.txn != nil {
		return m.txn(ctx, r)
	}
	return &pb.TxnResponse{Header: m.header(), Succeeded: true}, nil
}

// serve starts a member on a free port and returns its address. config nil is without TLS.
func (m *member) serve(t *testing.T, config *tls.Config) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m.serveAt(t, l, config)
	return l.Addr().String()
}

func (m *member) serveAt(t *testing.T, l net.Listener, config *tls.Config) {
	opts := []grpc.ServerOption{grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		m.requests.Add(1)
		return handle(ctx, req)
	})}
	if config != nil {
		opts = append(opts, grpc.Creds(credentials.NewTLS(config)))
	}
	s := grpc.NewServer(opts...)
	pb.RegisterMaintenanceServer(s, m)
	pb.RegisterKVServer(s, m)
	pb.RegisterAuthServer(s, m)
	pb.RegisterLeaseServer(s, m)
	pb.RegisterWatchServer(s, m)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l)
	}()
	t.Cleanup(func() {
		s.Stop()
		<-done
	})
}

// authority signs certificates.
type authority struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pool *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, pool: x509.NewCertPool()}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	a.key = newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pool.AddCert(a.cert)
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// sign makes a certificate for both ends; without names it is for 127.0.0.1.
func (a *authority) sign(until time.Time, names ...string) tls.Certificate {
	a.t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "test"}, DNSNames: names,
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: until,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if len(names) == 0 {
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	key := newKey(a.t)
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
