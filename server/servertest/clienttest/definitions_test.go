package clienttest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	keelson "github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/crd"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/server/servertest/clienttest"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
	webhookconversion "sigs.k8s.io/controller-runtime/pkg/webhook/conversion"
	"sigs.k8s.io/yaml"
)

// kitesCRD returns the definition that controller-gen makes for Kites; v1 is stored. Its conversion is a webhook, as in a
// cluster, or none.
func kitesCRD(strategy string) string {
	return `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: kites.sky.example.com}
spec:
  group: sky.example.com
  scope: Namespaced
  names: {plural: kites, kind: Kite}
  ` + strategy + `
  versions:
  - name: v1alpha1
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: string}}}}}}
  - name: v1beta1
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {width: {type: integer}, tail: {type: integer}}}}}}
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {wingspan: {type: integer, maximum: 100}, tail: {type: integer, default: 3}}
          status: {type: object, properties: {aloft: {type: boolean}}}
`
}

// Kite is the hub.
type Kite struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Wingspan int64  `json:"wingspan,omitempty"`
		Tail     *int64 `json:"tail,omitempty"`
	} `json:"spec"`
	Status struct {
		Aloft bool `json:"aloft,omitempty"`
	} `json:"status,omitempty"`
}

func (k *Kite) Hub() {}

func (k *Kite) DeepCopyObject() runtime.Object {
	out := *k
	k.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

// KiteBeta is v1beta1.
type KiteBeta struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Width int64  `json:"width,omitempty"`
		Tail  *int64 `json:"tail,omitempty"`
	} `json:"spec"`
}

func (k *KiteBeta) DeepCopyObject() runtime.Object {
	out := *k
	k.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

func (k *KiteBeta) ConvertTo(dst conversion.Hub) error {
	out := dst.(*Kite)
	out.ObjectMeta, out.Spec.Wingspan, out.Spec.Tail = k.ObjectMeta, k.Spec.Width, k.Spec.Tail
	return nil
}

func (k *KiteBeta) ConvertFrom(src conversion.Hub) error {
	in := src.(*Kite)
	k.ObjectMeta, k.Spec.Width, k.Spec.Tail = in.ObjectMeta, in.Spec.Wingspan, in.Spec.Tail
	return nil
}

// KiteAlpha is v1alpha1. Its size is a word; a size without a word is in an annotation.
type KiteAlpha struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Size string `json:"size,omitempty"`
	} `json:"spec"`
}

func (k *KiteAlpha) DeepCopyObject() runtime.Object {
	out := *k
	k.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

func (k *KiteAlpha) ConvertTo(dst conversion.Hub) error {
	out := dst.(*Kite)
	out.ObjectMeta = k.ObjectMeta
	switch k.Spec.Size {
	case "small":
		out.Spec.Wingspan = 1
	case "big":
		out.Spec.Wingspan = 10
	default:
		return errors.New("a kite is small or big")
	}
	return nil
}

func (k *KiteAlpha) ConvertFrom(src conversion.Hub) error {
	in := src.(*Kite)
	k.ObjectMeta = in.ObjectMeta
	k.Spec.Size = "small"
	if in.Spec.Wingspan >= 10 {
		k.Spec.Size = "big"
	}
	return nil
}

// addKites is the AddToScheme of an operator's api package.
func addKites(s *runtime.Scheme) error {
	for version, obj := range map[string]runtime.Object{"v1": &Kite{}, "v1beta1": &KiteBeta{}, "v1alpha1": &KiteAlpha{}} {
		gv := schema.GroupVersion{Group: "sky.example.com", Version: version}
		s.AddKnownTypeWithName(gv.WithKind("Kite"), obj)
		metav1.AddToGroupVersion(s, gv)
	}
	return nil
}

func kiteScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(scheme.AddToScheme(s), addKites(s)); err != nil {
		t.Fatal(err)
	}
	return s
}

const noStrategy, webhookStrategy = "", `conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {service: {namespace: system, name: webhook-service, path: /convert}}`

