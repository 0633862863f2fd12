package openapi

import (
	"bytes"
	"errors"
	"strings"

	"github.com/google/gnostic-models/compiler"
	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// parseV2 is openapi_v2.ParseDocument, for a fraction of the time and the memory. body is the result of json.Marshal.
func parseV2(body []byte) (*openapi_v2.Document, error) {
	root, err := nodesOf(body)
	if err != nil {
		return openapi_v2.ParseDocument(body)
	}
	definitions := member(root, "definitions")
	a := newAside()
	a.takeAll(definitions)
	d, err := openapi_v2.NewDocument(root, compiler.NewContextWithExtensions("$root", root, nil, nil))
	if err != nil || a.putAll(definitions, d.GetDefinitions()) != nil {
		return openapi_v2.ParseDocument(body) // its errors have positions
	}
	return d, nil
}

// parseV3 is parseV2 for documents of OpenAPI v3.
func parseV3(body []byte) (*openapi_v3.Document, error) {
	root, err := nodesOf(body)
	if err != nil {
		return openapi_v3.ParseDocument(body)
	}
	schemas := member(member(root, "components"), "schemas")
	a := newAside()
	a.takeAll(schemas)
	d, err := openapi_v3.NewDocument(root, compiler.NewContextWithExtensions("$root", root, nil, nil))
	if err != nil || a.putAll(schemas, d.GetComponents().GetSchemas()) != nil {
		return openapi_v3.ParseDocument(body)
	}
	return d, nil
}

// member returns a member of a mapping, or nil.
func member(n *yaml.Node, name string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

// aside has the values in schemas that gnostic stores as YAML text: enums, examples and extensions. gnostic makes an
// encoder of several kilobytes for each such value, so that a megabyte of enums takes a gigabyte. So these values are taken out of
// the schemas before gnostic reads them, and put into its messages after that. All of them are encoded by one encoder.
type aside struct {
	taken   map[*yaml.Node]*taken // by schema
	scalars map[scalar]string     // encoded
	out     bytes.Buffer
	encoder *yaml.Encoder
	first   bool // nothing is encoded yet
	err     error
}

// taken are the values of one schema.
type taken struct {
	enum       []*yaml.Node
	example    *yaml.Node
	names      []string // of extensions
	extensions []*yaml.Node
}

type scalar struct{ tag, value string }

// errOther is the error of a message that does not have the form of its schema.
var errOther = errors.New("the message has another form than the schema")

func newAside() *aside {
	a := &aside{taken: map[*yaml.Node]*taken{}, scalars: map[scalar]string{}, first: true}
	a.encoder = yaml.NewEncoder(&a.out)
	return a
}

// takeAll takes the values out of the schemas that are the members of a mapping.
func (a *aside) takeAll(schemas *yaml.Node) {
	if schemas == nil || schemas.Kind != yaml.MappingNode {
		return
	}
	for i := 1; i < len(schemas.Content); i += 2 {
		a.take(schemas.Content[i])
	}
}

// take takes the values out of a schema and the schemas inside it.
func (a *aside) take(schema *yaml.Node) {
	if schema.Kind == yaml.SequenceNode { // of items or allOf
		for _, s := range schema.Content {
			a.take(s)
		}
		return
	}
	if schema.Kind != yaml.MappingNode || member(schema, "$ref") != nil {
		return
	}
	var t taken
	left := schema.Content[:0:0]
	for i := 0; i+1 < len(schema.Content); i += 2 {
		key, value := schema.Content[i], schema.Content[i+1]
		switch name := key.Value; {
		case name == "properties":
			a.takeAll(value)
		case isInside(name):
			a.take(value)
		case name == "enum" && value.Kind == yaml.SequenceNode:
			t.enum = value.Content
			continue
		case name == "example":
			t.example = value
			continue
		case strings.HasPrefix(name, "x-"):
			t.names, t.extensions = append(t.names, name), append(t.extensions, value)
			continue
		}
		left = append(left, key, value)
	}
	if len(left) < len(schema.Content) {
		schema.Content = left
		a.taken[schema] = &t
	}
}

// isInside reports whether a keyword has schemas as its value, or a list of them.
func isInside(keyword string) bool {
	switch keyword {
	case "items", "additionalProperties", "allOf", "anyOf", "oneOf", "not":
		return true
	}
	return false
}

// putAll puts the values into a message with named schemas. It returns an error if the message has another form.
func (a *aside) putAll(schemas *yaml.Node, into proto.Message) error {
	if schemas == nil {
		return nil
	}
	a.putNamed(schemas, into.ProtoReflect())
	return a.err
}

func (a *aside) putNamed(schemas *yaml.Node, into protoreflect.Message) {
	list, ok := listOf(into, "additional_properties")
	if !ok || list.Len() != len(schemas.Content)/2 {
		a.err = errOther
		return
	}
	for i := range list.Len() {
		a.put(schemas.Content[2*i+1], messageOf(list.Get(i).Message(), "value"))
	}
}

// put puts the values of a schema and the schemas inside it into its message.
func (a *aside) put(schema *yaml.Node, into protoreflect.Message) {
	if into != nil && into.Descriptor().Name() == "SchemaOrReference" {
		if member(schema, "$ref") != nil {
			return
		}
		into = messageOf(into, "schema")
	}
	if into == nil || a.err != nil {
		a.err = errOther
		return
	}
	if t := a.taken[schema]; t != nil {
		a.putTaken(t, into)
	}
	if schema.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(schema.Content); i += 2 {
		switch value := schema.Content[i+1]; schema.Content[i].Value {
		case "properties":
			a.putNamed(value, messageOf(into, "properties"))
		case "not":
			a.put(value, messageOf(into, "not"))
		case "additionalProperties":
			if value.Kind == yaml.MappingNode {
				a.put(value, either(messageOf(into, "additional_properties")))
			}
		case "items":
			a.putList(value, messageOf(into, "items"), "schema", "schema_or_reference")
		case "allOf":
			a.putList(value, into, "all_of")
		case "anyOf":
			a.putList(value, into, "any_of")
		case "oneOf":
			a.putList(value, into, "one_of")
		}
	}
}

// putList puts the values of one schema, or of a list of schemas, into the list in a field of a message with one of the names.
func (a *aside) putList(schemas *yaml.Node, in protoreflect.Message, names ...string) {
	all := []*yaml.Node{schemas}
	if schemas.Kind == yaml.SequenceNode {
		all = schemas.Content
	}
	for _, name := range names {
		if list, ok := listOf(in, name); ok && list.Len() == len(all) {
			for i := range all {
				a.put(all[i], list.Get(i).Message())
			}
			return
		}
	}
	a.err = errOther
}

// putTaken puts the values of one schema into its message.
func (a *aside) putTaken(t *taken, into protoreflect.Message) {
	if t.example != nil {
		setText(into.Mutable(into.Descriptor().Fields().ByName("example")).Message(), a.text(t.example))
	}
	fields := into.Descriptor().Fields()
	if len(t.enum) > 0 {
		list := into.Mutable(fields.ByName("enum")).List()
		for _, value := range t.enum {
			one := list.NewElement()
			setText(one.Message(), a.text(value))
			list.Append(one)
		}
	}
	named := fields.ByName("vendor_extension")
	if named == nil {
		named = fields.ByName("specification_extension")
	}
	for i, name := range t.names {
		list := into.Mutable(named).List()
		one := list.NewElement().Message()
		one.Set(one.Descriptor().Fields().ByName("name"), protoreflect.ValueOfString(name))
		setText(one.Mutable(one.Descriptor().Fields().ByName("value")).Message(), a.text(t.extensions[i]))
		list.Append(protoreflect.ValueOfMessage(one))
	}
}

// text returns a value as compiler.Marshal does. The first document of the encoder has no line before it.
func (a *aside) text(value *yaml.Node) string {
	key := scalar{value.Tag, value.Value}
	if value.Kind == yaml.ScalarNode {
		if known, ok := a.scalars[key]; ok {
			return known
		}
	}
	plain(value)
	a.out.Reset()
	if err := a.encoder.Encode(value); err != nil {
		a.err = err
		return ""
	}
	text := a.out.String()
	if !a.first {
		text = strings.TrimPrefix(text, "---\n")
	}
	a.first = false
	if value.Kind == yaml.ScalarNode {
		a.scalars[key] = text
	}
	return text
}

// plain removes the styles of a value and the values inside it.
func plain(value *yaml.Node) {
	value.Style = 0
	for _, inside := range value.Content {
		plain(inside)
	}
}

func setText(value protoreflect.Message, text string) {
	value.Set(value.Descriptor().Fields().ByName("yaml"), protoreflect.ValueOfString(text))
}

// messageOf returns the message in a field, or nil if there is none.
func messageOf(m protoreflect.Message, name string) protoreflect.Message {
	if m == nil {
		return nil
	}
	f := m.Descriptor().Fields().ByName(protoreflect.Name(name))
	if f == nil || f.Message() == nil || f.IsList() || !m.Has(f) {
		return nil
	}
	return m.Get(f).Message()
}

// listOf returns the list of messages in a field, and whether there is one.
func listOf(m protoreflect.Message, name string) (protoreflect.List, bool) {
	if m == nil {
		return nil, false
	}
	f := m.Descriptor().Fields().ByName(protoreflect.Name(name))
	if f == nil || f.Message() == nil || !f.IsList() {
		return nil, false
	}
	return m.Get(f).List(), true
}

// either returns the schema in the message of additionalProperties.
func either(m protoreflect.Message) protoreflect.Message {
	if s := messageOf(m, "schema"); s != nil {
		return s
	}
	return messageOf(m, "schema_or_reference")
}
