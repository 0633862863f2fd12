// Package spelling finds the name that a misspelt one probably stands for.
package spelling

import "iter"

// Nearest returns the name in known that differs least from name. If several names differ equally, it returns the first of them.
// It returns "" if each name differs in more than most bytes. The difference is the number of bytes that must be added, removed
// or replaced. The time is proportional to the length of name times the sum of the lengths of all known names.
func Nearest(name string, known iter.Seq[string], most int) string {
	best, least := "", most+1
	for other := range known {
		if d := distance(name, other); d < least {
			best, least = other, d
		}
	}
	return best
}

// distance returns the number of bytes that must be added, removed or replaced to change a to b.
func distance(a, b string) int {
	row := make([]int, len(b)+1) // the distances from the part of a before a[i]
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal, row[j+1] = row[j+1], min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
