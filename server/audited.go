package server

import (
	"context"

	"github.com/keelson-dev/keelson/server/audit"
	"github.com/keelson-dev/keelson/server/filters"
)

// auditor returns what makes the audit events of requests, by the policy that each request uses.
func (s *Server) auditor() filters.Auditor {
	return filters.Auditor{
		Backends: func(ctx context.Context) audit.Backends { return s.policy.taken(ctx).audit },
		Hooks:    audit.Hooks{Began: s.metrics.RecordedAt, Recorded: s.metrics.Recorded, Failed: s.notRecorded},
		Refused:  s.metrics.Unrecorded,
	}
}

// watchSink counts and logs the events that the sink of a backend loses later, if the sink tells: see audit.Batch.OnFailure.
func (s *Server) watchSink(b audit.Backend) {
	if sink, ok := b.Sink.(interface{ OnFailure(func(error, int)) }); ok {
		sink.OnFailure(func(err error, events int) {
			s.metrics.NotRecorded(b.Name, events)
			s.unrecorded(b.Name, err)
		})
	}
}

// notRecorded counts and logs that a backend has not recorded an audit event.
func (s *Server) notRecorded(backend string, err error) {
	s.metrics.NotRecorded(backend, 1)
	s.unrecorded(backend, err)
}
