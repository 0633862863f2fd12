package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/keelson-dev/keelson/server/internal/background"
	"github.com/keelson-dev/keelson/storage"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// system is whether the system namespaces exist.
type system struct {
	kick chan struct{} // with room for one: they are to be looked at

	mu   sync.Mutex // guards all below
	made bool       // all of them have existed at one time
	last error      // of the last attempt to make them
}

// check is the health check: nil from the time on at which all of them existed. One that is missing later is made again
// without the server being less ready.
func (s *system) check(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.made:
		return nil
	case s.last != nil:
		return s.last
	}
	return errors.New("the system namespaces have not been made yet")
}

// look has them looked at soon. It does not wait.
func (s *system) look() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// makeSystem makes the system namespaces that do not exist. Another server may do so at the same time.
func (l *Lifecycle) makeSystem(ctx context.Context) error {
	var failed error
	for _, name := range SystemNamespaces() {
		_, err := l.registry.GetStored(as(ctx), name)
		if apierrors.IsNotFound(err) {
			err = l.makeNamespace(ctx, name)
		}
		if err != nil && !apierrors.IsAlreadyExists(err) {
			failed = fmt.Errorf("namespace %s: %w", name, err)
			break // the next would fail for the same reason, after as long a time
		}
	}
	l.system.mu.Lock()
	defer l.system.mu.Unlock()
	l.system.last = failed
	l.system.made = l.system.made || failed == nil
	return failed
}

func (l *Lifecycle) makeNamespace(ctx context.Context, name string) (err error) {
	defer l.panics.Caught(&err) // of a plug-in of the program's
	_, err = l.typed.Create(ctx, "", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	return err
}

// keep looks after namespaces until ctx ends, as every server does: it makes the system ones anew, and looks at what
// creates of this server left in those that are gone.
func (l *Lifecycle) keep(ctx context.Context) {
	var work sync.WaitGroup
	work.Go(func() { l.keepSystem(ctx) })
	seen := map[string]sighting{}
	following := sync.OnceFunc(func() { close(l.following) })
	defer following() // nobody is to wait for what has ended
	l.follow(ctx, func(e storage.Event) { l.observe(ctx, &work, seen, e) }, func(present map[string]bool) {
		for name, was := range seen {
			if !present[name] {
				l.gone(ctx, &work, seen, name, was)
			}
		}
		l.system.look()
		following()
	})
	work.Wait()
}

// keepSystem makes the system namespaces whenever they are to be looked at, again and again until it succeeds.
func (l *Lifecycle) keepSystem(ctx context.Context) {
	retry := background.Doubling(systemLeast, systemMost)
	for {
		select {
		case <-l.system.kick:
		case <-ctx.Done():
			return
		}
		for failures := 0; ; failures++ {
			err := l.makeSystem(ctx)
			if err == nil || ctx.Err() != nil {
				break
			}
			l.log.Log(loudness(failures), "system namespaces could not be made yet", zap.Error(err))
			if !background.Pause(ctx, retry.Step()) {
				return
			}
		}
		retry = background.Doubling(systemLeast, systemMost)
	}
}

// sighting is how a namespace was seen last.
type sighting struct {
	uid         types.UID
	terminating bool
}

// observe keeps seen up to date with an event, and acts on a namespace that is gone.
func (l *Lifecycle) observe(ctx context.Context, work *sync.WaitGroup, seen map[string]sighting, e storage.Event) {
	name := e.Record.Key
	now := sighting{types.UID(e.Record.Body.Field("metadata.uid")), terminating(e.Record)}
	was, known := seen[name]
	switch {
	case e.Type == watch.Deleted:
		l.gone(ctx, work, seen, name, now)
		return
	case known && was.uid != now.uid: // it went and came while nobody watched
		l.gone(ctx, work, seen, name, was)
	}
	seen[name] = now
}

// gone acts on a namespace that is gone: content that may have been left is looked for, and a system namespace made anew.
// Content of one that was never terminating is not touched: such a namespace was not deleted, but lost.
func (l *Lifecycle) gone(ctx context.Context, work *sync.WaitGroup, seen map[string]sighting, name string, was sighting) {
	delete(seen, name)
	if slices.Contains(SystemNamespaces(), name) {
		l.system.look()
	}
	if was.terminating && !l.gate.allowMissing {
		work.Go(func() { l.sweep(ctx, name) })
	}
}
