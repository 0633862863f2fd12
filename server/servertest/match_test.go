package servertest_test

import (
	"context"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestFaultsByMatch(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, server.Options{})
	h.want(201, h.create("sloop"))
	status := boats + "/sloop/status"
	apply := []string{"Content-Type", "application/apply-patch+yaml; charset=utf-8"}
	for _, tc := range []struct {
		match        servertest.Match
		method, path string
		header       []string
		want         bool
	}{
		{servertest.Match{}, "GET", boats, nil, true},
		{servertest.Match{}, "GET", "/apis/sea.example.com/v1", nil, false},
		{servertest.Match{}, "GET", "/healthz", nil, false},
		{servertest.Match{Resources: []string{"boats"}}, "GET", boats + "/sloop", nil, true},
		{servertest.Match{Resources: []string{"boats"}}, "GET", status, nil, false},
		{servertest.Match{Resources: []string{"boats/status"}}, "GET", status, nil, true},
		{servertest.Match{Resources: []string{"boats/status"}}, "GET", boats + "/sloop", nil, false},
		{servertest.Match{Resources: []string{"boats/*"}}, "GET", status, nil, true},
		{servertest.Match{Resources: []string{"boats/*"}}, "GET", boats, nil, false},
		{servertest.Match{Resources: []string{"*/status"}}, "GET", status, nil, true},
		{servertest.Match{Resources: []string{"*"}}, "GET", status, nil, true},
		{servertest.Match{Resources: []string{"boats.sea.example.com/status"}}, "GET", status, nil, true},
		{servertest.Match{Resources: []string{"boats.sea.example.com"}}, "GET", boats, nil, true},
		{servertest.Match{Resources: []string{"boats.lake.example.com"}}, "GET", boats, nil, false},
		{servertest.Match{Resources: []string{"ports", "boats"}}, "GET", boats, nil, true},
		{servertest.Match{Namespace: "port"}, "GET", boats, nil, true},
		{servertest.Match{Namespace: "starboard"}, "GET", boats, nil, false},
		{servertest.Match{Name: "sloop"}, "GET", status, nil, true},
		{servertest.Match{Name: "sloop"}, "GET", boats, nil, false},
		{servertest.Match{Name: "sloop"}, "GET", boats + "?fieldSelector=metadata.name%3Dsloop", nil, true},
		{servertest.Match{Verbs: []string{"list"}}, "GET", boats, nil, true},
		{servertest.Match{Verbs: []string{"list"}}, "GET", boats + "?watch=1", nil, false},
		{servertest.Match{Verbs: []string{"get", "watch"}}, "GET", boats + "?watch=1", nil, true},
		{servertest.Match{Verbs: []string{"patch"}}, "PATCH", boats + "/sloop", apply, true},
		{servertest.Match{Verbs: []string{"apply"}}, "PATCH", boats + "/sloop", apply, true},
		{servertest.Match{Verbs: []string{"apply"}}, "PATCH", boats + "/sloop", []string{"Content-Type", "application/merge-patch+json"}, false},
		{servertest.Match{Verbs: []string{"deletecollection"}}, "DELETE", boats, nil, true},
		{servertest.Match{Verbs: []string{"delete"}}, "DELETE", boats, nil, false},
		{servertest.Match{UserAgent: "mate/"}, "GET", boats, []string{"User-Agent", "mate/1.0 (linux)"}, true},
		{servertest.Match{UserAgent: "mate/"}, "GET", boats, []string{"User-Agent", "shipmate/1.0"}, false},
		{servertest.Match{User: "cook"}, "GET", boats, nil, false},
		{servertest.Match{User: h.admin()}, "GET", boats, nil, true},
	} {
		remove := h.Inject(servertest.Fault{Match: tc.match, Error: apierrors.NewGenericServerResponse(418, "get", boatResource(), "", "befallen", 0, true)})
		ctx, cancel := context.WithCancel(t.Context())
		if tc.want || !strings.Contains(tc.path, "watch") { // a watch would not end
			if got := h.doIn(ctx, tc.method, tc.path, "", tc.header...).code == 418; got != tc.want {
				t.Errorf("%s %s: befallen %v by %+v, want %v", tc.method, tc.path, got, tc.match, tc.want)
			}
		}
		cancel()
		remove()
	}
}
