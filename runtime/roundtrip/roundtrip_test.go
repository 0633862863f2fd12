package roundtrip_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/roundtrip"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/randfill"
)

// Ships of v1, the hub, have masts in a list. Those of v1beta1 have a text for each mast, and another name for the flag. Those of
// v1alpha1 have only the number of masts, and keep the rest in an annotation.
type Ship struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ShipSpec `json:"spec"`
}

type ShipSpec struct {
	Flag  string            `json:"flag,omitempty"`
	Masts []Mast            `json:"masts,omitempty"`
	Crew  map[string]*int32 `json:"crew,omitempty"`
	Extra map[string]any    `json:"extra,omitempty"`
}

type Mast struct {
	Name   string `json:"name"`
	Height int32  `json:"height,omitempty"`
}

func (s *Ship) DeepCopyObject() runtime.Object { return runtime.DeepCopy(s) }

type ShipV1Beta1 = runtime.Resource[struct {
	Colours string            `json:"colours,omitempty"`
	Masts   []string          `json:"masts,omitempty"`
	Crew    map[string]*int32 `json:"crew,omitempty"`
	Extra   map[string]any    `json:"extra,omitempty"`
}, struct{}]

type ShipV1Alpha1 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Flag string `json:"flag"`
}

func (s *ShipV1Alpha1) DeepCopyObject() runtime.Object { return runtime.DeepCopy(s) }

func kind(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "sea.example.com", Version: version, Kind: "Ship"}
}

func betaToHub(in *ShipV1Beta1, out *Ship) error {
	out.Spec = ShipSpec{Flag: in.Spec.Colours, Crew: in.Spec.Crew, Extra: in.Spec.Extra}
	for _, text := range in.Spec.Masts {
		var m Mast
		if _, err := fmt.Sscanf(text, "%d %q", &m.Height, &m.Name); err != nil {
			return fmt.Errorf("mast %q: %w", text, err)
		}
		out.Spec.Masts = append(out.Spec.Masts, m)
	}
	return nil
}

func betaFromHub(in *Ship, out *ShipV1Beta1) error {
	out.Spec.Colours, out.Spec.Crew, out.Spec.Extra = in.Spec.Flag, in.Spec.Crew, in.Spec.Extra
	for _, m := range in.Spec.Masts {
		out.Spec.Masts = append(out.Spec.Masts, fmt.Sprintf("%d %q", m.Height, m.Name))
	}
	return nil
}

const rest = "sea.example.com/rest"

func alphaToHub(in *ShipV1Alpha1, out *Ship) error {
	if text, ok := out.Annotations[rest]; ok {
		if err := json.Unmarshal([]byte(text), &out.Spec); err != nil {
			return err
		}
		delete(out.Annotations, rest)
	}
	out.Spec.Flag = in.Flag
	return nil
}

func alphaFromHub(in *Ship, out *ShipV1Alpha1) error {
	out.Flag = in.Spec.Flag
	text, err := json.Marshal(in.Spec)
	if err != nil {
		return err
	}
	metav1.SetMetaDataAnnotation(&out.ObjectMeta, rest, string(text))
	return nil
}

// fill makes masts that betaToHub can parse, and values that JSON preserves.
func fill() []any {
	return []any{
		func(s *ShipV1Beta1, c randfill.Continue) {
			c.FillNoCustom(s)
			for i := range s.Spec.Masts {
				s.Spec.Masts[i] = fmt.Sprintf("%d %q", c.Int31(), c.String(5))
			}
		},
		func(m *map[string]any, c randfill.Continue) { *m = map[string]any{c.String(3): c.String(3)} },
	}
}

