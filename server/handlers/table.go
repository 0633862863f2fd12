package handlers

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
)

// table makes the Table form of one answer.
type table struct {
	*endpoint
	gv      schema.GroupVersion
	include metav1.IncludeObjectPolicy
	columns []byte // JSON of the column definitions
	count   int
	now     time.Time
	mark    bool // the row is that of a bookmark: of an object with nothing in it, not even defaults
}

func (e *endpoint) newTable(f form) *table {
	defs := defaultColumns()
	if e.table != nil {
		defs = e.table.Columns()
	}
	if defs == nil {
		defs = []metav1.TableColumnDefinition{}
	}
	text, _ := json.Marshal(defs) // strings and integers always have a JSON form
	return &table{endpoint: e, gv: f.As.GroupVersion(), include: f.include, columns: text, count: len(defs), now: time.Now()}
}

// defaultColumns are the columns of a kind without a Tabler.
func defaultColumns() []metav1.TableColumnDefinition {
	docs := metav1.ObjectMeta{}.SwaggerDoc()
	return []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: docs["name"]},
		{Name: "Age", Type: "date", Description: docs["creationTimestamp"]},
	}
}

// appendHead begins a table, up to its first row.
func (t *table) appendHead(dst []byte, lm metav1.ListMeta) []byte {
	dst = appendListMeta(appendHead(dst, t.gv.WithKind("Table")), lm)
	dst = append(dst, `,"columnDefinitions":`...)
	dst = append(dst, t.columns...)
	return append(dst, `,"rows":[`...)
}

// appendAlone appends a table of one row.
func (t *table) appendAlone(dst []byte, ctx context.Context, it item) ([]byte, error) {
	rv := ""
	if it.obj == nil {
		rv = resourceVersion(it.rec.Revision)
	} else if m, err := meta.Accessor(it.obj); err == nil {
		rv = m.GetResourceVersion()
	}
	dst, err := t.appendRow(t.appendHead(dst, metav1.ListMeta{ResourceVersion: rv}), ctx, it)
	return append(dst, "]}"...), err
}

// headless leaves the columns out, as all events of a watch but the first do.
func (t *table) headless() { t.columns = []byte("null") }

func (t *table) appendRow(dst []byte, ctx context.Context, it item) ([]byte, error) {
	dst, err := t.appendCells(append(dst, `{"cells":`...), ctx, it)
	if err != nil {
		return dst, err
	}
	dst = append(dst, `,"object":`...)
	switch t.include {
	case metav1.IncludeNone:
		dst = append(dst, "null"...)
	case metav1.IncludeObject:
		dst, err = t.appendWhole(dst, it)
	default:
		dst, err = t.appendPartial(dst, it, t.gv)
	}
	return append(dst, '}'), err
}

func (t *table) appendCells(dst []byte, ctx context.Context, it item) ([]byte, error) {
	if t.table == nil {
		name, created := nameAndCreation(it)
		dst = appendString(append(dst, '['), name)
		dst = appendString(append(dst, ','), age(created, t.now))
		return append(dst, ']'), nil
	}
	cells, err := t.markCells(ctx, it)
	if err != nil {
		return dst, err
	}
	text, err := json.Marshal(cells)
	return append(dst, text...), err
}

// markCells is cells, and for the empty object of a bookmark empty ones where the Tabler makes none: columns count on
// defaults, which it does not have, and some panic.
func (t *table) markCells(ctx context.Context, it item) (cells []any, err error) {
	if !t.mark {
		return t.cells(ctx, it)
	}
	defer func() {
		if recover() != nil || err != nil {
			cells, err = make([]any, t.count), nil
		}
	}()
	return t.cells(ctx, it)
}

// cells asks the Tabler for the cells of one row.
func (t *table) cells(ctx context.Context, it item) ([]any, error) {
	obj := t.emptyObject()
	if !t.mark {
		var err error
		if obj, err = t.object(it); err == nil {
			obj, err = t.inVersion(ctx, obj)
		}
		if err != nil {
			return nil, err
		}
	}
	cells, err := t.table.Row(ctx, obj)
	switch {
	case err != nil:
		return nil, err
	case len(cells) != t.count:
		return nil, fmt.Errorf("a row of %s has %d cells for %d columns", t.path(), len(cells), t.count)
	case cells == nil:
		return []any{}, nil
	}
	return cells, nil
}

func nameAndCreation(it item) (string, time.Time) {
	if it.obj == nil {
		at, _ := time.Parse(time.RFC3339, it.rec.Body.Field("metadata.creationTimestamp")) // zero when absent
		return it.rec.Body.Field("metadata.name"), at
	}
	m, err := meta.Accessor(it.obj)
	if err != nil {
		return "", time.Time{}
	}
	return m.GetName(), m.GetCreationTimestamp().Time
}

// age is a time as tables show it: how long ago it was, in the words of kubectl.
func age(at, now time.Time) string {
	if at.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(at))
}
