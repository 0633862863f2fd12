package rules

import (
	"sync"
	"time"

	"github.com/keelson-dev/keelson/runtime/structural"
)

const (
	maxPassed   = 4096        // fingerprints in checked.passed, at most
	maxKeptFor  = time.Minute // how long rules are kept that nobody takes
	maxKeptOnce = MaxRules    // rules in checked.rules, at most
)

// checked has the schemas that Check found no errors in. The zero value is ready to use. All methods may be called concurrently.
type checked struct {
	mu     sync.Mutex // guards the fields below
	passed map[structural.Fingerprint]struct{}
	order  []structural.Fingerprint // of passed, a ring
	next   int                      // the index in order that is written next
	rules  map[structural.Fingerprint]*kept
	kept   int // the rules in rules
}

// kept has compiled rules that are not taken yet.
type kept struct {
	*Rules
	count int
	timer *time.Timer // drops the rules
}

// has reports whether a schema is known to have no errors.
func (c *checked) has(f structural.Fingerprint) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.passed[f]
	return ok
}

// add adds a schema without errors. make returns its compiled rules.
func (c *checked) add(f structural.Fingerprint, make func() (*Rules, error)) {
	c.pass(f)
	compiled, err := make()
	if err != nil || compiled == nil {
		return // Compile returns the error too
	}
	k := &kept{Rules: compiled, count: compiled.root.count()}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(f, nil)
	for other := range c.rules {
		if c.kept+k.count <= maxKeptOnce {
			break
		}
		c.drop(other, nil)
	}
	if c.rules == nil {
		c.rules = map[structural.Fingerprint]*kept{}
	}
	c.rules[f] = k
	c.kept += k.count
	k.timer = time.AfterFunc(maxKeptFor, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.drop(f, k)
	})
}

// pass records that a schema has no errors. If there are too many schemas, the one that was recorded first is forgotten.
func (c *checked) pass(f structural.Fingerprint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.passed[f]; ok {
		return
	}
	if c.passed == nil {
		c.passed = map[structural.Fingerprint]struct{}{}
	}
	if len(c.order) < maxPassed {
		c.order = append(c.order, f)
	} else {
		delete(c.passed, c.order[c.next])
		c.order[c.next] = f
		c.next = (c.next + 1) % maxPassed
	}
	c.passed[f] = struct{}{}
}

// take returns the compiled rules of a schema, if they are kept, and keeps them no longer.
func (c *checked) take(f structural.Fingerprint) *Rules {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.rules[f]
	if k == nil {
		return nil
	}
	c.drop(f, nil)
	return k.Rules
}

// drop drops the rules of a schema: k, or any if k is nil. The caller holds mu.
func (c *checked) drop(f structural.Fingerprint, k *kept) {
	is := c.rules[f]
	if is == nil || k != nil && is != k {
		return
	}
	is.timer.Stop()
	c.kept -= is.count
	delete(c.rules, f)
}

// count returns the number of rules of a node and the nodes inside it.
func (n *node) count() int {
	if n == nil {
		return 0
	}
	sum := len(n.rules) + n.items.count() + n.additional.count()
	for _, p := range n.properties {
		sum += p.count()
	}
	return sum
}

// Take returns the rules of a schema in which [Compiler.Check] found no errors during the last minute, or nil if the Compiler
// does not have these rules any more. The rules are the same as those that [Compiler.Compile] would return. A second call for the
// same schema returns nil.
func (c *Compiler) Take(f structural.Fingerprint) *Rules { return c.checked.take(f) }
