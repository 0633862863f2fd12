package metrics

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/server/request"
)

// verb is a value of the label verb.
type verb int

const (
	verbGet verb = iota
	verbList
	verbWatch
	verbPost
	verbPut
	verbPatch
	verbApply
	verbDelete
	verbConnect
	verbOther
	numVerbs
)

// String returns the label.
func (v verb) String() string {
	return [numVerbs]string{"GET", "LIST", "WATCH", "POST", "PUT", "PATCH", "APPLY", "DELETE", "CONNECT", "other"}[v]
}

// verbOf returns the label verb of a request. connect are the HTTP methods that connect to its resource.
func verbOf(r *http.Request, info *request.Info, connect []string) verb {
	if info.Verb == "watch" {
		return verbWatch
	}
	if len(connect) > 0 && named(info) && slices.Contains(connect, r.Method) {
		return verbConnect
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		if info.Verb == "list" {
			return verbList
		}
		return verbGet
	case http.MethodPost:
		return verbPost
	case http.MethodPut:
		return verbPut
	case http.MethodDelete:
		return verbDelete
	case http.MethodPatch:
		switch r.Header.Get("Content-Type") {
		case "application/apply-patch+yaml", "application/apply-patch+cbor":
			return verbApply
		}
		return verbPatch
	}
	return verbOther
}

// writes reports whether a request has an object whose fields are validated.
func (v verb) writes() bool {
	return v == verbPost || v == verbPut || v == verbPatch || v == verbApply
}

// scope is a value of the label scope.
type scope int

const (
	scopeNone scope = iota
	scopeResource
	scopeNamespace
	scopeCluster
	numScopes
)

// String returns the label.
func (s scope) String() string { return [numScopes]string{"", "resource", "namespace", "cluster"}[s] }

// named reports whether the path of a request names an object.
func named(info *request.Info) bool { return len(info.Parts) > 1 && info.Parts[1] != "" }

// scopeOf returns the label scope of a request. one is true if the request is for one object.
func scopeOf(info *request.Info, one bool) scope {
	switch {
	case !info.ResourceRequest:
		return scopeNone
	case one || info.Verb == "create":
		return scopeResource
	case info.Namespace != "":
		return scopeNamespace
	}
	return scopeCluster
}

// dryRun is a value of the label dry_run.
type dryRun int

const (
	dryRunNone dryRun = iota
	dryRunAll
	dryRunInvalid
	numDryRuns
)

// String returns the label.
func (d dryRun) String() string { return [numDryRuns]string{"", "All", "invalid"}[d] }

// validation is a value of the label field_validation.
type validation int

const (
	validationNone validation = iota
	validationIgnore
	validationWarn
	validationStrict
	validationInvalid
	numValidations
)

// String returns the label.
func (v validation) String() string {
	return [numValidations]string{"", "Ignore", "Warn", "Strict", "invalid"}[v]
}

// options returns the labels of those options of a request that are labels.
func options(u *url.URL) (d dryRun, v validation) {
	if !strings.Contains(u.RawQuery, "dryRun") && !strings.Contains(u.RawQuery, "fieldValidation") && !strings.Contains(u.RawQuery, "%") {
		return dryRunNone, validationNone
	}
	q := u.Query()
	if values := q["dryRun"]; len(values) > 0 {
		d = dryRunAll
		if slices.ContainsFunc(values, func(s string) bool { return s != "All" }) {
			d = dryRunInvalid
		}
	}
	values := q["fieldValidation"]
	switch {
	case len(values) == 0:
	case len(values) > 1:
		v = validationInvalid
	case values[0] == "":
	case values[0] == "Ignore":
		v = validationIgnore
	case values[0] == "Warn":
		v = validationWarn
	case values[0] == "Strict":
		v = validationStrict
	default:
		v = validationInvalid
	}
	return d, v
}
