// Package formats checks strings by formats and regular expressions.
package formats

import (
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/runtime/structural/internal/word"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
)

// Known reports whether a schema of the type enforces the format; other formats have no effect. The formats of strings are those
// of Kubernetes 1.37. Dashes in their names are ignored.
func Known(jsonType string, intOrString bool, format string) bool {
	if format == "" {
		return false
	}
	switch {
	case intOrString, jsonType == "", jsonType == word.String:
		return IsText(format)
	case jsonType == word.Integer:
		return format == "int32" || format == "int64"
	case jsonType == word.Number:
		return format == "float" || format == "double"
	}
	return false
}

// IsText reports whether the format is one of strings.
func IsText(format string) bool {
	switch strings.ReplaceAll(format, "-", "") {
	case "bsonobjectid", "byte", "cidr", "creditcard", "date", "datetime", "duration", "email", "hexcolor", "hostname",
		"ipv4", "ipv6", "isbn", "isbn10", "isbn13", "k8slongname", "k8sshortname", "mac", "password", "rgbcolor", "ssn",
		"uri", "uuid", "uuid3", "uuid4", "uuid5":
		return true
	}
	return false
}

// Checks has the checks of string formats for one schema. Formats without a function in kube-openapi need a registry of formats,
// which has a lock. Each schema has its own registry, so that schemas do not wait for each other.
type Checks struct{ registry strfmt.Registry }

// Check returns the check of a format, nil if every string has the format.
func (f *Checks) Check(format string) func(string) bool {
	switch strings.ReplaceAll(format, "-", "") {
	case "bsonobjectid":
		return strfmt.IsBSONObjectID
	case "date":
		return strfmt.IsDate
	case "datetime":
		return func(text string) bool { return IsUTC(text) || strfmt.IsDateTime(text) }
	case "duration":
		return strfmt.IsDuration
	case "email":
		return strfmt.IsEmail
	case "hostname":
		return strfmt.IsHostname
	case "k8slongname":
		return strfmt.IsLongName
	case "k8sshortname":
		return strfmt.IsShortName
	case "uuid":
		return strfmt.IsUUID
	case "uuid3":
		return strfmt.IsUUID3
	case "uuid4":
		return strfmt.IsUUID4
	case "uuid5":
		return strfmt.IsUUID5
	case "password":
		return nil
	}
	if !IsText(format) {
		return nil
	}
	if f.registry == nil {
		f.registry = strfmt.NewFormats()
	}
	registry := f.registry
	return func(text string) bool { return registry.Validates(format, text) }
}

// IsUTC reports whether text is a time in the usual form 2006-01-02T15:04:05Z.
func IsUTC(text string) bool {
	if len(text) != len("2006-01-02T15:04:05Z") || text[len(text)-1] != 'Z' {
		return false
	}
	_, err := time.Parse(time.RFC3339, text)
	return err == nil
}

// Pattern is a regular expression that is compiled when it is first used. Most schemas of a server are rarely used, and a
// compiled expression is many times as large as its text.
type Pattern struct {
	Text string    // the expression, in the syntax of RE2
	Size int       // number of instructions
	once sync.Once // guards the fields below
	re   *regexp.Regexp
	err  error
}

// Refuse makes p an expression that matches no string, for the reason err. It must be called before the first use.
func (p *Pattern) Refuse(err error) {
	p.once.Do(func() { p.err = err })
}

// Compiled returns the compiled expression, or the reason why there is none.
func (p *Pattern) Compiled() (*regexp.Regexp, error) {
	p.once.Do(func() { p.re, p.err = regexp.Compile(p.Text) })
	return p.re, p.err
}

// Matches reports whether the expression matches. It is false for all strings if the expression does not compile.
func (p *Pattern) Matches(text string) bool {
	re, err := p.Compiled()
	return err == nil && re.MatchString(text)
}
