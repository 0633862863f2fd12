package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
)

// TruncatedAnnotation is the annotation "true" of events whose objects were left out because they were too large, or could not be
// copied.
const TruncatedAnnotation = "audit.k8s.io/truncated"

// ErrTooLarge is the error of a sink of [Truncate] for an event that is too large without its objects. The event is lost.
var ErrTooLarge = errors.New("audit event is too large without its objects")

// TruncateOptions are the bounds of [Truncate], in bytes of JSON. The zero values stand for the defaults of kube-apiserver.
type TruncateOptions struct {
	MaxEventBytes int // of an event; 0 is 100 KiB
	MaxBatchBytes int // of the events of one call; 0 is 10 MiB
}

// Truncate returns a sink in front of another, which bounds the events that the other receives. It leaves out the objects of a
// larger event and annotates the event, and it divides the events of a call among several calls. If a call fails, the others are
// made all the same, and the errors are joined.
func Truncate(sink Sink, o TruncateOptions) (Sink, error) {
	if sink == nil || o.MaxEventBytes < 0 || o.MaxBatchBytes < 0 {
		return nil, errors.New("audit: Truncate needs a Sink and bounds that are not negative")
	}
	t := truncating{sink, cmp.Or(o.MaxEventBytes, 100<<10), cmp.Or(o.MaxBatchBytes, 10<<20)}
	if t.event > t.batch {
		return nil, fmt.Errorf("audit: MaxEventBytes, %d, is more than MaxBatchBytes, %d", t.event, t.batch)
	}
	return t, nil
}

type truncating struct {
	sink         Sink
	event, batch int // bytes
}

// OnFailure is that of the sink, if it has one: see Batch.OnFailure.
func (t truncating) OnFailure(f func(err error, events int)) {
	if s, ok := t.sink.(interface{ OnFailure(func(error, int)) }); ok {
		s.OnFailure(f)
	}
}

// Record implements Sink.
func (t truncating) Record(ctx context.Context, events ...*Event) error {
	var errs []error
	var batch []*Event
	bytes := 0
	flush := func() {
		if len(batch) > 0 {
			errs = append(errs, t.sink.Record(ctx, batch...))
		}
		batch, bytes = nil, 0
	}
	for _, e := range events {
		e, size, err := t.fit(e)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if bytes+size > t.batch {
			flush()
		}
		batch, bytes = append(batch, e), bytes+size
	}
	flush()
	return errors.Join(errs...)
}

// fit returns an event that is small enough, and its size.
func (t truncating) fit(e *Event) (*Event, int, error) {
	size, err := sizeOf(e)
	if err != nil || size <= t.event {
		return e, size, err
	}
	small := *e
	small.RequestObject, small.ResponseObject = nil, nil
	small.Annotations = maps.Clone(e.Annotations)
	if small.Annotations == nil {
		small.Annotations = map[string]string{}
	}
	small.Annotations[TruncatedAnnotation] = "true"
	if size, err = sizeOf(&small); err == nil && size > t.event {
		err = fmt.Errorf("%w: %s has %d bytes, at most %d are allowed", ErrTooLarge, e.AuditID, size, t.event)
	}
	return &small, size, err
}

func sizeOf(e *Event) (int, error) {
	text, err := json.Marshal(e.WithKind())
	return len(text), err
}
