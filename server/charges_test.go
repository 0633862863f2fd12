package server_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/storage"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// quotaTally is a plug-in that counts objects, like a quota: it counts up at a create and down at a delete, and reverts that when
// the change fails.
type quotaTally struct{ objects, updates atomic.Int64 }

func (q *quotaTally) Validate(_ context.Context, r *admission.Request) error {
	charge := func(count *atomic.Int64, n int64) {
		count.Add(n)
		r.OnFailure(func(context.Context) { count.Add(-n) })
	}
	switch {
	case r.DryRun:
	case r.Operation == admission.Create:
		charge(&q.objects, 1)
	case r.Operation == admission.Delete:
		charge(&q.objects, -1)
	case r.Operation == admission.Update:
		charge(&q.updates, 1)
	}
	return nil
}

// counted is a server whose widgets are counted, and then refused if their color is "refused".
func counted(t *testing.T) (*servertest.Server, *quotaTally) {
	t.Helper()
	q := &quotaTally{}
	srv := servertest.New(t, widgets())
	err := host(t, srv).Admit(
		admission.Plugin{Name: "a-first", Validator: q},
		admission.Plugin{Name: "b-refuses", Validator: admission.ValidatorFunc(func(_ context.Context, r *admission.Request) error {
			if w, ok := r.Object().(*Widget); ok && w.Spec.Color == "refused" {
				return errors.New("no such colour")
			}
			if w, ok := r.Object().(*Widget); ok && w.Spec.Color == "unknown" {
				return apierrors.NewInternalError(errors.New("the colours cannot be read"))
			}
			return nil
		})},
	)
	if err != nil {
		t.Fatal(err)
	}
	return srv, q
}

func stored(t *testing.T, srv *servertest.Server) int64 {
	t.Helper()
	code, body := tryCall(t, srv.Client(), "GET", srv.URL+widgetsPath, "")
	if code != 200 {
		t.Fatalf("%d %s", code, body)
	}
	return int64(strings.Count(body, `"uid":"`))
}

// The count for a change that has failed is reverted, whatever the reason was.
func TestChargesOfFailedChanges(t *testing.T) {
	t.Parallel()
	srv, q := counted(t)
	named := func(name, rest string) string { return fmt.Sprintf(`{"metadata":{"name":%q%s}}`, name, rest) }
	objects, updates := int64(0), int64(0)
	for _, step := range []struct {
		what, method, path, body string
		code                     int
		objects, updates         int64 // the expected increase of the counts
	}{
		{"created", "POST", "", named("a", ""), 201, 1, 0},
		{"AlreadyExists", "POST", "", named("a", ""), 409, 0, 0},
		{"a later plug-in", "POST", "", `{"metadata":{"name":"b"},"spec":{"color":"refused"}}`, 403, 0, 0},
		{"a later plug-in that fails", "POST", "", `{"metadata":{"name":"b"},"spec":{"color":"unknown"}}`, 500, 0, 0},
		{"a later plug-in that fails, of a generateName", "POST", "", `{"metadata":{"generateName":"b-"},"spec":{"color":"unknown"}}`, 500, 0, 0},
		{"validation", "POST", "", named("B_", ""), 422, 0, 0},
		{"a dry run", "POST", "?dryRun=All", named("c", ""), 201, 0, 0},
		{"updated", "PUT", "/a", `{"metadata":{"name":"a"},"spec":{"size":1}}`, 200, 0, 1},
		{"a conflict", "PUT", "/a", named("a", `,"resourceVersion":"1"`), 409, 0, 0},
		{"an update that a later plug-in refuses", "PUT", "/a", `{"metadata":{"name":"a"},"spec":{"color":"refused"}}`, 403, 0, 0},
		{"an update that a later plug-in fails at", "PUT", "/a", `{"metadata":{"name":"a"},"spec":{"color":"unknown"}}`, 500, 0, 0},
		{"the uid of another", "DELETE", "/a", `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"x"}}`, 409, 0, 0},
		{"not there", "DELETE", "/b", "", 404, 0, 0},
		{"deleted", "DELETE", "/a", "", 200, -1, 0},
	} {
		code, body := tryCall(t, srv.Client(), step.method, srv.URL+widgetsPath+step.path, step.body, "Content-Type", "application/json")
		objects, updates = objects+step.objects, updates+step.updates
		if code != step.code || q.objects.Load() != objects || q.updates.Load() != updates {
			t.Errorf("%s: %d %s\ncounted %d objects and %d updates, want %d and %d", step.what, code, body, q.objects.Load(), q.updates.Load(), objects, updates)
		}
	}
}

