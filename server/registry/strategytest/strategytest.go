package strategytest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/keelson-dev/keelson/server"
)

// Run checks cases about the kinds that a server with the Options o would store, each in a subtest of its name. Of o count
// Groups, Scheme, Policy.Admission, Limits.MaxObjectBytes and Now; the rest may be left as the program has it, for nothing is
// opened. Plug-ins that extensions would add are not asked: those that matter are listed in Policy.Admission. A Scheme is the
// table's from then on. A case that is wrong in itself ends its subtest, which says what to do about it.
func Run(t *testing.T, o server.Options, cases []Case) {
	t.Helper()
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for i, one := range cases {
		name := one.Name
		if name == "" {
			name = fmt.Sprintf("case %d", i)
		}
		t.Run(name, func(t *testing.T) {
			t.Helper()
			var wrong *mistakeError
			switch err := c.Check(one); {
			case errors.As(err, &wrong):
				t.Fatalf("strategytest: case %d, %q: %v", i, one.Name, err)
			case err != nil:
				t.Error(err)
			}
		})
	}
}

// Checker checks cases one by one: for fuzz tests, benchmarks and other frames than Run. It keeps nothing between two
// cases, and may be used concurrently.
type Checker struct {
	kinds *server.Registries
}

// New returns a Checker of cases about the kinds that a server with the Options o would store; see Run. An error says what
// is wrong with the kinds, as server.New does.
func New(o server.Options) (*Checker, error) {
	if o.Now == nil {
		o.Now = Now
	}
	kinds, err := server.NewRegistries(o)
	if err != nil {
		return nil, fmt.Errorf("strategytest: %w", err)
	}
	return &Checker{kinds}, nil
}

// Check makes the request of a case in a storage of its own. An error says all that came otherwise than the case wants it,
// or what is wrong with the case.
func (c *Checker) Check(one Case) (err error) {
	if err := one.mistake(); err != nil {
		return &mistakeError{err}
	}
	t := &trial{Case: one, kinds: c.kinds, scheme: c.kinds.Scheme()}
	ctx, cancel := context.WithCancel(context.Background()) // as that of a request, it ends with the answer
	defer cancel()
	if err := t.begin(ctx); err != nil {
		return errors.Join(&mistakeError{err}, t.end())
	}
	return errors.Join(t.judge(), t.end())
}

// mistakeError says what is wrong with a case itself.
type mistakeError struct{ why error }

func (e *mistakeError) Error() string { return fmt.Sprintf("the case is wrong: %v", e.why) }

func (e *mistakeError) Unwrap() error { return e.why }
