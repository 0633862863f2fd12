package policychange

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	authzrbac "github.com/keelson-dev/keelson/authz/rbac"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Slowly returns an extension that authorizes by roles and bindings like that of server/builtin/rbac, but pauses before each read
// of a kind, for a time up to longest. If longest exceeds the time of a few writes, reads happen between writes. kinds are the
// four kinds of that package.
func Slowly(longest time.Duration, kinds ...server.Resource) server.Extension {
	return server.ExtensionFunc(func(h *server.Host) error {
		a, err := authzrbac.New(slowReaders{h.Readers(), longest}, authzrbac.Options{})
		if err != nil {
			return err
		}
		err = h.Serve(server.Group{Name: rbacv1.GroupName, Versions: []server.Version{{Name: "v1", Resources: kinds}}})
		return errors.Join(err, h.Authorize("rbac", a))
	})
}

type slowReaders struct {
	runtime.Readers
	longest time.Duration
}

// Reader implements runtime.Readers.
func (r slowReaders) Reader(kind schema.GroupVersionKind) runtime.Reader[runtime.Object] {
	return slowReader{r.Readers.Reader(kind), r.longest}
}

type slowReader struct {
	runtime.Reader[runtime.Object]
	longest time.Duration
}

// Changes implements runtime.Reader.
func (r slowReader) Changes(ctx context.Context, since int64, at runtime.Freshness) (runtime.Changes[runtime.Object], error) {
	time.Sleep(rand.N(r.longest))
	return r.Reader.Changes(ctx, since, at)
}
