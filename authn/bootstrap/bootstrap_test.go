package bootstrap_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/authn/bootstrap"
	"github.com/keelson-dev/keelson/runtime"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// secrets are the Secrets by namespace and name.
type secrets struct {
	runtime.Reader[*corev1.Secret]
	of  map[string]*corev1.Secret
	err error
}

func (s *secrets) Get(_ context.Context, namespace, name string, _ runtime.Freshness) (*corev1.Secret, error) {
	if s.err != nil {
		return nil, s.err
	}
	if found := s.of[namespace+"/"+name]; found != nil {
		return found, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("secrets"), name)
}

func (s *secrets) Ready(context.Context) error { return s.err }

const token = "abcdef.0123456789abcdef"

// valid returns the Secret of token, changed.
func valid(change func(*corev1.Secret)) *secrets {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-abcdef"}, Type: bootstrap.SecretType,
		Data: map[string][]byte{
			"token-id": []byte("abcdef"), "token-secret": []byte("0123456789abcdef"), "usage-bootstrap-authentication": []byte("true"),
		},
	}
	if change != nil {
		change(s)
	}
	return &secrets{of: map[string]*corev1.Secret{s.Namespace + "/" + s.Name: s}}
}

func data(key, value string) func(*corev1.Secret) {
	return func(s *corev1.Secret) { s.Data[key] = []byte(value) }
}

func TestAuthenticateToken(t *testing.T) {
	now := time.Now()
	long := "system:bootstrappers:" + strings.Repeat("a", 255)
	for name, test := range map[string]struct {
		of    *secrets
		token string
		want  string // the user and groups
		says  string // part of the reason of a refusal
	}{
		"valid":                         {valid(nil), token, "system:bootstrap:abcdef [system:bootstrappers]", ""},
		"not expired":                   {valid(data("expiration", now.Add(time.Hour).Format(time.RFC3339))), token, "system:bootstrap:abcdef [system:bootstrappers]", ""},
		"groups":                        {valid(data("auth-extra-groups", "system:bootstrappers:b,system:bootstrappers:a:1-2,system:bootstrappers:b")), token, "system:bootstrap:abcdef [system:bootstrappers system:bootstrappers:a:1-2 system:bootstrappers:b]", ""},
		"a long group":                  {valid(data("auth-extra-groups", long+"a")), token, "system:bootstrap:abcdef [system:bootstrappers " + long + "a]", ""},
		"too long":                      {valid(data("auth-extra-groups", long+"aa")), token, "", "a group"},
		"another group":                 {valid(data("auth-extra-groups", "system:bootstrappers:a,system:masters")), token, "", "a group"},
		"group with dash":               {valid(data("auth-extra-groups", "system:bootstrappers:a-")), token, "", "a group"},
		"group of spaces":               {valid(data("auth-extra-groups", "system:bootstrappers:a, system:bootstrappers:b")), token, "", "a group"},
		"no suffix":                     {valid(data("auth-extra-groups", "system:bootstrappers:")), token, "", "a group"},
		"expired":                       {valid(data("expiration", now.Add(-time.Second).Format(time.RFC3339))), token, "", "expired"},
		"unreadable time":               {valid(data("expiration", "tomorrow")), token, "", "expired"},
		"wrong secret":                  {valid(nil), "abcdef.0123456789abcdeg", "", "secret part"},
		"no secret part":                {valid(func(s *corev1.Secret) { delete(s.Data, "token-secret") }), token, "", "secret part"},
		"another id":                    {valid(data("token-id", "abcdeg")), token, "", "token-id"},
		"not for this":                  {valid(data("usage-bootstrap-authentication", "True")), token, "", "usage-bootstrap-authentication"},
		"no usage":                      {valid(func(s *corev1.Secret) { delete(s.Data, "usage-bootstrap-authentication") }), token, "", "usage-bootstrap-authentication"},
		"another type":                  {valid(func(s *corev1.Secret) { s.Type = corev1.SecretTypeOpaque }), token, "", "type"},
		"no data":                       {valid(func(s *corev1.Secret) { s.Data = nil }), token, "", "secret part"},
		"being deleted":                 {valid(func(s *corev1.Secret) { s.DeletionTimestamp = &metav1.Time{Time: now} }), token, "", "deleted"},
		"no Secret":                     {&secrets{}, token, "", "no Secret"},
		"elsewhere":                     {valid(func(s *corev1.Secret) { s.Namespace = "default" }), token, "", "no Secret"},
		"upper case":                    {valid(nil), "ABCDEF.0123456789abcdef", "", ""},
		"another form":                  {valid(nil), "abcdef.0123456789abcdef0", "", ""},
		"a path":                        {valid(nil), "abc/ef.0123456789abcdef", "", ""},
		"a web token":                   {valid(nil), "eyJh.eyJp.c2ln", "", ""},
		"unreadable":                    {&secrets{err: errors.New("closed")}, token, "error: closed", ""},
		"unreadable, but no such token": {&secrets{err: errors.New("closed")}, "x", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			reason := ""
			a := bootstrap.New(test.of, bootstrap.Options{Refused: func(id, why string) {
				if reason = why; id != test.token[:6] {
					t.Errorf("id %q", id)
				}
			}})
			resp, err := a.AuthenticateToken(t.Context(), test.token)
			got := ""
			switch {
			case err != nil:
				got = "error: " + err.Error()
			case resp != nil:
				got = fmt.Sprint(resp.User.Name, " ", resp.User.Groups)
			}
			if got != test.want || (reason == "") != (test.says == "") || !strings.Contains(reason, test.says) {
				t.Errorf("got %q, refused %q; want %q, %q", got, reason, test.want, test.says)
			}
			if strings.Contains(reason, "0123") {
				t.Errorf("the reason %q has the secret", reason)
			}
			if (a.Ready(t.Context()) == nil) != (test.of.err == nil) {
				t.Error("Ready")
			}
		})
	}
}

// FuzzTokens checks that only a token of a Secret has a user, whatever the Secret has.
func FuzzTokens(f *testing.F) {
	f.Add(token, "abcdef", "0123456789abcdef", "", "", "true")
	f.Add("abcdef.0123456789abcdef", "abcdef", "0123456789abcdef", "2030-01-01T00:00:00Z", "system:bootstrappers:x", "true")
	f.Fuzz(func(t *testing.T, text, id, secret, until, groups, usage string) {
		s := valid(func(s *corev1.Secret) {
			for key, value := range map[string]string{"token-id": id, "token-secret": secret, "expiration": until, "auth-extra-groups": groups, "usage-bootstrap-authentication": usage} {
				s.Data[key] = []byte(value)
			}
		})
		resp, err := bootstrap.New(s, bootstrap.Options{}).AuthenticateToken(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		if resp == nil {
			return
		}
		if text != id+"."+secret || id != "abcdef" || len(secret) != 16 || usage != "true" || resp.User.Name != "system:bootstrap:abcdef" {
			t.Errorf("%q has the user %+v", text, resp.User)
		}
		for _, g := range resp.User.Groups {
			if g != "system:bootstrappers" && !strings.HasPrefix(g, "system:bootstrappers:") {
				t.Errorf("group %q", g)
			}
		}
		if !slices.IsSorted(resp.User.Groups) {
			t.Errorf("groups %q", resp.User.Groups)
		}
	})
}
