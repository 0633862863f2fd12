package server_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/roundtrip"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"
)

// Ropes have three versions with the same contents, in other names, types and structures. v1 is the hub.
type Rope = runtime.Resource[RopeSpec, RopeStatus]

type RopeSpec struct {
	Color   string   `json:"color"`
	Length  int32    `json:"length"`
	Strands []Strand `json:"strands,omitempty"`
}

type RopeStatus struct {
	State string `json:"state,omitempty"`
}

type Strand struct {
	Fiber string `json:"fiber"`
	Count int32  `json:"count"`
}

// In v1beta1 the length is a text such as "12m", and a strand is a text such as "3 hemp".
type RopeV1Beta1 = runtime.Resource[struct {
	Colour  string   `json:"colour"`
	Length  string   `json:"length"`
	Strands []string `json:"strands,omitempty"`
}, struct {
	Condition string `json:"condition,omitempty"`
}]

// In v1alpha1 a rope is flat, and its condition is not in a status.
type RopeV1Alpha1 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Paint     string   `json:"paint"`
	Metres    int32    `json:"metres"`
	Yarns     []Strand `json:"yarns,omitempty"`
	Condition string   `json:"condition,omitempty"`
}

func (r *RopeV1Alpha1) DeepCopyObject() runtime.Object { return runtime.DeepCopy(r) }

// Colors for which a conversion fails: to the hub, or from the hub.
func toHub(color string) error {
	switch color {
	case "nohub":
		return errors.New("no color for the hub")
	case "panichub":
		panic("no color at all for the hub")
	}
	return nil
}

func fromHub(color string) (string, error) {
	switch color {
	case "nospoke":
		return "", errors.New("no color but for the hub")
	case "panicspoke":
		panic("no color at all but for the hub")
	case "oneway":
		return "nohub", nil
	}
	return color, nil
}

func betaToHub(in *RopeV1Beta1, out *Rope) error {
	out.Spec.Color, out.Status.State = in.Spec.Colour, in.Status.Condition
	if _, err := fmt.Sscanf(in.Spec.Length, "%dm", &out.Spec.Length); err != nil && in.Spec.Length != "" {
		return fmt.Errorf("length %q: want a number and m", in.Spec.Length)
	}
	for _, text := range in.Spec.Strands {
		var s Strand
		if _, err := fmt.Sscanf(text, "%d", &s.Count); err != nil {
			return fmt.Errorf("strand %q: want a number and a fiber", text)
		}
		_, s.Fiber, _ = strings.Cut(text, " ")
		out.Spec.Strands = append(out.Spec.Strands, s)
	}
	return toHub(in.Spec.Colour)
}

func betaFromHub(in *Rope, out *RopeV1Beta1) (err error) {
	out.Spec.Length, out.Status.Condition = fmt.Sprintf("%dm", in.Spec.Length), in.Status.State
	for _, s := range in.Spec.Strands {
		out.Spec.Strands = append(out.Spec.Strands, fmt.Sprintf("%d %s", s.Count, s.Fiber))
	}
	out.Spec.Colour, err = fromHub(in.Spec.Color)
	return err
}

func alphaToHub(in *RopeV1Alpha1, out *Rope) error {
	out.Spec = RopeSpec{Color: in.Paint, Length: in.Metres, Strands: in.Yarns}
	out.Status.State = in.Condition
	return toHub(in.Paint)
}

func alphaFromHub(in *Rope, out *RopeV1Alpha1) (err error) {
	out.Metres, out.Yarns, out.Condition = in.Spec.Length, in.Spec.Strands, in.Status.State
	out.Paint, err = fromHub(in.Spec.Color)
	return err
}

var ropeVersions = []string{"v1", "v1beta1", "v1alpha1"}

// ropes returns the group with a stored version; "" sets none.
func ropes(stored string, hub server.KindOptions[*Rope]) server.Group {
	hub.Hub, hub.Stored = true, stored == "v1"
	hub.SelectableFields = []string{"spec.color", "spec.length"}
	return server.Group{
		Name: "sea.example.com",
		Versions: []server.Version{
			{Name: "v1alpha1", Resources: []server.Resource{server.Kind("Rope", server.KindOptions[*RopeV1Alpha1]{
				Stored: stored == "v1alpha1", RenamedFields: map[string]string{"paint": "spec.color", "metres": "spec.length"},
				Deprecated: "sea.example.com/v1alpha1 Rope is deprecated",
			})}},
			{Name: "v1beta1", Resources: []server.Resource{server.Kind("Rope", server.KindOptions[*RopeV1Beta1]{
				Stored: stored == "v1beta1", RenamedFields: map[string]string{"spec.colour": "spec.color"},
			})}},
			{Name: "v1", Resources: []server.Resource{server.Kind("Rope", hub)}},
		},
		Conversions: []server.Conversion{server.Convert(betaToHub, betaFromHub), server.Convert(alphaToHub, alphaFromHub)},
	}
}

