package report

import "strings"

// Table writes a Markdown table. Cells of the first column are text, the others figures, to the right.
func Table(b *strings.Builder, header []string, rows [][]string) { table(b, header, rows) }

// Seconds writes a time with three digits, in the unit that suits it.
func Seconds(s float64) string { return seconds(s) }

// Bytes writes a number of bytes with three digits, in the unit that suits it.
func Bytes(n float64) string { return bytesText(n) }
