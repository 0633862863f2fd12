package definition

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Unsupported returns what a definition asks for that kube-apiserver accepts but that is not done here: paths of a scale with an
// empty name in them, on which kube-apiserver fails when the scale is read.
// New definitions and updates are refused for it, so it is only in those that another server has stored, which must not be served
// as if it were not there.
func Unsupported(crd *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
	return deadEnds(&crd.Spec, field.NewPath("spec"))
}

// deadEnds finds paths of scales that go through a name that is empty.
func deadEnds(spec *apiextensionsv1.CustomResourceDefinitionSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	l := layoutOf(spec)
	top := l.top(spec)
	check := func(path *field.Path, subresources *apiextensionsv1.CustomResourceSubresources) {
		if subresources == nil || subresources.Scale == nil {
			return
		}
		scale := subresources.Scale
		for _, to := range []struct {
			field string
			path  *string
		}{{"specReplicasPath", &scale.SpecReplicasPath}, {"statusReplicasPath", &scale.StatusReplicasPath}, {"labelSelectorPath", scale.LabelSelectorPath}} {
			if to.path == nil || !strings.HasPrefix(*to.path, ".s") { // which is told already
				continue
			}
			if strings.Contains(*to.path, "..") || strings.HasSuffix(*to.path, ".") {
				errs = append(errs, field.Invalid(path.Child("subresources", "scale", to.field), *to.path, "this server does not know fields without a name"))
			}
		}
	}
	check(path, top.Subresources)
	for i, v := range l.versionsIn(spec) {
		check(path.Child("versions").Index(i), v.Subresources)
	}
	return errs
}

// newlyUnsupported is Unsupported without what the old definition had at the same place: an update must be able to delete it, or
// to remove one thing after another.
func newlyUnsupported(crd, old *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
	had := map[string]bool{}
	for _, err := range Unsupported(old) {
		had[err.Field] = true
	}
	return slices.DeleteFunc(Unsupported(crd), func(err *field.Error) bool { return had[err.Field] })
}
