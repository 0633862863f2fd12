package server

import (
	"context"
	"time"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/server/request"
)

// timed returns a plug-in whose time is recorded in the request.Latency of each request.
func timed(p admission.Plugin) admission.Plugin {
	if next := p.Mutator; next != nil {
		p.Mutator = admission.MutatorFunc(func(ctx context.Context, req *admission.Request) error {
			defer request.Took(ctx, request.Mutating, time.Now())
			return next.Mutate(ctx, req)
		})
	}
	if next := p.Validator; next != nil {
		p.Validator = admission.ValidatorFunc(func(ctx context.Context, req *admission.Request) error {
			defer request.Took(ctx, request.Validating, time.Now())
			return next.Validate(ctx, req)
		})
	}
	return p
}
