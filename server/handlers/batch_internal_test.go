package handlers

import (
	"context"
	"fmt"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/handlers/internal/wire"
	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// named makes of each record an object with the name of its key. It refuses the record bad.
type named struct{}

func (named) DecodeRecords(_ context.Context, records []storage.Record, _ schema.GroupVersion) ([]runtime.Object, error) {
	var out []runtime.Object
	for _, rec := range records {
		if rec.Key == "bad" {
			return nil, fmt.Errorf("%s is bad", rec.Key)
		}
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetName(rec.Key)
		out = append(out, u)
	}
	return out, nil
}

// A run of a stream keeps the objects that are converted with the one that is read, and none before it: the events that a watch
// receives at once have any size.
func TestAStreamKeepsFewObjects(t *testing.T) {
	t.Parallel()
	run := &batch{endpoint: &endpoint{Objects: &wire.Objects{}, many: named{}}, ctx: t.Context(), stream: true}
	for i := range 3*batchItems + 1 {
		run.records = append(run.records, storage.Record{Key: fmt.Sprint(i)})
	}
	for i := range run.records {
		obj, err := run.object(i)
		if err != nil || obj.(*unstructured.Unstructured).GetName() != fmt.Sprint(i) {
			t.Fatalf("%d: %v, %v", i, obj, err)
		}
		kept := 0
		for _, obj := range run.objects {
			if obj != nil {
				kept++
			}
		}
		if kept > batchItems {
			t.Fatalf("%d objects are kept at %d", kept, i)
		}
	}
	if obj, err := run.object(0); err != nil || obj.(*unstructured.Unstructured).GetName() != "0" {
		t.Errorf("read again: %v, %v", obj, err)
	}
	run.records[1].Key, run.objects = "bad", nil
	if _, err := run.object(0); err != nil {
		t.Errorf("before the record that is bad: %v", err)
	}
	if _, err := run.object(1); err == nil {
		t.Error("a bad record has an object")
	}
}
