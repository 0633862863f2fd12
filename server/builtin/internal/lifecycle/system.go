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

// system is the state of the system namespaces.
type system struct {
	kick chan struct{} // capacity 1; receives a value when they must be checked

	mu   sync.Mutex // guards all fields below
	made bool       // all of them existed at one time
	last error      // error of the last attempt to create them
}

// check is the health check. It returns nil once all system namespaces have existed at the same time. One that is missing later
// is created again, and the server stays ready.
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

// look requests a check of the system namespaces. It does not block.
func (s *system) look() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// makeSystem creates the missing system namespaces. Another server may do the same at the same time.
func (l *Lifecycle) makeSystem(ctx context.Context) error {
	var failed error
	for _, name := range SystemNamespaces() {
		_, err := l.registry.GetStored(as(ctx), name)
		if apierrors.IsNotFound(err) {
			err = l.makeNamespace(ctx, name)
		}
		if err != nil && !apierrors.IsAlreadyExists(err) {
			failed = fmt.Errorf("namespace %s: %w", name, err)
			break // the next one would fail for the same reason, after as long a time
		}
	}
	l.system.mu.Lock()
	defer l.system.mu.Unlock()
	l.system.last = failed
	l.system.made = l.system.made || failed == nil
	return failed
}

func (l *Lifecycle) makeNamespace(ctx context.Context, name string) (err error) {
	defer l.panics.Caught(&err) // a plug-in of the program may panic
	_, err = l.typed.Create(ctx, "", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	return err
}

// keep follows the namespaces on every server until ctx ends. It creates missing system namespaces, and sweeps namespaces that
// are gone for objects that creates on this server left.
func (l *Lifecycle) keep(ctx context.Context) {
	var work sync.WaitGroup
	work.Go(func() { l.keepSystem(ctx) })
	seen := map[string]sighting{}
	following := sync.OnceFunc(func() { close(l.following) })
	defer following() // Install must not wait for keep after its end
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

// keepSystem creates missing system namespaces after each value in kick, and repeats failed attempts.
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

// sighting is the last observed state of a namespace.
type sighting struct {
	uid         types.UID
	terminating bool
}

// observe updates seen with an event, and calls gone for a namespace that is gone.
func (l *Lifecycle) observe(ctx context.Context, work *sync.WaitGroup, seen map[string]sighting, e storage.Event) {
	name := e.Record.Key
	now := sighting{types.UID(e.Record.Body.Field("metadata.uid")), terminating(e.Record)}
	was, known := seen[name]
	switch {
	case e.Type == watch.Deleted:
		l.gone(ctx, work, seen, name, now)
		return
	case known && was.uid != now.uid: // it was deleted and created again while there was no watch
		l.gone(ctx, work, seen, name, was)
	}
	seen[name] = now
}

// gone starts a sweep for a namespace that is gone, and requests a check if it is a system namespace. If the namespace was never
// terminating there is no sweep: it was not deleted, but lost from the storage.
func (l *Lifecycle) gone(ctx context.Context, work *sync.WaitGroup, seen map[string]sighting, name string, was sighting) {
	delete(seen, name)
	if slices.Contains(SystemNamespaces(), name) {
		l.system.look()
	}
	if was.terminating && !l.gate.allowMissing {
		work.Go(func() { l.sweep(ctx, name) })
	}
}
