// Command differ sends the same requests to two servers of the Kubernetes API and reports where their answers differ. It is a test
// of Keelson against kube-apiserver:
//
//	go run ./examples/e2e/differ -left kube-apiserver.kubeconfig -right keelson.kubeconfig -seed 1 -n 20000 -out REPORT.md
//
// The requests come from a grammar with a seed: equal seeds make equal requests. They are grouped in cases of 10 to 40 requests. A
// case has a namespace of its own, which is deleted at its end. A case that has begun makes all its requests, so there may be a few
// more than -n. Values that each server chooses, such as a resourceVersion, are recorded per server and used in later requests. A
// read whose answers differ is repeated up to twice, because a server may answer it from a cache that does not have a write yet.
//
// The servers must serve the kinds of server/builtin and CustomResourceDefinitions, as examples/crds does, and the users of the
// kubeconfig files must be allowed everything. The program creates and deletes namespaces, and CustomResourceDefinitions in groups
// that end in differ.example.com.
//
// The accepted differences are in accepted.go. All others are unexplained. The report groups them by signature, which is a text that
// is meant to be the same for all differences of one cause, and shows the first exchange of each. With the same -seed, -case and the
// number of a case in the report, only that case is run, and all its exchanges are printed to standard error. The exit code is 0 if
// there are only accepted differences, 1 if there are others, and 2 if the servers could not be compared.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	left := flag.String("left", "", "kubeconfig `file` of kube-apiserver")
	right := flag.String("right", "", "kubeconfig `file` of the server that is compared with it")
	out := flag.String("out", "", "`file` for the report in Markdown; standard output if empty")
	var o options
	flag.Uint64Var(&o.seed, "seed", 1, "`number` that chooses the requests")
	flag.IntVar(&o.requests, "n", 1000, "`number` of requests")
	flag.IntVar(&o.workers, "workers", 4, "`number` of cases that run at the same time")
	flag.IntVar(&o.only, "case", -1, "`number` of the only case to run; its requests and answers are printed")
	flag.DurationVar(&o.limit, "time", 30*time.Minute, "`duration` after which no further case begins")
	flag.StringVar(&o.note, "note", "", "`paragraph` for the report, such as the versions of servers that do not tell them")
	flag.Parse()
	if *left == "" || *right == "" || flag.NArg() > 0 || o.workers < 1 {
		fmt.Fprintln(os.Stderr, "differ: set -left and -right; there are no arguments")
		os.Exit(2)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	count, err := run(ctx, *left, *right, *out, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "differ:", err)
		os.Exit(2)
	}
	if count > 0 {
		fmt.Fprintf(os.Stderr, "differ: %d unexplained differences\n", count)
		os.Exit(1)
	}
}

// run compares the servers of two kubeconfig files and writes the report. It returns the number of unexplained differences.
func run(ctx context.Context, left, right, out string, o options) (int, error) {
	var both [2]*endpoint
	for i, path := range []string{left, right} {
		e, err := openKubeconfig(path)
		if err != nil {
			return 0, err
		}
		both[i] = e
	}
	began := time.Now()
	r, err := compareServers(ctx, both, o)
	if err != nil {
		return 0, err
	}
	text := r.markdown(began)
	if out == "" {
		fmt.Print(text)
	} else if err := os.WriteFile(out, []byte(text), 0o644); err != nil {
		return 0, err
	}
	return len(r.unexplained), nil
}
