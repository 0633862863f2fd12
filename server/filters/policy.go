package filters

import (
	"net/http"

	"github.com/keelson-dev/keelson/admission"
)

// Policy takes the policy that decides about a request, once for all of it, and puts it in the context
// ([request.PolicyFrom]). It belongs before [Authenticate], whose
// members are part of it.
func Policy(of admission.Source) Filter {
	return steps(func(p *passage, _ http.Handler) bool {
		p.values.Policy = of.Policy(p.r.Context())
		return true
	})
}
