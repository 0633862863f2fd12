package openapi

import (
	"net/http"
	"strings"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

const (
	extensionKinds  = "x-kubernetes-group-version-kind"
	extensionAction = "x-kubernetes-action"
)

// operation is one method of one path. asSpec makes the operation of a document from it.
type operation struct {
	method      string
	id          string // the verb: the name of the operation before the group and version
	rest        string // the name of the operation after the group and version
	action      string // x-kubernetes-action; "" for operations that are not on objects
	description string
	kind        apischema.GroupVersionKind
	parameters  []spec.Parameter
	body        string // definition of the request body; "" for none
	bodyTypes   []string
	produces    []string
	responses   map[int]string // definitions of the bodies by code; "" is no body
}

// asSpec returns the operation for group version gv.
func (o operation) asSpec(gv GroupVersion) *spec.Operation {
	op := &spec.Operation{OperationProps: spec.OperationProps{
		ID: o.id + gv.camel() + o.rest, Tags: []string{gv.tag()}, Description: o.description,
		Parameters: o.parameters, Consumes: []string{"*/*"}, Produces: o.produces, Schemes: []string{"https"},
		Responses: &spec.Responses{ResponsesProps: spec.ResponsesProps{StatusCodeResponses: map[int]spec.Response{
			http.StatusUnauthorized: responseOf(http.StatusUnauthorized, ""),
		}}},
	}}
	if o.bodyTypes != nil {
		op.Consumes = o.bodyTypes
	}
	if o.body != "" {
		op.Parameters = append(op.Parameters, bodyParameter(o.body, o.method != http.MethodDelete))
	}
	for code, definition := range o.responses {
		op.Responses.StatusCodeResponses[code] = responseOf(code, definition)
	}
	if o.action != "" {
		op.AddExtension(extensionAction, o.action)
		op.AddExtension(extensionKinds, map[string]any{"group": o.kind.Group, "version": o.kind.Version, "kind": o.kind.Kind})
	}
	return op
}

func responseOf(code int, definition string) spec.Response {
	r := spec.Response{ResponseProps: spec.ResponseProps{Description: http.StatusText(code)}}
	switch definition {
	case "":
	case plainString:
		r.Schema = &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"string"}}}
	default:
		r.Schema = reference(definition)
	}
	return r
}

// plainString is used in place of a definition for connections, which may answer with anything.
const plainString = "string"

// attach adds operations to a path. They all have the parameters of the path.
func attach(gv GroupVersion, pathParameters []spec.Parameter, operations []operation) (spec.PathItem, bool) {
	var item spec.PathItem
	for _, o := range operations {
		o.parameters = append(append([]spec.Parameter{}, pathParameters...), o.parameters...)
		op := o.asSpec(gv)
		switch o.method {
		case http.MethodGet:
			item.Get = op
		case http.MethodPost:
			item.Post = op
		case http.MethodPut:
			item.Put = op
		case http.MethodPatch:
			item.Patch = op
		case http.MethodDelete:
			item.Delete = op
		case http.MethodHead:
			item.Head = op
		case http.MethodOptions:
			item.Options = op
		}
	}
	hoist(&item)
	return item, len(operations) > 0
}

// camel returns the group version in the form for names of operations: ExampleComV1, AppsV1, RbacAuthorizationV1, CoreV1.
func (gv GroupVersion) camel() string {
	return camelCase(friendlyGroup(gv.Group)) + camelCase(gv.Version)
}

// tag returns the tag of the operations of a group version: exampleCom_v1, core_v1, and exampleCom for the group itself.
func (gv GroupVersion) tag() string {
	tag := camelCase(friendlyGroup(gv.Group))
	if tag != "" {
		tag = strings.ToLower(tag[:1]) + tag[1:]
	}
	if gv.Version != "" {
		tag += "_" + gv.Version
	}
	return tag
}

func friendlyGroup(group string) string {
	if group == "" {
		return "core"
	}
	return strings.TrimSuffix(group, ".k8s.io")
}

// camelCase joins the words of a name, each with its first letter in upper case.
func camelCase(name string) string {
	var out strings.Builder
	for _, word := range strings.FieldsFunc(name, func(r rune) bool {
		return r != '_' && !(r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z')
	}) {
		out.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return out.String()
}

// article returns a noun with a or an before it.
func article(noun string) string {
	if noun != "" && strings.ContainsRune("AEIOUaeiou", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}
