package authz

import (
	"context"
	"errors"
	"slices"
	"strings"
)

// Union asks authorizers in order; the first that allows or denies ends it, with its reason. Otherwise there is no
// opinion, with the reasons of all, a line each, and the errors of all joined. An empty union has no opinion.
func Union(members ...Authorizer) Authorizer { return union(slices.Clone(members)) }

type union []Authorizer

func (u union) Authorize(ctx context.Context, a Attributes) (Verdict, string, error) {
	var reasons []string
	var errs []error
	for _, m := range u {
		verdict, reason, err := m.Authorize(ctx, a)
		if err != nil {
			errs = append(errs, err)
		}
		if verdict == Allow {
			return Allow, reason, nil
		}
		if reason != "" {
			reasons = append(reasons, reason)
		}
		if verdict == Deny {
			return Deny, reason, err
		}
	}
	return NoOpinion, strings.Join(reasons, "\n"), errors.Join(errs...)
}