// ships returns a scheme of the three versions whose conversions lose nothing, unless change replaces some of them.
func ships(t testing.TB, change func(*conversions)) *runtime.Scheme {
	t.Helper()
	c := conversions{betaToHub: betaToHub, betaFromHub: betaFromHub, alphaToHub: alphaToHub, alphaFromHub: alphaFromHub}
	if change != nil {
		change(&c)
	}
	s := runtime.NewScheme()
	for _, err := range []error{
		runtime.Register(s, kind("v1"), runtime.KindOptions[*Ship]{SelectableFields: []string{"spec.flag"}, Default: c.hubDefault}),
		runtime.Register(s, kind("v1beta1"), runtime.KindOptions[*ShipV1Beta1]{RenamedFields: map[string]string{"spec.colours": "spec.flag"}, Default: c.betaDefault}),
		runtime.Register(s, kind("v1alpha1"), runtime.KindOptions[*ShipV1Alpha1]{RenamedFields: map[string]string{"flag": "spec.flag"}}),
		runtime.AddConversion(s, c.betaToHub, c.betaFromHub),
		runtime.AddConversion(s, c.alphaToHub, c.alphaFromHub),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

type conversions struct {
	betaToHub    func(*ShipV1Beta1, *Ship) error
	betaFromHub  func(*Ship, *ShipV1Beta1) error
	alphaToHub   func(*ShipV1Alpha1, *Ship) error
	alphaFromHub func(*Ship, *ShipV1Alpha1) error
	hubDefault   func(*Ship)
	betaDefault  func(*ShipV1Beta1)
}

// alphaLoses allows that an object of v1alpha1 has other annotations after a conversion to the hub and back: it had no annotation
// with the hub's other fields.
var alphaLoses = []roundtrip.Tolerance{{Kind: kind("v1alpha1"), Through: "v1", Path: "metadata.annotations", Reason: "the rest of the hub is in one of them"}}

func TestShipsLoseNothing(t *testing.T) {
	roundtrip.Test(t, ships(t, nil), roundtrip.Options{Fill: fill(), Tolerate: alphaLoses})
}

func FuzzShips(f *testing.F) {
	roundtrip.Fuzz(f, ships(f, nil), roundtrip.Options{Fill: fill(), Tolerate: alphaLoses})
}

// The types of Kubernetes and their defaults pass without any option.
func TestTypesOfKubernetes(t *testing.T) {
	s := runtime.NewScheme()
	if _, err := s.Import(appsv1.AddToScheme); err != nil {
		t.Fatal(err)
	}
	if err := runtime.Register(s, corev1.SchemeGroupVersion.WithKind("ConfigMap"), runtime.KindOptions[*corev1.ConfigMap]{}); err != nil {
		t.Fatal(err)
	}
	roundtrip.Test(t, s, roundtrip.Options{Rounds: 10})
}

// sloppy is a ship whose copies share the crew.
type sloppy struct{ Ship }

func (s *sloppy) DeepCopyObject() runtime.Object {
	c := *s
	return &c
}

// forgetful keeps a field out of its JSON.
type forgetful struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Secret string `json:"-"`
}

func (f *forgetful) DeepCopyObject() runtime.Object { return runtime.DeepCopy(f) }

func ship() *Ship {
	crew := int32(3)
	return &Ship{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"a": "b"}}, Spec: ShipSpec{
		Flag: "red", Masts: []Mast{{"main", 30}, {"fore", 0}}, Crew: map[string]*int32{"cook": &crew}, Extra: map[string]any{"a": map[string]any{"b": "c"}},
	}}
}

