package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

// graceTime is how long Open waits for further members after one has answered.
const graceTime = time.Second

// finding is the result of the examination of an endpoint.
type finding struct {
	endpoint endpoint
	cluster  uint64
	err      error
	final    bool // err means that the whole etcd cannot be used, whatever other endpoints answer
}

// examine reads the status of every endpoint. It changes nothing.
func examine(ctx context.Context, o Options, endpoints []endpoint, config *tls.Config) error {
	limited, cancel := context.WithTimeout(ctx, o.DialTimeout)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	found := make(chan finding, len(endpoints))
	for _, e := range endpoints {
		all.Go(func() { found <- (&examiner{options: o, endpoint: e, config: config}).examine(limited) })
	}
	var good *finding
	var bad causes
	var enough <-chan time.Time
	for range endpoints {
		var f finding
		select {
		case f = <-found:
		case <-enough:
			return nil
		}
		switch {
		case f.final:
			return fmt.Errorf("etcd: open %s: %w", f.endpoint.name, f.err)
		case f.err != nil:
			bad = append(bad, fmt.Errorf("open %s: %w", f.endpoint.name, f.err))
			continue
		case good == nil:
			good = &f
			enough = time.After(graceTime)
		case f.cluster != good.cluster:
			return fmt.Errorf("etcd: open %s: it is a member of cluster %x, and %s of %x: name the members of one cluster",
				f.endpoint.name, f.cluster, good.endpoint.name, good.cluster)
		}
	}
	switch {
	case good != nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return fmt.Errorf("etcd: %w", bad)
}

// causes are errors that are printed on one line.
type causes []error

func (c causes) Unwrap() []error { return c }

func (c causes) Error() string {
	texts := make([]string, len(c))
	for i, err := range c {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// errNoHandshake means that the connection was broken when the TLS handshake began.
var errNoHandshake = errors.New("the TLS handshake was broken off")

// examiner examines one endpoint.
type examiner struct {
	options  Options
	endpoint endpoint
	config   *tls.Config

	mu     sync.Mutex // guards all below
	dialed error      // error of the last attempt to connect
	asked  bool       // the member requested a client certificate
}

func (x *examiner) examine(ctx context.Context) finding {
	f := finding{endpoint: x.endpoint}
	conn, err := grpc.NewClient("passthrough:///"+x.endpoint.address,
		grpc.WithTransportCredentials(insecure.NewCredentials()), // dial makes the TLS connection: its errors say more
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return x.dial(ctx) }),
		grpc.WithDisableServiceConfig(), grpc.WithNoProxy())
	if err != nil {
		f.err = err
		return f
	}
	defer func() { _ = conn.Close() }()
	st, err := x.ask(ctx, conn)
	if err != nil {
		known := rpctypes.Error(err)
		f.final = isAuth(known) || errors.Is(known, rpctypes.ErrPermissionDenied)
		f.err = x.explain(ctx, known)
		return f
	}
	f.cluster = st.Header.GetClusterId()
	if err := checkVersion(st.Version); err != nil {
		f.err, f.final = err, true
	}
	return f
}

// ask reads the member's status, with a token if there is a user: newer releases of etcd require one.
func (x *examiner) ask(ctx context.Context, conn *grpc.ClientConn) (*pb.StatusResponse, error) {
	if x.options.Username != "" {
		res, err := pb.NewAuthClient(conn).Authenticate(ctx, &pb.AuthenticateRequest{Name: x.options.Username, Password: x.options.Password})
		known := rpctypes.Error(err)
		switch {
		case err == nil:
			ctx = metadata.AppendToOutgoingContext(ctx, rpctypes.TokenFieldNameGRPC, res.Token)
		case errors.Is(known, rpctypes.ErrAuthNotEnabled):
		case code(known) == codes.Unimplemented: // no etcd, or one for which the version check gives a better error
		default:
			return nil, err
		}
	}
	return pb.NewMaintenanceClient(conn).Status(ctx, &pb.StatusRequest{})
}

func (x *examiner) dial(ctx context.Context) (conn net.Conn, err error) {
	defer func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.dialed = err
	}()
	var d net.Dialer
	conn, err = d.DialContext(ctx, x.endpoint.network, x.endpoint.address)
	if err != nil || x.config == nil {
		return conn, err
	}
	config := x.config.Clone()
	config.NextProtos = []string{"h2"}
	if config.ServerName == "" {
		config.ServerName = x.endpoint.host
	}
	config.GetClientCertificate = x.certificate
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		if (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)) && len(secure.ConnectionState().PeerCertificates) == 0 {
			err = fmt.Errorf("%w: %w", errNoHandshake, err)
		}
		return nil, err
	}
	return secure, nil
}

