package request_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server/request"
)

func TestContextValues(t *testing.T) {
	ctx := t.Context()
	if _, known := request.ReceivedFrom(ctx); known || request.AuditIDFrom(ctx) != "" || request.InfoFrom(ctx) != nil || request.WarningsFrom(ctx) != nil {
		t.Error("an empty context has values")
	}
	request.Warn(ctx, "dropped") // must not panic
	at, info, w := time.Now(), &request.Info{}, &request.Warnings{}
	ctx = request.WithReceived(request.WithAuditID(request.WithInfo(request.WithWarnings(ctx, w), info), "id"), at)
	if got, known := request.ReceivedFrom(ctx); !known || !got.Equal(at) || request.AuditIDFrom(ctx) != "id" || request.InfoFrom(ctx) != info || request.WarningsFrom(ctx) != w {
		t.Error("values are lost")
	}
	request.Warn(ctx, "kept")
	if got := w.Texts(); !slices.Equal(got, []string{"kept"}) {
		t.Errorf("texts %q", got)
	}
}

func TestWarningsFormat(t *testing.T) {
	h := http.Header{}
	w := request.NewWarnings(h)
	for _, text := range []string{`unknown field "spec.foo"`, "", "plain", "plain", `back\slash`, "control\n", "bad \xff", "ünicode"} {
		w.Add(text)
	}
	want := []string{`299 - "unknown field \"spec.foo\""`, `299 - "plain"`, `299 - "back\\slash"`, `299 - "ünicode"`}
	if got := h["Warning"]; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWarningsBudget(t *testing.T) {
	text := func(i, runes int) string { s := fmt.Sprintf("%03d", i); return s + strings.Repeat("é", runes-len(s)) }
	size := func(header string) int { return len([]rune(header)) - len(`299 - ""`) }
	h := http.Header{}
	w := request.NewWarnings(h)
	w.Add(text(0, 4000))
	w.Add(text(1, 96))
	if got := h["Warning"]; len(got) != 2 || size(got[0]) != 4000 || size(got[1]) != 96 {
		t.Fatalf("within the budget nothing is cut: %d headers", len(got))
	}
	w.Add(text(2, 300)) // passes the total: all are cut
	got := h["Warning"]
	if len(got) != 3 || size(got[0]) != 256 || size(got[1]) != 96 || size(got[2]) != 256 {
		t.Fatalf("not cut to 256 runes each: %d headers", len(got))
	}
	for i := 3; i < 100; i++ {
		w.Add(text(i, 500))
	}
	total := 0
	for _, header := range h["Warning"] {
		total += size(header)
	}
	if total < 4096 || total >= 4096+256 {
		t.Errorf("%d runes in %d headers, want the first at or beyond 4096", total, len(h["Warning"]))
	}
}

func TestWarningsConcurrently(t *testing.T) {
	w := request.NewWarnings(http.Header{})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 20 {
				w.Add(fmt.Sprint("warning ", i%4, j))
			}
		})
	}
	wg.Wait()
	if got := len(w.Texts()); got != 80 {
		t.Errorf("%d texts, want 80", got)
	}
}
