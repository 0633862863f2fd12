package wire

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/keelson-dev/keelson/runtime/codec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// yaml writes one document. Its items end with a newline. A watch cannot be written in YAML.
type yaml struct{ textual }

func (yaml) mediaType() string  { return "application/yaml" }
func (yaml) streamType() string { return "application/yaml" }

func (yaml) alone(w *Writer, _ *[]byte, it Item) ([]byte, error) {
	return w.keep(it, func(it Item) ([]byte, error) { return w.translate(it, codec.YAML(), false) })
}

func (yaml) listed(w *Writer, dst []byte, it Item) ([]byte, error) {
	if err := w.list(it); err != nil {
		return dst, err
	}
	return codec.AppendYAMLItem(dst, w.text)
}

func (yaml) between() string { return "" }

func (yaml) event(_ *Writer, dst []byte, _ string, _ Item) ([]byte, error) {
	return dst, errors.New("a watch cannot be written in YAML")
}

func (yaml) socket(event []byte) (payload []byte, text bool) { return event, true }

// frame implements encoding. It finds the list's member at the left margin, where no text inside of a value can be.
func (yaml) frame(w *Writer, lm metav1.ListMeta, _ int, _ int64) (Frame, error) {
	around, empty, err := w.laidOut(lm, codec.YAML(), false)
	if err != nil {
		return Frame{}, err
	}
	member := "\n" + w.view.items() + ":"
	head, tail, ok := bytes.Cut(around, []byte(member+" []\n"))
	if !ok {
		return Frame{}, fmt.Errorf("the list of %s has no member %s in YAML", w.Path, w.view.items())
	}
	return Frame{Head: slices.Concat(head, []byte(member+"\n")), Tail: tail, Empty: empty}, nil
}

func (yaml) plain() bool { return false }

func (yaml) json(text []byte) ([]byte, error) {
	out, _, err := codec.YAML().ToJSON(text, codec.Ignore)
	return out, err
}

func (yaml) keeps() bool { return true }
