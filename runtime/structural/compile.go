package structural

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/runtime/regexsize"
	"github.com/keelson-dev/keelson/runtime/structural/internal/formats"
	"github.com/keelson-dev/keelson/runtime/structural/internal/jsonvalue"
	"github.com/keelson-dev/keelson/runtime/structural/internal/word"
	"github.com/keelson-dev/keelson/runtime/structural/internal/written"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// Compile makes a [Schema] of a schema as written. It fails for keywords that no structural schema may have, with the words of
// kube-apiserver where kube-apiserver fails too. A schema that [Check] accepts compiles. Compile does not repeat the checks: the
// result for a schema that Check refuses for another reason is safe to use.
//
// Defaults are pruned as kube-apiserver prunes them when it serves a schema. So defaults with unknown fields, which are tolerated
// in old definitions, do not bring these fields back.
//
// Regular expressions are compiled when they are first used. Those beyond [MaxPatternSize] are never compiled, and no string
// matches them. A nil schema gives nil.
func Compile(props *apiextensionsv1.JSONSchemaProps) (*Schema, error) {
	b := &builder{}
	s, err := b.schema(props, 0, false)
	if err != nil || s == nil {
		return nil, err
	}
	if err := pruneDefaults(s); err != nil {
		return nil, err
	}
	s.patternSize = min(b.patterns, MaxPatternSize)
	return s, nil
}

// MaxPatternSize is the maximum number of instructions of all regular expressions of a schema together: about 20 MB and a tenth
// of a second. The largest schema of well-known projects has a few thousand. kube-apiserver has no such bound; there the text of
// one definition can take gigabytes.
const MaxPatternSize = 500_000

// PatternBytes returns the approximate memory, in bytes, of the regular expressions of a compiled schema once all of them have
// been used.
func (s *Schema) PatternBytes() int {
	if s == nil {
		return 0
	}
	return s.patternSize * regexsize.BytesPerInstruction
}

// build compiles a schema without pruning its defaults.
func build(props *apiextensionsv1.JSONSchemaProps) (*Schema, error) {
	return new(builder).schema(props, 0, false)
}

// builder compiles one schema.
type builder struct {
	formats  *formats.Checks
	words    map[string]string // strings in use, so that equal strings share memory
	patterns int               // number of instructions of all patterns so far
}

// schema compiles props. inValues means that props is inside allOf, anyOf, oneOf or not, where nothing is part of the structure.
func (b *builder) schema(props *apiextensionsv1.JSONSchemaProps, depth int, inValues bool) (*Schema, error) {
	if props == nil {
		return nil, nil
	}
	if depth > MaxDepth {
		return nil, fmt.Errorf("schemas cannot be nested more than %d deep", MaxDepth)
	}
	if err := written.Unsupported(props); err != nil {
		return nil, err
	}
	s := &Schema{
		Type: b.word(props.Type), Nullable: props.Nullable,
		Embedded: props.XEmbeddedResource, IntOrString: props.XIntOrString,
		ListMapKeys: slices.Clone(props.XListMapKeys),
		Rules:       slices.Clone([]apiextensionsv1.ValidationRule(props.XValidations)),
	}
	if props.XListType != nil {
		s.ListType = b.word(*props.XListType)
	}
	if props.XMapType != nil {
		s.MapType = b.word(*props.XMapType)
	}
	if props.XPreserveUnknownFields != nil {
		if !*props.XPreserveUnknownFields {
			return nil, errors.New("internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined")
		}
		s.PreserveUnknown = true
	}
	var err error
	if s.Default, err = written.Decoded(props.Default); err != nil {
		return nil, fmt.Errorf("default: %w", err)
	}
	if s.Values, err = b.values(s, props, depth); err != nil {
		return nil, err
	}
	if err := b.structure(s, props, depth, inValues); err != nil {
		return nil, err
	}
	if !inValues {
		s.summarize()
	}
	return s, nil
}

