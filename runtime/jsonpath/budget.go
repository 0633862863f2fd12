package jsonpath

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// ErrSpent is returned by an evaluation that would take more steps than its Budget has.
var ErrSpent = errors.New("the path comes across more values than there may be")

// eachMay limits the steps that one evaluation may take from the reserve.
const eachMay = 100

// Budget limits the total cost of evaluating several paths and of printing the values that they find. A step is about one value
// that an evaluation visits or that is printed, or 64 bytes of a text that is read: of a name that is sorted or found, a text
// that is compared, or a text that is printed as JSON. A quarter of the steps is a reserve, from which each path and each text
// may take a few steps, so that one expensive path leaves some steps to cheap ones. The zero Budget has no steps.
//
// A Budget keeps the order of the members of large objects, which is sorted once. So the values must not be changed as long as
// the Budget is used. A Budget must not be used concurrently.
type Budget struct {
	left, reserve int
	evaluation    evaluation // the present or last one
}

// NewBudget returns a Budget with the given number of steps.
func NewBudget(steps int) *Budget { return &Budget{left: steps, reserve: steps / 4} }

// Left returns the number of steps that are left, including the reserve.
func (b *Budget) Left() int { return b.left }

// begin returns a new evaluation, which keeps the sorted members of the last one, and the number of steps that it may take.
func (b *Budget) begin() (e *evaluation, may int) {
	may = max(b.left-b.reserve, min(b.left, eachMay), 0)
	b.evaluation.left, b.evaluation.fatal = may, nil
	return &b.evaluation, may
}

// end subtracts the steps that an evaluation has taken. may is the number that it was allowed to take.
func (b *Budget) end(e *evaluation, may int) { b.left -= may - e.left }

// Read takes the steps for a text of the given length that the caller is going to read. It returns false if the Budget has too
// few; then it takes none. A text of less than 64 bytes takes no steps.
func (b *Budget) Read(length int) bool {
	steps := length / stepBytes
	if _, may := b.begin(); steps > may {
		return false
	}
	b.left -= steps
	return true
}

// First returns the first value that p finds in root; found is false if there is none. It visits no more values than necessary.
// The error is that of [Path.Find], or ErrSpent.
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

// Text is the function [Text] with a limit of most bytes and of the steps in the Budget. whole is false if the end of the text
// was left out. The values that were left out are not visited.
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

// within returns the largest length, up to most, at which text can be cut without cutting a character.
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

// writing writes JSON as encoding/json does, up to a maximum length.
type writing struct {
	e    *evaluation
	text []byte
	most int
	cut  bool // the end was left out, and nothing more is written
}

func (w *writing) add(value any) {
	switch value := value.(type) {
	case map[string]any:
		if !w.may(1 + len(value)) { // the cost of sorting the names
			return
		}
		sorted, ok := w.e.sorted(value)
		if !ok {
			w.cut = true
			return
		}
		open := byte('{')
		for _, name := range sorted.names {
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

// end writes the end of an object or a list. brackets are both brackets.
func (w *writing) end(open byte, brackets string) {
	if open == brackets[0] { // the object or list is empty
		w.text = append(w.text, open)
	}
	w.text = append(w.text, brackets[1])
	w.may(0)
}

// scalar writes a value that contains no other values.
func (w *writing) scalar(value any) {
	text, long := value.(string)
	if long = long && len(text) > w.most; long {
		text = text[:within(text, w.most)] // escapes only make the text longer
		value = text
	}
	if !w.may(1 + len(text)/stepBytes) {
		return
	}
	written, err := json.Marshal(value)
	if err != nil { // the value has no JSON
		written = []byte("null")
	}
	w.text = append(w.text, written...)
	w.cut = w.cut || long
	w.may(0)
}

// may counts steps, and reports whether writing may continue.
func (w *writing) may(steps int) bool {
	w.cut = w.cut || len(w.text) > w.most || !w.e.spend(steps)
	return !w.cut
}
