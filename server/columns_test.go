package server_test

import (
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/server"
)

// A table has one column Name: the built-in one, or the one that replaces it.
func TestColumnCalledName(t *testing.T) {
	t.Parallel()
	name := func(name, format string) server.Column[*Widget] {
		return server.Column[*Widget]{Name: name, Format: format, Value: func(w *Widget) any { return w.Name }}
	}
	for _, c := range []struct {
		columns []server.Column[*Widget]
		want    string // "" when they are served
	}{
		{[]server.Column[*Widget]{name("Size", ""), name("name", "")}, `column 1, "name": every table has a column of that name`},
		{[]server.Column[*Widget]{name("Name", "name")}, ""},
		{[]server.Column[*Widget]{name("Called", "name"), name("Name", "")}, ""},
		{[]server.Column[*Widget]{name("Name", "name"), name("Name", "")}, `column 1, "Name": another column has that name`},
	} {
		widget := server.Kind("Widget", server.KindOptions[*Widget]{Columns: c.columns})
		srv, err := server.New(server.Options{Groups: []server.Group{{Name: "example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{widget}}}}}})
		if err == nil {
			err = srv.Close()
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