func writeCRD(t *testing.T, text string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, content := range map[string]string{
		"sky.example.com_kites.yaml": text, "kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n", "README.md": "No YAML.",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// With a project's definitions and its types with Hub and ConvertTo, an Environment serves every version without a webhook.
func TestEnvironmentWithDefinitions(t *testing.T) {
	t.Parallel()
	for name, strategy := range map[string]string{"without a strategy": noStrategy, "with a webhook": webhookStrategy} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := start(t, &clienttest.Environment{
				Scheme: kiteScheme(t), CRDDirectoryPaths: []string{writeCRD(t, kitesCRD(strategy)), "missing"},
			})
			c := newClient(t, e.Config, e.Scheme)
			meta := metav1.ObjectMeta{Namespace: "default", Name: "k"}
			beta := &KiteBeta{ObjectMeta: meta}
			beta.Spec.Width = 20
			if err := c.Create(t.Context(), beta); err != nil {
				t.Fatal(err)
			}
			hub := &Kite{}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(beta), hub); err != nil || hub.Spec.Wingspan != 20 || hub.Spec.Tail == nil || *hub.Spec.Tail != 3 {
				t.Errorf("the hub is %+v, %v: want the width, and the default of the definition", hub.Spec, err)
			}
			alpha := &KiteAlpha{}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(beta), alpha); err != nil || alpha.Spec.Size != "big" {
				t.Errorf("v1alpha1 is %+v, %v", alpha.Spec, err)
			}
			hub.Spec.Wingspan = 101
			if err := c.Update(t.Context(), hub); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.wingspan") {
				t.Errorf("what the definition forbids: %v", err)
			}
			odd := &KiteAlpha{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "odd"}}
			if err := c.Create(t.Context(), odd); err == nil || !strings.Contains(err.Error(), "a kite is small or big") {
				t.Errorf("what cannot be converted: %v", err)
			}
			pod := &corev1.ConfigMap{ObjectMeta: meta}
			if err := c.Create(t.Context(), pod); err != nil {
				t.Errorf("a kind of the Scheme without a definition: %v", err)
			}
		})
	}
}

// Definitions may also come from an fs.FS and from Go values, functions of the test may convert, and the extension may be one of
// the Parts.
func TestEnvironmentDefinitionsFromElsewhere(t *testing.T) {
	t.Parallel()
	object := new(apiextensionsv1.CustomResourceDefinition)
	if err := yaml.Unmarshal([]byte(kitesCRD(noStrategy)), object); err != nil {
		t.Fatal(err)
	}
	kite := schema.GroupKind{Group: "sky.example.com", Kind: "Kite"}
	plain := runtime.NewScheme()
	if err := scheme.AddToScheme(plain); err != nil {
		t.Fatal(err)
	}
	types := kiteScheme(t)
	converter, err := webhookconversion.NewHubSpokeConverter(&Kite{},
		webhookconversion.NewSpokeConverter(&KiteBeta{},
			func(_ context.Context, src *Kite, dst *KiteBeta) error { return dst.ConvertFrom(src) },
			func(_ context.Context, src *KiteBeta, dst *Kite) error { return src.ConvertTo(dst) }),
		webhookconversion.NewSpokeConverter(&KiteAlpha{},
			func(_ context.Context, src *Kite, dst *KiteAlpha) error { return dst.ConvertFrom(src) },
			func(_ context.Context, src *KiteAlpha, dst *Kite) error { return src.ConvertTo(dst) }),
	)(types)
	if err != nil {
		t.Fatal(err)
	}
	own := map[schema.GroupKind]keelson.ConvertUntyped{kite: clienttest.ConvertWith(types, converter)}
	for name, e := range map[string]*clienttest.Environment{
		"objects":    {CRDs: []*apiextensionsv1.CustomResourceDefinition{object}, Conversions: own},
		"fs":         {CRDFS: fstest.MapFS{"a/b/kites.yml": {Data: []byte(kitesCRD(noStrategy))}, "kustomization.yaml": {Data: []byte("{}")}}, Conversions: own},
		"the Parts'": {CRDs: []*apiextensionsv1.CustomResourceDefinition{object}, Parts: []server.Extension{crd.New(crd.Options{Conversions: own})}},
		"the Scheme's": {CRDs: []*apiextensionsv1.CustomResourceDefinition{object},
			Parts: []server.Extension{crd.New(crd.Options{Conversions: clienttest.Conversions(types)})}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e.Scheme = plain
			start(t, e)
			c := newClient(t, e.Config, types)
			alpha := &KiteAlpha{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "k"}}
			alpha.Spec.Size = "big"
			if err := c.Create(t.Context(), alpha); err != nil {
				t.Fatal(err)
			}
			beta := &KiteBeta{}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(alpha), beta); err != nil || beta.Spec.Width != 10 {
				t.Errorf("v1beta1 is %+v, %v", beta.Spec, err)
			}
		})
	}
	again := &clienttest.Environment{Scheme: plain, CRDs: []*apiextensionsv1.CustomResourceDefinition{object}}
	for range 2 {
		if _, err := again.Start(); err != nil {
			t.Fatal(err)
		}
		if err := again.Stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// Definitions are installed in an existing cluster too.
func TestDefinitionsInAnExistingCluster(t *testing.T) {
	t.Parallel()
	cluster := start(t, &clienttest.Environment{Parts: []server.Extension{crd.New(crd.Options{})}})
	dir := writeCRD(t, kitesCRD(noStrategy))
	for range 2 {
		e := start(t, &clienttest.Environment{Config: cluster.Config, UseExistingCluster: new(true), CRDDirectoryPaths: []string{dir}})
		k := &Kite{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "k-"}}
		if err := newClient(t, e.Config, kiteScheme(t)).Create(t.Context(), k); err != nil {
			t.Error(err)
		}
	}
	e := &clienttest.Environment{Config: cluster.Config, UseExistingCluster: new(true), CRDDirectoryPaths: []string{dir + "/none"}, ErrorIfCRDPathMissing: true}
	if _, err := e.Start(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a path that is missing: %v", err)
	}
}

