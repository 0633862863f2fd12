package filters

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/authn"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Headers that name the user whom a request impersonates.
const (
	userHeader  = "Impersonate-User"
	uidHeader   = "Impersonate-Uid"
	groupHeader = "Impersonate-Group"
	extraPrefix = "Impersonate-Extra-"
)

// maxImpersonated is the maximum number of groups and of values of extra attributes that a request may impersonate.
const maxImpersonated = 1000

// impersonated returns the user whom the headers of a request name, or nil if the request impersonates nobody. The first value of
// Impersonate-User is the name, the first of Impersonate-Uid the UID, and all of Impersonate-Group are groups. The values of headers
// Impersonate-Extra-KEY are extra attributes: see authn.ExtraKey.
//
// The error is an apierrors.StatusError with the code 400 if the headers name no user but something else, or have more than
// maxImpersonated groups and values.
func impersonated(h http.Header) (*authn.User, error) {
	u := authn.User{Name: h.Get(userHeader), UID: h.Get(uidHeader), Groups: slices.Clone(h[groupHeader])}
	values := len(u.Groups)
	for _, name := range extraHeaders(h) {
		if u.Extra == nil {
			u.Extra = map[string][]string{}
		}
		key := authn.ExtraKey(name[len(extraPrefix):])
		u.Extra[key] = append(u.Extra[key], h[name]...)
		values += len(h[name])
	}
	switch {
	case values > maxImpersonated:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the request impersonates a user with %d groups and values of extra attributes; at most %d are allowed", values, maxImpersonated))
	case u.Name != "":
		return &u, nil
	case u.UID != "" || values > 0:
		return nil, apierrors.NewBadRequest("the request has impersonation headers without impersonating a user name; set Impersonate-User, or remove them")
	}
	return nil, nil
}

// withoutImpersonation returns h without the headers that impersonated reads, so that nothing behind the check reads or forwards
// them. It does not change h, and returns h itself if there are none.
func withoutImpersonation(h http.Header) http.Header {
	names := extraHeaders(h)
	for _, name := range []string{userHeader, uidHeader, groupHeader} {
		if _, there := h[name]; there {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return h
	}
	out := h.Clone()
	for _, name := range names {
		delete(out, name)
	}
	return out
}

// extraHeaders returns the names of the headers with extra attributes, in order.
func extraHeaders(h http.Header) []string {
	var names []string
	for name := range h {
		if len(name) >= len(extraPrefix) && strings.EqualFold(name[:len(extraPrefix)], extraPrefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
