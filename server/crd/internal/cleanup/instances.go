package cleanup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/server/crd/internal/stored"
	"github.com/keelson-dev/keelson/server/internal/background"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// maxDeletes is the maximum number of concurrent deletions of objects, for all definitions together.
	maxDeletes = 16
	// maxFailures is the maximum number of failed deletions in one error.
	maxFailures = 10
)

// Kinds provides the registries of served resources. *server.Host implements it.
type Kinds interface {
	// Registry returns the registry of a resource, or an error if it is not served.
	Registry(resource schema.GroupResource) (*registry.Registry, error)
}

// instances are the objects of a definition as they were listed.
type instances struct {
	c        *Cleanup
	registry *registry.Registry
	revision int64
	alive    []instance      // objects that are yet to be deleted
	held     map[string]bool // keys of objects that are being deleted and held by finalizers

	mu       sync.Mutex          // guards vanished during deletions
	vanished map[types.UID]error // by uid: the error which said that the object is gone or was replaced by another one
}

// instance is one object.
type instance struct {
	key string
	uid types.UID
}

// instances lists the objects of a definition, which must be served by this server.
func (c *Cleanup) instances(ctx context.Context, resource schema.GroupResource) (*instances, error) {
	r, err := c.kinds.Registry(resource)
	if err != nil {
		return nil, fmt.Errorf("unable to find a custom resource client for %s: %w", resource, err)
	}
	if !c.Gate.guards(resource) { // another definition or the program may serve it
		return nil, fmt.Errorf("unable to find a custom resource client for %s: it is not served by its definition", resource)
	}
	ctx, cancel := context.WithTimeout(ctx, stored.CallTimeout)
	defer cancel()
	page, err := r.ListRecords(registry.NewCall(ctx, authn.System(), ""), storage.ListOptions{})
	if err != nil {
		return nil, err
	}
	out := &instances{c: c, registry: r, revision: page.Revision, held: map[string]bool{}, vanished: map[types.UID]error{}}
	for rec := range page.Records {
		if isAlive(rec) {
			out.alive = append(out.alive, instance{rec.Key, types.UID(rec.Body.Field("metadata.uid"))})
		} else {
			out.held[rec.Key] = true
		}
	}
	return out, nil
}

// isAlive reports whether an object is not being deleted.
func isAlive(rec storage.Record) bool { return rec.Body.Field("metadata.deletionTimestamp") == "" }

// deleteAlive deletes the objects in alive, several concurrently. It returns the failures.
func (i *instances) deleteAlive(ctx context.Context) error {
	var (
		work   sync.WaitGroup
		mu     sync.Mutex // guards failed
		failed []error
	)
	for _, one := range i.alive {
		select {
		case i.c.deletes <- struct{}{}:
		case <-ctx.Done():
			work.Wait()
			return ctx.Err()
		}
		work.Go(func() {
			defer func() { <-i.c.deletes }()
			if err := i.deleteOne(ctx, one); err != nil {
				mu.Lock()
				defer mu.Unlock()
				if len(failed) < maxFailures {
					failed = append(failed, err)
				}
			}
		})
	}
	work.Wait()
	return utilerrors.NewAggregate(failed)
}

// deleteOne deletes an object as it was listed. It is no error if the object is gone or replaced by another one. The error that
// says so is stored in vanished, because a plug-in may have returned it about something else.
func (i *instances) deleteOne(ctx context.Context, one instance) (err error) {
	defer i.c.definitions.Panics.Caught(&err) // a plug-in of the program may panic
	ctx, cancel := context.WithTimeout(ctx, stored.CallTimeout)
	defer cancel()
	namespace, name := "", one.key
	if i.registry.Namespaced() {
		namespace, name, _ = strings.Cut(one.key, "/")
	}
	_, _, err = i.registry.DeleteRecord(registry.NewCall(ctx, authn.System(), namespace), name, &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &one.uid}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.vanished[one.uid] = err
		return nil
	}
	return err
}

// notGone returns an error if an object is alive although its earlier deletion said that it is gone.
func (i *instances) notGone(before map[types.UID]error) error {
	for _, one := range i.alive {
		if err := before[one.uid]; err != nil { // not a NotFound, which would be the definition's
			return fmt.Errorf("%s cannot be deleted: %v", one.key, err) // not a NotFound, which would mean that the definition is gone
		}
	}
	return nil
}

// wait returns when all held objects are gone, when there is a new object, or at the time until.
func (i *instances) wait(ctx context.Context, until time.Time) error {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	w, err := i.registry.WatchRecords(registry.NewCall(ctx, authn.System(), ""), storage.WatchOptions{From: i.revision})
	if err == nil {
		defer w.Close()
		err = i.follow(ctx, w)
	}
	if err == nil || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	background.Pause(ctx, leastWait) // the definition has changed or the watch was too slow: the objects are listed again
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return nil
}

func (i *instances) follow(ctx context.Context, w storage.Watch) error {
	for len(i.held) > 0 {
		events, err := w.Next(ctx)
		if err != nil {
			return err
		}
		for _, e := range events {
			switch {
			case e.Type == watch.Bookmark:
			case e.Type == watch.Deleted:
				delete(i.held, e.Record.Key)
			case isAlive(e.Record):
				return nil
			default:
				i.held[e.Record.Key] = true
			}
		}
	}
	return nil
}
