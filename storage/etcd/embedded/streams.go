package embedded

import (
	"context"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
)

// streams ends the clients' streams when the server stops. Without it, etcd would wait some seconds for watches, which do not
// end by themselves, and then close their connections.
type streams struct {
	ctx context.Context // ends with the server
	end context.CancelFunc
}

func newStreams() *streams {
	ctx, end := context.WithCancel(context.Background())
	return &streams{ctx: ctx, end: end}
}

func (s *streams) options() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ChainStreamInterceptor(s.intercept)}
}

func (s *streams) intercept(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	err := handler(srv, endingStream{stream, ctx})
	if s.ctx.Err() != nil {
		return rpctypes.ErrGRPCStopped // clients continue with another member, or wait for this one
	}
	return err
}

// endingStream is a stream whose context also ends when the server stops.
type endingStream struct {
	grpc.ServerStream
	ctx context.Context
}

// Context implements grpc.ServerStream.
func (s endingStream) Context() context.Context { return s.ctx }
