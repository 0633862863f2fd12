package filters

import (
	"net/http"

	"github.com/keelson-dev/keelson/admission"
)

// Policy takes the current policy from of, once for each request, and puts it in the context ([request.PolicyFrom]), so that the
// whole request is decided by one policy. It belongs before [Authenticate], since the authenticators are part of the policy.
func Policy(of admission.Source) Filter {
	return steps(func(p *passage, _ http.Handler) bool {
		p.values.Policy = of.Policy(p.r.Context())
		return true
	})
}
