package definition

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// versionsErrors validates each version, and then all versions together; path is that of the spec.
func (j *judge) versionsErrors(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	all := path.Child("versions")
	status, storage, unique := j.statusByVersion(), 0, true
	seen := make(map[string]bool, len(j.versions))
	for i := range j.versions {
		v := &j.versions[i]
		if v.Storage {
			storage++
		}
		unique = unique && !seen[v.Name]
		seen[v.Name] = true
		if problems := utilvalidation.IsDNS1035Label(v.Name); len(problems) > 0 {
			errs = append(errs, field.Invalid(all.Index(i).Child("name"), v.Name, strings.Join(problems, ",")))
		}
		errs = append(errs, j.versionErrors(all.Index(i), v, status[v.Name])...)
	}
	if !unique {
		errs = append(errs, field.Invalid(all, internalForm(j.versions), "must contain unique version names"))
	}
	if storage != 1 {
		errs = append(errs, field.Invalid(all, internalForm(j.versions), "must have exactly one version marked as storage version"))
	}
	if len(j.versions) == 0 || j.versions[0].Name == "" {
		return errs
	}
	first := j.versions[0].Name
	if problems := utilvalidation.IsDNS1035Label(first); len(problems) > 0 { // a field of old definitions: the first version's name
		errs = append(errs, field.Invalid(path.Child("version"), first, strings.Join(problems, ",")))
	}
	return errs
}

// versionErrors validates the parts of a version that are not at the top. status says whether it has the status subresource.
func (j *judge) versionErrors(path *field.Path, v *apiextensionsv1.CustomResourceDefinitionVersion, status bool) field.ErrorList {
	errs := deprecationErrors(path.Child("deprecationWarning"), v)
	errs = append(errs, j.schemaErrors(path.Child("schema"), v, v.Name, status)...)
	errs = append(errs, subresourceErrors(path.Child("subresources"), v.Subresources)...)
	errs = append(errs, columnsErrors(path.Child("additionalPrinterColumns"), v.AdditionalPrinterColumns)...)
	return append(errs, j.versionSelectableErrors(path, v)...)
}

// statusByVersion returns which versions have the status subresource, by name. Of versions with the same name the first counts.
func (j *judge) statusByVersion() map[string]bool {
	status := make(map[string]bool, len(j.versions))
	for i := range j.versions {
		v := &j.versions[i]
		if _, ok := status[v.Name]; !ok {
			status[v.Name] = hasStatus(j.top.Subresources) || hasStatus(v.Subresources)
		}
	}
	return status
}

// anyStatus reports whether any version has the status subresource.
func (j *judge) anyStatus() bool {
	for i := range j.spec.Versions {
		if hasStatus(j.spec.Versions[i].Subresources) {
			return true
		}
	}
	return false
}

func hasStatus(subresources *apiextensionsv1.CustomResourceSubresources) bool {
	return subresources != nil && subresources.Status != nil
}

// maxDeprecationWarning is the maximum length in bytes, because the text is sent in a Warning header.
const maxDeprecationWarning = 256

func deprecationErrors(path *field.Path, v *apiextensionsv1.CustomResourceDefinitionVersion) field.ErrorList {
	if v.DeprecationWarning == nil {
		return nil
	}
	var problems []string
	text := *v.DeprecationWarning
	if !v.Deprecated {
		problems = append(problems, "can only be set for deprecated versions")
	} else {
		if len(text) > maxDeprecationWarning {
			problems = append(problems, "must be <= 256 characters long")
		}
		if text == "" {
			problems = append(problems, "must not be an empty string")
		}
		if i := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
			problems = append(problems, fmt.Sprintf("must only contain printable UTF-8 characters; non-printable character found at index %d", i))
		}
		if !utf8.ValidString(text) {
			problems = append(problems, "must only contain printable UTF-8 characters")
		}
	}
	var errs field.ErrorList
	for _, problem := range problems {
		errs = append(errs, field.Invalid(path, v.DeprecationWarning, problem))
	}
	return errs
}

func subresourceErrors(path *field.Path, subresources *apiextensionsv1.CustomResourceSubresources) field.ErrorList {
	if subresources == nil || subresources.Scale == nil {
		return nil
	}
	var errs field.ErrorList
	scale := subresources.Scale
	path = path.Child("scale")
	required := func(path *field.Path, jsonPath, below, problem string) {
		switch {
		case jsonPath == "":
			errs = append(errs, field.Required(path, ""))
		case jsonPath[0] != '.':
			errs = append(errs, field.Invalid(path, jsonPath, notSimple))
		case !strings.HasPrefix(jsonPath, below):
			errs = append(errs, field.Invalid(path, jsonPath, problem))
		}
	}
	required(path.Child("specReplicasPath"), scale.SpecReplicasPath, ".spec.", "should be a json path under .spec")
	required(path.Child("statusReplicasPath"), scale.StatusReplicasPath, ".status.", "should be a json path under .status")
	if scale.LabelSelectorPath == nil || *scale.LabelSelectorPath == "" {
		return errs
	}
	switch selector, at := *scale.LabelSelectorPath, path.Child("labelSelectorPath"); {
	case selector[0] != '.':
		errs = append(errs, field.Invalid(at, selector, notSimple))
	case !strings.HasPrefix(selector, ".spec.") && !strings.HasPrefix(selector, ".status."):
		errs = append(errs, field.Invalid(at, scale.LabelSelectorPath, "should be a json path under either .spec or .status"))
	}
	return errs
}

const notSimple = "must be a simple json path starting with ."

// columnsErrors validates printer columns.
func columnsErrors(path *field.Path, columns []apiextensionsv1.CustomResourceColumnDefinition) field.ErrorList {
	const types, formats = "boolean,date,integer,number,string", "byte,date,date-time,double,float,int32,int64,password"
	var errs field.ErrorList
	for i := range columns {
		column, at := &columns[i], path.Index(i)
		if column.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), ""))
		}
		switch {
		case column.Type == "":
			errs = append(errs, field.Required(at.Child("type"), "must be one of "+types))
		case !isOneOf(column.Type, types):
			errs = append(errs, field.Invalid(at.Child("type"), column.Type, "must be one of "+types))
		}
		if column.Format != "" && !isOneOf(column.Format, formats) {
			errs = append(errs, field.Invalid(at.Child("format"), column.Format, "must be one of "+formats))
		}
		switch {
		case column.JSONPath == "":
			errs = append(errs, field.Required(at.Child("JSONPath"), "")) // sic
		case column.JSONPath[0] != '.':
			errs = append(errs, field.Invalid(at.Child("JSONPath"), column.JSONPath, notSimple))
		}
	}
	return errs
}

// isOneOf reports whether a word is in a comma-separated list.
func isOneOf(word, words string) bool {
	for other := range strings.SplitSeq(words, ",") {
		if other == word {
			return true
		}
	}
	return false
}
