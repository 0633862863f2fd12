package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// soakTime returns the duration of the soak test, from KEELSON_SOAK.
func soakTime(t *testing.T) time.Duration {
	text := os.Getenv("KEELSON_SOAK")
	if text == "" {
		return 30 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("KEELSON_SOAK: %v", err)
	}
	return d
}

// There are two managers of which one leads, users who write, and a server that is killed, stopped and started all the time. At
// the end every shelf is as its user left it, folded, with its list, and nothing is left of deleted shelves. No client logs an
// error that a restarting kube-apiserver would not cause.
func TestSoak(t *testing.T) {
	t.Parallel()
	c := newChaos(t)
	silent := klog.NewContext(t.Context(), harness.NewLog().Logger()) // drops the client's log lines about the missing server
	var working sync.WaitGroup
	defer working.Wait() // after cancel and end, also if the test ends early
	ctx, cancel := context.WithTimeout(silent, soakTime(t))
	defer cancel()
	users := make([]*user, 6)
	for i := range users {
		users[i] = &user{t: t, client: c.client(), rand: rand.New(rand.NewPCG(rand.Uint64(), 0)), name: fmt.Sprint("shelf-", i), may: []int32{absent}}
		working.Go(func() { users[i].write(ctx) })
	}
	for i := range 2 {
		working.Go(func() { c.manage(ctx, i) })
	}
	restarts := c.disturb(ctx)
	working.Wait()

	// Without disturbances, the expected state is reached at the end.
	calm, end := context.WithCancel(silent)
	defer end()
	working.Go(func() { c.manage(calm, 0) })
	for _, u := range users {
		harness.Eventually(t, u.name+" is as it was left, and folded", func() bool { return u.settled(silent) })
	}
	harness.Eventually(t, "only the lists of shelves are left", func() bool { return c.listsAreThoseOfShelves(silent) })
	c.wantEvents(silent)
	end()
	working.Wait()
	c.judgeLogs()
	writes := 0
	for _, u := range users {
		writes += u.done
	}
	t.Logf("%d restarts of the server, %d acknowledged writes", restarts, writes)
	if restarts == 0 || writes == 0 {
		t.Error("nothing happened")
	}
}

// chaos is a server at a fixed address that is not always running.
type chaos struct {
	t          *testing.T
	opts       harness.Options
	kubeconfig string
	srv        *harness.Server // the running server; belongs to the goroutine of the test

	mu   sync.Mutex // guards logs
	logs []string   // of managers
}

func newChaos(t *testing.T) *chaos {
	c := &chaos{t: t, opts: harness.Options{Example: "wardrobe", Dir: t.TempDir()}}
	c.srv = harness.Start(t, c.opts)
	c.opts.Listen = strings.TrimPrefix(c.srv.URL, "https://") // for the following starts
	c.kubeconfig = c.srv.Kubeconfig
	return c
}

// client reads and writes without a cache.
func (c *chaos) client() client.Client {
	c.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		c.t.Fatal(err)
	}
	config.QPS, config.Timeout = -1, 10*time.Second
	scheme, err := shelfScheme()
	if err != nil {
		c.t.Fatal(err)
	}
	out, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

// disturb repeatedly kills or stops the server and starts it again, until ctx ends. Then the server runs.
func (c *chaos) disturb(ctx context.Context) (restarts int) {
	for {
		select {
		case <-ctx.Done():
			return restarts
		case <-time.After(time.Duration(1500+rand.IntN(4000)) * time.Millisecond):
		}
		if rand.IntN(2) == 0 {
			c.srv.Kill()
		} else {
			c.srv.Stop()
		}
		c.judgeServer(c.srv)
		c.srv = harness.Start(c.t, c.opts)
		restarts++
	}
}

