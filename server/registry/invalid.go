package registry

import (
	"strings"

	"github.com/keelson-dev/keelson/runtime"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// mostProblems is how many problems of an object its error tells. Time and size of the error grow with the square of
// their number, and one request could make millions.
const mostProblems = 100

// invalid is the error for an object of the kind that has problems.
func (r *Registry) invalid(name string, problems field.ErrorList) error {
	if len(problems) > mostProblems {
		last := *problems[mostProblems-1]
		last.Detail = strings.TrimPrefix(last.Detail+"; there are more errors than these", "; ")
		problems = append(problems[:mostProblems-1:mostProblems-1], &last)
	}
	return apierrors.NewInvalid(r.kind.GVK.GroupKind(), name, problems)
}

// versionFor is what the hub's version is called for those who sent the version of the kind k.
func (r *Registry) versionFor(k *runtime.Kind) string {
	if k.GVK.Group == r.kind.GVK.Group {
		return r.kind.GVK.Version
	}
	return r.kind.GVK.GroupVersion().String()
}
