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

// Bounds of the warnings of a request, in runes. If all texts together are longer than warningsTotal, each is cut to warningItem,
// and texts that come after the total is reached are dropped.
const (
	warningsTotal = 4096
	warningItem   = 256
)

// Warnings collects the warnings of an answer, and adds them as Warning headers at once (RFC 7234, section 5.5, code 299). Add
// warnings before the header of the answer is written. The zero Warnings collects without a header. All methods may be called
// concurrently, but the header must not be used by others at the same time.
type Warnings struct {
	mu         sync.Mutex // guards all below, and the field Warning of header
	header     http.Header
	seen       map[string]struct{}
	texts      []string // without repetition, in order
	runes      int      // runes of the texts in the header
	truncating bool
}

// NewWarnings returns Warnings that are added to header.
func NewWarnings(header http.Header) *Warnings { return &Warnings{header: header} }

// Add records a warning. It ignores an empty text, a text that was added before, and a text that a header cannot have (invalid
// UTF-8 or control characters). If all texts together have more than 4,096 runes, the headers have only the first 256 runes of
// each text. When these shortened texts have 4,096 runes together, further texts are ignored. Of a text with more than 4,096
// runes only the beginning is kept.
func (w *Warnings) Add(text string) {
	if text == "" || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return
	}
	if len(text) > warningsTotal {
		text = strings.Clone(cut(text, warningsTotal+1)) // one rune more, so that the text counts as too long
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

// show adds the header of one text, cut if the texts are to be cut. The caller holds mu.
func (w *Warnings) show(text string) {
	if w.truncating {
		text = cut(text, warningItem)
	}
	w.runes += utf8.RuneCountInString(text)
	if w.header == nil {
		return
	}
	if value, err := net.NewWarningHeader(299, "-", text); err == nil { // Add has refused other texts
		w.header.Add("Warning", value)
	}
}

// Texts returns the warnings that have been added, in order. A text with more than 4,096 runes is cut. The slice belongs to the
// caller.
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

// Warn records a warning for the answer of the request of ctx. If ctx has no Warnings, the warning is dropped.
func Warn(ctx context.Context, text string) {
	if w := WarningsFrom(ctx); w != nil {
		w.Add(text)
	}
}
