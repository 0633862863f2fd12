package codec_test

import (
	"bytes"
	"maps"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// checkShared compares d with a copy that shares a Common; shared is false if there is nothing to share.
func checkShared(t *testing.T, d codec.Document) (shared bool) {
	t.Helper()
	parts := d.AppendParts([]byte("x"))
	if parts = parts[1:]; len(parts) == 0 {
		return false
	}
	c := codec.NewCommon(parts)
	if c.Parts() != string(parts) {
		t.Errorf("the parts of %q are %q", parts, c.Parts())
	}
	s := d.Share(c)
	if s.Common() != c || d.Common() != nil || s.IsZero() || len(s.AppendParts(nil)) > 0 {
		t.Errorf("the shared document has %p, not %p", s.Common(), c)
	}
	again, err := codec.ParseDocument(s.Bytes())
	must(t, err)
	for _, s := range []codec.Document{s, s.Whole(), again} {
		same(t, "bytes", string(d.Bytes()), string(s.Bytes()))
		for _, revision := range []int64{0, 7} {
			same(t, "object", string(d.AppendObject([]byte("x"), revision)), string(s.AppendObject([]byte("x"), revision)))
			same(t, "item", string(d.AppendItem([]byte("x"), revision)), string(s.AppendItem([]byte("x"), revision)))
			same(t, "metadata", string(d.AppendMetadata([]byte("x"), revision)), string(s.AppendMetadata([]byte("x"), revision)))
		}
		if s.Size() != d.Size() || s.Len() != d.Len() || s.Kind() != d.Kind() || s.APIVersion() != d.APIVersion() || !s.InVersion(d.APIVersion()) || s.InVersion("x") {
			t.Errorf("%s of %s with %d bytes, not %s of %s with %d", s.Kind(), s.APIVersion(), s.Size(), d.Kind(), d.APIVersion(), d.Size())
		}
		if !maps.Equal(s.Labels(), d.Labels()) || !bytes.Equal(s.LabelsJSON(), d.LabelsJSON()) {
			t.Errorf("the labels are %v, not %v", s.Labels(), d.Labels())
		}
		for _, path := range []string{
			"kind", "apiVersion", "kind.x", "metadata", "metadata.name", "metadata.namespace", "metadata.uid", "metadata.generation", "metadata.deletionGracePeriodSeconds",
			"metadata.creationTimestamp", "metadata.none", "metadata.managedFields",
			"metadata.managedFields.time", "spec", "spec.nodeName", "spec.replicas", "status.phase", "status.replicas", "none", "",
		} {
			if s.Field(path) != d.Field(path) {
				t.Errorf("the field %q is %q, not %q", path, s.Field(path), d.Field(path))
			}
		}
	}
	return true
}

func TestDocumentsShareWhatTheyHaveInCommon(t *testing.T) {
	shared := 0
	for seed := range int64(150) {
		for _, obj := range []runtime.Object{&corev1.Pod{}, &appsv1.Deployment{}, &corev1.ConfigMap{}, &Widget{}} {
			filler(seed).Fill(obj)
			m := obj.(metav1.Object)
			m.SetResourceVersion("")
			if entries := m.GetManagedFields(); seed%3 == 0 && len(entries) > 0 {
				entries[0].Time = nil
			}
			d, err := codec.EncodeDocument(obj, v1Widget)
			must(t, err)
			if checkShared(t, d) {
				shared++
			}
		}
	}
	if shared < 100 {
		t.Errorf("only %d documents have something in common", shared)
	}
}

// Two objects that were written by the same manager have the same common parts, except the times.
func TestCommonPartsAreEqual(t *testing.T) {
	made := func(name, manager, fieldsV1 string) codec.Document {
		d, err := codec.ParseDocument([]byte(`{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"` + name + `","labels":{},"managedFields":[` +
			`{"manager":"` + manager + `","operation":"Apply","apiVersion":"example.com/v1","time":"2026-01-02T03:04:0` + name + `Z","fieldsType":"FieldsV1",` +
			`"fieldsV1":` + fieldsV1 + `},{"manager":"other","time":"2026-01-02T03:05:0` + name + `Z"}]},"spec":{"size":` + name + `}}`))
		must(t, err)
		return d
	}
	one, two := made("1", "m", `{"f:spec":{}}`), made("2", "m", `{"f:spec":{}}`)
	c := codec.NewCommon(one.AppendParts(nil))
	if got := string(two.AppendParts(nil)); got != c.Parts() {
		t.Fatalf("the parts are %q and %q", c.Parts(), got)
	}
	same(t, "the other with the parts of the first", string(two.Bytes()), string(two.Share(c).Bytes()))
	for _, d := range []codec.Document{made("1", "n", `{"f:spec":{}}`), made("1", "m", `{"f:spec":{"f:size":{}}}`)} {
		if string(d.AppendParts(nil)) == c.Parts() {
			t.Errorf("%s has the same parts as %s", d.Bytes(), one.Bytes())
		}
		checkShared(t, d)
	}
}

func TestWhatHasNothingInCommon(t *testing.T) {
	for what, text := range map[string]string{
		"no managed fields": `{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"a"},"spec":{"data":"` + strings.Repeat("x", 100) + `"}}`,
		"the only ones":     `{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"managedFields":["` + strings.Repeat("x", 100) + `"]}}`,
		"after a number":    `{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"a","generation":1,"managedFields":["` + strings.Repeat("x", 100) + `"]}}`,
		"not the last":      `{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"a","managedFields":["` + strings.Repeat("x", 100) + `"],"z":1}}`,
		"an untyped object": `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"managedFields":["` + strings.Repeat("x", 100) + `"]}}`,
		"too little":        `{"kind":"W","apiVersion":"v1","metadata":{"managedFields":[]}}`,
	} {
		d, err := codec.ParseDocument([]byte(text))
		must(t, err)
		if parts := d.AppendParts(nil); len(parts) > 0 {
			t.Errorf("%s: %q is in common", what, parts)
		}
	}
}

func FuzzShare(f *testing.F) {
	f.Add([]byte(`{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"a","labels":{"a":"b"},"managedFields":[{"time":"2026-01-02T03:04:05Z","a\"time":"2026-01-02T03:04:05Z"}]},"spec":{"size":1}}`))
	f.Add([]byte(`{"kind":"Widget","apiVersion":"v1","metadata":{"creationTimestamp":"b","managedFields":"time\":\"time\":\"2026-01-02T03:04:05Zaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}}`))
	f.Add([]byte(`{"kind":"W","apiVersion":"v1","metadata":{"generation":1,"labels":{},"managedFields":[{"time":"01234567890123456789","x":"time":"01234567890123456789"}]},"status":{"phase":"\\"}}`))
	f.Add([]byte(`{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"uid":"a","creationTimestamp":"b","managedFields":[{"manager":"somebody","time":"0123456789012345678\"}"}]},"spec":{"nodeName":"a"}}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		if d, err := codec.ParseDocument(value); err == nil {
			checkShared(t, d)
		}
	})
}

func BenchmarkSharedItem(b *testing.B) {
	text := `{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"a","labels":{},"managedFields":[{"manager":"m","operation":"Update","time":"2026-01-02T03:04:05Z",` +
		`"fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"` + strings.Repeat("x", 200) + `":{}}}}]},"spec":{"data":"` + strings.Repeat("x", 900) + `"}}`
	d, err := codec.ParseDocument([]byte(text))
	if err != nil {
		b.Fatal(err)
	}
	parts := d.AppendParts(nil)
	c := codec.NewCommon(parts)
	buf := make([]byte, 0, 4096)
	for name, d := range map[string]codec.Document{"whole": d, "shared": d.Share(c)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				buf = d.AppendItem(buf[:0], 1000)
			}
		})
	}
	b.Run("parts", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			buf = d.AppendParts(buf[:0])
		}
	})
	b.Run("share", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = d.Share(c)
		}
	})
}
