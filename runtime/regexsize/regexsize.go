// Package regexsize tells how large regular expressions become, before anybody makes them. They are those of package regexp, RE2 by
// https://github.com/google/re2/wiki/Syntax, of which few characters are enough for megabytes: x{1000} is a thousand
// instructions, and a schema has room for tens of thousands of these. kube-apiserver makes them all.
package regexsize

import (
	"regexp/syntax"
)

// BytesPerInstruction is about how much memory an instruction takes when an expression is compiled.
const BytesPerInstruction = 40

// Of is how many instructions a regular expression becomes, about: of some forty bytes each, and a third of a microsecond
// to make. It is zero if the expression is none.
func Of(pattern string) int {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0
	}
	return instructions(re) + classes(re)
}

// instructions are those of an expression without its classes of characters.
func instructions(re *syntax.Regexp) int {
	n := 0
	for _, sub := range re.Sub {
		n += instructions(sub)
	}
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune)
	case syntax.OpRepeat:
		times := re.Max
		if times < 0 {
			times = re.Min + 1
		}
		return n*max(times, 1) + max(times-re.Min, 0)
	case syntax.OpConcat:
		return n
	}
	return n + 2
}

// classes are what classes of characters are as large as. Repetitions share them.
func classes(re *syntax.Regexp) int {
	const runesPerInstruction = 10
	n := 0
	if re.Op == syntax.OpCharClass {
		n = len(re.Rune) / runesPerInstruction
	}
	for _, sub := range re.Sub {
		n += classes(sub)
	}
	return n
}
