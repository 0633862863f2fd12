package server

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/printer"
	apischema "github.com/keelson-dev/keelson/runtime/schema"
	"github.com/keelson-dev/keelson/server/registry"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// printed makes tables of a kind from the struct tags of its Go type: the column Name, those of the tags, and Age.
type printed struct {
	table printer.Table
	docs  *apischema.Docs // descriptions of the columns; may be nil
}

// printedOf returns the tables of a Go type, or nil if the type has no tags.
func printedOf(t reflect.Type) (registry.Tabler, error) {
	table, err := printer.Of(t)
	if err != nil || len(table.Columns()) == 0 {
		return nil, err
	}
	return printed{table: table}, nil
}

// DescribedBy implements apiset.Described.
func (p printed) DescribedBy(docs *apischema.Docs) registry.Tabler { return printed{p.table, docs} }

// Columns implements registry.Tabler.
func (p printed) Columns() []metav1.TableColumnDefinition {
	out := []metav1.TableColumnDefinition{nameColumn()}
	for _, c := range p.table.Columns() {
		out = append(out, metav1.TableColumnDefinition{
			Name: c.Name, Type: c.Type, Priority: c.Priority, Description: p.docs.Field(c.Declaring, c.Field),
		})
	}
	return append(out, metav1.TableColumnDefinition{Name: "Age", Type: "date", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"]})
}

// Row implements registry.Tabler.
func (p printed) Row(_ context.Context, obj runtime.Object) ([]any, error) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, fmt.Errorf("table row: %w", err)
	}
	now := time.Now()
	cells, err := p.table.Cells([]any{m.GetName()}, obj, now)
	return append(cells, ageOf(m, now)), err
}

// ageOf returns the cell of the column Age.
func ageOf(m metav1.Object, now time.Time) any {
	created := m.GetCreationTimestamp()
	if created.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(created.Time))
}

// nameColumn returns the first column of every table.
func nameColumn() metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: "Name", Type: "string", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"]}
}
