package widget_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"regexp"
	"testing"

	"github.com/keelson-dev/keelson/examples/bench/internal/widget"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func decode(t *testing.T, text []byte) *widget.Widget {
	t.Helper()
	w := new(widget.Widget)
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(w); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return w
}

// TestJSON checks that widgets are the same every time, differ from each other, follow the rules, and can be selected by labels.
func TestJSON(t *testing.T) {
	const n = 10_000
	size := regexp.MustCompile(`"size":[0-9]{6},`)
	groups, data := map[string]int{}, map[string]bool{}
	for i := range n {
		text := widget.JSON(widget.Namespace(i), i)
		w := decode(t, text)
		if w.Name != widget.Name(i) || w.Namespace != widget.Namespace(i) || w.Labels["group"] != widget.GroupOf(i) {
			t.Fatalf("widget %d is %s/%s in group %s", i, w.Namespace, w.Name, w.Labels["group"])
		}
		if got := size.FindAll(text, -1); len(got) != 1 || w.Spec.Size < 100_000 || w.Spec.Size > 999_999 {
			t.Fatalf("widget %d: the size must be six digits, once: %q", i, got)
		}
		if i%100 == 0 && !bytes.Equal(text, widget.JSON(widget.Namespace(i), i)) {
			t.Fatalf("widget %d is another one the second time", i)
		}
		groups[w.Labels["group"]]++
		data[w.Spec.Data] = true
	}
	if len(data) != n {
		t.Errorf("of %d widgets only %d have data of their own", n, len(data))
	}
	for name, count := range groups {
		if count != n/widget.Groups {
			t.Errorf("%d widgets are in %s, want %d", count, name, n/widget.Groups)
		}
	}
	if len(groups) != widget.Groups {
		t.Errorf("there are %d groups, want %d", len(groups), widget.Groups)
	}
}

// TestStored checks that a stored widget is that of JSON with the server's fields, has about 1.7 KiB, and can be compressed to
// less than half.
func TestStored(t *testing.T) {
	var all []byte
	for i := range 1000 {
		text := widget.Stored("ns-1", i, 7)
		all = append(all, text...)
		w := decode(t, text)
		if w.UID == "" || w.ResourceVersion != "7" || w.Generation != 1 || w.CreationTimestamp.IsZero() || len(w.ManagedFields) != 1 {
			t.Fatalf("widget %d has not what a server adds: %s", i, text)
		}
		sent := decode(t, widget.JSON("ns-1", i))
		w.ObjectMeta = metav1.ObjectMeta{Name: w.Name, Namespace: w.Namespace, Labels: w.Labels, Annotations: w.Annotations}
		got, _ := json.Marshal(w)
		want, _ := json.Marshal(sent)
		if !bytes.Equal(got, want) {
			t.Fatalf("widget %d is\n%s\nwant\n%s", i, got, want)
		}
	}
	if mean := len(all) / 1000; mean < 1640 || mean > 1840 {
		t.Errorf("a widget has %d bytes, want about 1740", mean)
	}
	var packed bytes.Buffer
	z, _ := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	z.Write(all)
	z.Close()
	if ratio := float64(packed.Len()) / float64(len(all)); ratio < 0.15 || ratio > 0.5 {
		t.Errorf("compressed to %.2f", ratio)
	}
}

// TestDeepCopy checks that a copy shares nothing mutable.
func TestDeepCopy(t *testing.T) {
	w := decode(t, widget.Stored("ns-1", 1, 7))
	list := &widget.WidgetList{Items: []widget.Widget{*w}}
	before, _ := json.Marshal(list)
	copied := list.DeepCopyObject().(*widget.WidgetList)
	if after, _ := json.Marshal(copied); !bytes.Equal(before, after) {
		t.Fatalf("the copy is\n%s\nwant\n%s", after, before)
	}
	copied.Items[0].Labels["group"] = "other"
	copied.Items[0].ManagedFields[0].FieldsV1.SetRawString("{}")
	copied.Items[0].Spec.Size = 1
	if after, _ := json.Marshal(list); !bytes.Equal(before, after) {
		t.Error("a change of the copy has changed the list")
	}
}
