package serviceaccount_test

import (
	"context"
	"crypto"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authn/serviceaccount"
	"github.com/keelson-dev/keelson/runtime"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// world has the objects of a server: those that it has in memory, and those in its store.
type world struct {
	memory, store map[string]runtime.Object // by type, namespace and name
	kinds         map[reflect.Type]bool     // that are served
	err           error                     // of every read
	live          atomic.Int64              // number of reads of the store
}

func newWorld() *world {
	return &world{memory: map[string]runtime.Object{}, store: map[string]runtime.Object{}, kinds: map[reflect.Type]bool{
		reflect.TypeFor[corev1.ServiceAccount](): true, reflect.TypeFor[corev1.Secret](): true,
		reflect.TypeFor[corev1.Pod](): true, reflect.TypeFor[corev1.Node](): true,
	}}
}

func keyOf(t reflect.Type, namespace, name string) string {
	return fmt.Sprint(t.Name(), "/", namespace, "/", name)
}

// object is an object of a Go type.
type object interface {
	runtime.Object
	metav1.Object
}

// put puts objects into memory and the store.
func (w *world) put(objs ...object) {
	for _, o := range objs {
		key := keyOf(reflect.TypeOf(o).Elem(), o.GetNamespace(), o.GetName())
		w.memory[key], w.store[key] = o, o
	}
}

// Reader implements runtime.Readers. The kind is the name of the Go type.
func (w *world) Reader(kind schema.GroupVersionKind) runtime.Reader[runtime.Object] {
	return reader{of: w, kind: kind.Kind}
}

// KindOf implements runtime.Readers.
func (w *world) KindOf(t reflect.Type) (schema.GroupVersionKind, bool) {
	return schema.GroupVersionKind{Version: "v1", Kind: t.Name()}, w.kinds[t]
}

type reader struct {
	runtime.Reader[runtime.Object]
	of   *world
	kind string
}

func (r reader) Get(_ context.Context, namespace, name string, at runtime.Freshness) (runtime.Object, error) {
	if r.of.err != nil {
		return nil, r.of.err
	}
	from := r.of.memory
	if at.IsLive() {
		r.of.live.Add(1)
		from = r.of.store
	}
	if obj := from[r.kind+"/"+namespace+"/"+name]; obj != nil {
		return obj, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: r.kind}, name)
}

func (r reader) Ready(context.Context) error { return r.of.err }

func meta(namespace, name, uid string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(uid)}
}

// signer returns a key of testdata.
func signer(t testing.TB, name string) crypto.Signer {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name + ".pem")
	if err != nil {
		t.Fatal(err)
	}
	key, err := serviceaccount.ParseSigner(text)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func keys(t testing.TB, signs string, verify ...string) *serviceaccount.Keys {
	t.Helper()
	var public []crypto.PublicKey
	for _, name := range verify {
		public = append(public, signer(t, name).Public())
	}
	k, err := serviceaccount.NewKeys(signer(t, signs), public...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

const issuer = "https://issuer.example.com"

// now is the time of the tests.
var now = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// authenticator returns an authenticator of a world at now.
func authenticator(t testing.TB, w *world, k *serviceaccount.Keys, o serviceaccount.Options) *serviceaccount.Authenticator {
	t.Helper()
	if o.Issuers == nil {
		o.Issuers = []string{issuer, "https://former.example.com"}
	}
	if o.Now == nil {
		o.Now = func() time.Time { return now }
	}
	if o.Audiences == nil {
		o.Audiences = []string{"api", issuer}
	}
	a, err := serviceaccount.New(w, k, o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// account returns a world with an account a in the namespace ns, with the uid u.
func account() *world {
	w := newWorld()
	w.put(&corev1.ServiceAccount{ObjectMeta: meta("ns", "a", "u")})
	return w
}

// member changes the members of claims: a nil value removes one.
type member map[string]any

// claimsOf returns valid claims of the account, changed.
func claimsOf(change member) map[string]any {
	return with(map[string]any{
		"iss": issuer, "aud": []string{"api"}, "sub": "system:serviceaccount:ns:a", "jti": "j",
		"exp": now.Add(time.Hour).Unix(), "iat": now.Unix(), "nbf": now.Unix(), "kubernetes.io": kube(nil),
	}, change)
}

func kube(change member) map[string]any {
	return with(map[string]any{"namespace": "ns", "serviceaccount": member{"name": "a", "uid": "u"}}, change)
}

// legacyOf returns valid claims of a legacy token in the Secret s.
func legacyOf(change member) map[string]any {
	const k = "kubernetes.io/serviceaccount/"
	return with(map[string]any{
		"iss": serviceaccount.LegacyIssuer, "sub": "system:serviceaccount:ns:a",
		k + "namespace": "ns", k + "secret.name": "s", k + "service-account.name": "a", k + "service-account.uid": "u",
	}, change)
}

func with(of map[string]any, change member) map[string]any {
	for key, value := range change {
		if of[key] = value; value == nil {
			delete(of, key)
		}
	}
	return of
}

// token signs claims, which are a text or become one.
func token(t testing.TB, claims any, key string, alg jose.SignatureAlgorithm, headers member) string {
	t.Helper()
	text, ok := claims.(string)
	if !ok {
		encoded, err := json.Marshal(claims)
		if err != nil {
			t.Fatal(err)
		}
		text = string(encoded)
	}
	o := &jose.SignerOptions{}
	for name, value := range headers {
		o = o.WithHeader(jose.HeaderKey(name), value)
	}
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: signer(t, key)}, o)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := s.Sign([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	out, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// outcome describes what an authenticator says of a token: the user, "error: " and the error, or "no opinion".
func outcome(a authn.TokenAuthenticator, ctx context.Context, token string) string {
	resp, err := a.AuthenticateToken(ctx, token)
	switch {
	case err != nil:
		return "error: " + err.Error()
	case resp == nil:
		return "no opinion"
	}
	return resp.User.Name
}

const user = "system:serviceaccount:ns:a"
