package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
)

const tableKind = "Table"

// table is the view of objects as rows of a Table. One Writer uses it.
type table struct {
	columns []byte // JSON of the definitions
	count   int
	now     time.Time // the time for the ages; if zero, it is set for the next row
}

func (o *Objects) newTable() *table {
	definitions := defaultColumns()
	if o.Columns != nil {
		definitions = o.Columns.Columns()
	}
	if definitions == nil {
		definitions = []metav1.TableColumnDefinition{}
	}
	text, _ := json.Marshal(definitions) // strings and integers always have a JSON form
	return &table{columns: text, count: len(definitions)}
}

// defaultColumns returns the columns of a kind without a Tabler.
func defaultColumns() []metav1.TableColumnDefinition {
	docs := metav1.ObjectMeta{}.SwaggerDoc()
	return []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: docs["name"]},
		{Name: "Age", Type: "date", Description: docs["creationTimestamp"]},
	}
}

// appendHead begins a table, up to its first row.
func (t *table) appendHead(w *Writer, dst []byte, lm metav1.ListMeta) []byte {
	dst = appendListMeta(appendHead(dst, t.listKind(w)), lm)
	dst = append(dst, `,"columnDefinitions":`...)
	dst = append(dst, t.columns...)
	return append(dst, `,"rows":[`...)
}

// alone implements view. It writes a table with one row.
func (t *table) alone(w *Writer, dst []byte, it Item) ([]byte, error) {
	dst, err := t.listed(w, t.appendHead(w, dst, metav1.ListMeta{ResourceVersion: it.resourceVersion()}), it)
	return append(dst, "]}"...), err
}

// wrote implements view. The events after the first have no column definitions, and each event computes ages for its own time.
func (t *table) wrote() {
	t.columns = []byte("null")
	t.now = time.Time{}
}

// listed implements view. It writes a row.
func (t *table) listed(w *Writer, dst []byte, it Item) ([]byte, error) {
	dst, err := t.appendCells(w, append(dst, `{"cells":`...), it)
	if err != nil {
		return dst, err
	}
	dst = append(dst, `,"object":`...)
	include := w.form.include
	if it.InitialEnd && include == metav1.IncludeNone { // the row must contain the annotation, in spite of the requested policy
		include = metav1.IncludeMetadata
	}
	switch include {
	case metav1.IncludeNone:
		dst = append(dst, "null"...)
	case metav1.IncludeObject:
		dst, err = w.appendWhole(w.ctx, dst, it)
	default:
		dst, err = w.appendPartial(w.ctx, dst, it, w.form.as.GroupVersion())
	}
	return append(dst, '}'), err
}

func (t *table) appendCells(w *Writer, dst []byte, it Item) ([]byte, error) {
	if t.now.IsZero() {
		t.now = time.Now()
	}
	if w.Columns == nil {
		name, created := it.nameAndCreation()
		dst = appendString(append(dst, '['), name)
		dst = appendString(append(dst, ','), age(created, t.now))
		return append(dst, ']'), nil
	}
	cells, err := t.cells(w, it)
	if err != nil {
		return dst, err
	}
	text, err := json.Marshal(cells)
	return append(dst, text...), err
}

// cells returns the cells of an item's row. For the empty object of a bookmark, the cells are empty if the Tabler fails or
// panics: the object does not have the defaults that a Tabler may need.
func (t *table) cells(w *Writer, it Item) (cells []any, err error) {
	if !it.Bookmark {
		obj, err := w.shown(w.ctx, it)
		if err != nil {
			return nil, err
		}
		return t.row(w.ctx, w.Objects, obj)
	}
	defer func() {
		if recover() != nil || err != nil {
			cells, err = make([]any, t.count), nil
		}
	}()
	return t.row(w.ctx, w.Objects, w.Empty())
}

// row calls the Tabler for the cells of one row.
func (t *table) row(ctx context.Context, o *Objects, obj runtime.Object) ([]any, error) {
	cells, err := o.Columns.Row(ctx, obj)
	switch {
	case err != nil:
		return nil, err
	case len(cells) != t.count:
		return nil, fmt.Errorf("a row of %s has %d cells for %d columns", o.Path, len(cells), t.count)
	case cells == nil:
		return []any{}, nil
	}
	return cells, nil
}

// age returns how long ago a time was, in the format of kubectl.
func age(at, now time.Time) string {
	if at.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(at))
}

func (t *table) frame(w *Writer, lm metav1.ListMeta) Frame {
	head := t.appendHead(w, nil, lm)
	return Frame{Head: head, Tail: []byte("]}\n"), Empty: append(bytes.Clone(head), "]}\n"...)}
}

func (t *table) listKind(w *Writer) schema.GroupVersionKind {
	return w.form.as.GroupVersion().WithKind(tableKind)
}

func (t *table) items() string { return "rows" }

// errTextOnly returns the error for a table in an encoding that is not text. Negotiate never selects such a form.
func (t *table) errTextOnly() error { return notAcceptable("a Table exists only as JSON and YAML") }

func (t *table) frameCBOR(_ *Writer, lm metav1.ListMeta) (metadata []byte, null bool) {
	return appendListMeta(nil, lm), false
}

func (t *table) message(w *Writer, _ Item) (runtime.Object, schema.GroupVersionKind, error) {
	return nil, w.Kind, t.errTextOnly()
}

func (t *table) messageFields(*Writer) (metadata, items protowire.Number) { return 1, 2 }

func (t *table) keeps() bool { return false } // rows contain ages

func (t *table) sure(*Writer, bool) bool { return false }
