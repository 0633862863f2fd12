package options

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// AllowOrigin returns the function for server.Serving.AllowOrigin: an origin is allowed if one of CORSAllowedOrigins matches a part
// of it. It returns nil if there are none.
func (o *Options) AllowOrigin() func(origin string) bool {
	var all []*regexp.Regexp
	for _, text := range o.CORSAllowedOrigins {
		if re, err := regexp.Compile(text); err == nil { // Parse has checked it
			all = append(all, re)
		}
	}
	if all == nil {
		return nil
	}
	return func(origin string) bool {
		return slices.ContainsFunc(all, func(re *regexp.Regexp) bool { return re.MatchString(origin) })
	}
}

// checkBrowsers refuses origins that cannot be matched, or would match the beginnings or ends of others, and directives that do not
// exist.
func (o *Options) checkBrowsers() error {
	var all []error
	for _, text := range o.CORSAllowedOrigins {
		_, err := regexp.Compile(text)
		switch {
		case err != nil:
			all = append(all, fmt.Errorf("--cors-allowed-origins: %w", err))
		case !strings.Contains(text, "^") && !strings.Contains(text, "//"):
			all = append(all, fmt.Errorf("--cors-allowed-origins: %q also matches hosts that end with it: begin it with ^ or //", text))
		case !strings.ContainsAny(text, "$:"):
			all = append(all, fmt.Errorf("--cors-allowed-origins: %q also matches hosts that begin with it: end it with $ or (:|$)", text))
		}
	}
	directive := regexp.MustCompile(`^(max-age=[0-9]+|includeSubDomains|preload)$`)
	for _, text := range o.HSTS {
		if !directive.MatchString(text) {
			all = append(all, fmt.Errorf("--strict-transport-security-directives: %q is no directive: use max-age=N, includeSubDomains or preload", text))
		}
	}
	return errors.Join(all...)
}
