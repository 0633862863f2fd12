package election

import (
	"context"
	"fmt"
	"runtime/debug"

	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"
)

// guarded turns panics into errors: the calls reach plug-ins and storages of the program, as a request does. For a request a
// panic would be answered with 500.
type guarded struct {
	Leases
	log *zap.Logger // receives the stack
}

func (g guarded) caught(err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("election: panic: %v", v)
		g.log.Error("leader election: a call panicked", zap.String("panic", fmt.Sprint(v)), zap.ByteString("stack", debug.Stack()))
	}
}

func (g guarded) Get(ctx context.Context, namespace, name string) (lease *coordinationv1.Lease, err error) {
	defer g.caught(&err)
	return g.Leases.Get(ctx, namespace, name)
}

func (g guarded) Create(ctx context.Context, namespace string, lease *coordinationv1.Lease) (made *coordinationv1.Lease, err error) {
	defer g.caught(&err)
	return g.Leases.Create(ctx, namespace, lease)
}

func (g guarded) Update(ctx context.Context, namespace string, lease *coordinationv1.Lease) (written *coordinationv1.Lease, err error) {
	defer g.caught(&err)
	return g.Leases.Update(ctx, namespace, lease)
}
