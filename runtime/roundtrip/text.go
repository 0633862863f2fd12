package roundtrip

import (
	"math/rand"
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/keelson-dev/keelson/runtime/constraint"
)

// mostText limits the length of a text in bytes. Longer texts are made only if minLength requires them.
const mostText = 1 << 16

// textFor returns a text that is likely to obey the rules of a field. try is the number of texts that did not obey them. Later texts
// are longer, because a pattern and a length must hold together.
func textFor(r *rand.Rand, f *constraint.Field, try int) string {
	least, most := 0, 20
	if f.MinLength != nil {
		least = int(*f.MinLength)
	}
	if f.MaxLength != nil {
		most = int(*f.MaxLength)
	}
	pattern := f.Pattern
	if format := formatPattern(f.Format); format != "" && (pattern == "" || try%2 == 1) {
		pattern = format
	}
	re, err := syntax.Parse(pattern, syntax.Perl)
	if pattern == "" || err != nil {
		return plainText(r, least+r.Intn(min(max(most-least, 0), 20)+1))
	}
	g := textMaker{r: r, repeats: []int{3, 8, least, max(least, min(most, 2*least)), 40}[try/2%5]}
	g.write(re)
	text := g.out.String()
	if missing := least - utf8.RuneCountInString(text); missing > 0 && try%3 == 0 { // the pattern may match a part of the text
		if r.Intn(2) == 0 {
			return plainText(r, missing) + text
		}
		return text + plainText(r, missing)
	}
	return text
}

// plainText returns a text of n characters.
func plainText(r *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		b.WriteRune(anyRune(r))
	}
	return b.String()
}

// anyRune returns a character that can be printed. It is mostly a lower-case letter.
func anyRune(r *rand.Rand) rune {
	switch r.Intn(8) {
	case 0:
		return []rune("éß世界😀")[r.Intn(5)]
	case 1:
		return ' ' + rune(r.Intn('~'-' '+1))
	}
	return 'a' + rune(r.Intn(26))
}

// textMaker makes a text that matches a regular expression, apart from its anchors and word boundaries.
type textMaker struct {
	r       *rand.Rand
	repeats int // the most repetitions where the expression has no upper bound
	out     strings.Builder
}

func (g *textMaker) write(re *syntax.Regexp) {
	switch re.Op {
	case syntax.OpLiteral:
		for _, c := range re.Rune {
			if re.Flags&syntax.FoldCase != 0 && g.r.Intn(2) == 0 {
				c = unicode.SimpleFold(c)
			}
			g.out.WriteRune(c)
		}
	case syntax.OpCharClass:
		g.out.WriteRune(g.oneOf(re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		g.out.WriteRune(anyRune(g.r))
	case syntax.OpStar:
		g.repeat(re.Sub[0], 0, g.repeats)
	case syntax.OpPlus:
		g.repeat(re.Sub[0], 1, g.repeats)
	case syntax.OpQuest:
		g.repeat(re.Sub[0], 0, 1)
	case syntax.OpRepeat:
		most := re.Min + g.repeats
		if re.Max >= 0 {
			most = min(most, re.Max)
		}
		g.repeat(re.Sub[0], re.Min, most)
	case syntax.OpAlternate:
		g.write(re.Sub[g.r.Intn(len(re.Sub))])
	default: // a group or a sequence; anchors and expressions that match nothing have no parts
		for _, sub := range re.Sub {
			g.write(sub)
		}
	}
}

// repeat writes a part least to most times. Half of the time it is most, because texts of random lengths rarely have a given
// length.
func (g *textMaker) repeat(re *syntax.Regexp, least, most int) {
	n := max(least, most)
	if most > least && g.r.Intn(2) == 0 {
		n = least + g.r.Intn(most-least+1)
	}
	for range n {
		if g.out.Len() > mostText {
			return
		}
		g.write(re)
	}
}

// oneOf returns a character of a class, which is a list of ranges. It is mostly one that ASCII can print, if the class has any.
func (g *textMaker) oneOf(ranges []rune) rune {
	var printed []rune
	for i := 0; i+1 < len(ranges); i += 2 {
		if low, high := max(ranges[i], ' '), min(ranges[i+1], '~'); low <= high {
			printed = append(printed, low, high)
		}
	}
	if len(printed) > 0 && g.r.Intn(8) > 0 {
		ranges = printed
	}
	if len(ranges) == 0 {
		return unicode.ReplacementChar // the class is empty
	}
	i := 2 * g.r.Intn(len(ranges)/2)
	return ranges[i] + rune(g.r.Int63n(int64(ranges[i+1]-ranges[i])+1))
}

// formatPattern returns a regular expression for texts that have a format, or "" if every text has it. The expressions match only
// some of the texts with the format.
func formatPattern(format string) string {
	const (
		octet = `([1-9]?[0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])`
		ipv4  = octet + `(\.` + octet + `){3}`
		label = `[a-z]([a-z0-9-]{0,8}[a-z0-9])?`
		date  = `[12][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])`
		time  = date + `T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,3})?(Z|[+-]0[0-9]:[0-5]0)`
		isbn  = `0306406152|0201633612|0131103628`
		ean   = `9780306406157|9780201633610|9780131103627`
	)
	switch format {
	case "bsonobjectid":
		return `[0-9a-f]{24}`
	case "byte":
		return `([A-Za-z0-9+/]{4}){1,5}`
	case "cidr":
		return ipv4 + `/([1-9]|[12][0-9]|3[0-2])`
	case "creditcard":
		return `4111111111111111|5555555555554444|378282246310005`
	case "date":
		return date
	case "date-time", "datetime":
		return time
	case "duration":
		return `[1-9][0-9]{0,2}(ms|s|m|h)`
	case "email":
		return label + `@` + label + `\.example`
	case "hexcolor":
		return `#[0-9a-f]{6}`
	case "hostname", "k8s-long-name":
		return label + `(\.` + label + `){0,2}`
	case "ipv4":
		return ipv4
	case "ipv6":
		return `fd00:(:[1-9a-f][0-9a-f]{0,3}){1,4}`
	case "isbn":
		return isbn + `|` + ean
	case "isbn10":
		return isbn
	case "isbn13":
		return ean
	case "k8s-short-name":
		return label
	case "mac":
		return `[0-9a-f]{2}(:[0-9a-f]{2}){5}`
	case "rgbcolor":
		return `rgb\([1-9]?[0-9],[1-9]?[0-9],1[0-9]{2}\)`
	case "ssn":
		return `[1-6][0-9]{2}-[0-9]{2}-[0-9]{4}`
	case "uri":
		return `https?://` + label + `\.example/[a-z0-9]{0,8}`
	case "uuid", "uuid4":
		return `[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`
	case "uuid3":
		return `[0-9a-f]{8}-[0-9a-f]{4}-3[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`
	case "uuid5":
		return `[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`
	}
	return ""
}
