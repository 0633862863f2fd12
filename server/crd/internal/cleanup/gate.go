package cleanup

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/server/crd/internal/stored"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// rememberDeletes is how long every create reads its definition from the storage after this server received a DELETE for the
// definition, unless the deletion is seen before.
const rememberDeletes = 30 * time.Second

// rememberGone is how long creates of a withdrawn resource are refused. Requests that began before may reach admission that late.
const rememberGone = 5 * time.Minute

// Gate is the admission plug-in that refuses creates of objects whose definition is being deleted. [New] makes one as part of a
// Cleanup. All methods may be called concurrently.
type Gate struct {
	definitions *stored.Definitions

	mu sync.Mutex // guards of and its values
	of map[schema.GroupResource]*guarded
}

// guarded is one resource that is served for a definition.
type guarded struct {
	closed  bool
	gone    time.Time // when the resource was withdrawn; zero if it is served
	suspect time.Time // until when the definition may be about to be deleted
	creates int       // number of creates in flight
	idle    []chan struct{}
}

// Guard starts to guard a resource. closed says whether creates are refused.
func (g *Gate) Guard(resource schema.GroupResource, closed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.of == nil {
		g.of = map[schema.GroupResource]*guarded{}
	}
	one := g.of[resource]
	if one == nil {
		one = &guarded{}
		g.of[resource] = one
	}
	if !one.gone.IsZero() { // there is a new definition, for which there was no DELETE
		one.gone, one.suspect = time.Time{}, time.Time{}
	}
	one.closed = closed
}

// Withdraw refuses creates of a resource that is no longer served.
func (g *Gate) Withdraw(resource schema.GroupResource) {
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, one := range g.of {
		if !one.gone.IsZero() && now.Sub(one.gone) > rememberGone {
			delete(g.of, name)
		}
	}
	if one := g.of[resource]; one != nil {
		one.closed, one.gone = true, now
	}
}

// Forget ends the guarding of a resource: others may create its objects from now on.
func (g *Gate) Forget(resource schema.GroupResource) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.of, resource)
}

// guards reports whether a resource is served for a definition.
func (g *Gate) guards(resource schema.GroupResource) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	one := g.of[resource]
	return one != nil && one.gone.IsZero()
}

// wait returns nil when no create of a resource is in flight, or the error of ctx. Use it for a closed resource: wait also waits
// for creates that begin later.
func (g *Gate) wait(ctx context.Context, resource schema.GroupResource) error {
	g.mu.Lock()
	one := g.of[resource]
	if one == nil || one.creates == 0 {
		g.mu.Unlock()
		return ctx.Err()
	}
	idle := make(chan struct{})
	one.idle = append(one.idle, idle)
	g.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Mutate implements admission.Mutator. It may refuse a request, and changes nothing.
func (g *Gate) Mutate(ctx context.Context, r *admission.Request) error {
	switch {
	case r.Operation == admission.Delete && r.Resource.GroupResource() == stored.Resource():
		g.suspect(r.Name)
	case r.Operation == admission.Create:
		return g.judge(ctx, r)
	}
	return nil
}

// suspect records that a definition may be about to be deleted.
func (g *Gate) suspect(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if one := g.of[schema.ParseGroupResource(name)]; one != nil {
		one.suspect = time.Now().Add(rememberDeletes)
	}
}

// judge refuses a create, or counts it as in flight until ctx ends.
func (g *Gate) judge(ctx context.Context, r *admission.Request) error {
	resource := r.Resource.GroupResource()
	closed, suspect := g.begin(ctx, resource)
	if suspect && !closed {
		rec, err := g.definitions.Record(ctx, resource.String())
		switch {
		case apierrors.IsNotFound(err):
			closed = true
		case err != nil:
			return err
		default:
			closed = rec.Body.Field("metadata.deletionTimestamp") != ""
		}
	}
	if closed {
		return apierrors.NewForbidden(resource, r.Name, errors.New("create not allowed while custom resource definition is terminating"))
	}
	return nil
}

// begin counts a create unless it must be refused.
func (g *Gate) begin(ctx context.Context, resource schema.GroupResource) (closed, suspect bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	one := g.of[resource]
	if one == nil {
		return false, false
	}
	if one.closed {
		return true, false
	}
	one.creates++
	context.AfterFunc(ctx, func() { g.end(one) })
	return false, time.Now().Before(one.suspect)
}

// end removes a create from those in flight.
func (g *Gate) end(one *guarded) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if one.creates--; one.creates > 0 {
		return
	}
	for _, idle := range one.idle {
		close(idle)
	}
	one.idle = nil
}
