package options

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// maxUnknown is the length of the longest unknown name for which a flag is proposed.
const maxUnknown = 64

// unknown adds to the error of a flag that does not exist the flag that may have been meant.
func unknown(err error) error {
	missing := new(pflag.NotExistError)
	if !errors.As(err, &missing) {
		return err
	}
	given := missing.GetSpecifiedName()
	if letters := missing.GetSpecifiedShortnames(); letters != "" { // one dash: the name is read as letters
		given, _, _ = strings.Cut(letters, "=")
	}
	if meant := nearest(strings.ReplaceAll(given, "_", "-")); meant != "" {
		return fmt.Errorf("%w; did you mean --%s?", err, meant)
	}
	return fmt.Errorf("%w; --help lists the flags", err)
}

// nearest is the flag whose name differs least from another, if not more than a third of the name differs.
func nearest(name string) string {
	if len(name) > maxUnknown {
		return ""
	}
	best, least := "", len(name)/3+1
	for _, s := range sections() {
		for _, f := range s.flags {
			if d := distance(name, f.name); d < least {
				best, least = f.name, d
			}
		}
	}
	return best
}

// distance is how many bytes must be added, removed or replaced to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1) // of the distances from what is before a[i]
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