// structure compiles the parts of props about the members and elements of a value.
func (b *builder) structure(s *Schema, props *apiextensionsv1.JSONSchemaProps, depth int, inValues bool) error {
	var err error
	if props.Items != nil {
		if len(props.Items.JSONSchemas) > 0 {
			return errors.New("OpenAPIV3Schema 'items' must be a schema, but is an array")
		}
		if s.Items, err = b.schema(props.Items.Schema, depth+1, inValues); err != nil {
			return err
		}
	}
	if len(props.Properties) > 0 {
		s.Properties = make(map[string]*Schema, len(props.Properties))
		for name, property := range props.Properties {
			if s.Properties[b.word(name)], err = b.schema(&property, depth+1, inValues); err != nil {
				return err
			}
		}
	}
	switch others := props.AdditionalProperties; {
	case others == nil:
	case others.Schema != nil:
		s.Others = OthersDescribed
		s.Additional, err = b.schema(others.Schema, depth+1, inValues)
	case others.Allows:
		s.Others = OthersAny
	default:
		s.Others = OthersForbidden
	}
	return err
}

// summarize sets the traits of s. The schemas inside s must be summarized already.
func (s *Schema) summarize() {
	s.defaulted, s.below, s.defaultSize = nil, 0, 0
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[name]
		if property.Default != nil {
			s.defaulted = append(s.defaulted, name)
			s.defaultSize += jsonvalue.SizeOf(property.Default)
		}
		s.defaultSize += property.defaultSize
		s.below |= property.below
	}
	s.below |= traitOf(s.Additional) | traitOf(s.Items)
	if len(s.defaulted) > 0 || s.Additional != nil && s.Additional.Default != nil || s.Items != nil && s.Items.Default != nil {
		s.below |= hasDefault
	}
	for _, inside := range []*Schema{s.Additional, s.Items} {
		if traitOf(inside)&hasDefault != 0 || inside != nil && inside.Default != nil {
			s.below |= hasManyDefaults
		}
	}
	if s.Embedded {
		s.below |= hasEmbedded
	}
	if s.ListType == word.ListSet || s.ListType == word.ListMap {
		s.below |= hasListType
	}
}

// values compiles the conditions on values. It returns nil if there are none.
func (b *builder) values(s *Schema, props *apiextensionsv1.JSONSchemaProps, depth int) (*Values, error) {
	v := &Values{
		Format:  b.word(props.Format),
		Minimum: copied(props.Minimum), ExclusiveMinimum: props.ExclusiveMinimum,
		Maximum: copied(props.Maximum), ExclusiveMaximum: props.ExclusiveMaximum, MultipleOf: copied(props.MultipleOf),
		MinLength: copied(props.MinLength), MaxLength: copied(props.MaxLength), Pattern: props.Pattern,
		MinItems: copied(props.MinItems), MaxItems: copied(props.MaxItems), UniqueItems: props.UniqueItems,
		MinProperties: copied(props.MinProperties), MaxProperties: copied(props.MaxProperties),
		Required: slices.Clone(props.Required),
	}
	for i := range props.Enum {
		v.enumBytes += int64(len(props.Enum[i].Raw))
	}
	var err error
	if v.Enum, err = written.AllDecoded(props.Enum); err != nil {
		return nil, fmt.Errorf("enum: %w", err)
	}
	if v.AllOf, err = b.branches(props.AllOf, depth); err != nil {
		return nil, err
	}
	if v.AnyOf, err = b.branches(props.AnyOf, depth); err != nil {
		return nil, err
	}
	if v.OneOf, err = b.branches(props.OneOf, depth); err != nil {
		return nil, err
	}
	if v.Not, err = b.schema(props.Not, depth+1, true); err != nil {
		return nil, err
	}
	if v.empty() {
		return nil, nil
	}
	if v.Pattern != "" {
		v.pattern = b.pattern(v.Pattern)
	}
	v.texts = textsOf(v.Enum)
	if b.formats == nil {
		b.formats = new(formats.Checks)
	}
	if formats.Known(s.Type, s.IntOrString, v.Format) {
		v.format = v.Format
		v.hasFormat = b.formats.Check(v.Format)
	}
	v.impossible = v.boundsMisfit(s.numberType(v.format))
	return v, nil
}

