package server

import (
	"context"
	"fmt"

	"github.com/keelson-dev/keelson/server/audit"
	"github.com/keelson-dev/keelson/server/filters"
)

// checkAudit returns an error for a backend that cannot be used, or that asks for more than a server records.
func checkAudit(b audit.Backend) error {
	if err := b.Check(); err != nil {
		return err
	}
	for i, r := range b.Policy.Rules {
		if r.Level.AtLeast(audit.Request) {
			return fmt.Errorf("audit backend %q: rules[%d].level: %s: the objects of requests are not recorded yet: use %s or %s", b.Name, i, r.Level, audit.Metadata, audit.None)
		}
	}
	return nil
}

// auditor returns what makes the audit events of requests, by the policy that each request uses.
func (s *Server) auditor() filters.Auditor {
	return filters.Auditor{
		Backends: func(ctx context.Context) audit.Backends { return s.policy.taken(ctx).audit },
		Hooks:    audit.Hooks{Began: s.metrics.RecordedAt, Recorded: s.metrics.Recorded, Failed: s.notRecorded},
		Refused:  s.metrics.Unrecorded,
	}
}

// notRecorded counts and logs that a backend has not recorded an audit event.
func (s *Server) notRecorded(backend string, err error) {
	s.metrics.NotRecorded(backend, 1)
	s.unrecorded(backend, err)
}
