package accounts_test

import (
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin/accounts"
	"github.com/keelson-dev/keelson/server/servertest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	trackingPath = "/api/v1/namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking"
	usedLabel    = "kubernetes.io/legacy-token-last-used"
	invalidLabel = "kubernetes.io/legacy-token-invalid-since"
)

func dateOf(days int) string { return time.Now().UTC().AddDate(0, 0, days).Format(time.DateOnly) }

// unused is a Secret of a token, and what becomes of it.
type unused struct {
	labels      map[string]string
	annotations map[string]string // of another account than a; nil of a
	unlisted    bool
	immutable   bool
	want        string // its label invalidLabel; "gone": it is deleted
}

// unusedSecrets are Secrets with what the cleaner of kube-controller-manager 1.37.1 did with them, whose period was a second. It was not
// asked about a pod of another namespace.
func unusedSecrets(other *corev1.ServiceAccount) map[string]unused {
	of := func(name, uid string) map[string]string {
		return map[string]string{corev1.ServiceAccountNameKey: name, corev1.ServiceAccountUIDKey: uid}
	}
	old, today := dateOf(-400), dateOf(0)
	return map[string]unused{
		"plain":                 {want: today},
		"manual":                {unlisted: true},
		"used-old":              {labels: map[string]string{usedLabel: old}, want: today},
		"used-later":            {labels: map[string]string{usedLabel: dateOf(2)}},
		"used-bad":              {labels: map[string]string{usedLabel: "bad"}},
		"inv-old":               {labels: map[string]string{invalidLabel: old}, want: "gone"},
		"inv-later":             {labels: map[string]string{invalidLabel: dateOf(2)}, want: dateOf(2)},
		"inv-bad":               {labels: map[string]string{invalidLabel: "bad"}, want: today},
		"inv-empty":             {labels: map[string]string{invalidLabel: ""}, want: today},
		"inv-old-used-old":      {labels: map[string]string{invalidLabel: old, usedLabel: dateOf(-395)}, want: "gone"},
		"inv-old-used-later":    {labels: map[string]string{invalidLabel: old, usedLabel: dateOf(2)}, want: old},
		"inv-old-manual":        {labels: map[string]string{invalidLabel: old}, unlisted: true, want: old},
		"other-account":         {annotations: of(other.Name, string(other.UID))},
		"immutable":             {immutable: true, want: today},
		"pod-volume":            {},
		"pod-images":            {},
		"pod-env":               {},
		"pod-invalid":           {labels: map[string]string{invalidLabel: old}, want: old},
		"of-another-pods-space": {want: today},
	}
}

// Unused tokens of listed Secrets are marked invalid, and deleted later, unless a pod of their namespace uses them.
func TestUnusedTokens(t *testing.T) {
	t.Parallel()
	o := server.Options{Storage: sharedStorage()}
	key := filepath.Join(t.TempDir(), "key")
	write(t, key, newKey(t))
	kinds := server.Types{AddToScheme: corev1.AddToScheme}
	srv := start(t, o, accounts.Options{SigningKeyFile: key, NoControllers: true}, kinds)
	within(t, "no ConfigMap about the tracking is made", func() bool { return found(t, srv, trackingPath, nil) })
	makeAccount(t, srv, "a")
	all := unusedSecrets(makeAccount(t, srv, "b"))
	var listed []map[string]string
	for name, one := range all {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: one.labels, Annotations: one.annotations}, Type: corev1.SecretTypeServiceAccountToken}
		if s.Annotations == nil {
			s.Annotations = map[string]string{corev1.ServiceAccountNameKey: "a"}
		}
		if one.immutable {
			s.Immutable = new(true)
		}
		admin(t, srv, "POST", inDefault+"secrets", s, nil)
		if !one.unlisted {
			listed = append(listed, map[string]string{"name": name})
		}
	}
	admin(t, srv, "PATCH", inDefault+"serviceaccounts/a", map[string]any{"secrets": listed}, nil)
	volume := func(secret string) corev1.PodSpec {
		return corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}}}}}
	}
	env := corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "pod-env"}}}
	for name, spec := range map[string]corev1.PodSpec{
		"volume": volume("pod-volume"), "invalid": volume("pod-invalid"), "images": {ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pod-images"}}},
		"env": {Containers: []corev1.Container{{Name: "c", EnvFrom: []corev1.EnvFromSource{env}}}},
	} {
		admin(t, srv, "POST", inDefault+"pods", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, nil)
	}
	admin(t, srv, "POST", "/api/v1/namespaces/kube-system/pods", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: volume("of-another-pods-space")}, nil)

	outcomes := func() map[string]string {
		got := map[string]string{}
		for name := range all {
			var s corev1.Secret
			if got[name] = "gone"; found(t, srv, inDefault+"secrets/"+name, &s) {
				got[name] = s.Labels[invalidLabel]
			}
		}
		return got
	}
	before := outcomes()
	clean := func(unused time.Duration) {
		start(t, o, accounts.Options{SigningKeyFile: key, NoControllers: true}, kinds, accounts.Cleaner{Unused: unused})
	}
	clean(time.Nanosecond) // the date in the ConfigMap is that of today
	time.Sleep(300 * time.Millisecond)
	if got := outcomes(); !maps.Equal(got, before) {
		t.Errorf("before uses were noted for long enough: %v", got)
	}

	admin(t, srv, "PATCH", trackingPath, map[string]any{"data": map[string]string{"since": "2020-01-01"}}, nil)
	time.Sleep(time.Second) // the times of the objects are whole seconds
	clean(24 * time.Hour)
	time.Sleep(300 * time.Millisecond)
	if got := outcomes(); !maps.Equal(got, before) {
		t.Errorf("Secrets that were made today: %v", got)
	}
	clean(time.Nanosecond)
	within(t, "nothing is cleaned up", func() bool {
		got := outcomes()
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if all[name].want != before[name] && got[name] == before[name] {
				return false
			}
		}
		return true
	})
	got := outcomes()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if got[name] != all[name].want {
			t.Errorf("%s: %q, want %q", name, got[name], all[name].want)
		}
	}
}

// found reports whether there is an object, and decodes it into out.
func found(t *testing.T, srv *servertest.Server, path string, out any) bool {
	t.Helper()
	code, _, _ := request(t, srv, srv.Token, "GET", path, nil, out)
	return code == http.StatusOK
}
