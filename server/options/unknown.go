package options

import (
	"errors"
	"fmt"
	"strings"

	"github.com/keelson-dev/keelson/runtime/spelling"
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
	return spelling.Nearest(name, func(yield func(string) bool) {
		for _, s := range sections() {
			for _, f := range s.flags {
				if !yield(f.name) {
					return
				}
			}
		}
	}, len(name)/3)
}
