package authz

import (
	"context"
	"reflect"
)

// Pinner is an optional power of an [Authorizer] whose decisions follow objects that change while it decides. [Union],
// [ForGroup], [Plain] and [Live] pin what they ask.
type Pinner interface {
	// Pin returns an authorizer that decides by the objects as they are now, however long it is used: one for all the
	// decisions of a request. What was acknowledged before the call counts. While nothing changes it returns the same
	// authorizer, comparable with ==: a pointer, for one. One that cannot be compared costs each request an allocation.
	Pin(ctx context.Context) Authorizer
}

// pin returns a as it decides now: a itself if it is no Pinner.
func pin(ctx context.Context, a Authorizer) Authorizer {
	if p, ok := a.(Pinner); ok {
		return p.Pin(ctx)
	}
	return a
}

// pins reports whether pin may ever return another than a.
func pins(a Authorizer) bool {
	switch a := a.(type) {
	case *union:
		return a.pins
	case *forGroup:
		return pins(a.next)
	case Plain:
		return pins(a.Authorizer)
	}
	_, ok := a.(Pinner)
	return ok
}

// same reports whether a and b are one authorizer. One that cannot be compared, such as a Func, is not the same as any.
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

// ready asks a whether it is ready; without a method Ready it is.
func ready(ctx context.Context, a Authorizer) error {
	if r, ok := a.(interface {
		Ready(ctx context.Context) error
	}); ok {
		return r.Ready(ctx)
	}
	return nil
}
