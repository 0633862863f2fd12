package excerpt_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/keelson-dev/keelson/runtime/excerpt"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestOf(t *testing.T) {
	for _, text := range []string{"", "short", strings.Repeat("x", 1024)} {
		if got := excerpt.Of(text, 1024); got != text {
			t.Errorf("%q", got)
		}
	}
	for name, text := range map[string]string{
		"ASCII": strings.Repeat("x", 912345), "runes": strings.Repeat("é", 5000), "long runes": "a" + strings.Repeat("😀", 5000), "no UTF-8": strings.Repeat("\x80", 5000),
	} {
		for most := 1000; most < 1008; most++ {
			got, note := excerpt.Of(text, most), fmt.Sprintf("... (truncated, %d bytes in all)", len(text))
			head := strings.TrimSuffix(got, note)
			if len(got) > most || len(got) < most-4 || head == got || !strings.HasPrefix(text, head) || utf8.ValidString(text) && !utf8.ValidString(got) {
				t.Errorf("%s to %d: %d bytes, %q", name, most, len(got), got)
			}
			if bytes := excerpt.OfBytes([]byte(text), most); utf8.ValidString(text) && bytes != got {
				t.Errorf("%s to %d: %q of bytes", name, most, bytes)
			}
		}
	}
	if got := excerpt.Of("long enough", 3); got != "... (truncated, 11 bytes in all)" {
		t.Errorf("%q", got)
	}
}

// unwritable is a value that has a text but no JSON.
type unwritable string

func (unwritable) MarshalJSON() ([]byte, error) { return nil, errors.New("no") }
func (u unwritable) String() string             { return string(u) }

func TestInvalid(t *testing.T) {
	kind := schema.GroupKind{Group: "example.com", Kind: "Boat"}
	path, long := field.NewPath("spec", "a"), strings.Repeat("<", 100_000)
	short := field.ErrorList{field.Invalid(path, "x", "no"), field.Required(path, ""), field.TooLong(path, long, 4), field.NotSupported(path, "a", []string{"b"})}
	if got := excerpt.Errors(short); &got[0] != &short[0] || len(got) != 4 {
		t.Errorf("what is short became %v", got)
	}
	for name, e := range map[string]*field.Error{
		"text": field.Invalid(path, long, "no"), "list": field.Invalid(path, []string{long}, "no"), "map": field.Invalid(path, map[string]string{long: ""}, "no"),
		"Stringer": field.Invalid(path, unwritable(long), "no"), "detail": field.Invalid(path, 1, long), "path": field.Required(field.NewPath(long), ""),
	} {
		was := *e
		s := excerpt.Invalid(kind, long, field.ErrorList{e}).ErrStatus
		if len(s.Message) > 3*excerpt.Text || !strings.Contains(s.Details.Causes[0].Message+s.Details.Causes[0].Field, "... (truncated, ") || len(s.Details.Name) > excerpt.Name {
			t.Errorf("%s: %d bytes, %.300s", name, len(s.Message), s.Details.Causes[0].Message)
		}
		if was.Detail != e.Detail || was.Field != e.Field {
			t.Errorf("%s: the error was changed", name)
		}
	}
	many := make(field.ErrorList, 1_000_000)
	for i := range many {
		many[i] = field.Invalid(path.Index(i%10), i, "no")
	}
	many[50] = field.Invalid(path, long, "")
	allocated := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			excerpt.Invalid(kind, "a", many)
		}
	}).AllocedBytesPerOp()
	s := excerpt.Invalid(kind, "a", many).ErrStatus
	if len(s.Details.Causes) != excerpt.MaxErrors || !strings.HasSuffix(s.Message, "there are 999900 more errors than these]") || allocated > 2<<20 { // it is just below 1 MiB, and above with the race detector
		t.Errorf("%d causes, %d bytes allocated, ending in %s", len(s.Details.Causes), allocated, s.Message[len(s.Message)-100:])
	}
	for i := range many[:100] {
		many[i] = field.Invalid(path, long, "no")
	}
	s = excerpt.Invalid(kind, "a", many[:90]).ErrStatus
	if n := len(s.Details.Causes); n > 17 || !strings.Contains(s.Details.Causes[n-1].Message, fmt.Sprintf("no; there are %d more errors than these", 90-n)) {
		t.Errorf("%d causes of long values, the last %.200s", n, s.Details.Causes[n-1].Message)
	}
	if text, err := json.Marshal(s); err != nil || len(text) > 1<<20 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}
