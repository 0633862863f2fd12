// Command bench compares keelson with a server built on k8s.io/apiserver, and with net/http with prepared bytes:
//
//	go run ./examples/bench            # from the root of the repository: half an hour
//	go run ./examples/bench -quick     # a few minutes, coarse
//	go run ./examples/bench -servers keelson-bolt,apiserver-etcd -only '^get/'
//
// NEWCOMER.md lists the costs of a first program with this library. TestNewcomer of this package measures them.
//
// It builds all servers, runs them one after the other on loopback under the same loads, and writes a report in Markdown. It
// prints its progress to stderr. It ends all processes and removes all temporary files at the end. It exits with 1 if something
// could not be measured, and lists that at the end of the report.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/keelson-dev/keelson/examples/bench/internal/figures"
	"github.com/keelson-dev/keelson/examples/bench/internal/proc"
	"github.com/keelson-dev/keelson/examples/bench/internal/report"
	"github.com/keelson-dev/keelson/examples/bench/internal/scenario"
)

func main() {
	c, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, cancel) // a second signal ends the program at once, and the kernel ends its children
	complete, err := c.run(ctx)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
	if err != nil || !complete {
		os.Exit(1)
	}
}

// config is the command line.
type config struct {
	plan     scenario.Plan
	out      string // file; "" means stdout
	profiles string // directory; "" means none
	dir      string // parent of the directory for programs and data; "" means that for temporary files
	command  string
}

func parse(args []string) (config, error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	quick := flags.Bool("quick", false, "take a few minutes instead of half an hour, with fewer objects and coarser figures")
	only := flags.String("only", "", "measure only scenarios whose name matches this `regexp`; the names are below")
	servers := flags.String("servers", "", "measure only these servers, a comma separated `list` of "+strings.Join(figures.Servers(), ", "))
	objects := flags.String("objects", "", "how many objects there are, a comma separated `list` of sizes (default 10000,100000)")
	rounds := flags.Int("rounds", 0, "how `often` each figure is measured (default 3)")
	c := config{command: strings.Join(append([]string{"go run ./examples/bench"}, args...), " ")}
	flags.StringVar(&c.out, "out", "", "`file` to write the report to (default stdout)")
	flags.StringVar(&c.profiles, "profile", "", "`directory` for a CPU profile of the server for each scenario")
	flags.StringVar(&c.dir, "dir", "", "`directory` on the disk where the servers shall keep their data (default that for temporary files)")
	flags.Usage = func() {
		fmt.Fprintf(flags.Output(), "Usage of bench:\n")
		flags.PrintDefaults()
		fmt.Fprintf(flags.Output(), "The scenarios are %s.\n", strings.Join(scenario.Full().Scenarios(), ", "))
	}
	if err := flags.Parse(args); err != nil {
		return config{}, err
	}
	if flags.NArg() > 0 {
		return config{}, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	c.plan = scenario.Full()
	if *quick {
		c.plan = scenario.Quick()
	}
	var err error
	if c.plan.Only, err = regexp.Compile(*only); err != nil {
		return config{}, fmt.Errorf("-only: %w", err)
	}
	if *servers != "" {
		c.plan.Servers = strings.Split(*servers, ",")
	}
	if *rounds > 0 {
		c.plan.Rounds = *rounds
	}
	if *objects != "" {
		c.plan.Objects = nil
		for _, size := range strings.Split(*objects, ",") {
			n, err := strconv.Atoi(size)
			if err != nil {
				return config{}, fmt.Errorf("-objects: %w", err)
			}
			c.plan.Objects = append(c.plan.Objects, n)
		}
	}
	return c, c.plan.Check()
}

// run measures and reports. complete is true if everything in the plan could be measured.
func (c config) run(ctx context.Context) (complete bool, err error) {
	debug.SetGCPercent(400) // the clients share the processors with the server
	dir, err := os.MkdirTemp(c.dir, "bench-")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if c.profiles != "" {
		if err := os.MkdirAll(c.profiles, 0o755); err != nil {
			return false, err
		}
	}
	began := time.Now()
	machine, err := proc.Describe(dir)
	if err != nil {
		return false, err
	}
	results := new(figures.Results)
	opts := scenario.Options{Log: os.Stderr, Profiles: c.profiles}
	if err := scenario.Run(ctx, dir, c.plan, opts, results); err != nil {
		return false, err
	}
	err = c.write(func(w io.Writer) error {
		return report.Write(w, report.Run{
			Machine: machine, Plan: c.plan, Results: results, Command: c.command, Date: began, Took: time.Since(began),
		})
	})
	return len(results.Failures()) == 0, err
}

// write calls report with the output of the command line.
func (c config) write(report func(io.Writer) error) error {
	if c.out == "" {
		return report(os.Stdout)
	}
	f, err := os.Create(c.out)
	if err != nil {
		return err
	}
	return errors.Join(report(f), f.Close())
}
