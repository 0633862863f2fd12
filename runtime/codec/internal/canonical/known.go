package canonical

// moment is the rule of metav1.Time, in UTC and whole seconds.
type moment struct{}

const layout = `"2006-01-02T15:04:05Z"`

func (moment) match(r *reader, at int) (end int, is facts) {
	switch {
	case r.has(at, null):
		return at + len(null), void | zero
	case len(r.text)-at < len(layout) || !isMoment(r.text[at:at+len(layout)]):
		return no, 0
	}
	return at + len(layout), 0
}

// isMoment reports whether text, which must be as long as the layout, is a time as metav1.Time writes it: with a year of four
// digits, and not the zero time.
func isMoment(text []byte) bool {
	for i, c := range []byte(layout) {
		isDigit := '0' <= text[i] && text[i] <= '9'
		if wantDigit := '0' <= c && c <= '9'; wantDigit != isDigit || !wantDigit && text[i] != c {
			return false
		}
	}
	two := func(at int) int { return int(text[at]-'0')*10 + int(text[at+1]-'0') }
	year, month, day := two(1)*100+two(3), two(6), two(9)
	return year > 1 && month >= 1 && month <= 12 && day >= 1 && day <= daysIn(year, month) &&
		two(12) < 24 && two(15) < 60 && two(18) < 60
}

func daysIn(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// verbatim is the rule of types that keep an object as its JSON: metav1.FieldsV1 and runtime.RawExtension. Encoding removes white
// space and escapes some characters.
type verbatim struct{ otherwise rule }

func (v *verbatim) match(r *reader, at int) (end int, is facts) {
	if r.byteAt(at) == '{' {
		depth := r.depth
		if end = anyValue(r, at); end >= 0 {
			return end, 0
		}
		r.depth = depth
	}
	return v.otherwise.match(r, at)
}

// anyValue returns the offset after the JSON value that begins at an offset, or no. It recognises only values without white
// space, fractions and exponents.
func anyValue(r *reader, at int) int {
	switch c := r.byteAt(at); c {
	case '{', '[':
		if !r.enter() {
			return no
		}
		return anyMembers(r, at+1, c)
	case '"':
		return anyString(r.text, at)
	case 't', 'f':
		end, _ := boolean{}.match(r, at)
		return end
	case 'n':
		if r.has(at, null) {
			return at + len(null)
		}
		return no
	}
	end, _ := integer{bits: 64}.match(r, at)
	return end
}

// anyMembers is anyValue for the members or items after the bracket that opens an object or a list.
func anyMembers(r *reader, at int, open byte) int {
	end := open + 2 // the bracket that closes it, in ASCII
	if r.byteAt(at) == end {
		r.leave()
		return at + 1
	}
	for {
		if open == '{' {
			if at = anyString(r.text, at); at < 0 || r.byteAt(at) != ':' {
				return no
			}
			at++
		}
		if at = anyValue(r, at); at < 0 {
			return no
		}
		switch r.byteAt(at) {
		case ',':
			at++
		case end:
			r.leave()
			return at + 1
		default:
			return no
		}
	}
}

// intOrString is the rule of intstr.IntOrString.
type intOrString struct{}

func (intOrString) match(r *reader, at int) (end int, is facts) {
	if r.byteAt(at) == '"' {
		return anyString(r.text, at), 0
	}
	end, is = integer{bits: 32}.match(r, at)
	return end, is &^ empty
}
