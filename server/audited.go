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
