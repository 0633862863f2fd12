// Package formats judges texts: by the formats of strings, and by regular expressions.
package formats

import (
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/runtime/structural/internal/word"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
)

// Known says whether a schema of the type enforces the format; the others mean nothing. The formats of strings are
// those of Kubernetes 1.37, dashes in their names do not count.
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

// IsText says that strings have the format.
func IsText(format string) bool {
	switch strings.ReplaceAll(format, "-", "") {
	case "bsonobjectid", "byte", "cidr", "creditcard", "date", "datetime", "duration", "email", "hexcolor", "hostname",
		"ipv4", "ipv6", "isbn", "isbn10", "isbn13", "k8slongname", "k8sshortname", "mac", "password", "rgbcolor", "ssn",
		"uri", "uuid", "uuid3", "uuid4", "uuid5":
		return true
	}
	return false
}

// Checks has the checks of formats of strings for one schema. Those that kube-openapi has no function for go through a
// registry of formats, which works under a lock: it is the schema's own, so that schemas do not wait for each other.
type Checks struct{ registry strfmt.Registry }

// Check returns the check of a format, nil if there is nothing to check.
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

// IsUTC recognizes a time as most are written, 2006-01-02T15:04:05Z.
func IsUTC(text string) bool {
	if len(text) != len("2006-01-02T15:04:05Z") || text[len(text)-1] != 'Z' {
		return false
	}
	_, err := time.Parse(time.RFC3339, text)
	return err == nil
}

// Pattern is a regular expression that is compiled when it is first needed: most of the schemas of a server are rarely
// used, and a compiled expression is many times as large as its text.
type Pattern struct {
	Text string
	Size int       // instructions
	once sync.Once // guards the making of the others
	re   *regexp.Regexp
	err  error
}

// Refuse makes p an expression that no text matches, for the reason err. It comes before the first use.
func (p *Pattern) Refuse(err error) {
	p.once.Do(func() { p.err = err })
}

// Compiled returns the expression, compiled.
func (p *Pattern) Compiled() (*regexp.Regexp, error) {
	p.once.Do(func() { p.re, p.err = regexp.Compile(p.Text) })
	return p.re, p.err
}

// Matches is false for all texts if the expression is none.
func (p *Pattern) Matches(text string) bool {
	re, err := p.Compiled()
	return err == nil && re.MatchString(text)
}
