package serving

import (
	"context"
	"fmt"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/jsonpath"
	"github.com/keelson-dev/keelson/server/registry"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// columns makes the tables of one version of a custom resource: Name, and what its definition says, or Age. It is
// immutable.
type columns struct {
	definitions []metav1.TableColumnDefinition
	paths       []*jsonpath.Path // of the columns behind Name
}

var _ registry.Tabler = (*columns)(nil)

// newColumns makes tables with additional columns. One whose path is no JSONPath, which nobody refuses in a definition, and
// all behind it are left out, as in kube-apiserver.
func newColumns(additional []apiextensionsv1.CustomResourceColumnDefinition) *columns {
	docs := metav1.ObjectMeta{}.SwaggerDoc()
	c := &columns{definitions: []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name", Description: docs["name"]}}}
	if len(additional) == 0 {
		additional = []apiextensionsv1.CustomResourceColumnDefinition{
			{Name: "Age", Type: "date", Description: docs["creationTimestamp"], JSONPath: ".metadata.creationTimestamp"},
		}
	}
	for _, column := range additional {
		path, err := jsonpath.Parse(column.JSONPath)
		if err != nil {
			break
		}
		description := column.Description
		if description == "" {
			description = "Custom resource definition column (in JSONPath format): " + column.JSONPath
		}
		c.paths = append(c.paths, path)
		c.definitions = append(c.definitions, metav1.TableColumnDefinition{
			Name: column.Name, Type: column.Type, Format: column.Format, Description: description, Priority: column.Priority,
		})
	}
	return c
}

// Columns implements registry.Tabler.
func (c *columns) Columns() []metav1.TableColumnDefinition { return c.definitions }

// Row implements registry.Tabler. obj is of the version that the columns are of. A cell is nil where the object has nothing,
// or nothing that the column's type has.
func (c *columns) Row(ctx context.Context, obj runtime.Object) ([]any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("table row: %T is no custom resource", obj)
	}
	cells := make([]any, 1, len(c.definitions))
	cells[0] = u.GetName()
	for i, path := range c.paths {
		if err := ctx.Err(); err != nil { // a path may be long, and an answer have many objects
			return nil, err
		}
		found, err := path.Find(u.Object)
		if err != nil || len(found) == 0 {
			cells = append(cells, nil)
			continue
		}
		cells = append(cells, cell(c.definitions[1+i].Type, found[0]))
	}
	return cells, nil
}

// cell is a value in a column of a type.
func cell(columnType string, value any) any {
	switch columnType {
	case "string":
		if text, err := jsonpath.Text(value); err == nil {
			return text
		}
	case "integer":
		switch v := value.(type) {
		case int64:
			return v
		case float64:
			return int64(v)
		}
	case "number":
		switch v := value.(type) {
		case int64:
			return float64(v)
		case float64:
			return v
		}
	case "boolean":
		if v, ok := value.(bool); ok {
			return v
		}
	case "date":
		if text, ok := value.(string); ok {
			return age(text)
		}
	}
	return nil
}

// age is how long ago a time in JSON was.
func age(text string) string {
	if text == "" || text == "null" {
		return table.ConvertToHumanReadableDateType(metav1.Time{})
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return "<invalid>"
	}
	return table.ConvertToHumanReadableDateType(metav1.Time{Time: at})
}
