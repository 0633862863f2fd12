package accounts

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

const (
	trackingName = "kube-apiserver-legacy-service-account-token-tracking" // name of the ConfigMap
	sinceKey     = "since"                                                // its key with the date

	// remakeAfter is how long after a server has made the ConfigMap it makes another one, if somebody deletes it.
	remakeAfter = 30 * time.Minute
)

// errRemade is the reason why the ConfigMap is not made yet.
var errRemade = errors.New("the ConfigMap was made a short time ago, and was deleted")

// tracking keeps the ConfigMap with the date since which the uses of legacy tokens are in the labels of their Secrets.
type tracking struct {
	maps    *registry.Typed[*corev1.ConfigMap]
	readers runtime.Readers
	queue   *work[struct{}]
	remake  time.Duration
	log     *zap.Logger

	made time.Time // is of the goroutine of queue
}

func newTracking(h *server.Host, log *zap.Logger) (*tracking, error) {
	maps, err := typed[*corev1.ConfigMap](h, "configmaps", authn.System())
	return &tracking{maps: maps, readers: h.Readers(), queue: newWork[struct{}](), remake: remakeAfter, log: log}, err
}

// run keeps the ConfigMap until ctx ends.
func (t *tracking) run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { t.queue.run(ctx, t.work, t.log) })
	running.Go(func() {
		only := registry.ListOptions{Fields: fields.OneTermEqualSelector("metadata.name", trackingName)}
		look := func() { t.queue.add(struct{}{}) }
		follow(ctx, t.maps, only, t.log, func(registry.TypedEvent[*corev1.ConfigMap]) { look() }, look)
	})
	running.Wait()
}

// work makes the ConfigMap, or gives it a date if it has none.
func (t *tracking) work(ctx context.Context, _ struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	m, err := runtime.Read[*corev1.ConfigMap](t.readers).Get(ctx, metav1.NamespaceSystem, trackingName, runtime.Freshness{})
	switch {
	case apierrors.IsNotFound(err):
		return t.make(ctx)
	case err != nil:
		return err
	}
	if _, err := dateIn(m); err == nil {
		return nil
	}
	_, err = t.maps.Change(ctx, m.Namespace, m.Name, func(m *corev1.ConfigMap) error {
		if _, err := dateIn(m); err != nil {
			if m.Data == nil {
				m.Data = map[string]string{}
			}
			m.Data[sinceKey] = today()
		}
		return nil
	})
	switch {
	case apierrors.IsInvalid(err): // it is immutable, for one
		t.log.Warn("the date since which uses of tokens in Secrets are noted cannot be written", zap.String("configMap", trackingName), zap.Error(err))
		return nil
	case apierrors.IsNotFound(err):
		return nil
	}
	return err
}

func (t *tracking) make(ctx context.Context) error {
	if !t.made.IsZero() && time.Since(t.made) < t.remake {
		return errRemade
	}
	_, err := t.maps.Create(ctx, metav1.NamespaceSystem, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: trackingName}, Data: map[string]string{sinceKey: today()},
	})
	switch {
	case apierrors.IsAlreadyExists(err): // another server has made it
		return nil
	case err == nil:
		t.made = time.Now()
	}
	return err
}

// dateIn returns the date in the ConfigMap.
func dateIn(m *corev1.ConfigMap) (time.Time, error) {
	return time.Parse(time.DateOnly, m.Data[sinceKey])
}
