// Package program is the common part of the servers of the bench: the flags -addr, -cert, -key and -token, the ready line, the
// end, and the reports on signals.
//
//	func main() {
//		var o program.Options
//		flags := o.Flags("keelson")
//		data := flags.String("data", "", "...")
//		os.Exit(program.Run(flags, os.Args[1:], func(ctx context.Context, p *program.Process) error {
//			...
//			p.Ready("https://" + ln.Addr().String())
//			<-ctx.Done()
//			...
//		}))
//	}
//
// SIGTERM and SIGINT end the context; a second one ends the process at once.
//
// # Reports
//
// On SIGUSR1 a program collects its garbage and prints a line of JSON on stdout, a Report. On SIGUSR2 it begins a CPU profile in
// the file that the environment variable BENCH_PROFILE names, or ends the current profile; without the variable nothing happens.
// A report that is requested after the begin or the end of a profile is printed after that is done. A system does not count
// pending signals of one kind: wait for the report of one signal before you send the next. Windows has neither signal.
package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// These are the exit statuses of Run.
const (
	ok     = 0
	failed = 1
	misuse = 2 // of the command line
)

// UsageError is a mistake on the command line that package flag cannot detect.
type UsageError struct{ Message string }

// Error implements error.
func (e *UsageError) Error() string { return e.Message }

// Usagef returns a UsageError.
func Usagef(format string, args ...any) error {
	return &UsageError{fmt.Sprintf(format, args...)}
}

// Run parses the command line and runs serve until it returns, which it must do soon after its context has ended. Run returns the
// exit status of the process: 0, 1 for an error, or 2 for a mistake on the command line, which is a UsageError or an error of
// package flag. Errors are printed on stderr, after the program's name.
func Run(flags *flag.FlagSet, args []string, serve func(ctx context.Context, p *Process) error) int {
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return ok
	case err != nil:
		return misuse // package flag has printed the error
	case flags.NArg() > 0:
		fmt.Fprintf(os.Stderr, "%s: unexpected argument %q\n", flags.Name(), flags.Arg(0))
		return misuse
	}
	ctx, end := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer end()
	context.AfterFunc(ctx, end) // the next signal is not caught
	p := &Process{stdout: os.Stdout}
	wait := p.listen(ctx)
	err := serve(ctx, p)
	end()
	wait()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", flags.Name(), err)
		if usage := (*UsageError)(nil); errors.As(err, &usage) {
			return misuse
		}
		return failed
	}
	return ok
}

// Process is the running program. Its methods may be called concurrently.
type Process struct {
	mu     sync.Mutex // guards stdout, so that lines are whole
	stdout io.Writer
}

// Ready prints that the server answers at a URL. Call it once.
func (p *Process) Ready(url string) { p.print("ready " + url) }

func (p *Process) print(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintln(p.stdout, line)
}
