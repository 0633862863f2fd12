package request

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/net"
)

// The budget of a request's warnings, in runes. When the texts of all together would pass warningsTotal, each is cut
// to warningItem, and what comes after the total is reached is dropped.
const (
	warningsTotal = 4096
	warningItem   = 256
)

// Warnings collects what an answer warns of, and shows it in Warning headers as they come (RFC 7234, section 5.5,
// code 299), so that they must come before the answer's header is written. The zero Warnings collects without a
// header. All methods may be called concurrently, but the header must not be used otherwise at the same time.
type Warnings struct {
	mu         sync.Mutex // guards all below, and the Warning field of header
	header     http.Header
	seen       map[string]struct{}
	texts      []string // without repetition, in order
	runes      int      // of the texts shown
	truncating bool
}

// NewWarnings returns a recorder that shows warnings in header.
func NewWarnings(header http.Header) *Warnings { return &Warnings{header: header} }

// Add records a warning. An empty text, one that came before, and one that no header can carry (invalid UTF-8 or
// control characters) are left out, as is all that comes after the budget is used up. Of a text that is longer than the
// whole budget nothing beyond it is kept.
func (w *Warnings) Add(text string) {
	if text == "" || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return
	}
	if len(text) > warningsTotal {
		text = strings.Clone(cut(text, warningsTotal+1)) // one more, so that it is seen to be too long
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, again := w.seen[text]; again || (w.truncating && w.runes >= warningsTotal) {
		return
	}
	if w.seen == nil {
		w.seen = map[string]struct{}{}
	}
	w.seen[text] = struct{}{}
	w.texts = append(w.texts, text)
	if w.truncating || w.runes+utf8.RuneCountInString(text) <= warningsTotal {
		w.show(text)
		return
	}
	w.truncating, w.runes = true, 0
	w.header.Del("Warning")
	for _, t := range w.texts {
		if w.runes < warningsTotal {
			w.show(t)
		}
	}
}

// show adds the header of one text, cut when the budget asks for it. mu is held.
func (w *Warnings) show(text string) {
	if w.truncating {
		text = cut(text, warningItem)
	}
	w.runes += utf8.RuneCountInString(text)
	if w.header == nil {
		return
	}
	if value, err := net.NewWarningHeader(299, "-", text); err == nil { // Add let only good texts in
		w.header.Add("Warning", value)
	}
}

// Texts returns the warnings so far, in order, as they were added up to the length of the budget; the slice is the caller's own.
func (w *Warnings) Texts() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.texts)
}

// cut returns the first n runes of s.
func cut(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// Warn records a warning for the answer of the request of ctx; without a recorder it is dropped.
func Warn(ctx context.Context, text string) {
	if w := WarningsFrom(ctx); w != nil {
		w.Add(text)
	}
}
