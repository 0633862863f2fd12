package definition

import (
	"bytes"
	"reflect"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apiconversion "k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/util/json"
)

// layout says what kube-apiserver's internal form of a spec has at its top, once for all versions: what they all have the same.
// What is there is in no version then. Nothing at all counts as the same too.
type layout struct {
	schema, subresources, columns, selectable bool // is at the top
}

// layoutOf returns the layout of a spec. Without versions nothing is at the top.
func layoutOf(spec *apiextensionsv1.CustomResourceDefinitionSpec) layout {
	if len(spec.Versions) == 0 {
		return layout{}
	}
	l, first, same := layout{true, true, true, true}, &spec.Versions[0], sameMeaning()
	for i := range spec.Versions[1:] {
		v := &spec.Versions[i+1]
		l.schema = l.schema && same.DeepEqual(v.Schema, first.Schema)
		l.subresources = l.subresources && same.DeepEqual(v.Subresources, first.Subresources)
		l.columns = l.columns && same.DeepEqual(v.AdditionalPrinterColumns, first.AdditionalPrinterColumns)
		l.selectable = l.selectable && same.DeepEqual(v.SelectableFields, first.SelectableFields)
	}
	return l
}

// sameMeaning compares parts of definitions: empty lists and maps are as those that are not there, and JSON is compared by what it
// says.
func sameMeaning() apiconversion.Equalities {
	same := equality.Semantic.Copy()
	if err := same.AddFunc(func(a, b apiextensionsv1.JSON) bool {
		one, err := decoded(a)
		other, otherErr := decoded(b)
		if err != nil || otherErr != nil {
			return bytes.Equal(a.Raw, b.Raw)
		}
		return reflect.DeepEqual(one, other)
	}); err != nil {
		panic(err) // the function has the form that is asked for
	}
	return same
}

// decoded returns the value of a piece of JSON, nil for none.
func decoded(text apiextensionsv1.JSON) (any, error) {
	if len(text.Raw) == 0 || string(text.Raw) == "null" {
		return nil, nil
	}
	var value any
	err := json.Unmarshal(text.Raw, &value)
	return value, err
}

// versionsIn returns the versions as they are in a layout, without what is at the top.
func (l layout) versionsIn(spec *apiextensionsv1.CustomResourceDefinitionSpec) []apiextensionsv1.CustomResourceDefinitionVersion {
	if spec.Versions == nil {
		return nil
	}
	versions := make([]apiextensionsv1.CustomResourceDefinitionVersion, len(spec.Versions))
	for i, v := range spec.Versions {
		if l.schema {
			v.Schema = nil
		}
		if l.subresources {
			v.Subresources = nil
		}
		if l.columns {
			v.AdditionalPrinterColumns = nil
		}
		if l.selectable {
			v.SelectableFields = nil
		}
		versions[i] = v
	}
	return versions
}

// top returns a version that has what is at the top of the spec, and nothing else.
func (l layout) top(spec *apiextensionsv1.CustomResourceDefinitionSpec) apiextensionsv1.CustomResourceDefinitionVersion {
	var top apiextensionsv1.CustomResourceDefinitionVersion
	if len(spec.Versions) == 0 {
		return top
	}
	first := spec.Versions[0]
	if l.schema {
		top.Schema = first.Schema
	}
	if l.subresources {
		top.Subresources = first.Subresources
	}
	if l.columns {
		top.AdditionalPrinterColumns = first.AdditionalPrinterColumns
	}
	if l.selectable {
		top.SelectableFields = first.SelectableFields
	}
	return top
}
