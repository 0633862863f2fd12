package accounts

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/authn/serviceaccount"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/server/servertest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The dates of a Secret decide as in the cleaner of kube-controller-manager 1.37.1: whole dates are compared with the date of the cutoff.
func TestJudge(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 28, 14, 15, 9, 0, time.UTC)
	const used, invalid = serviceaccount.LastUsedLabel, serviceaccount.InvalidSinceLabel
	for name, test := range map[string]struct {
		labels  map[string]string
		created time.Duration // before now
		unused  time.Duration
		want    verdict
	}{
		"never used":                   {nil, time.Minute, time.Second, invalidate},
		"made a moment ago":            {nil, time.Minute, time.Hour, keep},
		"used today":                   {map[string]string{used: "2026-11-28"}, time.Minute, time.Second, keep},
		"used yesterday":               {map[string]string{used: "2026-11-27"}, time.Minute, time.Second, invalidate},
		"used on the day of the end":   {map[string]string{used: "2026-11-27"}, 48 * time.Hour, 24 * time.Hour, keep},
		"used before the day":          {map[string]string{used: "2026-11-26"}, 48 * time.Hour, 24 * time.Hour, invalidate},
		"used tomorrow":                {map[string]string{used: "2026-11-29"}, time.Minute, time.Second, keep},
		"used on no date":              {map[string]string{used: ""}, time.Minute, time.Second, keep},
		"used on a wrong date":         {map[string]string{used: "bad"}, time.Minute, time.Second, keep},
		"invalid since yesterday":      {map[string]string{invalid: "2026-11-27"}, time.Minute, time.Second, remove},
		"invalid since today":          {map[string]string{invalid: "2026-11-28"}, time.Minute, time.Second, keep},
		"invalid since tomorrow":       {map[string]string{invalid: "2026-11-29"}, time.Minute, time.Second, keep},
		"invalid since no date":        {map[string]string{invalid: ""}, time.Minute, time.Second, invalidate},
		"invalid since a wrong date":   {map[string]string{invalid: "bad"}, time.Minute, time.Second, invalidate},
		"invalid, and used later":      {map[string]string{invalid: "2025-10-24", used: "2025-10-29"}, time.Minute, time.Second, remove},
		"invalid, and used today":      {map[string]string{invalid: "2025-10-24", used: "2026-11-28"}, time.Minute, time.Second, keep},
		"invalid, and used on no date": {map[string]string{invalid: "2025-10-24", used: "bad"}, time.Minute, time.Second, keep},
	} {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: test.labels, CreationTimestamp: metav1.NewTime(now.Add(-test.created))}}
		if got := judge(s, cutoff{now.Add(-test.unused)}); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
		s.DeletionTimestamp = &s.CreationTimestamp
		if got := judge(s, cutoff{now.Add(-test.unused)}); got != keep {
			t.Errorf("%s, being deleted: %d", name, got)
		}
	}
}

// Every field of a pod that names a Secret is looked at.
func TestSecretsOf(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{}
	pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "images"}}
	env := func(name string) ([]corev1.EnvFromSource, []corev1.EnvVar) {
		ref := corev1.LocalObjectReference{Name: name}
		return []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: ref}}, {}},
			[]corev1.EnvVar{{}, {ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name + "-key"}}}}}
	}
	from, vars := env("container")
	pod.Spec.Containers = []corev1.Container{{EnvFrom: from, Env: vars}}
	from, vars = env("init")
	pod.Spec.InitContainers = []corev1.Container{{EnvFrom: from, Env: vars}}
	from, vars = env("ephemeral")
	pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{EnvFrom: from, Env: vars}}}
	want := []string{"images", "container", "container-key", "init", "init-key", "ephemeral", "ephemeral-key", "projected"}
	projected := corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "projected"}}
	pod.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{}, {Secret: &projected}}}}}}
	for _, v := range volumesWithSecrets() {
		pod.Spec.Volumes = append(pod.Spec.Volumes, v)
		want = append(want, v.Name)
	}
	got := map[string]bool{}
	secretsOf(pod, got)
	for _, name := range want {
		if !got[name] {
			t.Errorf("%s is not found", name)
		}
	}
	if len(got) != len(want) || len(want) < 18 {
		t.Errorf("found %v, want %v", got, want)
	}
	secretsOf(&corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{}, {VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{}}}}}}, got)
}

// volumesWithSecrets returns a volume of each kind that has a field for a Secret. The name of the volume is that of its Secret.
func volumesWithSecrets() (all []corev1.Volume) {
	sources := reflect.TypeFor[corev1.VolumeSource]()
	for i := range sources.NumField() {
		v := corev1.Volume{Name: strings.ToLower(sources.Field(i).Name)}
		source := reflect.New(sources.Field(i).Type.Elem())
		fields := reflect.VisibleFields(source.Type().Elem())
		at := slices.IndexFunc(fields, func(f reflect.StructField) bool {
			return f.Name == "SecretName" || strings.HasSuffix(f.Name, "SecretRef")
		})
		if at < 0 {
			continue
		}
		switch field := source.Elem().FieldByIndex(fields[at].Index); field.Interface().(type) {
		case string:
			field.SetString(v.Name)
		case *corev1.LocalObjectReference:
			field.Set(reflect.ValueOf(&corev1.LocalObjectReference{Name: v.Name}))
		default:
			panic(fields[at].Name)
		}
		reflect.ValueOf(&v.VolumeSource).Elem().Field(i).Set(source)
		all = append(all, v)
	}
	return all
}

// controllersOf is an extension that keeps the controllers of options.
type controllersOf struct {
	o   Options
	all []controller
}

func (c *controllersOf) Install(h *server.Host) (err error) {
	c.all, err = newControllers(h, serviceaccount.Issuer{}, c.o)
	return err
}

// There is a cleaner, with the period of the option or a year, unless the option is negative.
func TestPeriodOfUnusedTokens(t *testing.T) {
	t.Parallel()
	for option, want := range map[time.Duration]time.Duration{0: 365 * 24 * time.Hour, time.Hour: time.Hour, -1: 0} {
		of := &controllersOf{o: New(Options{UnusedTokens: option}).(extension).o}
		servertest.New(t, builtin.New(builtin.Options{}), New(Options{NoControllers: true}), of)
		var got time.Duration
		for _, c := range of.all {
			if c, ok := c.(*cleaner); ok {
				got = c.unused
			}
		}
		if got != want || len(of.all) < 2 {
			t.Errorf("UnusedTokens %s: a cleaner with %s, want %s", option, got, want)
		}
	}
}
