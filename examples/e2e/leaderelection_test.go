package e2e_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
	apiserver "github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/server/servertest"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	coordinationapply "k8s.io/client-go/applyconfigurations/coordination/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/transport"
)

// mediaTypes records the media types of a client's requests and answers.
type mediaTypes struct {
	mu            sync.Mutex // guards all below
	bodies, wants []string   // Content-Type and Accept of requests with a body other than a patch
	answers       []string   // Content-Type of answers
}

func (m *mediaTypes) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		m.mu.Lock()
		defer m.mu.Unlock()
		if r.Body != nil && r.Method != http.MethodPatch {
			m.bodies, m.wants = append(m.bodies, r.Header.Get("Content-Type")), append(m.wants, r.Header.Get("Accept"))
		}
		if err == nil {
			m.answers = append(m.answers, resp.Header.Get("Content-Type"))
		}
		return resp, err
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// want fails the test unless these are the recorded media types.
func (m *mediaTypes) want(t *testing.T, bodies, answers string) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, recorded := range []struct {
		what, want string
		all        []string
	}{{"a body", bodies, m.bodies}, {"an answer", answers, m.answers}} {
		slices.Sort(recorded.all)
		if all := slices.Compact(recorded.all); len(all) != 1 || all[0] != recorded.want {
			t.Errorf("%s is %q, want %q", recorded.what, all, recorded.want)
		}
	}
	for _, accept := range m.wants {
		if !strings.HasPrefix(accept, bodies) {
			t.Errorf("a client that sends %s accepts %q", bodies, accept)
		}
	}
}

// builtins returns a client-go client with default settings for a server of the kinds that controllers need, and a recorder of
// its media types.
func builtins(t *testing.T) (kubernetes.Interface, *mediaTypes) {
	t.Helper()
	t.Parallel()
	srv := servertest.New(t,
		apiserver.Group{Versions: []apiserver.Version{{Name: "v1", Resources: []apiserver.Resource{builtin.ConfigMap(), builtin.Secret()}}}},
		apiserver.Group{Name: "coordination.k8s.io", Versions: []apiserver.Version{{Name: "v1", Resources: []apiserver.Resource{builtin.Lease()}}}},
	)
	recorded := &mediaTypes{}
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host: srv.URL, BearerToken: srv.Token, TLSClientConfig: rest.TLSClientConfig{CAData: srv.CA}, Dial: srv.DialContext,
		WrapTransport: transport.WrapperFunc(recorded.wrap),
	})
	if err != nil {
		t.Fatal(err)
	}
	return client, recorded
}

// writer has the common methods of typed clients.
type writer[T any, L any] interface {
	Create(ctx context.Context, obj T, opts metav1.CreateOptions) (T, error)
	Update(ctx context.Context, obj T, opts metav1.UpdateOptions) (T, error)
	Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
	DeleteCollection(ctx context.Context, opts metav1.DeleteOptions, list metav1.ListOptions) error
	Get(ctx context.Context, name string, opts metav1.GetOptions) (T, error)
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
	Patch(ctx context.Context, name string, kind types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (T, error)
}

func TestTypedClientOfConfigMaps(t *testing.T) {
	client, recorded := builtins(t)
	testTypedClient(t, client.CoreV1().ConfigMaps(namespace), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"x": "y"}},
		Data:       map[string]string{"k": "<ü>"}, BinaryData: map[string][]byte{"b": {0, 255}},
	}, func(m *corev1.ConfigMap) { m.Data["k"], m.Immutable = "w", new(true) }, func(l *corev1.ConfigMapList) []corev1.ConfigMap { return l.Items })
	recorded.want(t, apiruntime.ContentTypeProtobuf, apiruntime.ContentTypeProtobuf)
}