func TestWhatIsWrongIsFound(t *testing.T) {
	shared := map[string]*int32{}
	for name, c := range map[string]struct {
		change func(*conversions)
		want   string
	}{
		"nothing": {nil, ""},
		"a field is lost": {func(c *conversions) {
			c.betaFromHub = func(in *Ship, out *ShipV1Beta1) error {
				err := betaFromHub(in, out)
				out.Spec.Extra = nil
				return err
			}
		}, "v1 -> v1beta1 -> v1 makes another object of it"},
		"a value is changed": {func(c *conversions) {
			c.alphaToHub = func(in *ShipV1Alpha1, out *Ship) error {
				err := alphaToHub(in, out)
				out.Spec.Masts[0].Height++
				return err
			}
		}, "v1 -> v1alpha1 -> v1 makes another object of it"},
		"an annotation is forgotten": {func(c *conversions) {
			c.alphaToHub = func(in *ShipV1Alpha1, out *Ship) error {
				err := json.Unmarshal([]byte(in.Annotations[rest]), &out.Spec)
				return err
			}
		}, "sea.example.com/rest"},
		"a conversion fails": {func(c *conversions) {
			c.betaToHub = func(*ShipV1Beta1, *Ship) error { return fmt.Errorf("not today") }
		}, "v1 -> v1beta1 -> v1 fails; if there are no such objects, say in Options.Fill how they are made\nconverting Ship.sea.example.com from sea.example.com/v1beta1 to sea.example.com/v1: not today"},
		"a conversion panics": {func(c *conversions) {
			c.betaToHub = func(*ShipV1Beta1, *Ship) error { panic("not ever") }
		}, "the conversion panicked: not ever"},
		"results share memory": {func(c *conversions) {
			c.betaFromHub = func(in *Ship, out *ShipV1Beta1) error {
				err := betaFromHub(in, out)
				for name, n := range in.Spec.Crew {
					shared[name] = n
				}
				out.Spec.Crew = shared
				return err
			}
		}, "v1 -> v1beta1: two results share memory"},
		"each time another": {func(c *conversions) {
			n := 0
			c.betaFromHub = func(in *Ship, out *ShipV1Beta1) error {
				n++
				err := betaFromHub(in, out)
				out.Spec.Colours = fmt.Sprint(n)
				return err
			}
		}, "makes another object each time"},
		"defaults of the hub": {func(c *conversions) {
			c.hubDefault = func(s *Ship) { s.Spec.Masts = append(s.Spec.Masts, Mast{}) }
		}, "defaults set a second time change it"},
		"defaults of the other version": {func(c *conversions) {
			c.betaDefault = func(s *ShipV1Beta1) { s.Spec.Masts = append(s.Spec.Masts, `1 "mizzen"`) }
		}, "v1 -> v1beta1 -> v1 makes another object of it"},
		"a default panics": {func(c *conversions) {
			c.hubDefault = func(s *Ship) { panic("no defaults") }
		}, "setting defaults panics\nno defaults"},
		"a selectable field": {func(c *conversions) {
			c.betaFromHub = func(in *Ship, out *ShipV1Beta1) error {
				err := betaFromHub(in, out)
				out.Spec.Colours = "x" + out.Spec.Colours
				return err
			}
			c.betaToHub = func(in *ShipV1Beta1, out *Ship) error {
				err := betaToHub(in, out)
				out.Spec.Flag = strings.TrimPrefix(out.Spec.Flag, "x")
				return err
			}
		}, `the selectable field spec.colours of v1beta1 and spec.flag of v1 have different values`},
	} {
		t.Run(name, func(t *testing.T) {
			in := ship()
			err := roundtrip.Check(ships(t, c.change), in, roundtrip.Options{Tolerate: alphaLoses})
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v\nwant %s", err, c.want)
			}
			if got, want := fmt.Sprint(in.Spec.Masts, in.Labels, *in.Spec.Crew["cook"], in.Spec.Extra), fmt.Sprint(ship().Spec.Masts, ship().Labels, 3, ship().Spec.Extra); got != want {
				t.Errorf("Check has changed its object: %s", got)
			}
		})
	}
}

func TestTypesThatAreWrong(t *testing.T) {
	s := runtime.NewScheme()
	err1 := runtime.Register(s, kind("v1"), runtime.KindOptions[*sloppy]{})
	err2 := runtime.Register(s, kind("v1").GroupVersion().WithKind("Other"), runtime.KindOptions[*forgetful]{})
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if err := roundtrip.Check(s, &sloppy{*ship()}, roundtrip.Options{}); err == nil || !strings.Contains(err.Error(), "DeepCopyObject shares memory") {
		t.Errorf("shared copies: %v", err)
	}
	if err := roundtrip.Check(s, &forgetful{Secret: "x"}, roundtrip.Options{}); err == nil || !strings.Contains(err.Error(), "decoded from its JSON it is another object") {
		t.Errorf("a field without JSON: %v", err)
	}
	tolerance := roundtrip.Tolerance{Kind: kind("v1").GroupVersion().WithKind("Other"), Path: "Secret", Reason: "x"}
	if err := roundtrip.Check(s, &forgetful{}, roundtrip.Options{Tolerate: []roundtrip.Tolerance{tolerance}}); err == nil || !strings.Contains(err.Error(), "has no such field") {
		t.Errorf("a tolerance of nothing: %v", err)
	}
}

