package schema

import (
	_ "embed" // the table
	"reflect"
	"strings"
)

// kubernetesTable has the markers of the types of Kubernetes, because programs do not embed the source of these types. Each
// package begins with a line "package" and the import path. Each further line is one marker: "Type.Field name=value", or "Type
// name=value" for the type itself. A type of strings that is marked as an enumeration also has lines with its values. "cut" means
// that the type's SwaggerDoc contains only the beginning of the field's comment.
//
//go:embed kubernetes.txt
var kubernetesTable string

// kubernetesTypes caches the markers of the types of Kubernetes by package and type. A package is parsed when one of its types is
// first looked up. The descriptions of these types are in their SwaggerDoc methods.
type kubernetesTypes map[string]map[string]*comment

// ofType returns the comment of a type, or nil if it has no markers, and whether its package is in the table.
func (k kubernetesTypes) ofType(t reflect.Type) (c *comment, ok bool) {
	path, ok := kubernetesPath(t)
	if !ok {
		return nil, false
	}
	types, ok := k[path]
	if !ok {
		types = kubernetesPackage(path)
		k[path] = types
	}
	return types[t.Name()], types != nil
}

// kubernetesPath returns the package of a type that may be in the table. A type of another module that has the model name of a type
// of k8s.io/api, and the same type name, has the package and the markers of that type.
func kubernetesPath(t reflect.Type) (path string, ok bool) {
	path = t.PkgPath()
	if t.Name() == "" || path == "" {
		return path, false
	}
	if strings.HasPrefix(path, "k8s.io/") {
		return path, true
	}
	if model, ok := strings.CutPrefix(modelName(t), "io.k8s.api."); ok {
		if pkg, ok := strings.CutSuffix(model, "."+t.Name()); ok {
			return "k8s.io/api/" + strings.ReplaceAll(pkg, ".", "/"), true
		}
	}
	return path, false
}

// knows reports whether the package of a type is in the table. It does not parse the package.
func (k kubernetesTypes) knows(t reflect.Type) bool {
	path, ok := kubernetesPath(t)
	if !ok {
		return false
	}
	if types, ok := k[path]; ok {
		return types != nil
	}
	return strings.Contains(kubernetesTable, "\npackage "+path+"\n")
}

// kubernetesPackage parses the part of the table for one package. It returns nil if there is none.
func kubernetesPackage(path string) map[string]*comment {
	_, rest, ok := strings.Cut(kubernetesTable, "\npackage "+path+"\n")
	if !ok {
		return nil
	}
	types := map[string]*comment{}
	for line := range strings.Lines(rest) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			break
		}
		where, marker, _ := strings.Cut(line, " ")
		typ, field, _ := strings.Cut(where, ".")
		name, value, _ := strings.Cut(marker, "=")
		c := types[typ]
		if c == nil {
			c = &comment{markers: markers{}, fields: map[string]*comment{}}
			types[typ] = c
		}
		if field != "" {
			if c.fields[field] == nil {
				c.fields[field] = &comment{markers: markers{}}
			}
			c = c.fields[field]
		}
		c.markers[name] = append(c.markers[name], value)
	}
	return types
}
