package options

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// maxUnknown is the length of the longest unknown name for which a flag is proposed.
const maxUnknown = 64

// unknown adds a proposal to the error of a flag that does not exist: the flag that may have been meant.
func unknown(err error) error {
	missing := new(pflag.NotExistError)
	if !errors.As(err, &missing) {
		return err
	}
	given := missing.GetSpecifiedName()
	if letters := missing.GetSpecifiedShortnames(); letters != "" { // with one dash pflag reads the name as letters
		given, _, _ = strings.Cut(letters, "=")
	}
	if meant := nearest(strings.ReplaceAll(given, "_", "-")); meant != "" {
		return fmt.Errorf("%w; did you mean --%s?", err, meant)
	}
	return fmt.Errorf("%w; --help lists the flags", err)
}

// nearest returns the flag whose name differs least from name, or nothing if more than a third of the name differs.
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
