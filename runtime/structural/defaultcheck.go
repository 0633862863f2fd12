package structural

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/keelson-dev/keelson/runtime/structural/internal/jsonvalue"
	"github.com/keelson-dev/keelson/runtime/structural/internal/word"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// defaultErrors returns the errors of the defaults of a schema: unspecified fields in them, invalid values, and invalid metadata
// of objects that they are part of. It does not check the defaults inside additionalProperties.
func defaultErrors(path *field.Path, root *Schema, options Options) field.ErrorList {
	c := defaultCheck{unpruned: options.UnprunedDefaults, effort: options.Effort}
	if c.effort == nil {
		c.effort = NewEffort()
	}
	return c.check(path, root.asResource())
}

// defaultCheck checks the defaults of a schema.
type defaultCheck struct {
	unpruned bool    // defaults with unspecified fields are accepted
	effort   *Effort // for all defaults together

	resource   *Schema        // the innermost schema of an object with metadata around the current schema
	at         *jsonvalue.Way // the position of the current schema in resource
	insideMeta bool           // at is inside apiVersion, kind or metadata
}

func (c defaultCheck) check(path *field.Path, s *Schema) field.ErrorList {
	if s == nil {
		return nil
	}
	if s.Embedded {
		c.resource, c.at, c.insideMeta = s, nil, false
	}
	var errs field.ErrorList
	if s.Default != nil {
		value := apiruntime.DeepCopyJSONValue(s.Default)
		if c.insideMeta {
			errs = c.inMetadata(path.Child("default"), s, value)
		} else {
			errs = c.outside(path.Child("default"), s, value)
		}
	}
	inItems := c
	inItems.at = c.at.Index()
	errs = append(errs, inItems.check(path.Child("items"), s.Items)...)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		inside := c
		inside.at = c.at.Member(name)
		if s.Embedded && word.IsMeta(name) {
			inside.insideMeta = true
		}
		errs = append(errs, inside.check(path.Child("properties").Key(name), s.Properties[name])...)
	}
	return errs
}

// inMetadata validates a default that is part of metadata, by validating the resulting metadata.
func (c defaultCheck) inMetadata(path *field.Path, s *Schema, value any) field.ErrorList {
	object, err := c.at.Around(apiruntime.DeepCopyJSONValue(value))
	if err != nil {
		return field.ErrorList{field.Invalid(path, value, err.Error())} // impossible: the default is inside an object
	}
	for name, stand := range map[string]string{word.APIVersion: "validation/v1", word.Kind: "Validation"} {
		if _, ok := object[name]; !ok {
			object[name] = stand
		}
	}
	const fault = "must result in valid metadata: %v"
	if _, err := c.resource.coerce(object, coercion{}); err != nil {
		return field.ErrorList{field.Invalid(path, value, fmt.Sprintf(fault, err))}
	}
	if errs := c.resource.ValidateEmbedded(nil, object); len(errs) > 0 {
		return field.ErrorList{field.Invalid(path, value, fmt.Sprintf(fault, errs.ToAggregate()))}
	}
	return s.valueErrors(path, value, c.effort)
}

// outside validates a default that is not part of metadata.
func (c defaultCheck) outside(path *field.Path, s *Schema, value any) field.ErrorList {
	var errs field.ErrorList
	if !c.unpruned {
		pruned := apiruntime.DeepCopyJSONValue(value)
		s.Prune(pruned, 0)
		if !reflect.DeepEqual(pruned, value) {
			errs = append(errs, field.Invalid(path, value, unknownInDefault))
		}
	}
	if _, err := s.coerce(value, coercion{path: path}); err != nil {
		return append(errs, err)
	}
	if found := s.ValidateEmbedded(path, value); len(found) > 0 {
		return append(errs, found...)
	}
	return append(errs, s.valueErrors(path, value, c.effort)...)
}

// valueErrors validates a default. As in kube-apiserver, formats are checked as they are written.
func (s *Schema) valueErrors(path *field.Path, value any, effort *Effort) field.ErrorList {
	found := judge{asWritten: true, effort: effort}.value(s, value, "", former{}).errs
	if effort.spent() {
		return tooMuch(path)
	}
	return jsonvalue.FieldErrors(path, found)
}
