package structural

import (
	"regexp"
	"strings"
	"sync"
	"time"

	"k8s.io/kube-openapi/pkg/validation/strfmt"
)

// formatKnown says whether a schema of the type enforces the format; the others mean nothing. The formats of strings are
// those of Kubernetes 1.37, dashes in their names do not count.
func formatKnown(jsonType string, intOrString bool, format string) bool {
	if format == "" {
		return false
	}
	switch {
	case intOrString, jsonType == "", jsonType == typeString:
		return textFormat(format)
	case jsonType == typeInteger:
		return format == "int32" || format == "int64"
	case jsonType == typeNumber:
		return format == "float" || format == "double"
	}
	return false
}

func textFormat(format string) bool {
	switch strings.ReplaceAll(format, "-", "") {
	case "bsonobjectid", "byte", "cidr", "creditcard", "date", "datetime", "duration", "email", "hexcolor", "hostname",
		"ipv4", "ipv6", "isbn", "isbn10", "isbn13", "k8slongname", "k8sshortname", "mac", "password", "rgbcolor", "ssn",
		"uri", "uuid", "uuid3", "uuid4", "uuid5":
		return true
	}
	return false
}

// formats has the checks of formats of strings for one schema. Those that kube-openapi has no function for go through a
// registry of formats, which works under a lock: it is the schema's own, so that schemas do not wait for each other.
type formats struct{ registry strfmt.Registry }

// check returns the check of a format, nil if there is nothing to check.
func (f *formats) check(format string) func(string) bool {
	switch strings.ReplaceAll(format, "-", "") {
	case "bsonobjectid":
		return strfmt.IsBSONObjectID
	case "date":
		return strfmt.IsDate
	case "datetime":
		return func(text string) bool { return isUTC(text) || strfmt.IsDateTime(text) }
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
	if !textFormat(format) {
		return nil
	}
	if f.registry == nil {
		f.registry = strfmt.NewFormats()
	}
	registry := f.registry
	return func(text string) bool { return registry.Validates(format, text) }
}

// isUTC recognizes a time as most are written, 2006-01-02T15:04:05Z.
func isUTC(text string) bool {
	if len(text) != len("2006-01-02T15:04:05Z") || text[len(text)-1] != 'Z' {
		return false
	}
	_, err := time.Parse(time.RFC3339, text)
	return err == nil
}

// pattern is a regular expression that is compiled when it is first needed: most of the schemas of a server are rarely
// used, and a compiled expression is many times as large as its text.
type pattern struct {
	text string
	size int       // instructions
	once sync.Once // guards the making of the others
	re   *regexp.Regexp
	err  error
}

func (p *pattern) compiled() (*regexp.Regexp, error) {
	p.once.Do(func() { p.re, p.err = regexp.Compile(p.text) })
	return p.re, p.err
}

// matches is false for all texts if the expression is none.
func (p *pattern) matches(text string) bool {
	re, err := p.compiled()
	return err == nil && re.MatchString(text)
}
