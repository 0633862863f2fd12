package strategytest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/keelson-dev/keelson/server"
)

// Run checks cases about the kinds that a server with the Options o would store, each in a subtest with the name of the case. Run
// uses the fields Groups, Scheme, Policy.Admission, Limits.MaxObjectBytes and Now of o. The other fields may be set, but nothing
// is opened for them. Plug-ins that extensions of the server add are not called: list the plug-ins that the cases need in
// Policy.Admission. A Scheme in o must not be used elsewhere afterwards. If a case itself is invalid, its subtest ends with a
// message that says how to correct it.
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

// Checker checks cases one by one, for fuzz tests and benchmarks. It keeps no state between cases, and may be used concurrently.
type Checker struct {
	kinds *server.Registries
}

// New returns a Checker of cases about the kinds that a server with the Options o would store; see Run. It returns the errors
// that server.New returns for invalid kinds.
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

// Check makes the request of a case in a new storage. The error has all differences between the result and the case, or says why
// the case is invalid.
func (c *Checker) Check(one Case) (err error) {
	if err := one.mistake(); err != nil {
		return &mistakeError{err}
	}
	t := &trial{Case: one, kinds: c.kinds, scheme: c.kinds.Scheme()}
	ctx, cancel := context.WithCancel(context.Background()) // like the context of a request, it ends when the request is answered
	defer cancel()
	if err := t.begin(ctx); err != nil {
		return errors.Join(&mistakeError{err}, t.end())
	}
	return errors.Join(t.judge(), t.end())
}

// mistakeError says why a case is invalid.
type mistakeError struct{ why error }

func (e *mistakeError) Error() string { return fmt.Sprintf("the case is wrong: %v", e.why) }

func (e *mistakeError) Unwrap() error { return e.why }
