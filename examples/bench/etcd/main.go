// Command etcd runs one member of etcd for the servers of the bench that store their objects in etcd. As usual for etcd, writes
// are on disk before they are answered.
//
//	go run ./examples/bench/etcd -data DIR
package main

import (
	"context"
	"errors"
	"flag"
	"os"

	"github.com/keelson-dev/keelson/examples/bench/internal/program"
	"github.com/keelson-dev/keelson/storage/etcd/embedded"
)

func main() {
	flags := flag.NewFlagSet("etcd", flag.ContinueOnError)
	data := flags.String("data", "", "`directory` of the member's data; it is made if it is missing")
	addr := flags.String("addr", "127.0.0.1:0", "`address` to serve clients on; port 0 picks a free one")
	os.Exit(program.Run(flags, os.Args[1:], func(ctx context.Context, p *program.Process) error {
		if *data == "" {
			return program.Usagef("-data is missing: the directory of the member's data")
		}
		return serve(ctx, p, embedded.Options{
			Dir: *data, ListenClient: *addr,
			QuotaBytes: 8 << 30, // a long run writes more than etcd's 2 GiB between two compactions
		})
	}))
}

func serve(ctx context.Context, p *program.Process, o embedded.Options) error {
	member, err := embedded.Start(ctx, o)
	if err != nil {
		return err
	}
	p.Ready(member.Endpoints()[0])
	select {
	case <-ctx.Done():
		return member.Close()
	case <-member.Done():
		return errors.Join(member.Err(), member.Close())
	}
}
