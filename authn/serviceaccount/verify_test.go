package serviceaccount_test

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authn/serviceaccount"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func deletedAt(m metav1.ObjectMeta, at time.Time) metav1.ObjectMeta {
	m.DeletionTimestamp = &metav1.Time{Time: at}
	return m
}

// whole returns a world with an account, and objects that tokens are bound to.
func whole() *world {
	w := account()
	w.put(
		&corev1.Secret{ObjectMeta: meta("ns", "s", "su")}, &corev1.Secret{ObjectMeta: deletedAt(meta("ns", "ending", "su"), now.Add(-30*time.Second))},
		&corev1.Secret{ObjectMeta: deletedAt(meta("ns", "ended", "su"), now.Add(-61*time.Second))},
		&corev1.Pod{ObjectMeta: meta("ns", "p", "pu")}, &corev1.Node{ObjectMeta: meta("", "n", "nu")},
		&corev1.ServiceAccount{ObjectMeta: deletedAt(meta("ns", "ending", "u"), now.Add(-30*time.Second))},
		&corev1.ServiceAccount{ObjectMeta: deletedAt(meta("ns", "ended", "u"), now.Add(-61*time.Second))},
	)
	return w
}

// The times, the account and the bound objects of a token decide as in kube-apiserver.
func TestBound(t *testing.T) {
	at := func(d time.Duration) int64 { return now.Add(d).Unix() }
	bound := func(kind, name, uid string) member {
		return member{"kubernetes.io": kube(member{kind: member{"name": name, "uid": uid}})}
	}
	const invalidated = "error: service account token has been invalidated"
	for name, test := range map[string]struct {
		claims member
		want   string
	}{
		"expired, within the leeway": {member{"exp": at(-50 * time.Second)}, user},
		"expired":                    {member{"exp": at(-61 * time.Second)}, "error: service account token has expired"},
		"expired in 1970":            {member{"exp": 0}, "error: service account token has expired"},
		"no expiry":                  {member{"exp": nil}, user},
		"a fraction":                 {member{"exp": float64(at(0)) + 0.5}, user},
		"a text as expiry":           {member{"exp": "1"}, "error: service account token: go-jose/go-jose/jwt: expected number value to unmarshal NumericDate"},
		"begins soon":                {member{"nbf": at(30 * time.Second)}, user},
		"begins later":               {member{"nbf": at(61 * time.Second)}, "error: service account token is not valid yet"},
		"issued soon":                {member{"iat": at(30 * time.Second)}, user},
		"issued later":               {member{"iat": at(61 * time.Second)}, "error: service account token is issued in the future"},
		"no times":                   {member{"iat": nil, "nbf": nil, "exp": nil}, user},
		"no id":                      {member{"jti": nil}, user},
		"no account":                 {member{"kubernetes.io": kube(member{"serviceaccount": member{"name": "x", "uid": "u"}})}, `error: ServiceAccount "x" not found`},
		"of another account":         {member{"kubernetes.io": kube(member{"serviceaccount": member{"name": "a", "uid": "before"}})}, "error: service account UID (u) does not match claim (before)"},
		"of an account that ends":    {member{"kubernetes.io": kube(member{"serviceaccount": member{"name": "ending", "uid": "u"}})}, "system:serviceaccount:ns:ending"},
		"of an account that ended":   {member{"kubernetes.io": kube(member{"serviceaccount": member{"name": "ended", "uid": "u"}})}, "error: service account ns/ended has been deleted"},
		"Secret":                     {bound("secret", "s", "su"), user},
		"no Secret":                  {bound("secret", "x", "su"), invalidated},
		"a Secret without a name":    {bound("secret", "", "su"), invalidated},
		"another Secret":             {bound("secret", "s", "before"), "error: secret UID (su) does not match service account secret ref claim (before)"},
		"a Secret without uid":       {bound("secret", "s", ""), "error: secret UID (su) does not match service account secret ref claim ()"},
		"a Secret that ends":         {bound("secret", "ending", "su"), user},
		"a Secret that ended":        {bound("secret", "ended", "su"), invalidated},
		"Pod":                        {bound("pod", "p", "pu"), user},
		"no Pod":                     {bound("pod", "x", "pu"), invalidated},
		"another Pod":                {bound("pod", "p", "before"), "error: pod UID (pu) does not match service account pod ref claim (before)"},
		"Node":                       {bound("node", "n", "nu"), user},
		"no Node":                    {bound("node", "x", "nu"), invalidated},
		"another Node":               {bound("node", "n", "before"), "error: node UID (nu) does not match service account node ref claim (before)"},
		"Pod on a Node that is gone": {member{"kubernetes.io": kube(member{"pod": member{"name": "p", "uid": "pu"}, "node": member{"name": "x", "uid": "y"}})}, user},
	} {
		t.Run(name, func(t *testing.T) {
			a := authenticator(t, whole(), keys(t, "p256"), serviceaccount.Options{})
			if got := outcome(a, t.Context(), token(t, claimsOf(test.claims), "p256", jose.ES256, nil)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// A user has the attributes of its token.
func TestUser(t *testing.T) {
	a := authenticator(t, whole(), keys(t, "p256"), serviceaccount.Options{})
	claims := claimsOf(member{"aud": []string{"x", "api"}, "kubernetes.io": kube(member{
		"pod": member{"name": "p", "uid": "pu"}, "node": member{"name": "n"}, "warnafter": now.Add(-25500 * time.Millisecond).Unix(),
	})})
	resp, err := a.AuthenticateToken(t.Context(), token(t, claims, "p256", jose.ES256, nil))
	if err != nil {
		t.Fatal(err)
	}
	want := &authn.Response{
		User: authn.User{
			Name: user, UID: "u", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"},
			Extra: map[string][]string{
				"authentication.kubernetes.io/credential-id": {"JTI=j"}, "authentication.kubernetes.io/pod-name": {"p"},
				"authentication.kubernetes.io/pod-uid": {"pu"}, "authentication.kubernetes.io/node-name": {"n"},
			},
		},
		Audiences:        []string{"api"},
		AuditAnnotations: map[string]string{"authentication.k8s.io/stale-token": "subject: " + user + ", seconds after warning threshold: 26"},
	}
	if !reflect.DeepEqual(resp, want) {
		t.Errorf("got  %+v\nwant %+v", resp, want)
	}
}

// A request wants the audiences of its context, or those of the server.
func TestAudiences(t *testing.T) {
	for _, test := range []struct {
		of, wanted []string
		want       string
	}{
		{[]string{"api"}, nil, "[api]"},
		{nil, nil, "[api " + issuer + "]"},
		{nil, []string{"x"}, "error"},
		{nil, []string{"x", "api"}, "[api]"},
		{[]string{"x"}, nil, "error"},
		{[]string{"x"}, []string{"y", "x", "x"}, "[x]"},
		{[]string{"api"}, []string{"x"}, "error"},
	} {
		a := authenticator(t, account(), keys(t, "p256"), serviceaccount.Options{})
		ctx := t.Context()
		if test.wanted != nil {
			ctx = authn.WithAudiences(ctx, test.wanted)
		}
		got, claims := "error", claimsOf(member{"aud": nil})
		if test.of != nil {
			claims["aud"] = test.of
		}
		if resp, err := a.AuthenticateToken(ctx, token(t, claims, "p256", jose.ES256, nil)); err == nil {
			got = fmt.Sprint(resp.Audiences)
		}
		if got != test.want {
			t.Errorf("of %v, wanted %v: got %s, want %s", test.of, test.wanted, got, test.want)
		}
	}
}

// The store is read if memory lacks an object or has a former one, so that what another server has just made counts, and is not read
// otherwise, nor for a token with a wrong signature.
func TestFreshness(t *testing.T) {
	claims := claimsOf(member{"kubernetes.io": kube(member{"secret": member{"name": "s", "uid": "su"}})})
	good := token(t, claims, "p256", jose.ES256, nil)
	for name, test := range map[string]struct {
		change func(w *world)
		token  string
		want   string
		live   int64
	}{
		"in memory":         {func(*world) {}, good, user, 0},
		"not yet in memory": {func(w *world) { clear(w.memory) }, good, user, 2},
		"a former one in memory": {func(w *world) {
			w.memory["ServiceAccount/ns/a"] = &corev1.ServiceAccount{ObjectMeta: meta("ns", "a", "before")}
		}, good, user, 1},
		"gone":              {func(w *world) { clear(w.memory); clear(w.store) }, good, `error: ServiceAccount "a" not found`, 1},
		"made again":        {func(w *world) { w.put(&corev1.ServiceAccount{ObjectMeta: meta("ns", "a", "again")}) }, good, "error: service account UID (again) does not match claim (u)", 1},
		"a wrong signature": {func(w *world) { clear(w.memory); w.err = errors.New("read") }, token(t, claims, "p384", jose.ES384, nil), "error: the signature is not of a key of this server", 0},
		"the store fails":   {func(w *world) { w.err = errors.New("closed") }, good, "error: closed", 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := whole()
			test.change(w)
			a := authenticator(t, w, keys(t, "p256"), serviceaccount.Options{})
			if got := outcome(a, t.Context(), test.token); got != test.want || w.live.Load() != test.live {
				t.Errorf("got %q with %d reads of the store, want %q with %d", got, w.live.Load(), test.want, test.live)
			}
			if ready := a.Ready(t.Context()); !errors.Is(ready, w.err) {
				t.Errorf("Ready: %v", ready)
			}
		})
	}
}

// A token that is bound to a kind that is not served is refused.
func TestUnservedKind(t *testing.T) {
	w := whole()
	delete(w.kinds, reflect.TypeFor[corev1.Pod]())
	a := authenticator(t, w, keys(t, "p256"), serviceaccount.Options{})
	claims := claimsOf(member{"kubernetes.io": kube(member{"pod": member{"name": "p", "uid": "pu"}})})
	if _, err := a.AuthenticateToken(t.Context(), token(t, claims, "p256", jose.ES256, nil)); err == nil {
		t.Error("it was accepted")
	}
}

// A legacy token is that of its Secret and account.
func TestLegacy(t *testing.T) {
	const k = "kubernetes.io/serviceaccount/"
	for name, test := range map[string]struct {
		claims  member
		change  func(w *world, s *corev1.Secret)
		options serviceaccount.Options
		want    string
		used    bool
	}{
		"valid":               {nil, nil, serviceaccount.Options{}, user, true},
		"no Secret":           {nil, func(w *world, _ *corev1.Secret) { clear(w.memory); clear(w.store) }, serviceaccount.Options{}, "error: token has been invalidated", false},
		"not looked up":       {nil, func(w *world, _ *corev1.Secret) { clear(w.memory); clear(w.store) }, serviceaccount.Options{NoLookup: true}, user, false},
		"another token":       {nil, func(_ *world, s *corev1.Secret) { s.Data["token"] = []byte("x") }, serviceaccount.Options{}, "error: token does not match server's copy", false},
		"no token":            {nil, func(_ *world, s *corev1.Secret) { s.Data = nil }, serviceaccount.Options{}, "error: token does not match server's copy", false},
		"a Secret that ended": {nil, func(_ *world, s *corev1.Secret) { s.ObjectMeta = deletedAt(s.ObjectMeta, now.Add(-2*time.Minute)) }, serviceaccount.Options{}, "error: token has been invalidated", false},
		"account made again":  {nil, func(w *world, _ *corev1.Secret) { w.put(&corev1.ServiceAccount{ObjectMeta: meta("ns", "a", "again")}) }, serviceaccount.Options{}, "error: service account UID (again) does not match claim (u)", false},
		"account gone": {nil, func(w *world, _ *corev1.Secret) {
			delete(w.memory, "ServiceAccount/ns/a")
			delete(w.store, "ServiceAccount/ns/a")
		}, serviceaccount.Options{}, `error: ServiceAccount "a" not found`, false},
		"invalidated": {nil, func(_ *world, s *corev1.Secret) {
			s.Labels = map[string]string{serviceaccount.InvalidSinceLabel: "2024-01-01"}
		}, serviceaccount.Options{}, "error: the token in secret ns/s for service account ns/a has been marked invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the 'kubernetes.io/legacy-token-invalid-since' label from the secret to temporarily allow use of this token", true},
		"invalidated on no date": {nil, func(_ *world, s *corev1.Secret) {
			s.Labels = map[string]string{serviceaccount.InvalidSinceLabel: ""}
		}, serviceaccount.Options{}, user, true},
		"of another account": {member{k + "service-account.name": "b", "sub": "system:serviceaccount:ns:b"}, nil, serviceaccount.Options{}, `error: ServiceAccount "b" not found`, false},
		"another subject":    {member{"sub": "system:serviceaccount:ns:b"}, nil, serviceaccount.Options{}, "error: sub claim is invalid", false},
		"no namespace":       {member{k + "namespace": ""}, nil, serviceaccount.Options{}, "error: namespace claim is missing", false},
		"no Secret named":    {member{k + "secret.name": nil}, nil, serviceaccount.Options{}, "error: secretName claim is missing", false},
		"no account named":   {member{k + "service-account.name": nil}, nil, serviceaccount.Options{}, "error: serviceAccountName claim is missing", false},
		"no uid":             {member{k + "service-account.uid": nil}, nil, serviceaccount.Options{}, "error: serviceAccountUID claim is missing", false},
		"for another":        {member{"aud": []string{"x"}}, nil, serviceaccount.Options{}, `error: token audiences ["x"] is invalid for the target audiences ["api" "` + issuer + `"]`, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := account()
			text := token(t, legacyOf(test.claims), "p256", jose.ES256, nil)
			s := &corev1.Secret{ObjectMeta: meta("ns", "s", "su"), Data: map[string][]byte{"token": []byte(text)}}
			w.put(s)
			if test.change != nil {
				test.change(w, s)
			}
			used := false
			test.options.Hooks.Used = func(*corev1.Secret) { used = true }
			a := authenticator(t, w, keys(t, "p256"), test.options)
			if got := outcome(a, t.Context(), text); got != test.want || used != test.used {
				t.Errorf("got %q, used %t; want %q, %t", got, used, test.want, test.used)
			}
		})
	}
}

// A request with the token of a Secret is annotated, and warned of if Kubernetes had made the Secret.
func TestLegacyAnnotations(t *testing.T) {
	for _, generated := range []bool{false, true} {
		w := account()
		a := authenticator(t, w, keys(t, "p256"), serviceaccount.Options{})
		text, err := serviceaccount.Issuer{Keys: keys(t, "p256"), URL: issuer}.IssueLegacy("ns", serviceaccount.Ref{Name: "a", UID: "u"}, "s")
		if err != nil {
			t.Fatal(err)
		}
		w.put(&corev1.Secret{ObjectMeta: meta("ns", "s", "su"), Data: map[string][]byte{"token": []byte(text)}})
		want := []string{"authentication.k8s.io/legacy-token", "authentication.k8s.io/legacy-token-manual-secret"}
		if generated {
			w.put(&corev1.ServiceAccount{ObjectMeta: meta("ns", "a", "u"), Secrets: []corev1.ObjectReference{{Name: "s"}}})
			want[1] = "authentication.k8s.io/legacy-token-autogenerated-secret"
		}
		resp, err := a.AuthenticateToken(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Sorted(maps.Keys(resp.AuditAnnotations)); !slices.Equal(got, want) || len(resp.Warnings) > 0 != generated || resp.User.Extra != nil {
			t.Errorf("generated %t: %+v", generated, resp)
		}
	}
}

// TestVerified checks that the hook is called with what kube-apiserver 1.37.1 counts for each token.
func TestVerified(t *testing.T) {
	const ann = "authentication.k8s.io/"
	invalid := map[string]string{serviceaccount.InvalidSinceLabel: "2024-01-01"}
	late := func(d time.Duration) member {
		return member{"kubernetes.io": kube(member{"warnafter": now.Add(d).Unix()})}
	}
	for name, test := range map[string]struct {
		claims    map[string]any
		labels    map[string]string
		generated bool
		options   serviceaccount.Options
		want      []serviceaccount.Use
		annotated []string
	}{
		"manual":         {legacyOf(nil), nil, false, serviceaccount.Options{}, []serviceaccount.Use{serviceaccount.Legacy, serviceaccount.LegacyManual}, []string{ann + "legacy-token", ann + "legacy-token-manual-secret"}},
		"generated":      {legacyOf(nil), nil, true, serviceaccount.Options{}, []serviceaccount.Use{serviceaccount.Legacy, serviceaccount.LegacyGenerated}, []string{ann + "legacy-token", ann + "legacy-token-autogenerated-secret"}},
		"invalidated":    {legacyOf(nil), invalid, true, serviceaccount.Options{}, []serviceaccount.Use{serviceaccount.Legacy, serviceaccount.LegacyInvalidated}, []string{ann + "legacy-token", ann + "legacy-token-invalidated"}},
		"not looked up":  {legacyOf(nil), invalid, true, serviceaccount.Options{NoLookup: true}, []serviceaccount.Use{serviceaccount.Legacy}, []string{ann + "legacy-token"}},
		"other audience": {legacyOf(member{"aud": "x"}), nil, false, serviceaccount.Options{}, []serviceaccount.Use{serviceaccount.Legacy}, []string{ann + "legacy-token"}},
		"other Secret":   {legacyOf(member{"kubernetes.io/serviceaccount/secret.name": "t"}), nil, false, serviceaccount.Options{}, []serviceaccount.Use{serviceaccount.Legacy}, []string{ann + "legacy-token"}},
		"bound":          {claimsOf(nil), nil, false, serviceaccount.Options{}, nil, nil},
		"fresh":          {claimsOf(late(time.Second)), nil, false, serviceaccount.Options{}, []serviceaccount.Use{serviceaccount.Fresh}, nil},
		"stale":          {claimsOf(late(-time.Second)), nil, false, serviceaccount.Options{}, []serviceaccount.Use{serviceaccount.Stale}, []string{ann + "stale-token"}},
		"expired": {claimsOf(member{"exp": now.Add(-time.Hour).Unix(), "kubernetes.io": kube(member{"warnafter": now.Add(-time.Hour).Unix()})}), nil, false,
			serviceaccount.Options{}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := account()
			text := token(t, test.claims, "p256", jose.ES256, nil)
			s := &corev1.Secret{ObjectMeta: meta("ns", "s", "su"), Data: map[string][]byte{"token": []byte(text)}}
			s.Labels = test.labels
			w.put(s)
			if test.generated {
				w.put(&corev1.ServiceAccount{ObjectMeta: meta("ns", "a", "u"), Secrets: []corev1.ObjectReference{{Name: "s"}}})
			}
			var got []serviceaccount.Use
			test.options.Hooks.Verified = func(u serviceaccount.Use) { got = append(got, u) }
			resp, err := authenticator(t, w, keys(t, "p256"), test.options).AuthenticateToken(t.Context(), text)
			var annotated []string
			if refusal := (*authn.RefusalError)(nil); errors.As(err, &refusal) {
				annotated = slices.Sorted(maps.Keys(refusal.AuditAnnotations))
			}
			if resp != nil {
				annotated = slices.Sorted(maps.Keys(resp.AuditAnnotations))
			}
			if !slices.Equal(got, test.want) || !slices.Equal(annotated, test.annotated) {
				t.Errorf("got %v, annotated %q; want %v, %q", got, annotated, test.want, test.annotated)
			}
			if a := authenticator(t, w, keys(t, "rsa"), test.options); len(got) > 0 {
				got = nil
				if _, err := a.AuthenticateToken(t.Context(), text); err == nil || got != nil {
					t.Errorf("with another key's signature: %v, %v", got, err)
				}
			}
		})
	}
}
