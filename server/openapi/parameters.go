package openapi

import (
	"cmp"
	"reflect"
	"slices"
	"sort"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// documented is the options of a verb, with the descriptions of their fields.
type documented interface{ SwaggerDoc() map[string]string }

// optionParameters returns the query parameters for the options of a verb, without those of the names in without.
func optionParameters(options documented, without ...string) []spec.Parameter {
	t, docs := reflect.TypeOf(options), options.SwaggerDoc()
	var out []spec.Parameter
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		kind := parameterType(f.Type)
		if f.Anonymous || name == "" || kind == "" || slices.Contains(without, name) {
			continue
		}
		out = append(out, queryParameter(name, kind, docs[name]))
	}
	return out
}

// parameterType returns the type of a field as a query parameter; "" if it cannot be a query parameter.
func parameterType(t reflect.Type) string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int64, reflect.Int32:
		return "integer"
	}
	return ""
}

// The parameters of each verb. Parameters that the server does not support are left out: the selection of shards, and the
// deletion of unreadable objects in a collection.

func listParameters(watch bool) []spec.Parameter {
	without := []string{"shardSelector"}
	if !watch {
		without = append(without, "watch", "allowWatchBookmarks", "sendInitialEvents")
	}
	return optionParameters(metav1.ListOptions{}, without...)
}

func deleteParameters() []spec.Parameter {
	return optionParameters(metav1.DeleteOptions{}, "preconditions")
}

func deleteCollectionParameters() []spec.Parameter {
	list := optionParameters(metav1.ListOptions{}, "shardSelector", "watch", "allowWatchBookmarks")
	return append(list, optionParameters(metav1.DeleteOptions{}, "preconditions", "ignoreStoreReadErrorWithClusterBreakingPotential")...)
}

func getParameters() []spec.Parameter    { return optionParameters(metav1.GetOptions{}) }
func createParameters() []spec.Parameter { return optionParameters(metav1.CreateOptions{}) }
func updateParameters() []spec.Parameter { return optionParameters(metav1.UpdateOptions{}) }
func patchParameters() []spec.Parameter  { return optionParameters(metav1.PatchOptions{}) }

func prettyParameter() spec.Parameter {
	return queryParameter("pretty", "string",
		"If 'true', then the output is pretty printed. Defaults to 'false' unless the user-agent indicates a browser or command-line HTTP tool (curl and wget).")
}

func nameParameter(kind string) spec.Parameter {
	return pathParameter("name", "name of the "+kind)
}

func namespaceParameter() spec.Parameter {
	return pathParameter("namespace", "object name and auth scope, such as for teams and projects")
}

func queryParameter(name, kind, description string) spec.Parameter {
	return spec.Parameter{
		ParamProps:        spec.ParamProps{Name: name, In: "query", Description: description},
		SimpleSchema:      spec.SimpleSchema{Type: kind},
		CommonValidations: spec.CommonValidations{UniqueItems: true},
	}
}

func pathParameter(name, description string) spec.Parameter {
	p := queryParameter(name, "string", description)
	p.In, p.Required = "path", true
	return p
}

func bodyParameter(definition string, required bool) spec.Parameter {
	return spec.Parameter{ParamProps: spec.ParamProps{Name: "body", In: "body", Required: required, Schema: reference(definition)}}
}

// hoist moves the parameters that all operations of a path have to the path. Parameters of PATCH are not moved: kubectl looks for
// fieldValidation in the operation only.
func hoist(item *spec.PathItem) {
	operations := operationsOf(item)
	if len(operations) == 0 {
		return
	}
	patch := func(p spec.Parameter) bool { return slices.ContainsFunc(patchParameters(), samePlace(p)) }
	for _, p := range operations[0].Parameters {
		common := p.In != "body" && (item.Patch == nil || !patch(p)) && !slices.ContainsFunc(operations, func(op *spec.Operation) bool {
			return !slices.ContainsFunc(op.Parameters, samePlace(p))
		})
		if common {
			item.Parameters = append(item.Parameters, p)
		}
	}
	for _, op := range operations {
		op.Parameters = slices.DeleteFunc(slices.Clone(op.Parameters), func(p spec.Parameter) bool {
			return slices.ContainsFunc(item.Parameters, samePlace(p))
		})
		sortParameters(op.Parameters)
	}
	sortParameters(item.Parameters)
}

func samePlace(p spec.Parameter) func(spec.Parameter) bool {
	return func(other spec.Parameter) bool { return p.Name == other.Name && p.In == other.In }
}

// sortParameters uses package sort: slices.SortFunc for this type would add 30 kB to a program.
func sortParameters(parameters []spec.Parameter) {
	sort.Slice(parameters, func(i, j int) bool {
		a, b := &parameters[i], &parameters[j]
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.In, b.In)) < 0
	})
}

func operationsOf(item *spec.PathItem) []*spec.Operation {
	all := []*spec.Operation{item.Get, item.Put, item.Post, item.Delete, item.Options, item.Head, item.Patch}
	return slices.DeleteFunc(all, func(op *spec.Operation) bool { return op == nil })
}

// reference returns a reference to a definition, in the form of OpenAPI v2. It is converted to that of v3 together with the
// paths.
func reference(definition string) *spec.Schema {
	ref, err := spec.NewRef("#/definitions/" + definition)
	if err != nil { // the group is not a DNS name; no reference can contain it
		return &spec.Schema{}
	}
	return &spec.Schema{SchemaProps: spec.SchemaProps{Ref: ref}}
}
