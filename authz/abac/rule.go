package abac

import "github.com/keelson-dev/keelson/authz/abac/internal/v1beta1"

// rule is a line with its stars for users resolved. A rule with a user and a group is for the user as a member of the group.
type rule v1beta1.PolicySpec