func TestTypedClientOfSecrets(t *testing.T) {
	client, recorded := builtins(t)
	testTypedClient(t, client.CoreV1().Secrets(namespace), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "a"}, Type: "example.com/x", Data: map[string][]byte{"b": {0, 255}, "c": {}},
	}, func(s *corev1.Secret) { s.Data["b"] = []byte("x") }, func(l *corev1.SecretList) []corev1.Secret { return l.Items })
	recorded.want(t, apiruntime.ContentTypeProtobuf, apiruntime.ContentTypeProtobuf)

	made, err := client.CoreV1().Secrets(namespace).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "s-"}, StringData: map[string]string{"k": "v"},
	}, metav1.CreateOptions{})
	if err != nil || string(made.Data["k"]) != "v" || made.StringData != nil || made.Type != corev1.SecretTypeOpaque || !strings.HasPrefix(made.Name, "s-") {
		t.Errorf("%+v, %v", made, err)
	}
	list, err := client.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "type=Opaque"})
	if err != nil || len(list.Items) != 1 || list.Items[0].Name != made.Name {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestTypedClientOfLeases(t *testing.T) {
	client, recorded := builtins(t)
	now := metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC))
	leases := client.CoordinationV1().Leases(namespace)
	testTypedClient(t, leases, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("me"), LeaseDurationSeconds: new(int32(15)), AcquireTime: &now, RenewTime: &now},
	}, func(l *coordinationv1.Lease) {
		l.Spec.RenewTime, l.Spec.LeaseTransitions = new(metav1.NewMicroTime(now.Add(time.Microsecond))), new(int32(1))
	}, func(l *coordinationv1.LeaseList) []coordinationv1.Lease { return l.Items })
	applied, err := leases.Apply(t.Context(), coordinationapply.Lease("b", namespace).WithSpec(coordinationapply.LeaseSpec().WithHolderIdentity("you")), metav1.ApplyOptions{FieldManager: "m"})
	if err != nil || *applied.Spec.HolderIdentity != "you" {
		t.Errorf("%+v, %v", applied, err)
	}
	recorded.want(t, apiruntime.ContentTypeProtobuf, apiruntime.ContentTypeProtobuf)

	renewed := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "b"}}
	if _, err := leases.Update(t.Context(), renewed, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("an update without a version: %v", err)
	}
	_, err = leases.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: new(int32(0))}}, metav1.CreateOptions{})
	if want := `Lease.coordination.k8s.io "c" is invalid: spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0`; !apierrors.IsInvalid(err) || err.Error() != want {
		t.Errorf("%v", err)
	}
}

// testTypedClient calls all methods of a typed client with one object.
func testTypedClient[P interface {
	*T
	metav1.Object
	apiruntime.Object
}, T any, L metav1.ListInterface](t *testing.T, client writer[P, L], obj P, change func(P), items func(L) []T) {
	ctx := t.Context()
	made, err := client.Create(ctx, obj, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		t.Fatal(err)
	}
	if made.GetUID() == "" || made.GetResourceVersion() == "" || made.GetNamespace() != namespace || len(made.GetManagedFields()) != 1 {
		t.Errorf("%+v", made)
	}
	if _, err := client.Create(ctx, obj, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("made twice: %v", err)
	}
	got, err := client.Get(ctx, obj.GetName(), metav1.GetOptions{})
	if err != nil || !equality.Semantic.DeepEqual(got, made) {
		t.Errorf("%+v\nwas made as\n%+v, %v", got, made, err)
	}
	change(got)
	put, err := client.Update(ctx, got, metav1.UpdateOptions{})
	if err != nil || put.GetResourceVersion() == made.GetResourceVersion() || put.GetUID() != made.GetUID() {
		t.Fatalf("%+v, %v", put, err)
	}
	got.SetResourceVersion(put.GetResourceVersion())
	got.SetManagedFields(put.GetManagedFields())
	if !equality.Semantic.DeepEqual(put, got) {
		t.Errorf("%+v\nwas sent as\n%+v", put, got)
	}
	if _, err := client.Update(ctx, made, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("an update of an old version: %v", err)
	}
	patched, err := client.Patch(ctx, obj.GetName(), types.StrategicMergePatchType, []byte(`{"metadata":{"labels":{"p":"q"}}}`), metav1.PatchOptions{})
	if err != nil || patched.GetLabels()["p"] != "q" {
		t.Errorf("%+v, %v", patched, err)
	}
	list, err := client.List(ctx, metav1.ListOptions{LabelSelector: "p=q", Limit: 1})
	if err != nil || len(items(list)) != 1 || list.GetResourceVersion() == "" || !equality.Semantic.DeepEqual(P(&items(list)[0]), patched) {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := client.Get(ctx, "none", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("what is not there: %v", err)
	}
	other := types.UID("of another")
	if err := client.Delete(ctx, obj.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}}); !apierrors.IsConflict(err) {
		t.Errorf("a delete of another: %v", err)
	}
	if err := client.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "p=none"}); err != nil {
		t.Error(err)
	}
	uid := patched.GetUID()
	if err := client.Delete(ctx, obj.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}); err != nil {
		t.Error(err)
	}
	if _, err := client.Get(ctx, obj.GetName(), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("what is deleted: %v", err)
	}
}

