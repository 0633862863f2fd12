package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// hello is killed with kill -9 during writes. When it is started again on the file, every acknowledged write is there, and every
// object is whole. KEELSON_SOAK is the duration.
func TestHelloKilledDuringWrites(t *testing.T) {
	t.Parallel()
	const file = "hello.db"
	dir, soak := t.TempDir(), harness.Soak(t)
	known := map[string]*Widget{} // as last acknowledged, or as written by a later attempt
	deadline := time.Now().Add(soak)
	const fileFull = 20000 // maximum number of objects in a file, so that a long run does not mostly list
	rounds, written := 0, 0
	for ; rounds == 0 || time.Now().Before(deadline); rounds++ {
		hello := harness.Start(t, harness.Options{Dir: dir, Data: file})
		compare(t, hello, known)
		if t.Failed() {
			return
		}
		acknowledged := storm(t, hello, rounds)
		for name, w := range acknowledged {
			known[name] = w
		}
		written += len(acknowledged)
		if len(known) > fileFull {
			compare(t, harness.Start(t, harness.Options{Dir: dir, Data: file}), known)
			dir, known = t.TempDir(), map[string]*Widget{}
		}
	}
	hello := harness.Start(t, harness.Options{Dir: dir, Data: file})
	compare(t, hello, known)
	t.Logf("%d rounds of kill -9, %d acknowledged objects, in %v", rounds, written, soak)
	if written == 0 {
		t.Error("no write was ever acknowledged")
	}
}

// storm writes from several clients until hello is killed, and returns the acknowledged objects.
func storm(t *testing.T, hello *harness.Server, round int) map[string]*Widget {
	t.Helper()
	var (
		mu           sync.Mutex
		acknowledged = map[string]*Widget{} // guarded by mu
		writers      sync.WaitGroup
	)
	ctx := withLog(t, harness.NewLog()) // the broken connection is an error for the client
	client := typed(t, hello.Config())
	for i := range 8 {
		writers.Go(func() {
			for n := 0; ; n++ {
				name := fmt.Sprintf("w-%d-%d-%d", round, i, n)
				w, err := createAndUpdate(ctx, client, name, func(w *Widget) {
					mu.Lock()
					defer mu.Unlock()
					acknowledged[name] = w
				})
				if err == nil && w.Spec.Size == 2 {
					continue
				}
				if code := apierrors.ReasonForError(err); code != metav1.StatusReasonUnknown {
					t.Errorf("hello answered %s with %v", name, err)
				}
				return // hello is gone
			}
		})
	}
	time.Sleep(time.Duration(200+rand.IntN(800)) * time.Millisecond)
	hello.Kill()
	writers.Wait()
	mu.Lock()
	defer mu.Unlock()
	return acknowledged
}

// createAndUpdate creates a widget with size 1 and updates it to 2. It calls tell for each acknowledged state.
func createAndUpdate(ctx context.Context, client rest.Interface, name string, tell func(*Widget)) (*Widget, error) {
	ctx, cancel := context.WithTimeout(ctx, harness.Timeout)
	defer cancel()
	created, updated := new(Widget), new(Widget)
	w := newWidget(name, 1)
	w.Spec.Data = fmt.Sprintf("%0*d", 1+rand.IntN(2000), 7)
	if err := client.Post().Namespace(namespace).Resource("widgets").Body(w).MaxRetries(0).Do(ctx).Into(created); err != nil {
		return nil, err
	}
	tell(created)
	w = created.DeepCopyObject().(*Widget)
	w.Spec.Size = 2
	if err := client.Put().Namespace(namespace).Resource("widgets").Name(name).Body(w).MaxRetries(0).Do(ctx).Into(updated); err != nil {
		return nil, err
	}
	tell(updated)
	return updated, nil
}

// compare checks that hello has the acknowledged objects. An object may also have the state of a last write whose answer was
// lost.
func compare(t *testing.T, hello *harness.Server, known map[string]*Widget) {
	t.Helper()
	list := new(WidgetList)
	if err := typed(t, hello.Config()).Get().Namespace(namespace).Resource("widgets").Do(t.Context()).Into(list); err != nil {
		t.Fatal(err)
	}
	found := map[string]*Widget{}
	for i := range list.Items {
		found[list.Items[i].Name] = &list.Items[i]
	}
	for name, want := range known {
		got := found[name]
		switch {
		case got == nil:
			t.Errorf("%s was acknowledged at resourceVersion %s and is gone", name, want.ResourceVersion)
		case got.UID != want.UID || got.Spec.Data != want.Spec.Data:
			t.Errorf("%s is not what was acknowledged", name)
		case got.ResourceVersion != want.ResourceVersion && (want.Spec.Size != 1 || got.Spec.Size != 2):
			t.Errorf("%s is at resourceVersion %s with size %d; acknowledged were %s and %d", name, got.ResourceVersion, got.Spec.Size, want.ResourceVersion, want.Spec.Size)
		}
		if t.Failed() {
			return
		}
	}
	newest := revision(t, list.ResourceVersion)
	for _, w := range list.Items {
		if rv := revision(t, w.ResourceVersion); rv > newest {
			t.Errorf("%s has resourceVersion %d in a list of %d", w.Name, rv, newest)
		}
		if w.UID == "" || w.Spec.Size == 0 || w.Spec.Data == "" {
			t.Errorf("%s is half there: %+v", w.Name, w)
		}
	}
}