func TestTolerance(t *testing.T) {
	s := ships(t, func(c *conversions) {
		c.betaFromHub = func(in *Ship, out *ShipV1Beta1) error {
			err := betaFromHub(in, out)
			for i := range out.Spec.Masts {
				out.Spec.Masts[i] = fmt.Sprintf("0 %q", in.Spec.Masts[i].Name)
			}
			return err
		}
	})
	for _, c := range []struct {
		tolerance roundtrip.Tolerance
		want      string
	}{
		{roundtrip.Tolerance{Kind: kind("v1"), Path: "spec.masts.height", Reason: "measured anew"}, ""},
		{roundtrip.Tolerance{Kind: kind("v1"), Path: "spec.masts", Reason: "measured anew", Through: "v1beta1"}, ""},
		{roundtrip.Tolerance{Kind: kind("v1"), Path: "spec.masts", Reason: "measured anew", Through: "v1alpha1"}, "another object"},
		{roundtrip.Tolerance{Kind: kind("v1"), Path: "spec.masts.name", Reason: "measured anew"}, "another object"},
		{roundtrip.Tolerance{Kind: kind("v1"), Path: "spec.mast", Reason: "measured anew"}, "no such field"},
		{roundtrip.Tolerance{Kind: kind("v1"), Path: "spec.masts"}, "say in Reason"},
		{roundtrip.Tolerance{Kind: kind("v9"), Path: "spec.masts", Reason: "x"}, "not in the scheme"},
		{roundtrip.Tolerance{Kind: kind("v1"), Path: "spec.masts", Reason: "x", Through: "v9"}, "no version"},
	} {
		err := roundtrip.Check(s, ship(), roundtrip.Options{Tolerate: append([]roundtrip.Tolerance{c.tolerance}, alphaLoses...)})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v", c.tolerance, err)
		}
	}
}

// TestLossy fails when TestAFailureIsShort runs it in a separate process.
func TestLossy(t *testing.T) {
	if os.Getenv("ROUNDTRIP_LOSSY") == "" {
		t.Skip("it is to fail, in a process of its own")
	}
	roundtrip.Test(t, ships(t, func(c *conversions) {
		c.alphaToHub = func(in *ShipV1Alpha1, out *Ship) error {
			err := alphaToHub(in, out)
			if len(out.Spec.Masts) > 0 {
				out.Spec.Masts[0].Height = 0
			}
			return err
		}
	}), roundtrip.Options{Fill: fill(), Tolerate: alphaLoses})
}

// A failure shows a minimal object, and the command to repeat it.
func TestAFailureIsShort(t *testing.T) {
	run := func(args []string, env ...string) string {
		cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
		cmd.Env = append(os.Environ(), append(env, "ROUNDTRIP_LOSSY=1")...)
		out, err := cmd.CombinedOutput()
		if err == nil {
			t.Fatalf("it passes: %s", out)
		}
		return string(out)
	}
	out := run([]string{"-test.run=^TestLossy$"})
	if want := `{"kind":"Ship","apiVersion":"sea.example.com/v1","metadata":{},"spec":{"masts":[{"name":"","height":1}]}}`; !strings.Contains(out, want) {
		t.Errorf("got %s\nwant the object %s", out, want)
	}
	again := regexp.MustCompile(`(KEELSON_ROUNDTRIP_SEED=\d+) go test -run '(\S+)'`).FindStringSubmatch(out)
	if again == nil || again[2] != "^TestLossy$/^Ship.sea.example.com$/^v1$" {
		t.Fatalf("no command: %s", out)
	}
	if second := run([]string{"-test.run=" + again[2]}, again[1]); !strings.Contains(second, "Object 0 of seed") || strings.Count(second, "--- FAIL") != 2 {
		t.Errorf("run again: %s", second)
	}
}

func TestOptionsThatAreWrong(t *testing.T) {
	s := ships(t, nil)
	half := runtime.NewScheme()
	if err := runtime.Register(half, kind("v1"), runtime.KindOptions[*Ship]{}); err != nil {
		t.Fatal(err)
	}
	if err := runtime.Register(half, kind("v1beta1"), runtime.KindOptions[*ShipV1Beta1]{}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"no scheme":        {roundtrip.Check(nil, ship(), roundtrip.Options{}), "scheme is required"},
		"an empty one":     {roundtrip.Check(runtime.NewScheme(), ship(), roundtrip.Options{}), "no kinds"},
		"another object":   {roundtrip.Check(s, &forgetful{}, roundtrip.Options{}), "no kind of the scheme"},
		"another kind":     {roundtrip.Check(s, ship(), roundtrip.Options{Kinds: []schema.GroupKind{{Kind: "Boat"}}}), "Boat is not in the scheme"},
		"no fill function": {roundtrip.Check(s, ship(), roundtrip.Options{Fill: []any{func(string) {}}}), "Fill[0] is a func(string)"},
		"a version apart":  {roundtrip.Check(half, ship(), roundtrip.Options{}), "nothing converts sea.example.com/v1beta1"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, c.err, c.want)
		}
	}
}
