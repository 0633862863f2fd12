package handlers

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"

	"github.com/keelson-dev/keelson/flowcontrol"
	"github.com/keelson-dev/keelson/server/handlers/internal/wire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// recordedMost bounds an answer in an audit event, in bytes. The event of a longer one has the annotation of truncated events instead.
const recordedMost = 16 << 20

// errNoRoom ends the making of a copy; no client sees it.
var errNoRoom = errors.New("there is no room for a copy")

// copied is the copy of an answer for an audit event. Its bytes are counted in the budget until the last event of the request is made.
// A copy that fails or has no room is lost, which changes nothing in the answer.
type copied struct {
	c     *call
	text  []byte
	share *flowcontrol.Share // nil if nothing is counted
	full  bool               // there is no room for the copy
	lost  bool               // the copy is not recorded
}

// hold counts a copy of n bytes. It reports whether there is room for it.
func (k *copied) hold(n int) bool {
	if k.full || n > recordedMost {
		k.drop()
		return false
	}
	if k.c.budget == nil || n <= freeBody {
		return true
	}
	if k.share == nil {
		share, err := k.c.budget.Take(k.c.holder(), int64(n))
		if err != nil {
			k.drop()
			return false
		}
		k.share = &share
	} else if more := int64(n) - k.share.Held(); more > 0 && k.share.Grow(more) != nil {
		k.drop()
	}
	return !k.full
}

// drop gives the copy up, and its room back.
func (k *copied) drop() {
	k.text, k.full, k.lost = nil, true, true
	if k.share != nil {
		k.share.Release()
		k.share = nil
	}
}

// add appends to the copy.
func (k *copied) add(text []byte) {
	if k.hold(len(k.text) + len(text)) {
		k.text = append(k.text, text...)
	}
}

// set makes text the copy, unless there is an error.
func (k *copied) set(text []byte, err error) {
	if err != nil || text == nil {
		k.drop()
	} else if k.hold(len(text)) {
		k.text = text
	}
}

// encode makes the copy from the items of a list.
func (k *copied) encode(l *listWriter, lm metav1.ListMeta, f wire.Form) {
	if l.isDear() {
		k.drop()
		return
	}
	own := k.c.newListWriter(f.Plain(), l.source)
	own.hold = func(n int) error {
		if !k.hold(n) {
			return errNoRoom
		}
		return nil
	}
	k.set(own.whole(lm, recordedMost))
}

// unzip replaces a compressed copy by what it was made of.
func (k *copied) unzip() {
	z, err := gzip.NewReader(bytes.NewReader(k.text))
	k.text = nil
	if err == nil {
		_, err = io.Copy(copyWriter{k}, z)
	}
	if err != nil {
		k.drop()
	}
}

// record puts the copy in the event.
func (k *copied) record() {
	if k.lost {
		k.drop()
		k.c.unrecorded()
		return
	}
	k.c.rec.Response(bytes.TrimSuffix(k.text, []byte("\n")))
	if k.share != nil {
		k.c.rec.AtEnd(k.share.Release)
	}
}

// copyWriter appends to a copy; it fails when there is no room.
type copyWriter struct{ k *copied }

// Write implements io.Writer.
func (w copyWriter) Write(p []byte) (int, error) {
	if w.k.add(p); w.k.full {
		return 0, errNoRoom
	}
	return len(p), nil
}

// copying returns a ResponseWriter that writes to w and copies what is written.
func (k *copied) copying(w http.ResponseWriter) http.ResponseWriter {
	out := &copyingWriter{w, k}
	if ends, is := w.(endsWrites); is {
		return struct {
			*copyingWriter
			endsWrites
		}{out, ends}
	}
	return out
}

type copyingWriter struct {
	http.ResponseWriter
	k *copied
}

// Unwrap is for http.ResponseController.
func (w *copyingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Write implements http.ResponseWriter.
func (w *copyingWriter) Write(p []byte) (int, error) {
	if !w.k.full {
		w.k.add(p)
	}
	return w.ResponseWriter.Write(p)
}
