package server_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/server"
)

// answers is a filter that answers every request itself.
func answers(http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
}

func indexOf(list []server.NamedFilter, name string) int {
	return slices.IndexFunc(list, func(f server.NamedFilter) bool { return f.Name == name })
}

// Filters of a program cannot let requests pass that are not authorized, unless TrustFilters is set.
func TestFiltersCannotDisarmTheServer(t *testing.T) {
	t.Parallel()
	type list = []server.NamedFilter
	without := func(name string) func(list) list {
		return func(l list) list { i := indexOf(l, name); return slices.Delete(l, i, i+1) }
	}
	insert := func(before string, f server.NamedFilter) func(list) list {
		return func(l list) list { return slices.Insert(l, indexOf(l, before), f) }
	}
	for name, tc := range map[string]struct {
		filters func(list) list
		want    string
	}{
		"without authorize":    {without("authorize"), `removes the filter "authorize"`},
		"without authenticate": {without("authenticate"), `filter "authenticate"`},
		"without policy":       {without("policy"), `filter "policy"`},
		"without impersonate":  {without("impersonate"), `filter "impersonate"`},
		"nothing at all":       {func(list) list { return nil }, `removes the filter "policy"`},
		"authorize replaced":   {func(l list) list { l[indexOf(l, "authorize")].Filter = answers; return l }, `replaces or repeats the filter "authorize"`},
		"log replaced":         {func(l list) list { l[indexOf(l, "log")].Filter = answers; return l }, `replaces or repeats the filter "log"`},
		"authorize twice":      {func(l list) list { return append(l, server.NamedFilter{Name: "authorize"}) }, `repeats the filter "authorize"`},
		"in front":             {func(l list) list { return slices.Insert(l, 0, server.NamedFilter{Name: "own", Filter: answers}) }, `puts the filter "own" in front of "policy"`},
		"in between":           {insert("authorize", server.NamedFilter{Name: "own", Filter: answers}), `puts the filter "own" in front of "authorize"`},
		"moved": {func(l list) list {
			a, b := indexOf(l, "authenticate"), indexOf(l, "authorize")
			l[a], l[b] = l[b], l[a]
			return l
		}, `moves the filter "authorize"`},
	} {
		_, err := server.New(server.Options{Serving: server.Serving{Filters: tc.filters}})
		if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "TrustFilters") {
			t.Errorf("%s: %v\nwant it to say that it %s", name, err, tc.want)
		}
	}
	// Changes that are harmless, and changes that TrustFilters allows.
	for name, serving := range map[string]server.Serving{
		"behind authorize": {Filters: func(l list) list { return append(l, server.NamedFilter{Name: "own", Filter: answers}) }},
		"without log":      {Filters: without("log")},
		"without metrics":  {Filters: without("metrics")},
		"trusted":          {TrustFilters: true, Filters: without("authorize")},
	} {
		srv, err := server.New(server.Options{Serving: serving})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_ = srv.Close()
	}
}