// certificate chooses a client certificate as usual, and records that one was requested. A member that does not accept the
// certificate breaks the connection, often before the reason can be read.
func (x *examiner) certificate(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
	x.mu.Lock()
	x.asked = true
	x.mu.Unlock()
	if x.config.GetClientCertificate != nil {
		return x.config.GetClientCertificate(info)
	}
	for i := range x.config.Certificates {
		if info.SupportsCertificate(&x.config.Certificates[i]) == nil {
			return &x.config.Certificates[i], nil
		}
	}
	return new(tls.Certificate), nil
}

// explain adds to an error its meaning and what to do.
func (x *examiner) explain(ctx context.Context, err error) error {
	x.mu.Lock()
	dialed, asked := x.dialed, x.asked
	x.mu.Unlock()
	cause := dialed
	if cause == nil {
		cause = errors.New(text(err))
	}
	var record tls.RecordHeaderError
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	message := err.Error()
	switch {
	case ctx.Err() != nil && dialed == nil || errors.Is(dialed, context.DeadlineExceeded):
		return fmt.Errorf("no answer within %v: is this the client URL of an etcd?", x.options.DialTimeout)
	case errors.As(dialed, &record), errors.Is(dialed, errNoHandshake), x.config != nil && strings.Contains(message, "first record does not look like a TLS handshake"):
		return fmt.Errorf("%w: it does not speak TLS: use http://", cause)
	case errors.As(dialed, &authority):
		return fmt.Errorf("%w: the certificate is of an authority that is not trusted: put it into TLS.RootCAs, or among those that the system trusts", cause)
	case errors.As(dialed, &name):
		return fmt.Errorf("%w: the certificate is for other names: use one of them, or set TLS.ServerName", cause)
	case errors.As(dialed, &invalid):
		return fmt.Errorf("%w: the certificate of etcd must be renewed", cause)
	case strings.Contains(message, "no application protocol"):
		return fmt.Errorf("it is not the client URL of an etcd: %w", cause)
	case strings.Contains(cause.Error(), "tls: "), asked && code(err) == codes.Unavailable && !isEtcd(err):
		return fmt.Errorf("%w: TLS does not fit: etcd may want a client certificate of an authority that it trusts, in TLS.Certificates", cause)
	case dialed != nil:
		return fmt.Errorf("%w: start etcd there, or name the client URL where it is", cause)
	case x.config == nil && x.speaksTLS(ctx):
		return fmt.Errorf("%w: it wants TLS: use https://", cause)
	case code(err) == codes.Unimplemented, strings.Contains(message, "HTTP/1."), code(err) == codes.Unavailable && !isEtcd(err):
		return fmt.Errorf("it is not the client URL of an etcd: %w", cause)
	}
	return translate(err)
}

// isEtcd reports whether an error is one of etcd, by its text.
func isEtcd(err error) bool { return strings.Contains(err.Error(), "etcdserver: ") }

// speaksTLS reports whether a TLS handshake gets an answer. The identity of the server does not matter, because nothing is
// sent.
func (x *examiner) speaksTLS(ctx context.Context) bool {
	d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}}
	conn, err := d.DialContext(ctx, x.endpoint.network, x.endpoint.address)
	if err == nil {
		_ = conn.Close()
		return true
	}
	return strings.Contains(err.Error(), "remote error: tls: ")
}

// oldest is the oldest release whose progress notifications are right.
const oldest = "3.5.13"

// checkVersion returns an error for releases of etcd that are too old.
func checkVersion(version string) error {
	have, ok := parseVersion(version)
	if !ok {
		return fmt.Errorf("it reports version %q, which cannot be read: %s or later is needed", version, oldest)
	}
	want, _ := parseVersion(oldest)
	for i := range have {
		if have[i] != want[i] {
			if have[i] > want[i] {
				return nil
			}
			return fmt.Errorf("it is etcd %s, which is too old: its watches report progress that they have not made "+
				"(https://github.com/etcd-io/etcd/issues/17507): upgrade to %s or later", version, oldest)
		}
	}
	return nil
}

// parseVersion reads major.minor.patch, and ignores what follows.
func parseVersion(s string) (v [3]int, ok bool) {
	s, _, _ = strings.Cut(s, "+")
	s, _, _ = strings.Cut(s, "-")
	parts := strings.Split(s, ".")
	if len(parts) != 3 {
		return v, false
	}
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 10, 31)
		if err != nil {
			return v, false
		}
		v[i] = int(n)
	}
	return v, true
}