// If another client writes an object between the read and the commit of an update or delete, the change is tried again: each is
// counted once.
func TestChargesOfChangesThatAreTriedAgain(t *testing.T) {
	t.Parallel()
	srv, q := counted(t)
	tryCall(t, srv.Client(), "POST", srv.URL+widgetsPath, `{"metadata":{"name":"a"}}`)
	remove := srv.Inject(servertest.Fault{Match: servertest.Match{Resources: []string{"widgets"}}, Conflicts: 3})
	code, body := tryCall(t, srv.Client(), "PATCH", srv.URL+widgetsPath+"/a", `{"spec":{"size":3}}`, "Content-Type", mergePatchType)
	if code != 200 || q.updates.Load() != 1 {
		t.Errorf("PATCH: %d %s, %d updates counted", code, body, q.updates.Load())
	}
	code, body = tryCall(t, srv.Client(), "DELETE", srv.URL+widgetsPath+"/a", "")
	if code != 200 || q.objects.Load() != 0 {
		t.Errorf("DELETE: %d %s, %d objects counted", code, body, q.objects.Load())
	}
	// In a create the other client makes the object after admission: the create fails.
	code, body = tryCall(t, srv.Client(), "POST", srv.URL+widgetsPath, `{"metadata":{"name":"b"}}`)
	if code != 409 || q.objects.Load() != 0 {
		t.Errorf("POST: %d %s, %d objects counted", code, body, q.objects.Load())
	}
	// With a generateName three names are taken, and the fourth is not.
	code, body = tryCall(t, srv.Client(), "POST", srv.URL+widgetsPath, `{"metadata":{"generateName":"c-"}}`)
	if code != 201 || q.objects.Load() != 1 {
		t.Errorf("POST of a generateName: %d %s, %d objects counted", code, body, q.objects.Load())
	}
	remove()
}

// If the storage does not say whether a change was made, the count for it stays.
func TestChargesOfChangesThatMayBeMade(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		srv, q := counted(t)
		tryCall(t, srv.Client(), "POST", srv.URL+widgetsPath, `{"metadata":{"name":"a"}}`)
		srv.Inject(servertest.Fault{Match: servertest.Match{Resources: []string{"widgets"}}, StorageError: storage.ErrUnavailable, Lost: lost})
		for _, step := range []struct {
			method, path, body string
			objects, updates   int64 // the counts afterwards
		}{
			{"POST", "", `{"metadata":{"name":"b"}}`, 2, 0},
			{"PUT", "/a", `{"metadata":{"name":"a"},"spec":{"size":1}}`, 2, 1},
			{"DELETE", "/a", "", 1, 1},
		} {
			code, body := tryCall(t, srv.Client(), step.method, srv.URL+widgetsPath+step.path, step.body)
			if code < 500 || q.objects.Load() != step.objects || q.updates.Load() != step.updates {
				t.Errorf("lost %t, %s: %d %s\ncounted %d objects and %d updates, want %d and %d", lost, step.method, code, body, q.objects.Load(), q.updates.Load(), step.objects, step.updates)
			}
		}
	}
}

// After all kinds of changes by many clients the count is that of the objects there are.
func TestChargesAreTheObjectsThereAre(t *testing.T) {
	t.Parallel()
	srv, q := counted(t)
	// Other writes happen in between. Those of a create would make objects that are not counted.
	srv.Inject(servertest.Fault{
		Match:     servertest.Match{Verbs: []string{"update", "delete"}, Resources: []string{"widgets"}},
		Conflicts: 1, Rate: 0.2, Seed: 7,
	})
	var updated atomic.Int64
	var all sync.WaitGroup
	for client := range 8 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(client), 9))
			for range 60 {
				name := fmt.Sprint("w", random.IntN(6))
				color := []string{"red", "blue", "refused"}[random.IntN(3)]
				spec := fmt.Sprintf(`"spec":{"size":%d,"color":%q}`, random.IntN(1000), color)
				switch random.IntN(5) {
				case 0:
					tryCall(t, srv.Client(), "POST", srv.URL+widgetsPath, fmt.Sprintf(`{"metadata":{"name":%q},%s}`, name, spec))
				case 1:
					tryCall(t, srv.Client(), "POST", srv.URL+widgetsPath, fmt.Sprintf(`{"metadata":{"generateName":"g-"},%s}`, spec))
				case 2:
					if code, _ := tryCall(t, srv.Client(), "PUT", srv.URL+widgetsPath+"/"+name, fmt.Sprintf(`{"metadata":{"name":%q},%s}`, name, spec)); code == 200 {
						updated.Add(1)
					}
				case 3:
					tryCall(t, srv.Client(), "DELETE", srv.URL+widgetsPath+"/"+name, "")
				case 4: // an apply creates a missing object
					code, _ := tryCall(t, srv.Client(), "PATCH", srv.URL+widgetsPath+"/"+name+"?force=true&fieldManager=m",
						fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":%q},%s}`, name, spec), "Content-Type", "application/apply-patch+yaml")
					if code == 200 {
						updated.Add(1)
					}
				}
			}
		})
	}
	all.Wait()
	if got, want := q.objects.Load(), stored(t, srv); got != want {
		t.Errorf("counted %d objects, and %d are there", got, want)
	}
	if got, want := q.updates.Load(), updated.Load(); got != want {
		t.Errorf("counted %d updates, and %d were made", got, want)
	}
}
