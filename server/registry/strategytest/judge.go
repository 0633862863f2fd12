package strategytest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/storage"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// judge makes the request and returns an error if the result differs from the case.
func (t *trial) judge() error {
	got := t.ask()
	problems := []string{
		differing("errors", texts(got.err), t.Errors),
		differing("warnings", t.warned.Texts(), t.Warnings),
	}
	if got.err == nil && len(t.Errors) == 0 {
		problems = append(problems, t.judgeObject(got.last))
	}
	problems = slices.DeleteFunc(problems, func(p string) bool { return p == "" })
	if len(problems) == 0 {
		return nil
	}
	return errors.New(strings.Join(problems, "\n"))
}

// judgeObject compares the state after an accepted request with the case. It returns "" if there is no difference.
func (t *trial) judgeObject(last storage.Record) string {
	obj, err := t.now(last)
	switch {
	case err != nil && !errors.Is(err, errGone):
		return fmt.Sprintf("the object cannot be read afterwards: %v", err)
	case err == nil && t.Gone:
		return "the object is still stored, want it gone: " + kept(obj)
	case err != nil && !t.Gone:
		return "the object is gone; if that is right, say Gone"
	case err != nil && t.Want != nil:
		if obj, err = t.stored.Registry.Decode(last); err != nil {
			return fmt.Sprintf("the object that is gone cannot be read: %v", err)
		}
	}
	if t.Want == nil {
		return ""
	}
	lines, err := t.differences(obj)
	if err != nil {
		return fmt.Sprintf("the object cannot be compared: %v", err)
	}
	if len(lines) == 0 {
		return ""
	}
	return "the object differs:\n\t" + strings.Join(lines, "\n\t")
}

// kept returns a text that says what keeps an object.
func kept(obj runtime.Object) string {
	m, err := meta.Accessor(obj)
	switch {
	case err != nil:
		return err.Error()
	case m.GetDeletionTimestamp() == nil:
		return "it is not marked for deletion"
	case len(m.GetFinalizers()) > 0:
		return fmt.Sprintf("it waits for its finalizers %q", m.GetFinalizers())
	case m.GetDeletionGracePeriodSeconds() != nil && *m.GetDeletionGracePeriodSeconds() > 0:
		return fmt.Sprintf("its grace period is %d seconds", *m.GetDeletionGracePeriodSeconds())
	}
	return "the kind's own Finalizing or Terminate keeps it"
}

// differences compares an object with Want, in the version of Want.
func (t *trial) differences(obj runtime.Object) ([]string, error) {
	if want, ok := t.Want.(*runtime.Scale); ok {
		m, err := meta.Accessor(obj)
		if err != nil {
			return nil, err
		}
		got, err := t.stored.Scale.Get(t.call, m.GetName(), nil)
		if err != nil {
			return nil, err
		}
		return compare(got, want, runtime.ScaleKind(), t.Ignore)
	}
	k, err := t.kindOf(t.Want)
	if err != nil {
		return nil, err
	}
	got, err := t.scheme.ToVersion(obj, k.GVK.GroupVersion())
	if err != nil {
		return nil, err
	}
	ignore := t.Ignore
	if m, err := meta.Accessor(t.Want); err == nil && t.Gone && m.GetDeletionTimestamp() == nil {
		ignore = append(slices.Clip(ignore), "metadata.deletionTimestamp")
	}
	return compare(got, t.Want, k.GVK, ignore)
}

// texts returns the texts of an error, in the format of Case.Errors: for an Invalid, one text for each field error; for another
// refusal, the reason and message. nil has no texts.
func texts(err error) []string {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &status):
		return []string{err.Error()}
	}
	s := status.Status()
	var out []string
	if s.Reason == metav1.StatusReasonInvalid && s.Details != nil {
		for _, cause := range s.Details.Causes {
			out = append(out, cause.Field+": "+cause.Message)
		}
	}
	switch {
	case out != nil:
		return out
	case s.Reason == metav1.StatusReasonUnknown:
		return []string{s.Message}
	}
	return []string{string(s.Reason) + ": " + s.Message}
}

// differing describes the texts that are unexpected or missing. It returns "" if there are none.
func differing(what string, got, want []string) string {
	came, missing := unmatched(got, want)
	if len(came)+len(missing) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s differ:", what)
	for _, text := range missing {
		fmt.Fprintf(&b, "\n\tmissing:      %s", text)
	}
	for _, text := range came {
		fmt.Fprintf(&b, "\n\tnot expected: %s", text)
	}
	return b.String()
}

// unmatched pairs each expected text with a text that occurred, and returns the texts that are left over, in their order. The
// longest expected texts are paired first: a text that a longer one matches may also be matched by a shorter one, but not vice
// versa.
func unmatched(got, want []string) (came, missing []string) {
	order := make([]int, len(want))
	for i := range want {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return len(want[b]) - len(want[a]) })
	taken, found := make([]bool, len(got)), make([]bool, len(want))
	for _, w := range order {
		for g, text := range got {
			if !taken[g] && fits(text, want[w]) {
				taken[g], found[w] = true, true
				break
			}
		}
	}
	for g, text := range got {
		if !taken[g] {
			came = append(came, text)
		}
	}
	for w, text := range want {
		if !found[w] {
			missing = append(missing, text)
		}
	}
	return came, missing
}

// fits reports whether a text is equal to want, or begins with want and a colon and a space.
func fits(text, want string) bool {
	rest, ok := strings.CutPrefix(text, want)
	return ok && (rest == "" || strings.HasPrefix(rest, ": "))
}
