// Package program is what the servers of the bench have in common as programs: the flags -addr, -cert, -key and
// -token, the line that says that they are ready, how they end, and what they tell of themselves when they are sent
// a signal.
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
// # What a program tells of itself
//
// On SIGUSR1 it collects its garbage and prints a line of JSON on stdout, a Report. On SIGUSR2 it begins a CPU
// profile in the file that the environment variable BENCH_PROFILE names, and ends it at the next one; without the
// variable nothing happens. A report that was asked for after a profile was begun or ended comes after that is done.
// A system does not count signals of one sort that it has not delivered: wait for the report of one before the next.
// Windows has neither signal.
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

// Exit statuses of Run.
const (
	ok     = 0
	failed = 1
	misuse = 2 // of the command line
)

// UsageError is a mistake on the command line that the flags alone do not show.
type UsageError struct{ Message string }

func (e *UsageError) Error() string { return e.Message }

// Usagef makes a UsageError.
func Usagef(format string, args ...any) error {
	return &UsageError{fmt.Sprintf(format, args...)}
}

// Run parses the command line and runs serve until it returns, which it does soon after its context has ended. What
// it returns is the exit status of the process: 0, 1 for an error, 2 for one of the command line, which is a
// UsageError or one of flags. Errors are printed on stderr, after the program's name.
func Run(flags *flag.FlagSet, args []string, serve func(ctx context.Context, p *Process) error) int {
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return ok
	case err != nil:
		return misuse // flags has said why
	case flags.NArg() > 0:
		fmt.Fprintf(os.Stderr, "%s: unexpected argument %q\n", flags.Name(), flags.Arg(0))
		return misuse
	}
	ctx, end := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer end()
	context.AfterFunc(ctx, end) // the next signal is not caught
	p := &Process{stdout: os.Stdout}
	quiet := p.listen(ctx)
	err := serve(ctx, p)
	end()
	quiet()
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
	mu     sync.Mutex // guards stdout: lines are whole
	stdout io.Writer
}

// Ready says, once, that the server answers at a URL.
func (p *Process) Ready(url string) { p.print("ready " + url) }

func (p *Process) print(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintln(p.stdout, line)
}
