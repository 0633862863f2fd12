package library

import (
	"regexp/syntax"
)

// RegexSize is how many instructions a regular expression becomes, about: of some forty bytes each, and a third of a microsecond
// to make. Few characters are enough for millions: x{1000} is a thousand. It is zero if the expression is none.
func RegexSize(pattern string) int {
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