// A client that prefers protobuf to JSON receives a watch in JSON.
func TestTypedClientWatches(t *testing.T) {
	client, _ := builtins(t)
	maps := client.CoreV1().ConfigMaps(namespace)
	events, err := maps.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	made, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"k": "v"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if e := <-events.ResultChan(); e.Type != watch.Added || e.Object.(*corev1.ConfigMap).ResourceVersion != made.ResourceVersion || e.Object.(*corev1.ConfigMap).Data["k"] != "v" {
		t.Errorf("%+v", e)
	}
}

// candidate is a program that takes part in the leader election.
type candidate struct {
	stop    context.CancelFunc
	leads   chan struct{} // closed when it leads
	follows chan string   // receives the name of every leader that it sees
	ended   chan struct{} // closed when it has ended
}

func newCandidate(t *testing.T, client kubernetes.Interface, name string, release bool) *candidate {
	t.Helper()
	c := &candidate{leads: make(chan struct{}), follows: make(chan string, 100), ended: make(chan struct{})}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: name,
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Name: "leader", Namespace: namespace}, Client: client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		},
		LeaseDuration: 5 * time.Second, RenewDeadline: 4 * time.Second, RetryPeriod: 200 * time.Millisecond,
		ReleaseOnCancel: release,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(c.leads) },
			OnStoppedLeading: func() {},
			OnNewLeader:      func(leader string) { c.follows <- leader },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(withLog(t, harness.NewLog())) // its end is logged as an error
	c.stop = cancel
	go func() {
		defer close(c.ended)
		elector.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-c.ended
	})
	return c
}

// One of two programs leads. When it ends, the other one leads: at once if the first one has released its lease, otherwise when
// the lease has expired.
func TestLeaderElection(t *testing.T) {
	for name, release := range map[string]bool{"released": true, "left behind": false} {
		t.Run(name, func(t *testing.T) {
			client, recorded := builtins(t)
			lease := func() coordinationv1.LeaseSpec {
				t.Helper()
				l, err := client.CoordinationV1().Leases(namespace).Get(t.Context(), "leader", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				return l.Spec
			}
			first := newCandidate(t, client, "first", release)
			<-first.leads
			if l := lease(); *l.HolderIdentity != "first" || *l.LeaseDurationSeconds != 5 || l.AcquireTime.IsZero() || *l.LeaseTransitions != 0 {
				t.Errorf("%+v", l)
			}
			second := newCandidate(t, client, "second", release)
			if leader := <-second.follows; leader != "first" {
				t.Fatalf("the second one sees %q lead", leader)
			}
			select {
			case <-second.leads:
				t.Fatal("both lead")
			default:
			}
			first.stop()
			<-first.ended
			<-second.leads
			if l := lease(); *l.HolderIdentity != "second" || *l.LeaseTransitions == 0 {
				t.Errorf("%+v", l)
			}
			recorded.want(t, apiruntime.ContentTypeProtobuf, apiruntime.ContentTypeProtobuf)
		})
	}
}
