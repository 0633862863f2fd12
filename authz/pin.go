package authz

import (
	"context"
	"reflect"
	"sync/atomic"
)

// Pinner is an optional interface of an [Authorizer] whose decisions depend on objects that change. [Union], [ForGroup],
// [Observed], [Plain] and [Live] pin the authorizers that they call.
type Pinner interface {
	// Pin returns an authorizer that decides by the state that the objects have now, even if they change while it is used. It is
	// for all decisions about one request. The state includes every change that was acknowledged before the call. While nothing
	// changes, Pin returns the same authorizer, comparable with ==, such as a pointer. An authorizer that is not comparable
	// costs an allocation for each request.
	Pin(ctx context.Context) Authorizer
}

// pin returns the authorizer that a.Pin returns, or a itself if it is not a Pinner.
func pin(ctx context.Context, a Authorizer) Authorizer {
	if p, ok := a.(Pinner); ok {
		return p.Pin(ctx)
	}
	return a
}

// wrapper is an authorizer that calls another one.
type wrapper interface {
	Authorizer
	inner() Authorizer
}

// pins reports whether pin may return an authorizer other than a.
func pins(a Authorizer) bool {
	switch a := a.(type) {
	case *union:
		return a.pins
	case wrapper:
		return pins(a.inner())
	}
	_, ok := a.(Pinner)
	return ok
}

// pinInner returns a wrapper of what the inner authorizer of w pins: w itself if that is the inner authorizer, or *last if that has it. with
// makes another one.
func pinInner[T any, W interface {
	*T
	wrapper
}](ctx context.Context, w W, last *atomic.Pointer[T], with func(inner Authorizer) W) Authorizer {
	if !pins(w.inner()) {
		return w
	}
	now := pin(ctx, w.inner())
	if same(now, w.inner()) {
		return w
	}
	if l := last.Load(); l != nil && same(now, W(l).inner()) {
		return W(l)
	}
	next := with(now)
	last.Store(next)
	return next
}

// same reports whether a and b are the same authorizer. An authorizer that is not comparable, such as a Func, is not the same as
// any other.
func same(a, b Authorizer) bool {
	t := reflect.TypeOf(a)
	switch {
	case t != reflect.TypeOf(b):
		return false
	case t == nil || t.Kind() == reflect.Pointer:
		return a == b
	}
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

// ready calls the method Ready of a. An authorizer without this method is ready.
func ready(ctx context.Context, a Authorizer) error {
	if r, ok := a.(interface {
		Ready(ctx context.Context) error
	}); ok {
		return r.Ready(ctx)
	}
	return nil
}
