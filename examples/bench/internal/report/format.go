package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// table writes a Markdown table. The first column is text; the others are numbers, which are aligned to the right.
func table(b *strings.Builder, header []string, rows [][]string) {
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(header)
	marks := make([]string, len(header))
	for i := range marks {
		marks[i] = "---:"
	}
	marks[0] = "---"
	line(marks)
	for _, row := range rows {
		line(row)
	}
}

// seconds returns a time with three digits, in a suitable unit.
func seconds(s float64) string {
	switch abs := math.Abs(s); {
	case abs == 0:
		return "0"
	case abs < 999.5e-6:
		return digits(s*1e6) + " µs"
	case abs < 0.9995:
		return digits(s*1e3) + " ms"
	}
	return digits(s) + " s"
}

// bytesText returns a number of bytes with three digits, in a suitable unit.
func bytesText(n float64) string {
	units := []string{"B", "KiB", "MiB", "GiB"}
	for len(units) > 1 && math.Abs(n) >= 999.5 {
		n, units = n/1024, units[1:]
	}
	if units[0] == "B" && n == math.Trunc(n) {
		return strconv.FormatFloat(n, 'f', 0, 64) + " B"
	}
	return digits(n) + " " + units[0]
}

// digits returns a number with three digits, or with all digits before the decimal point.
func digits(x float64) string {
	switch abs := math.Abs(x); {
	case abs >= 99.95:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case abs >= 9.995:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return strconv.FormatFloat(x, 'f', 2, 64)
}

// count returns a number with commas between thousands.
func count(n float64) string {
	if n < 99.5 && n != math.Trunc(n) {
		return digits(n)
	}
	s := strconv.FormatFloat(math.Round(n), 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// ratioText returns a ratio with enough digits to distinguish small ones.
func ratioText(x float64) string {
	if math.Abs(x) < 0.0995 {
		return strconv.FormatFloat(x, 'f', 3, 64)
	}
	return digits(x)
}

// fraction returns a target; a target below one is written as a fraction.
func fraction(x float64) string {
	if x >= 1 || x <= 0 {
		return digits(x)
	}
	for denominator := 1.0; denominator <= 100; denominator++ {
		if numerator := x * denominator; math.Abs(numerator-math.Round(numerator)) < 1e-9 {
			return fmt.Sprintf("%.0f/%.0f", numerator, denominator)
		}
	}
	return ratioText(x)
}

const dash = "–"

func orDash(ok bool, text string) string {
	if !ok {
		return dash
	}
	return text
}

// joined returns the ratios of several servers for one cell.
func joined(ratios []string) string {
	for _, ratio := range ratios {
		if ratio != dash {
			return strings.Join(ratios, " / ")
		}
	}
	return dash
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
