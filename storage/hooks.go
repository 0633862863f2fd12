package storage

import (
	"context"
	"errors"
	"time"
)

// Hooks are told what a Store asks of its backend, for metrics and logs. Any may be nil. They are called by many
// goroutines at once, and must be quick.
type Hooks struct {
	// Requested is called for each request to the backend, with how long it took and its error; that a commit met
	// another one is no error. A watch counts as a request until it has begun.
	Requested func(operation Operation, took time.Duration, err error)
	// Listed is called for each list that is answered, with what that took.
	Listed func(Listed)
}

// Operation is what a request to a backend does.
type Operation string

// The operations.
const (
	OpGet      Operation = "get"
	OpList     Operation = "list"
	OpCreate   Operation = "create"
	OpUpdate   Operation = "update"
	OpDelete   Operation = "delete"
	OpWatch    Operation = "watch"
	OpRevision Operation = "getCurrentResourceVersion"
)

// Listed says what a list took.
type Listed struct {
	Fetched   int // values that were read
	Evaluated int // of them, those that a selector was asked about
	Returned  int
}

// observed is a Backend that tells of each request.
type observed struct {
	Backend
	tell func(operation Operation, took time.Duration, err error)
}

// observe returns b, and its power to stat if it has that, telling of each request.
func observe(b Backend, stater Stater, tell func(Operation, time.Duration, error)) (Backend, Stater) {
	o := observed{b, tell}
	if stater != nil {
		stater = observedStater{stater, tell}
	}
	return o, stater
}

// Get implements Backend.
func (o observed) Get(ctx context.Context, key string, at int64) (GetResult, error) {
	began := time.Now()
	res, err := o.Backend.Get(ctx, key, at)
	o.tell(OpGet, time.Since(began), err)
	return res, err
}

// Range implements Backend.
func (o observed) Range(ctx context.Context, r Range) (RangeResult, error) {
	operation := OpList
	if r.CountOnly && r.From == r.To { // of nothing: it is the revision that is asked for
		operation = OpRevision
	}
	began := time.Now()
	res, err := o.Backend.Range(ctx, r)
	o.tell(operation, time.Since(began), err)
	return res, err
}

// Commit implements Backend.
func (o observed) Commit(ctx context.Context, c Commit) (CommitResult, error) {
	operation := OpUpdate
	switch {
	case c.Delete:
		operation = OpDelete
	case c.Expect == 0:
		operation = OpCreate
	}
	began := time.Now()
	res, err := o.Backend.Commit(ctx, c)
	told := err
	if errors.Is(err, ErrConflict) {
		told = nil
	}
	o.tell(operation, time.Since(began), told)
	return res, err
}

// Watch implements Backend.
func (o observed) Watch(ctx context.Context, w WatchRange) (Feed, error) {
	began := time.Now()
	feed, err := o.Backend.Watch(ctx, w)
	o.tell(OpWatch, time.Since(began), err)
	return feed, err
}

// observedStater is a Stater that tells of each request: a get, of less than all.
type observedStater struct {
	Stater
	tell func(operation Operation, took time.Duration, err error)
}

// Stat implements Stater.
func (o observedStater) Stat(ctx context.Context, key string) (Stat, error) {
	began := time.Now()
	stat, err := o.Stater.Stat(ctx, key)
	o.tell(OpGet, time.Since(began), err)
	return stat, err
}
