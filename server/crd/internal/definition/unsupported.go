package definition

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Unsupported returns the errors of features that kube-apiserver accepts and this package does not support: paths of a scale with
// an empty name in them. With such a path kube-apiserver fails when the scale is read. New definitions and updates with such a
// path are refused. So only a definition that another program stored can have one, and it must not be served as if the path were
// valid.
func Unsupported(crd *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
	return deadEnds(&crd.Spec, field.NewPath("spec"))
}

// deadEnds returns an error for each path of a scale that has an empty name in it.
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
			if to.path == nil || !strings.HasPrefix(*to.path, ".s") { // reported elsewhere
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

// newlyUnsupported is Unsupported without the errors that the old definition had at the same place. So an update can delete such
// a definition, or remove one path after another.
func newlyUnsupported(crd, old *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
	had := map[string]bool{}
	for _, err := range Unsupported(old) {
		had[err.Field] = true
	}
	return slices.DeleteFunc(Unsupported(crd), func(err *field.Error) bool { return had[err.Field] })
}
