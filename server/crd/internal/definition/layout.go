package definition

import (
	"bytes"
	"reflect"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apiconversion "k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/util/json"
)

// layout says which parts of a spec are at the top of kube-apiserver's internal form, once for all versions. Those are the parts
// that are equal in all versions; missing parts are equal too. In the internal form such a part is in none of the versions.
type layout struct {
	schema, subresources, columns, selectable bool // whether they are at the top
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

// sameMeaning returns comparisons for parts of definitions: empty lists and maps equal missing ones, and JSON is compared by
// value.
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
		panic(err) // the function has the required form
	}
	return same
}

// decoded returns the value of a piece of JSON, nil for empty JSON.
func decoded(text apiextensionsv1.JSON) (any, error) {
	if len(text.Raw) == 0 || string(text.Raw) == "null" {
		return nil, nil
	}
	var value any
	err := json.Unmarshal(text.Raw, &value)
	return value, err
}

// versionsIn returns the versions without the parts that are at the top in this layout.
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

// top returns a version that has only the parts at the top of the spec.
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
