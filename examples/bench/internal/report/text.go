package report

import "strings"

// Table writes a Markdown table. The first column is text; the others are numbers, which are aligned to the right.
func Table(b *strings.Builder, header []string, rows [][]string) { table(b, header, rows) }

// Seconds returns a time with three digits, in a suitable unit.
func Seconds(s float64) string { return seconds(s) }

// Bytes returns a number of bytes with three digits, in a suitable unit.
func Bytes(n float64) string { return bytesText(n) }
