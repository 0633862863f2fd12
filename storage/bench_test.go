package storage_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/storagetest"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

func BenchmarkStore(b *testing.B) {
	s, _ := gadgets(b)
	for i := range 10_000 {
		g := gadget(fmt.Sprintf("ns%d/k%05d", i%10, i))
		g.Labels = map[string]string{"app": fmt.Sprint("app", i%100), "tier": "web"}
		if _, err := s.Create(b.Context(), g.Namespace+"/"+g.Name, g, storage.WriteOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("get", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Get(b.Context(), "ns0/k00000", storage.Read{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, opts := range map[string]storage.ListOptions{
		"list 10000":      {},
		"list 500 paged":  {Limit: 500},
		"list by label":   {Selection: byLabel(b, "app=app7")},
		"list by field":   {Selection: byField(b, "spec.color=none")},
		"list one by key": {Selection: storage.Selection{Namespace: "ns0", Name: "k00000"}},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.List(b.Context(), opts); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("create and delete", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			create(b, s, "bench/x")
			_, err := s.Update(b.Context(), "bench/x", storage.WriteOptions{}, func(context.Context, runtime.Object, storage.Record) (storage.Outcome, error) {
				return storage.Outcome{Delete: true}, nil
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("update and watch", func(b *testing.B) {
		w, err := s.Watch(b.Context(), storage.WatchOptions{})
		if err != nil {
			b.Fatal(err)
		}
		defer w.Close()
		b.ReportAllocs()
		for b.Loop() {
			_, err := s.Update(b.Context(), "ns0/k00000", storage.WriteOptions{}, func(_ context.Context, obj runtime.Object, _ storage.Record) (storage.Outcome, error) {
				obj.(*storagetest.Gadget).Spec.Size++
				return storage.Outcome{Object: obj}, nil
			})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := w.Next(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func byLabel(b *testing.B, text string) storage.Selection {
	b.Helper()
	sel, err := labels.Parse(text)
	if err != nil {
		b.Fatal(err)
	}
	return storage.Selection{Labels: sel}
}

func byField(b *testing.B, text string) storage.Selection {
	b.Helper()
	sel, err := fields.ParseSelector(text)
	if err != nil {
		b.Fatal(err)
	}
	return storage.Selection{Fields: sel}
}
