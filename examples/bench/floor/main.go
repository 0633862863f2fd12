// Command floor measures the minimum cost of serving widgets: net/http over TLS with prepared bytes. It only looks up the path
// and checks the token. It stores no objects. A server in Go that does the same work cannot be cheaper.
//
//	go run ./examples/bench/floor -addr 127.0.0.1:6443 -token secret -objects 10000
//
// It serves the requests of the bench: GET of a widget; LIST of all widgets, also compressed, in pages, and of one value of the
// label "group"; watch; and a PUT or PATCH of a widget, which changes nothing and sends an event to every watch.
package main

import (
	"context"
	"net/http"
	"os"

	"github.com/keelson-dev/keelson/examples/bench/internal/program"
)

func main() {
	var o program.Options
	flags := o.Flags("floor")
	objects := flags.Int("objects", 10_000, "`number` of widgets")
	os.Exit(program.Run(flags, os.Args[1:], func(ctx context.Context, p *program.Process) error {
		if *objects < 1 {
			return program.Usagef("-objects is %d; there must be one", *objects)
		}
		return serve(ctx, p, o, *objects)
	}))
}

// serve serves until ctx ends.
func serve(ctx context.Context, p *program.Process, o program.Options, objects int) error {
	cert, key, err := o.KeyPair()
	if err != nil {
		return err
	}
	all, err := prepare(objects)
	if err != nil {
		return err
	}
	ln, url, err := o.Listen(ctx)
	if err != nil {
		return err
	}
	f := &floor{prepared: all, feed: newFeed()}
	if o.Token != "" {
		f.credential = "Bearer " + o.Token
	}
	return p.Serve(ctx, ln, url, program.Server{Handler: http.Handler(f), Cert: cert, Key: key, End: f.feed.end})
}
