package jsonpath

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"
)

// ErrSpent is the error of an evaluation that a Budget is too small for.
var ErrSpent = errors.New("the path comes across more values than there may be")

// eachMay is how many steps an evaluation may take of the reserve.
const eachMay = 100

// Budget bounds what the evaluation of several paths costs together, and what is printed of what they find: a step is about one
// value that an evaluation comes across or that is printed. A quarter of the steps is a reserve, of which each path and each text
// may have a few, so that one that takes what it can leaves something to those that need little. The zero Budget is spent. One
// goroutine at a time uses it.
type Budget struct{ left, reserve int }

// NewBudget returns a Budget of steps.
func NewBudget(steps int) *Budget { return &Budget{steps, steps / 4} }

// Left is how many steps are left, those of the reserve included.
func (b *Budget) Left() int { return b.left }

// begin returns an evaluation with the steps that it may take.
func (b *Budget) begin() (e *evaluation, may int) {
	may = max(b.left-b.reserve, min(b.left, eachMay), 0)
	return &evaluation{left: may}, may
}

// end takes off what an evaluation has taken of the steps that it may take.
func (b *Budget) end(e *evaluation, may int) { b.left -= may - max(e.left, 0) }

// First returns the first value that p finds in root; found is false when there is none. It looks no further than it must. The
// error is that of [Path.Find], or ErrSpent.
func (b *Budget) First(p *Path, root any) (value any, found bool, err error) {
	e, may := b.begin()
	defer b.end(e, may)
	if len(p.actions) == 1 && p.actions[0].direct() {
		value, found = e.first(p.actions[0], root)
		err = e.fatal
	} else {
		var all []any
		all, err = p.find(e, root)
		if found = len(all) > 0; found {
			value = all[0]
		}
	}
	switch {
	case errors.Is(err, errTooMany):
		return nil, false, ErrSpent
	case err != nil:
		return nil, false, err
	}
	return value, found, nil
}

// Text is [Text] of a value, as far as it has at most so many bytes and the Budget is enough; whole is false if something was left
// out at its end. What is left out is not looked at.
func (b *Budget) Text(value any, most int) (text string, whole bool) {
	switch value := value.(type) {
	case nil:
		text = "<no value>"
	case string:
		text = value
	case map[string]any, []any:
		e, may := b.begin()
		defer b.end(e, may)
		w := writing{e: e, most: most}
		w.add(value)
		text = string(w.text)
		if w.cut {
			return text[:within(text, most)], false
		}
	default:
		text = fmt.Sprint(value)
	}
	end := within(text, most)
	return text[:end], end == len(text)
}

// within returns where text is to end that has too many bytes, so that no character is cut.
func within(text string, most int) int {
	if len(text) <= most {
		return len(text)
	}
	most = max(most, 0)
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return most
}

// writing is JSON being written, as encoding/json writes it, up to a length.
type writing struct {
	e    *evaluation
	text []byte
	most int
	cut  bool // something was left out: the rest is not written
}

func (w *writing) add(value any) {
	switch value := value.(type) {
	case map[string]any:
		if !w.may(1 + len(value)) { // which are sorted
			return
		}
		open := byte('{')
		for _, name := range slices.Sorted(maps.Keys(value)) {
			w.text = append(w.text, open)
			open = ','
			w.scalar(name)
			w.text = append(w.text, ':')
			if w.add(value[name]); w.cut {
				return
			}
		}
		w.end(open, "{}")
	case []any:
		open := byte('[')
		for _, element := range value {
			w.text = append(w.text, open)
			open = ','
			if w.add(element); w.cut {
				return
			}
		}
		w.end(open, "[]")
	default:
		w.scalar(value)
	}
}

// end writes the end of an object or a list, of which brackets are both.
func (w *writing) end(open byte, brackets string) {
	if open == brackets[0] { // it is empty
		w.text = append(w.text, open)
	}
	w.text = append(w.text, brackets[1])
	w.may(0)
}

// scalar writes a value that has nothing below it.
func (w *writing) scalar(value any) {
	if !w.may(1) {
		return
	}
	text, long := value.(string)
	if long = long && len(text) > w.most; long {
		value = text[:within(text, w.most)] // escapes only make it longer
	}
	written, err := json.Marshal(value)
	if err != nil { // no value of JSON
		written = []byte("null")
	}
	w.text = append(w.text, written...)
	w.cut = w.cut || long
	w.may(0)
}

// may counts values, and reports whether the text may go on.
func (w *writing) may(values int) bool {
	w.cut = w.cut || len(w.text) > w.most || !w.e.spend(values)
	return !w.cut
}
