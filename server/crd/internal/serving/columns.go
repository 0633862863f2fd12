package serving

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/jsonpath"
	"github.com/keelson-dev/keelson/server/registry"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// RowLimits are those of package crd. A field that is 0 has its default, one that is negative is no bound.
type RowLimits struct{ Steps, CellBytes, RowBytes int }

// complete fills in what is left to its default.
func (l RowLimits) complete() RowLimits {
	for _, limit := range []struct {
		value    *int
		ordinary int
	}{{&l.Steps, 1 << 16}, {&l.CellBytes, 16 << 10}, {&l.RowBytes, 128 << 10}} {
		switch {
		case *limit.value == 0:
			*limit.value = limit.ordinary
		case *limit.value < 0:
			*limit.value = math.MaxInt
		}
	}
	return l
}

// columns makes the tables of one version of a custom resource: Name, and what its definition says, or Age. It is
// immutable.
type columns struct {
	definitions []metav1.TableColumnDefinition
	paths       []*jsonpath.Path // of the columns behind Name
	limits      RowLimits        // of the cells behind Name
}

var _ registry.Tabler = (*columns)(nil)

// newColumns makes tables with additional columns. One whose path is no JSONPath, which nobody refuses in a definition, and
// all behind it are left out, as in kube-apiserver.
func newColumns(additional []apiextensionsv1.CustomResourceColumnDefinition, limits RowLimits) *columns {
	docs := metav1.ObjectMeta{}.SwaggerDoc()
	c := &columns{limits: limits.complete(), definitions: []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name", Description: docs["name"]}}}
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
// or nothing that the column's type has. One that is cut short ends with three dots.
func (c *columns) Row(ctx context.Context, obj runtime.Object) ([]any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("table row: %T is no custom resource", obj)
	}
	cells := make([]any, 1, len(c.definitions))
	cells[0] = u.GetName()
	r := row{limits: c.limits, budget: jsonpath.NewBudget(c.limits.Steps), bytes: c.limits.RowBytes}
	for i, path := range c.paths {
		if err := ctx.Err(); err != nil { // a path may be long, and an answer have many objects
			return nil, err
		}
		value, found, err := r.budget.First(path, u.Object)
		switch {
		case errors.Is(err, jsonpath.ErrSpent):
			cells = append(cells, cutShort)
		case err != nil || !found:
			cells = append(cells, nil)
		default:
			cells = append(cells, r.cell(c.definitions[1+i].Type, value))
		}
	}
	return cells, nil
}

// cutShort is the end of a cell that is cut short, as kubectl shows it.
const cutShort = "..."

// shortCell is how many bytes a cell may take of the quarter of RowBytes that is there for short ones.
const shortCell = 64

// row is the cells of an object being made.
type row struct {
	limits RowLimits
	budget *jsonpath.Budget
	bytes  int // that are left of RowBytes
}

// cell is a value in a column of a type.
func (r *row) cell(columnType string, value any) any {
	switch columnType {
	case "string":
		return r.text(value)
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
		if text, ok := value.(string); ok && len(text) > r.limits.CellBytes {
			return cutShort
		} else if ok {
			return age(text)
		}
	}
	return nil
}

// text is a value as text, as much as there may be of it.
func (r *row) text(value any) string {
	most := min(r.limits.CellBytes, max(r.bytes-r.limits.RowBytes/4, min(r.bytes, shortCell)))
	text, whole := r.budget.Text(value, most)
	r.bytes -= len(text)
	if !whole {
		text += cutShort
	}
	return text
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
