package storage

import (
	"context"
	"errors"
	"time"
)

// Hooks are called about a Store's requests to its backend, for metrics and logs. Any of them may be nil. They are called by
// many goroutines concurrently, and must return quickly.
type Hooks struct {
	// Requested is called after each request to the backend, with its duration and its error. A commit that finds the key at
	// another revision has no error here. A watch counts as a request until it has begun. ctx is that of the caller.
	Requested func(ctx context.Context, operation Operation, took time.Duration, err error)
	// Listed is called for each list that succeeds, after its last portion was read, with its costs.
	Listed func(Listed)
}

// Operation is the kind of a request to a backend.
type Operation string

// The operations of a Store.
const (
	OpGet      Operation = "get"                       // a read of one value or of its revision
	OpList     Operation = "list"                      // a read of many values
	OpCreate   Operation = "create"                    // a commit of a key that must be absent
	OpUpdate   Operation = "update"                    // a commit of a new value
	OpDelete   Operation = "delete"                    // a commit that deletes a key
	OpWatch    Operation = "watch"                     // the beginning of a watch
	OpRevision Operation = "getCurrentResourceVersion" // a read of the store's revision
)

// Listed describes the costs of a list.
type Listed struct {
	Fetched   int // values that were read
	Evaluated int // of the values read, those to which a selector was applied
	Returned  int // records in the result
}

// observed is a Backend that calls tell for each request.
type observed struct {
	Backend
	tell func(ctx context.Context, operation Operation, took time.Duration, err error)
}

// observe returns a wrapper of b that calls tell for each request. It wraps stater, too, if it is not nil.
func observe(b Backend, stater Stater, tell func(context.Context, Operation, time.Duration, error)) (Backend, Stater) {
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
	o.tell(ctx, OpGet, time.Since(began), err)
	return res, err
}

// Range implements Backend.
func (o observed) Range(ctx context.Context, r Range) (RangeResult, error) {
	operation := OpList
	if r.CountOnly && r.From == r.To { // an empty interval: the caller wants the revision
		operation = OpRevision
	}
	began := time.Now()
	res, err := o.Backend.Range(ctx, r)
	o.tell(ctx, operation, time.Since(began), err)
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
	reported := err
	if errors.Is(err, ErrConflict) {
		reported = nil
	}
	o.tell(ctx, operation, time.Since(began), reported)
	return res, err
}

// Watch implements Backend.
func (o observed) Watch(ctx context.Context, w WatchRange) (Feed, error) {
	began := time.Now()
	feed, err := o.Backend.Watch(ctx, w)
	o.tell(ctx, OpWatch, time.Since(began), err)
	return feed, err
}

// observedStater is a Stater that calls tell for each request. Stat counts as a get.
type observedStater struct {
	Stater
	tell func(ctx context.Context, operation Operation, took time.Duration, err error)
}

// Stat implements Stater.
func (o observedStater) Stat(ctx context.Context, key string) (Stat, error) {
	began := time.Now()
	stat, err := o.Stater.Stat(ctx, key)
	o.tell(ctx, OpGet, time.Since(began), err)
	return stat, err
}
