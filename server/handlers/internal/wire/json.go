package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/keelson-dev/keelson/runtime/codec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// textual has the methods that JSON and YAML have in common.
type textual struct{}

func (textual) objects() bool { return false }

// jsonText has the methods that compact and indented JSON have in common. An event is a line:
//
//	{"type":"ADDED","object":{"kind":"Widget",...}}
type jsonText struct{ textual }

func (jsonText) mediaType() string  { return "application/json" }
func (jsonText) streamType() string { return "application/json" }

// event implements encoding. Events are not indented.
func (jsonText) event(w *Writer, dst []byte, kind string, it Item) ([]byte, error) {
	dst = append(appendString(append(dst, `{"type":`...), kind), `,"object":`...)
	dst, err := w.viewOf(&it).alone(w, dst, it)
	return append(dst, "}\n"...), err
}

func (jsonText) socket(event []byte) (payload []byte, text bool) { return event, true }

// compact is JSON without indentation: the JSON of the view as it is.
type compact struct{ jsonText }

func (compact) alone(w *Writer, buf *[]byte, it Item) ([]byte, error) {
	text, err := w.viewOf(&it).alone(w, (*buf)[:0], it)
	*buf = append(text, '\n')
	return *buf, err
}

func (compact) listed(w *Writer, dst []byte, it Item) ([]byte, error) {
	return w.view.listed(w, dst, it)
}

func (compact) between() string { return "," }

func (compact) frame(w *Writer, lm metav1.ListMeta, _ int, _ int64) (Frame, error) {
	return w.view.frame(w, lm), nil
}

func (compact) plain() bool { return true }

func (compact) json(text []byte) ([]byte, error) { return text, nil }

func (compact) keeps() bool { return true }

// indented is JSON with line breaks and indentation, for people.
type indented struct{ jsonText }

const itemIndent = "    " // the indentation of an item in a list

func (indented) alone(w *Writer, _ *[]byte, it Item) ([]byte, error) {
	return w.translate(it, codec.JSON(), true)
}

func (indented) listed(w *Writer, dst []byte, it Item) ([]byte, error) {
	if err := w.list(it); err != nil {
		return dst, err
	}
	return codec.AppendIndented(append(dst, itemIndent...), w.text, itemIndent)
}

func (indented) between() string { return ",\n" }

// frame implements encoding. It finds the list's member by the indentation of its line: no text inside of a value is at that
// margin.
func (indented) frame(w *Writer, lm metav1.ListMeta, _ int, _ int64) (Frame, error) {
	around, empty, err := w.laidOut(lm, codec.JSON(), true)
	if err != nil {
		return Frame{}, err
	}
	member := "\n  \"" + w.view.items() + "\": ["
	head, tail, ok := bytes.Cut(around, []byte(member+"]"))
	if !ok {
		return Frame{}, fmt.Errorf("the list of %s has no member %s in indented JSON", w.Path, w.view.items())
	}
	return Frame{Head: slices.Concat(head, []byte(member+"\n")), Tail: slices.Concat([]byte("\n  ]"), tail), Empty: empty}, nil
}

func (indented) plain() bool { return false }

func (indented) json(text []byte) ([]byte, error) {
	var out bytes.Buffer
	err := json.Compact(&out, text)
	return out.Bytes(), err
}

func (indented) keeps() bool { return false } // only people request it
