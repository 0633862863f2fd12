package embedded

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// nowhere is the peer address of a single member. No process listens there. The address is in etcd's member list until it is
// updated to add more members.
const nowhere = "127.0.0.1:2380"

// config returns the configuration of etcd. client is the address to listen on, with its port chosen.
func (o Options) config(client string, lg *zap.Logger, grpcOptions []grpc.ServerOption) *embed.Config {
	cfg := embed.NewConfig()
	cfg.Dir, cfg.Name = o.Dir, o.Name
	cfg.ListenClientUrls = []url.URL{o.ClientTLS.url(client)}
	cfg.AdvertiseClientUrls = cfg.ListenClientUrls
	if o.AdvertiseClient != "" {
		cfg.AdvertiseClientUrls = []url.URL{o.ClientTLS.url(o.AdvertiseClient)}
	}
	cfg.ClientTLSInfo = o.ClientTLS.info()

	peers := o.peerURLs()
	own := peers[o.Name]
	cfg.AdvertisePeerUrls = []url.URL{own}
	cfg.ListenPeerUrls = nil
	if o.Peers != nil {
		if o.ListenPeer != "" {
			own.Host = o.ListenPeer
		}
		cfg.ListenPeerUrls = []url.URL{own}
	}
	cfg.PeerTLSInfo = o.PeerTLS.info()
	var cluster []string
	for _, name := range slices.Sorted(maps.Keys(peers)) {
		u := peers[name]
		cluster = append(cluster, name+"="+u.String())
	}
	cfg.InitialCluster = strings.Join(cluster, ",")

	cfg.QuotaBackendBytes = o.QuotaBytes
	if o.SnapshotCount != 0 {
		cfg.SnapshotCount = o.SnapshotCount
	}
	cfg.TickMs = uint(o.Heartbeat / time.Millisecond)
	cfg.ElectionMs = 10 * cfg.TickMs
	if o.Peers == nil {
		cfg.ElectionMs = 5 * cfg.TickMs // the shortest that etcd allows: there are no other members to wait for
	}
	cfg.WatchProgressNotifyInterval = o.ProgressInterval
	cfg.AuthTokenTTL = uint(o.AuthTokenTTL / time.Second)
	cfg.UnsafeNoFsync = o.UnsafeNoFsync
	cfg.AutoCompactionRetention = "0" // off
	cfg.EnableGRPCGateway = false
	cfg.GRPCAdditionalServerOptions = grpcOptions
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(lg)
	return cfg
}

// peerURLs returns the members and their addresses.
func (o Options) peerURLs() map[string]url.URL {
	if o.Peers == nil {
		return map[string]url.URL{o.Name: o.PeerTLS.url(nowhere)}
	}
	urls := map[string]url.URL{}
	for name, addr := range o.Peers {
		urls[name] = o.PeerTLS.url(addr)
	}
	return urls
}