func TestMistakesOfDefinitions(t *testing.T) {
	t.Parallel()
	dir := writeCRD(t, strings.Replace(kitesCRD(noStrategy), "type: boolean", "type: bool", 1))
	convert := clienttest.Conversions(kiteScheme(t))
	for want, e := range map[string]*clienttest.Environment{
		"kites.yaml:30: POST":                               {CRDDirectoryPaths: []string{dir}},
		"there are Conversions, and CustomResourceDefiniti": {CRDDirectoryPaths: []string{dir}, Conversions: convert, Parts: []server.Extension{crd.New(crd.Options{})}},
		"no such file or directory":                         {CRDDirectoryPaths: []string{dir + "/none"}, ErrorIfCRDPathMissing: true},
		"CRDs.Objects[0] is nil":                            {CRDs: []*apiextensionsv1.CustomResourceDefinition{nil}},
		`names the kind "Domian"`:                           {CRDDirectoryPaths: []string{t.TempDir()}, Types: servertest.Types{ClusterScoped: []string{"Domian"}}},
	} {
		if c, err := e.Start(); err == nil || !strings.Contains(err.Error(), want) || c != nil || e.Server != nil {
			t.Errorf("Start: %v, %v; want an error with %q", c, err, want)
		}
	}
}

// Only kinds with one hub to which all other versions convert are converted.
func TestConversions(t *testing.T) {
	t.Parallel()
	s := kiteScheme(t)
	one, none, two := "one.example.com", "none.example.com", "two.example.com"
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: one, Version: "v1", Kind: "Kite"}, &Kite{})
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: none, Version: "v1", Kind: "Kite"}, &KiteBeta{})
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: none, Version: "v2", Kind: "Kite"}, &KiteAlpha{})
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: two, Version: "v1", Kind: "Kite"}, &Kite{})
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: two, Version: "v2", Kind: "Kite"}, &corev1.Pod{})
	var got []string
	for gk := range clienttest.Conversions(s) {
		got = append(got, gk.String())
	}
	if fmt.Sprint(got) != "[Kite.sky.example.com]" {
		t.Errorf("converted are %v", got)
	}
}
