//go:build unix

package program

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// listen handles signals until ctx ends. The returned function waits for the end of the handling.
func (p *Process) listen(ctx context.Context) func() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGUSR2)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer signal.Stop(signals)
		p.handle(ctx, signals)
	}()
	return func() { <-done }
}

// reorderDelay is how long a report waits for an earlier signal of another kind: neither the system nor Go keeps the order of
// different signals that are sent at about the same time.
const reorderDelay = 20 * time.Millisecond

func (p *Process) handle(ctx context.Context, signals <-chan os.Signal) {
	var cpu profile
	complain := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, "profile:", err)
		}
	}
	defer func() { complain(cpu.end()) }()
	reports := 0 // number of requested reports
	var soon <-chan time.Time
	for {
		select {
		case s := <-signals:
			if s == syscall.SIGUSR2 {
				complain(cpu.toggle())
			} else if reports++; reports == 1 {
				soon = time.After(reorderDelay)
			}
		case <-soon:
			for ; reports > 0; reports-- {
				p.tell()
			}
		case <-ctx.Done():
			return
		}
	}
}
