// Package regexsize estimates the compiled size of regular expressions before they are compiled. The expressions are those of
// package regexp (RE2, https://github.com/google/re2/wiki/Syntax). A few characters are enough for megabytes: x{1000} becomes a
// thousand instructions, and a schema may contain tens of thousands of such expressions. kube-apiserver has no limit for them.
package regexsize

import (
	"regexp/syntax"
)

// BytesPerInstruction is the approximate memory in bytes that a compiled instruction takes.
const BytesPerInstruction = 40

// Of returns the approximate number of instructions of a compiled regular expression. Each takes about forty bytes, and a third
// of a microsecond to compile. Of returns 0 if pattern is not a regular expression.
func Of(pattern string) int {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0
	}
	return instructions(re) + classes(re)
}

// instructions returns the instructions of an expression without its character classes.
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

// classes returns the size of the character classes, in instructions. The copies of a repetition share their classes.
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
