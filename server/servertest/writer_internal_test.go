package servertest

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// poweredWriter counts flushes and takes deadlines.
type poweredWriter struct {
	*httptest.ResponseRecorder
	flushed  int
	deadline time.Time
}

func (w *poweredWriter) Flush() { w.flushed++ }

func (w *poweredWriter) SetWriteDeadline(at time.Time) error {
	w.deadline = at
	return nil
}

// The ResponseWriters of recordings and faults have the optional methods of the server's ResponseWriter.
func TestWritersKeepTheirPowers(t *testing.T) {
	t.Parallel()
	for name, wrap := range map[string]func(http.ResponseWriter) http.ResponseWriter{
		"of a recording": func(w http.ResponseWriter) http.ResponseWriter { return new(entry).writer(w) },
		"of a fault":     func(w http.ResponseWriter) http.ResponseWriter { return &ending{ResponseWriter: w} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inner := &poweredWriter{ResponseRecorder: httptest.NewRecorder()}
			w := wrap(inner)
			if f, ok := w.(http.Flusher); !ok {
				t.Error("it is no http.Flusher")
			} else if f.Flush(); inner.flushed != 1 {
				t.Errorf("Flush flushes %d times", inner.flushed)
			}
			control, at := http.NewResponseController(w), time.Unix(1, 0)
			if err := control.Flush(); err != nil || inner.flushed != 2 {
				t.Errorf("Flush by a ResponseController: %v, flushed %d times", err, inner.flushed)
			}
			if err := control.SetWriteDeadline(at); err != nil || inner.deadline != at {
				t.Errorf("SetWriteDeadline: %v, and it is %v", err, inner.deadline)
			}
		})
	}
}
