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

// defaultErrors returns what is wrong with the defaults of a schema: with what is not specified in them, with their values,
// and with the metadata of objects that they are part of. Those of additional properties are not looked at.
func defaultErrors(path *field.Path, root *Schema, options Options) field.ErrorList {
	c := defaultCheck{unpruned: options.UnprunedDefaults, effort: options.Effort}
	if c.effort == nil {
		c.effort = NewEffort()
	}
	return c.check(path, root.asResource())
}

// defaultCheck walks a schema to its defaults.
type defaultCheck struct {
	unpruned bool    // is fine
	effort   *Effort // for all of them

	resource   *Schema        // the innermost around, of an object with metadata
	at         *jsonvalue.Way // from there
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

// inMetadata judges a default that is a part of metadata by the metadata it gives.
func (c defaultCheck) inMetadata(path *field.Path, s *Schema, value any) field.ErrorList {
	object, err := c.at.Around(apiruntime.DeepCopyJSONValue(value))
	if err != nil {
		return field.ErrorList{field.Invalid(path, value, err.Error())} // it is below an object
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

// outside judges a default as the value that it is.
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

// valueErrors validates a default. kube-apiserver takes formats as they are written there.
func (s *Schema) valueErrors(path *field.Path, value any, effort *Effort) field.ErrorList {
	found := judge{asWritten: true, effort: effort}.value(s, value, "", former{}).errs
	if effort.spent() {
		return tooMuch(path)
	}
	return jsonvalue.FieldErrors(path, found)
}
