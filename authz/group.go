package authz

import (
	"context"
	"slices"
)

// ForGroup asks a about the members of a group alone, and has no opinion of others.
func ForGroup(group string, a Authorizer) Authorizer {
	return Func(func(ctx context.Context, at Attributes) (Verdict, string, error) {
		if !slices.Contains(at.User.Groups, group) {
			return NoOpinion, "", nil
		}
		return a.Authorize(ctx, at)
	})
}
