package registry

import (
	"context"
	"sync"

	"github.com/keelson-dev/keelson/runtime"
)

// sent holds what a request has sent, for those who judge it in the version that it came in.
type sent struct {
	mu       sync.Mutex // guards all below
	obj, hub runtime.Object
}

type sentKey struct{}

// WithSent returns a context in which KeepSent keeps an object: for a write in a version whose objects may have other fields than
// those of the hub (see runtime.Kind.VersionsDiffer). Converted back it would have what the conversion adds, and not what it
// leaves out, and who judges it would judge the conversion.
func WithSent(ctx context.Context) context.Context {
	return context.WithValue(ctx, sentKey{}, &sent{})
}

// KeepSent keeps obj, which a request wants stored, in the request's version, and hub, which was made of it. Both are
// copied, and replace what was kept before: an update may be tried several times. Without WithSent it does nothing.
func KeepSent(ctx context.Context, obj, hub runtime.Object) {
	s, ok := ctx.Value(sentKey{}).(*sent)
	if !ok {
		return
	}
	obj, hub = obj.DeepCopyObject(), hub.DeepCopyObject()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.obj, s.hub = obj, hub
}

// Sent returns what was kept last, nil when nothing was. Nobody may change it. What is stored in the end may be another
// object: defaults, admission, the registry and its strategy change what was made of it.
func Sent(ctx context.Context) (obj, hub runtime.Object) {
	s, ok := ctx.Value(sentKey{}).(*sent)
	if !ok {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.obj, s.hub
}