// pattern returns a regular expression that is compiled when it is first used.
func (b *builder) pattern(text string) *formats.Pattern {
	p := &formats.Pattern{Text: text}
	if b.patterns <= MaxPatternSize {
		p.Size = regexsize.Of(text)
		b.patterns += p.Size
	}
	if b.patterns > MaxPatternSize {
		p.Refuse(errPatterns)
	}
	return p
}

var errPatterns = fmt.Errorf("the regular expressions of a schema may have at most %d instructions together", MaxPatternSize)

// manyAlternatives is the length from which the strings of an enum are looked up in a map.
const manyAlternatives = 16

// textsOf returns the strings of an enum, nil if the enum is short.
func textsOf(enum []any) map[string]struct{} {
	if len(enum) < manyAlternatives {
		return nil
	}
	texts := make(map[string]struct{}, len(enum))
	for _, alternative := range enum {
		if text, ok := alternative.(string); ok {
			texts[text] = struct{}{}
		}
	}
	return texts
}

func (b *builder) branches(props []apiextensionsv1.JSONSchemaProps, depth int) ([]*Schema, error) {
	if len(props) == 0 {
		return nil, nil
	}
	compiled := make([]*Schema, len(props))
	for i := range props {
		var err error
		if compiled[i], err = b.schema(&props[i], depth+1, true); err != nil {
			return nil, err
		}
	}
	return compiled, nil
}

func (w *Values) empty() bool {
	return w.Format == "" && w.Minimum == nil && w.Maximum == nil && !w.ExclusiveMinimum && !w.ExclusiveMaximum &&
		w.MultipleOf == nil && w.MinLength == nil && w.MaxLength == nil && w.Pattern == "" &&
		w.MinItems == nil && w.MaxItems == nil && !w.UniqueItems && w.MinProperties == nil && w.MaxProperties == nil &&
		len(w.Required) == 0 && len(w.Enum) == 0 && len(w.AllOf) == 0 && len(w.AnyOf) == 0 && len(w.OneOf) == 0 && w.Not == nil
}

// boundsMisfit reports whether the type and format cannot represent a bound of numbers. Such a schema allows no number.
func (w *Values) boundsMisfit(numberType, format string) bool {
	for _, bound := range []*float64{w.MultipleOf, w.Maximum, w.Minimum} {
		if bound != nil && validate.IsValueValidAgainstRange(*bound, numberType, format, "", "") != nil {
			return true
		}
	}
	return false
}

// word returns a copy of text that it shares with equal texts.
func (b *builder) word(text string) string {
	if text == "" {
		return ""
	}
	if known, ok := b.words[text]; ok {
		return known
	}
	if b.words == nil {
		b.words = map[string]string{}
	}
	text = strings.Clone(text)
	b.words[text] = text
	return text
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	value := *p
	return &value
}

// pruneDefaults prunes the defaults in root as in an object that is decoded.
func pruneDefaults(root *Schema) error {
	var prune func(s *Schema, at *jsonvalue.Way) error
	prune = func(s *Schema, at *jsonvalue.Way) error {
		if s == nil {
			return nil
		}
		if s.Default != nil {
			if err := pruneDefault(root, s, at); err != nil {
				return fmt.Errorf("failed to prune default value: %w", err)
			}
		}
		if err := errors.Join(prune(s.Additional, at.Member("*")), prune(s.Items, at.Index())); err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			if err := prune(s.Properties[name], at.Member(name)); err != nil {
				return err
			}
		}
		s.summarize() // a default may have been pruned away completely
		return nil
	}
	return prune(root, nil)
}