// The conversions between the versions of ropes lose nothing.
func TestRopesLoseNothing(t *testing.T) {
	scheme, err := server.NewScheme(ropes("", server.KindOptions[*Rope]{}))
	if err != nil {
		t.Fatal(err)
	}
	roundtrip.Test(t, scheme, ropeRoundtrip())
}

func FuzzRopes(f *testing.F) {
	scheme, err := server.NewScheme(ropes("", server.KindOptions[*Rope]{}))
	if err != nil {
		f.Fatal(err)
	}
	roundtrip.Fuzz(f, scheme, ropeRoundtrip())
}

func ropeRoundtrip() roundtrip.Options {
	return roundtrip.Options{Fill: []any{
		func(r *RopeV1Beta1, c randfill.Continue) {
			c.FillNoCustom(r)
			r.Spec.Length = fmt.Sprintf("%dm", c.Int31())
			for i := range r.Spec.Strands {
				r.Spec.Strands[i] = fmt.Sprintf("%d %s", c.Int31(), c.String(4))
			}
		},
	}}
}

// ropeShown returns a rope as a version shows it.
func ropeShown(version, color string, length int, state string) string {
	switch version {
	case "v1alpha1":
		if state != "" {
			state = fmt.Sprintf(`,"condition":%q`, state)
		}
		return fmt.Sprintf(`{"apiVersion":"sea.example.com/v1alpha1","paint":%q,"metres":%d,"yarns":[{"fiber":"hemp","count":3}]%s}`, color, length, state)
	case "v1beta1":
		if state != "" {
			state = fmt.Sprintf(`"condition":%q`, state)
		}
		return fmt.Sprintf(`{"apiVersion":"sea.example.com/v1beta1","spec":{"colour":%q,"length":"%dm","strands":["3 hemp"]},"status":{%s}}`, color, length, state)
	}
	if state != "" {
		state = fmt.Sprintf(`"state":%q`, state)
	}
	return fmt.Sprintf(`{"apiVersion":"sea.example.com/v1","spec":{"color":%q,"length":%d,"strands":[{"fiber":"hemp","count":3}]},"status":{%s}}`, color, length, state)
}

// rope returns a body in a version.
func rope(version, name, color string, length int) string {
	return fmt.Sprintf(`{"metadata":{"name":%q},%s`, name, ropeShown(version, color, length, "")[1:])
}

func ropesPath(version string) string {
	return "/apis/sea.example.com/" + version + "/namespaces/default/ropes"
}

// lasting is a backend that stays open when a server on it ends.
type lasting struct{ storage.Backend }

func (lasting) Close() error { return nil }

func newLasting(t *testing.T) lasting {
	t.Helper()
	b := memory.New(memory.Options{})
	t.Cleanup(func() { _ = b.Close() })
	return lasting{b}
}

// ropeServer serves ropes that are stored in a version, on a backend that it does not close.
func ropeServer(t *testing.T, b lasting, stored string, hub server.KindOptions[*Rope]) *wire {
	t.Helper()
	srv := servertest.Start(t, server.Options{Storage: storage.Opened(b), Groups: []server.Group{ropes(stored, hub)}})
	return &wire{Server: srv, client: srv.Client()}
}

// storedIn returns the versions in which the ropes of a backend are stored, by name.
func storedIn(t *testing.T, b storage.Backend) map[string]string {
	t.Helper()
	const root = "/registry/sea.example.com/ropes/default/"
	res, err := b.Range(context.Background(), storage.Range{From: root, To: root + "~"})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, kv := range res.KVs {
		rest, ok := strings.CutPrefix(string(kv.Value), `{"kind":"Rope","apiVersion":"sea.example.com/`)
		if !ok {
			t.Errorf("%s is stored as %s", kv.Key, kv.Value)
		}
		version, _, _ := strings.Cut(rest, `"`)
		out[strings.TrimPrefix(kv.Key, root)] = version
	}
	return out
}
