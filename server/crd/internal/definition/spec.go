package definition

import (
	"context"
	"strings"

	"github.com/keelson-dev/keelson/runtime/cel/rules"
	"github.com/keelson-dev/keelson/runtime/structural"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// judge validates a spec in the internal form of kube-apiserver.
type judge struct {
	tolerance
	layout
	ctx      context.Context // the context of the request
	compiler *rules.Compiler
	effort   *structural.Effort // for the defaults of all versions
	spec     *apiextensionsv1.CustomResourceDefinitionSpec
	top      apiextensionsv1.CustomResourceDefinitionVersion   // the parts that all versions share
	versions []apiextensionsv1.CustomResourceDefinitionVersion // without these parts
}

func (v Validator) judge(ctx context.Context, spec *apiextensionsv1.CustomResourceDefinitionSpec, t tolerance) *judge {
	l := layoutOf(spec)
	return &judge{tolerance: t, layout: l, ctx: ctx, compiler: v.compiler, effort: structural.NewEffort(), spec: spec, top: l.top(spec), versions: l.versionsIn(spec)}
}

func (j *judge) specErrors(path *field.Path) field.ErrorList {
	errs := j.groupErrors(path.Child("group"))
	errs = append(errs, scopeErrors(path.Child("scope"), j.spec.Scope)...)
	errs = append(errs, j.missingSchemas(path.Child("versions"))...)
	if j.spec.PreserveUnknownFields && hasSchemaWith(j.spec, hasDefault) {
		errs = append(errs, field.Invalid(path.Child("preserveUnknownFields"), true, "must be false in order to use defaults in the schema"))
	}
	errs = append(errs, j.versionsErrors(path)...)
	errs = append(errs, j.requiredNames(path.Child("names"))...)
	errs = append(errs, namesErrors(&j.spec.Names, path.Child("names"))...)
	errs = append(errs, j.schemaErrors(path.Child("validation"), &j.top, j.firstName(), j.anyStatus())...)
	errs = append(errs, subresourceErrors(path.Child("subresources"), j.top.Subresources)...)
	errs = append(errs, columnsErrors(path.Child("additionalPrinterColumns"), j.top.AdditionalPrinterColumns)...)
	errs = append(errs, j.topSelectableErrors(path)...)
	if c := j.spec.Conversion; c != nil && c.Strategy != apiextensionsv1.NoneConverter && j.spec.PreserveUnknownFields {
		errs = append(errs, field.Invalid(path.Child("conversion", "strategy"), c.Strategy, "must be None if spec.preserveUnknownFields is true"))
	}
	return append(errs, j.conversionErrors(path.Child("conversion"))...)
}

func (j *judge) groupErrors(path *field.Path) field.ErrorList {
	group := j.spec.Group
	if group == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	if problems := utilvalidation.IsDNS1123Subdomain(group); len(problems) > 0 {
		return field.ErrorList{field.Invalid(path, group, strings.Join(problems, ","))}
	}
	if !strings.Contains(group, ".") {
		return field.ErrorList{field.Invalid(path, group, "should be a domain with at least one dot")}
	}
	return nil
}

func scopeErrors(path *field.Path, scope apiextensionsv1.ResourceScope) field.ErrorList {
	switch scope {
	case apiextensionsv1.ClusterScoped, apiextensionsv1.NamespaceScoped:
		return nil
	case "":
		return field.ErrorList{field.Required(path, "")}
	}
	return field.ErrorList{field.NotSupported(path, scope, []apiextensionsv1.ResourceScope{apiextensionsv1.ClusterScoped, apiextensionsv1.NamespaceScoped})}
}

// requiredNames returns an error for each missing name that is required in a spec, but not in a status.
func (j *judge) requiredNames(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := &j.spec.Names
	for _, name := range []struct{ field, value string }{
		{"plural", names.Plural}, {"singular", names.Singular}, {"kind", names.Kind}, {"listKind", names.ListKind},
	} {
		if name.value == "" {
			errs = append(errs, field.Required(path.Child(name.field), ""))
		}
	}
	return errs
}

// namesErrors validates the names that are set.
func namesErrors(names *apiextensionsv1.CustomResourceDefinitionNames, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	label := func(path *field.Path, name string) {
		if problems := utilvalidation.IsDNS1035Label(name); len(problems) > 0 {
			errs = append(errs, field.Invalid(path, name, strings.Join(problems, ",")))
		}
	}
	mixed := func(path *field.Path, name string) {
		if problems := utilvalidation.IsDNS1035Label(strings.ToLower(name)); name != "" && len(problems) > 0 {
			errs = append(errs, field.Invalid(path, name, "may have mixed case, but should otherwise match: "+strings.Join(problems, ",")))
		}
	}
	if names.Plural != "" {
		label(path.Child("plural"), names.Plural)
	}
	if names.Singular != "" {
		label(path.Child("singular"), names.Singular)
	}
	mixed(path.Child("kind"), names.Kind)
	mixed(path.Child("listKind"), names.ListKind)
	for i, name := range names.ShortNames {
		label(path.Child("shortNames").Index(i), name)
	}
	if names.Kind != "" && names.Kind == names.ListKind {
		errs = append(errs, field.Invalid(path.Child("listKind"), names.ListKind, "kind and listKind may not be the same"))
	}
	for i, name := range names.Categories {
		label(path.Child("categories").Index(i), name)
	}
	return errs
}
