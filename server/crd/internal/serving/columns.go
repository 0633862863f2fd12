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

// RowLimits has the fields of RowLimits in package crd. For each field, 0 means the default and a negative value means no bound.
type RowLimits struct{ Steps, CellBytes, RowBytes int }

// complete returns the limits with the defaults filled in.
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

// columns makes the tables of one version of a custom resource: the column Name, and those of the definition or Age. It is
// immutable.
type columns struct {
	definitions []metav1.TableColumnDefinition
	paths       []*jsonpath.Path // of the columns after Name
	limits      RowLimits        // of the cells after Name
}

var _ registry.Tabler = (*columns)(nil)

// newColumns returns columns for the additional columns of a definition. If the path of a column does not parse, which the
// validation of definitions allows, this column and all after it are left out, as in kube-apiserver.
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

// Row implements registry.Tabler. obj has the version of the columns. A cell is nil if the object has no value for it, or none of
// the column's type. A cell that is cut short ends with three dots.
func (c *columns) Row(ctx context.Context, obj runtime.Object) ([]any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("table row: %T is no custom resource", obj)
	}
	cells := make([]any, 1, len(c.definitions))
	cells[0] = u.GetName()
	r := row{limits: c.limits, budget: jsonpath.NewBudget(c.limits.Steps), bytes: c.limits.RowBytes}
	for i, path := range c.paths {
		if err := ctx.Err(); err != nil { // a path may be long, and an answer may have many objects
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

// cutShort is the end of a cell that is cut short, the same as in kubectl.
const cutShort = "..."

// shortCell is how many bytes each cell may take from the quarter of RowBytes that is reserved for short cells.
const shortCell = 64

// row makes the cells of one object.
type row struct {
	limits RowLimits
	budget *jsonpath.Budget
	bytes  int // what is left of RowBytes
}

// cell returns a value as a cell of a column type, or nil.
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
		if text, ok := value.(string); ok && (len(text) > r.limits.CellBytes || !r.budget.Read(len(text))) {
			return cutShort
		} else if ok {
			return age(text)
		}
	}
	return nil
}

// text returns a value as text, cut short to the limits.
func (r *row) text(value any) string {
	most := min(r.limits.CellBytes, max(r.bytes-r.limits.RowBytes/4, min(r.bytes, shortCell)))
	text, whole := r.budget.Text(value, most)
	r.bytes -= len(text)
	if !whole {
		text += cutShort
	}
	return text
}

// age returns the time since text, a time in JSON, as kubectl shows it.
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
