package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/keelson-dev/keelson/storage"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// link is one connection and its clients.
type link struct {
	*clientv3.Client
	kv    pb.KVClient
	lease pb.LeaseClient
	watch pb.WatchClient
	care  pb.MaintenanceClient
}

// HTTP/2 windows of the connection for watches: the maximum bytes, beside one message, that this process holds for a watch
// that is not read. The second is for all watches together. Its bytes are available again as data arrives, even if it is not
// read.
const (
	watchWindow  = 1 << 20
	watchesShare = 16 << 20
)

// connect makes the connections and reads once. The read checks that the user is allowed to read and that there is a leader.
func (b *Backend) connect(ctx context.Context, endpoints []endpoint, config *tls.Config) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("etcd: open %s: %w", endpoints[0].name, errors.Join(err, b.disconnect()))
		}
	}()
	if b.small, err = b.dial(ctx, endpoints, config); err != nil {
		return err
	}
	if b.large, err = b.dial(ctx, endpoints, config); err != nil {
		return err
	}
	b.watches, err = b.dial(ctx, endpoints, config,
		grpc.WithInitialWindowSize(watchWindow), grpc.WithInitialConnWindowSize(watchesShare))
	if err != nil {
		return err
	}
	_, err = b.readWithin(ctx, "get", b.opts.DialTimeout, b.small, &pb.RangeRequest{Key: b.healthKey(), CountOnly: true})
	if errors.Is(err, storage.ErrUnavailable) {
		return fmt.Errorf("%w: it is an etcd, but cannot be read: do most members of the cluster run?", err)
	}
	return err
}

func (b *Backend) dial(ctx context.Context, endpoints []endpoint, config *tls.Config, more ...grpc.DialOption) (*link, error) {
	urls := make([]string, len(endpoints))
	for i, e := range endpoints {
		urls[i] = e.url
	}
	more = append(more, grpc.WithNoProxy())
	if config != nil && config.ServerName != "" { // gRPC would replace it by the endpoint's host
		more = append(more, grpc.WithAuthority(config.ServerName))
	}
	c, err := clientv3.New(clientv3.Config{
		Endpoints:            urls,
		TLS:                  config,
		Username:             b.opts.Username,
		Password:             b.opts.Password,
		DialTimeout:          b.opts.DialTimeout,
		DialKeepAliveTime:    b.opts.KeepaliveTime,
		DialKeepAliveTimeout: b.opts.KeepaliveTimeout,
		MaxUnaryRetries:      1, // the client also repeats writes whose outcome is unknown; see attempt
		DialOptions:          append(more, grpc.WithConnectParams(reconnect(b.opts.DialTimeout))),
		Context:              context.WithoutCancel(ctx),
		Logger:               zap.NewNop(),
	})
	if err != nil {
		return nil, translate(err)
	}
	conn := c.ActiveConnection()
	return &link{c, pb.NewKVClient(conn), pb.NewLeaseClient(conn), pb.NewWatchClient(conn), pb.NewMaintenanceClient(conn)}, nil
}

// reconnect returns how a lost connection is restored. The default of gRPC would pause for up to two minutes after an outage.
func reconnect(dialTimeout time.Duration) grpc.ConnectParams {
	return grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
		MinConnectTimeout: dialTimeout,
	}
}

// disconnect closes the connections that were made.
func (b *Backend) disconnect() error {
	var all []error
	for _, l := range []*link{b.small, b.large, b.watches} {
		if l == nil {
			continue
		}
		if err := l.Close(); err != nil && !errors.Is(err, context.Canceled) {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}
