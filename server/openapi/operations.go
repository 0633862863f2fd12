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

// operation is one method of one path, before it takes the form of a document.
type operation struct {
	method      string
	id          string // without group and version: verb and rest
	rest        string
	action      string // x-kubernetes-action; "" for operations on no object
	description string
	kind        apischema.GroupVersionKind
	parameters  []spec.Parameter
	body        string // definition of the request body; "" for none
	bodyTypes   []string
	produces    []string
	responses   map[int]string // code to definition; "" has no body
}

// asSpec renders the operation for group version gv.
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

// plainString stands for a definition where a connection answers with whatever it likes.
const plainString = "string"

// attach puts operations on a path; the pretty parameter and those of the path belong to all of them.
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

// camel is the group version inside the names of operations: ExampleComV1, AppsV1, RbacAuthorizationV1, CoreV1.
func (gv GroupVersion) camel() string {
	return camelCase(friendlyGroup(gv.Group)) + camelCase(gv.Version)
}

// tag groups the operations of a group version: exampleCom_v1, core_v1, and exampleCom for the group itself.
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

// article puts a or an before a noun.
func article(noun string) string {
	if noun != "" && strings.ContainsRune("AEIOUaeiou", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}
