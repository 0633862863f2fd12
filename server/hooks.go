package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/keelson-dev/keelson/server/internal/apiset"
	"go.uber.org/zap"
)

// Hook is work that an extension does once, when the server serves what the extension adds, such as making objects that must exist.
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
	stops []stopHook
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

// check returns an error if hooks cannot be added to those that are known: if a name is taken, or if a hook would wait for ever.
func (h *hooks) check(more []Hook) error {
	h.mu.Lock()
	defer h.mu.Unlock()
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
		if cycle := cycleFrom(m.Name, after, nil); cycle != nil {
			return fmt.Errorf("server: hook %q waits for itself: %s", m.Name, strings.Join(cycle, " after "))
		}
	}
	return nil
}

// cycleFrom returns a way from the last name of path to a name that is on the path already, or nil if there is none.
func cycleFrom(name string, after map[string][]string, path []string) []string {
	path = append(path, name)
	if slices.Contains(path[:len(path)-1], name) {
		return path
	}
	for _, next := range after[name] {
		if cycle := cycleFrom(next, after, path); cycle != nil {
			return cycle
		}
	}
	return nil
}

// add makes hooks known, which check has accepted.
func (h *hooks) add(more []Hook) []*hooking {
	h.mu.Lock()
	defer h.mu.Unlock()
	var added []*hooking
	for _, m := range more {
		one := &hooking{Hook: m, done: make(chan struct{})}
		if h.known == nil {
			h.known = map[string]*hooking{}
		}
		h.known[m.Name] = one
		added = append(added, one)
	}
	return added
}

// wait returns nil when the hooks of these names have ended, or the error of ctx.
func (h *hooks) wait(ctx context.Context, names []string) error {
	for _, name := range names {
		h.mu.Lock()
		one := h.known[name]
		h.mu.Unlock()
		select {
		case <-one.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
