package structural

import (
	"maps"
	"slices"

	"github.com/keelson-dev/keelson/runtime/structural/internal/jsonvalue"
	"github.com/keelson-dev/keelson/runtime/structural/internal/word"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ConformOptions control how an object is made to fit its schema. With the zero value, invalid metadata is an error, and no
// unknown fields are reported.
type ConformOptions struct {
	// DropInvalidMetadata drops fields of metadata, and apiVersion and kind of embedded resources, if they have a wrong type. It
	// is for objects read from storage, where an error would not help.
	DropInvalidMetadata bool
	// Report is the maximum number of paths of unknown fields to return.
	Report int
}

// Conform does for an untyped object what decoding does for an object of a Go type. apiVersion and kind must be strings, metadata
// is converted as decoding it into an ObjectMeta does, members that the schema does not specify are removed, and so are nulls
// that are not allowed. The metadata of embedded resources is treated like that of the object. Conform returns the paths of
// unknown fields: first those below metadata, then the pruned ones, then those in embedded resources, each part sorted.
//
// If Conform returns an error, the object must not be used, because it may have been changed in part. The schema may be nil; then
// only apiVersion, kind and metadata remain. Conform calls [Schema.PruneObject] and [Schema.DropNulls], and does the work of
// [Schema.CoerceEmbedded]; each of these can be called alone.
func (s *Schema) Conform(object map[string]any, options ConformOptions) ([]string, error) {
	for _, name := range []string{word.Kind, word.APIVersion} {
		if _, _, err := unstructured.NestedString(object, name); err != nil {
			return nil, err
		}
	}
	unknown, err := jsonvalue.CoerceMetadata(object, options.DropInvalidMetadata, options.Report)
	if err != nil {
		return nil, err
	}
	for i := range unknown {
		unknown[i] = word.Metadata + "." + unknown[i]
	}
	unknown = append(unknown, s.PruneObject(object, options.Report-len(unknown))...)
	s.DropNulls(object)
	if traitOf(s)&hasEmbedded == 0 {
		return unknown, nil
	}
	c := coercion{drop: options.DropInvalidMetadata, report: options.Report - len(unknown)}
	more, fault := s.coerce(object, c)
	if fault != nil {
		return nil, fault
	}
	return append(unknown, more...), nil
}

// CoerceEmbedded converts the metadata of embedded resources as decoding it into an ObjectMeta does, and returns the sorted paths
// of the fields that an ObjectMeta does not have. apiVersion and kind must be strings. Fields of a wrong type are dropped if the
// options say so; otherwise the error is about the first such field by its path. The root is an embedded resource only if the
// schema says so.
func (s *Schema) CoerceEmbedded(path *field.Path, value any, options ConformOptions) ([]string, *field.Error) {
	return s.coerce(value, coercion{path: path, drop: options.DropInvalidMetadata, report: options.Report})
}

// coercion visits the embedded resources in a value.
type coercion struct {
	path    *field.Path // of the root value
	drop    bool
	report  int
	at      jsonvalue.Trail
	unknown jsonvalue.Paths
	err     *field.Error // the first error by its path
}

func (s *Schema) coerce(value any, c coercion) ([]string, *field.Error) {
	c.walk(s, value)
	if c.err != nil {
		return nil, c.err
	}
	return c.unknown.Sorted(c.report), nil
}

func (c *coercion) walk(s *Schema, value any) {
	if traitOf(s)&hasEmbedded == 0 {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		if s.Embedded {
			c.resource(v)
		}
		for name, member := range v {
			property, ok := s.Properties[name]
			if ok {
				c.at.Enter(name)
			} else {
				c.at.EnterKey(name)
				property = s.Additional
			}
			c.walk(property, member)
			c.at.Leave()
		}
	case []any:
		for i, element := range v {
			c.at.EnterIndex(i)
			c.walk(s.Items, element)
			c.at.Leave()
		}
	}
}

func (c *coercion) resource(object map[string]any) {
	for _, name := range []string{word.APIVersion, word.Kind} {
		v, ok := object[name]
		if _, isString := v.(string); !ok || isString {
			continue
		}
		if c.drop {
			delete(object, name)
			continue
		}
		c.fail(field.Invalid(c.at.Path(c.path).Child(name), v, "must be a string"))
	}
	was := object[word.Metadata]
	unknown, err := jsonvalue.CoerceMetadata(object, c.drop, c.report)
	if err != nil && !c.drop {
		c.fail(field.Invalid(c.at.Path(c.path).Child(word.Metadata), was, err.Error()))
	}
	for _, name := range unknown {
		c.unknown.Add(c.at.Path(c.path).Child(word.Metadata).String()+"."+name, c.report)
	}
}

func (c *coercion) fail(err *field.Error) {
	if c.err == nil || err.Field < c.err.Field {
		c.err = err
	}
}

// DropNulls removes members of objects that are null, not nullable, and without a default, because null and absence are the same
// for a field of a Go type. Elements of lists remain.
func (s *Schema) DropNulls(value any) {
	if s == nil {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			schema := s.member(name)
			if schema == nil {
				continue
			}
			if member == nil && !schema.Nullable && schema.Default == nil {
				delete(v, name)
				continue
			}
			schema.DropNulls(member)
		}
	case []any:
		if s.Items == nil {
			return
		}
		for _, element := range v {
			s.Items.DropNulls(element)
		}
	}
}

// ValidateEmbedded returns the errors of apiVersion, kind and metadata of the embedded resources in a value. The root is an
// embedded resource only if the schema says so, because the metadata of whole objects has rules of its own.
func (s *Schema) ValidateEmbedded(path *field.Path, value any) field.ErrorList {
	if traitOf(s)&hasEmbedded == 0 {
		return nil
	}
	var errs field.ErrorList
	switch v := value.(type) {
	case map[string]any:
		if s.Embedded {
			errs = jsonvalue.ValidateResource(path, v)
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if property, ok := s.Properties[name]; ok {
				errs = append(errs, property.ValidateEmbedded(path.Child(name), v[name])...)
			} else {
				errs = append(errs, s.Additional.ValidateEmbedded(path.Key(name), v[name])...)
			}
		}
	case []any:
		for i, element := range v {
			errs = append(errs, s.Items.ValidateEmbedded(path.Index(i), element)...)
		}
	}
	return errs
}