// manage runs a manager until ctx ends, and starts a new one whenever it ends by itself, as it does when it loses its lease. It
// kills one manager of four.
func (c *chaos) manage(ctx context.Context, id int) {
	for ctx.Err() == nil {
		stderr := new(harness.Output)
		cmd := exec.Command(os.Args[0])
		cmd.Env, cmd.Stderr = append(os.Environ(), folderEnv+"="+c.kubeconfig), stderr
		if err := cmd.Start(); err != nil {
			c.t.Error(err)
			return
		}
		gone := make(chan struct{})
		go func() { _ = cmd.Wait(); close(gone) }()
		kill := time.Duration(1<<62) - 1
		if rand.IntN(4) == 0 && id == 1 {
			kill = time.Duration(2+rand.IntN(8)) * time.Second
		}
		select {
		case <-gone:
		case <-time.After(kill):
			_ = cmd.Process.Kill()
			<-gone
		case <-ctx.Done():
			_ = cmd.Process.Signal(syscall.SIGTERM)
			select {
			case <-gone:
			case <-time.After(harness.ExitTimeout):
				c.t.Error("a manager did not end")
				_ = cmd.Process.Kill()
				<-gone
			}
		}
		c.mu.Lock()
		c.logs = append(c.logs, strings.Split(strings.TrimSpace(stderr.String()), "\n")...)
		c.mu.Unlock()
		select { // do not restart a failing manager in a loop
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// outage matches errors that clients log if a kube-apiserver is killed, restarted or not ready yet, if a lease is lost meanwhile,
// or if the other of two managers was the first to create it.
var outage = regexp.MustCompile(`connection refused|connection reset|broken pipe|EOF|client connection lost|server closed|GOAWAY|` +
	`INTERNAL_ERROR|Client\.Timeout|context deadline exceeded|context canceled|i/o timeout|TLS handshake timeout|` +
	`leader election lost|error retrieving resource lock|[Ff]ailed to update lock|[Ff]ailed to renew lease|failed to release lock|` +
	`Error initially creating lease lock.* already exists|the object has been modified|broadcaster is shut down|server is shutting down|ServiceUnavailable|service unavailable|Too Many Requests|` +
	`an error on the server .* has prevented the request from succeeding`)

// judgeLogs fails the test for each error of a manager with another cause.
func (c *chaos) judgeLogs() {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := map[string]bool{}
	created := 0 // failed creates of the lease: at most one at the start, because the lease is never deleted
	for _, line := range c.logs {
		if strings.Contains(line, "Error initially creating lease lock") && strings.Contains(line, "already exists") {
			created++
		}
		if line != "" && !outage.MatchString(line) && !seen[line] {
			seen[line] = true
			c.t.Errorf("a manager logged: %s", line)
		}
	}
	if created > 1 {
		c.t.Errorf("managers did not find the lease that was there, %d times", created-1)
	}
	c.judgeServer(c.srv)
}

// judgeServer fails the test if the server logged an answer of 500.
func (c *chaos) judgeServer(s *harness.Server) {
	for line := range strings.Lines(s.Stderr()) {
		if strings.Contains(line, `"code":500`) || strings.Contains(line, "panic") {
			c.t.Errorf("the server logged: %s", line)
		}
	}
}

// absent is the state of a shelf that does not exist. The other states are the numbers of slots.
const absent int32 = -1

// user writes one shelf, and has the set of its possible states: the last one that was acknowledged, and any that was tried since
// without an answer.
type user struct {
	t      *testing.T
	client client.Client
	rand   *rand.Rand
	name   string
	may    []int32
	last   int32 // the last number of slots
	done   int   // number of acknowledged writes
}

func (u *user) write(ctx context.Context) {
	for ctx.Err() == nil && !u.t.Failed() {
		u.step(ctx)
		time.Sleep(time.Duration(u.rand.IntN(300)) * time.Millisecond)
	}
}

// look reads the shelf, and fails the test if it is in an impossible state. A shelf that is being deleted counts as deleted.
func (u *user) look(ctx context.Context) (*Shelf, bool) {
	s := new(Shelf)
	err := u.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: u.name}, s)
	state := absent
	switch {
	case apierrors.IsNotFound(err):
		s = nil
	case err != nil:
		return nil, false
	case s.DeletionTimestamp == nil:
		state = *s.Spec.Slots
	}
	if !slices.Contains(u.may, state) {
		u.t.Errorf("%s is in state %d; it may be in %v", u.name, state, u.may)
	}
	u.may = []int32{state}
	return s, true
}

func (u *user) step(ctx context.Context) {
	s, ok := u.look(ctx)
	if !ok {
		return
	}
	if s != nil && s.DeletionTimestamp != nil {
		return // not gone yet
	}
	next := absent
	var err error
	switch {
	case s != nil && u.rand.IntN(4) == 0:
		u.may = append(u.may, next)
		err = u.client.Delete(ctx, s, client.Preconditions{UID: &s.UID})
	default:
		u.last = u.last%99 + 1
		next = u.last
		u.may = append(u.may, next)
		if s == nil {
			s = &Shelf{ObjectMeta: metav1.ObjectMeta{Name: u.name, Namespace: namespace}}
			u.fill(s)
			err = u.client.Create(ctx, s)
		} else {
			u.fill(s)
			err = u.client.Update(ctx, s)
		}
	}
	switch {
	case err == nil:
		u.may, u.done = []int32{next}, u.done+1
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
		// Another client wrote, or an earlier try was executed; the next look finds out.
	case apierrors.ReasonForError(err) != metav1.StatusReasonUnknown && !apierrors.IsServiceUnavailable(err) && !apierrors.IsTooManyRequests(err) && !apierrors.IsTimeout(err) && !apierrors.IsServerTimeout(err):
		u.t.Errorf("%s: %v", u.name, err)
	}
}

func (u *user) fill(s *Shelf) {
	slots := u.last
	s.Spec.Slots, s.Spec.Garments = &slots, nil
	for i := range min(int(slots), u.rand.IntN(5)) {
		s.Spec.Garments = append(s.Spec.Garments, Garment{Name: fmt.Sprint("g", i), Kind: "hat"})
	}
}

// settled reports whether the shelf is in a possible state, and folded.
func (u *user) settled(ctx context.Context) bool {
	s, ok := u.look(ctx)
	if !ok || s == nil {
		return ok
	}
	list := new(corev1.ConfigMap)
	err := u.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "list-of-" + u.name}, list)
	return err == nil && s.DeletionTimestamp == nil && s.Status.Used == int32(len(s.Spec.Garments)) &&
		list.Data["garments"] == listOf(s) && len(list.OwnerReferences) == 1 && list.OwnerReferences[0].UID == s.UID
}

// listsAreThoseOfShelves reports whether there is a list for each shelf, and no other.
func (c *chaos) listsAreThoseOfShelves(ctx context.Context) bool {
	var shelves ShelfList
	var lists corev1.ConfigMapList
	cl := c.client()
	if cl.List(ctx, &shelves, client.InNamespace(namespace)) != nil || cl.List(ctx, &lists, client.InNamespace(namespace)) != nil {
		return false
	}
	var want, got []string
	for _, s := range shelves.Items {
		want = append(want, "list-of-"+s.Name)
	}
	for _, l := range lists.Items {
		got = append(got, l.Name)
	}
	return slices.Equal(want, got)
}

// wantEvents fails the test unless there are events; the recorder joins equal ones.
func (c *chaos) wantEvents(ctx context.Context) {
	var list corev1.EventList
	if err := c.client().List(ctx, &list, client.InNamespace(namespace)); err != nil {
		c.t.Error(err)
	}
	if !slices.ContainsFunc(list.Items, func(e corev1.Event) bool { return e.Reason == "Folded" && e.InvolvedObject.Kind == "Shelf" }) {
		c.t.Errorf("%d events, none of them about a shelf that was folded", len(list.Items))
	}
}
