package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/keelson-dev/keelson/server/internal/background"
)

// Hook is work that an extension does once, when the server serves what the extension adds, such as making objects that must exist.
// That may be before the server listens. See Host.Start.
type Hook struct {
	// Name is the name of the hook, which all extensions share. /readyz, /livez and /healthz have a check "poststarthook/" and the
	// name, which fails until Run has returned nil.
	Name string
	// After are the names of hooks that must have ended before Run is called.
	After []string
	// Run does the work. Hooks that do not wait for each other run at the same time. ctx ends with the server. After an error the
	// server ends: Run and Serve return the error.
	Run func(ctx context.Context) error
}

// hookCheck is the prefix of the names of the health checks of hooks.
const hookCheck = "poststarthook/"

// hooks are the hooks of all extensions of a server. All methods may be called concurrently.
type hooks struct {
	mu    sync.Mutex // guards known and stops
	known map[string]*hooking
	stops []stopHook // in the order in which they were added
}

// hooking is a hook that was begun or will be.
type hooking struct {
	Hook
	done chan struct{} // closed when Run has returned nil
}

type stopHook struct {
	name string
	run  func(ctx context.Context) error
}

// add makes hooks known. It returns an error, and adds none, if a name is taken, or if a hook would wait for ever.
func (h *hooks) add(more []Hook) ([]*hooking, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.check(more); err != nil {
		return nil, err
	}
	if h.known == nil {
		h.known = map[string]*hooking{}
	}
	var added []*hooking
	for _, m := range more {
		one := &hooking{Hook: m, done: make(chan struct{})}
		h.known[m.Name] = one
		added = append(added, one)
	}
	return added, nil
}

// remove forgets hooks that will not run, because Install has failed.
func (h *hooks) remove(all []*hooking) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, one := range all {
		delete(h.known, one.Name)
	}
}

// check is for add.
func (h *hooks) check(more []Hook) error {
	after := map[string][]string{}
	for _, m := range more {
		if m.Name == "" || m.Run == nil {
			return fmt.Errorf("server: hook %q: want a name and a function Run", m.Name)
		}
		if _, twice := after[m.Name]; twice || h.known[m.Name] != nil {
			return fmt.Errorf("server: hook %q: there is another of that name", m.Name)
		}
		after[m.Name] = m.After
	}
	for _, m := range more {
		for _, name := range m.After {
			if _, new := after[name]; !new && h.known[name] == nil {
				return fmt.Errorf("server: hook %q is to run after %q, which no extension has added: install that one before, or name another", m.Name, name)
			}
		}
	}
	ended := map[string]bool{} // hooks that wait for none of more, or only for those that are ended
	for len(ended) < len(more) {
		before := len(ended)
		for _, m := range more {
			if !slices.ContainsFunc(m.After, func(name string) bool { _, new := after[name]; return new && !ended[name] }) {
				ended[m.Name] = true
			}
		}
		if len(ended) == before {
			return fmt.Errorf("server: the hooks %s wait for each other: leave out a name in After", strings.Join(left(more, ended), ", "))
		}
	}
	return nil
}

// left returns the names of the hooks that are not in ended, quoted.
func left(all []Hook, ended map[string]bool) []string {
	var names []string
	for _, h := range all {
		if !ended[h.Name] {
			names = append(names, strconv.Quote(h.Name))
		}
	}
	return names
}

// wait returns nil when the hooks of these names have ended, or the error of ctx.
func (h *hooks) wait(ctx context.Context, names []string) error {
	for _, name := range names {
		h.mu.Lock()
		one := h.known[name]
		h.mu.Unlock()
		if one == nil { // its Install has failed
			return fmt.Errorf("it is to run after %q, whose extension could not be installed", name)
		}
		select {
		case <-one.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// guarded calls f, and returns a panic as an error.
func guarded(ctx context.Context, panics *background.Panics, f func(ctx context.Context) error) (err error) {
	defer panics.Caught(&err)
	return f(ctx)
}

// check returns the health check of a hook.
func (h *hooking) check() Check {
	return Check{Name: hookCheck + h.Name, starts: true, Check: func(context.Context) error {
		select {
		case <-h.done:
			return nil
		default:
			return errors.New("not finished")
		}
	}}
}
