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

// rememberDeletes is for how long a definition that this server was asked to delete is read from the storage by every
// create, unless the deletion is seen before.
const rememberDeletes = 30 * time.Second

// rememberGone is for how long creates are refused of what was withdrawn: requests that had begun may come to be judged only
// now.
const rememberGone = 5 * time.Minute

// Gate is the admission plug-in that refuses creates of what a definition defines that is being deleted. All methods may
// be called concurrently. New makes one.
type Gate struct {
	definitions *stored.Definitions

	mu sync.Mutex // guards of and what is in it
	of map[schema.GroupResource]*guarded
}

// guarded is one resource that is served for a definition.
type guarded struct {
	closed  bool
	gone    time.Time // when it was withdrawn; zero: it is served
	suspect time.Time // until when the definition may be about to be deleted
	creates int       // those under way
	idle    []chan struct{}
}

// Guard guards a resource, and says whether creates are refused.
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
	if !one.gone.IsZero() { // another definition has come, which nobody was asked to delete
		one.gone, one.suspect = time.Time{}, time.Time{}
	}
	one.closed = closed
}

// Withdraw refuses creates of a resource that is served no longer.
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

// Forget ends guarding a resource, of which others may make objects from now on.
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

// wait returns when no create of a resource is under way, or the context's error. It is for one that is closed: creates that
// come later are waited for as well.
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

// Mutate implements admission.Mutator. It judges, and changes nothing.
func (g *Gate) Mutate(ctx context.Context, r *admission.Request) error {
	switch {
	case r.Operation == admission.Delete && r.Resource.GroupResource() == stored.Resource():
		g.suspect(r.Name)
	case r.Operation == admission.Create:
		return g.judge(ctx, r)
	}
	return nil
}

// suspect remembers that a definition may be about to be deleted.
func (g *Gate) suspect(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if one := g.of[schema.ParseGroupResource(name)]; one != nil {
		one.suspect = time.Now().Add(rememberDeletes)
	}
}

// judge refuses a create, or counts it until ctx ends.
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

// begin counts a create unless it is to be refused.
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

// end takes one create off those under way.
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
