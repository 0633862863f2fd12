package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// conversions counts conversions by their versions: "v1>v2".
type conversions struct {
	mu     sync.Mutex // guards both
	made   []string
	stacks []string
}

func (c *conversions) add(from, to string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made, c.stacks = append(c.made, from+">"+to), append(c.stacks, from+">"+to+"\n"+string(debug.Stack()))
}

// spent returns the conversions since the last call.
func (c *conversions) spent() (made, stacks string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	made, stacks = strings.Join(c.made, " "), strings.Join(c.stacks, "\n")
	c.made, c.stacks = nil, nil
	return made, stacks
}

// A Knot has a number of turns, under another name in each version.
type Knot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Turns int32 `json:"turns,omitempty"`
}

func (k *Knot) DeepCopyObject() runtime.Object { return runtime.DeepCopy(k) }

type KnotV1 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Twists int32 `json:"twists,omitempty"`
}

func (k *KnotV1) DeepCopyObject() runtime.Object { return runtime.DeepCopy(k) }

// JudgedKnotV1 is a KnotV1 whose type has a rule.
type JudgedKnotV1 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Twists int32 `json:"twists,omitempty" maximum:"1000"`
}

func (k *JudgedKnotV1) DeepCopyObject() runtime.Object { return runtime.DeepCopy(k) }

type KnotV3 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Bends int32 `json:"bends,omitempty"`
}

func (k *KnotV3) DeepCopyObject() runtime.Object { return runtime.DeepCopy(k) }

// knots is a group with requests in v1, the hub v2, and objects stored in v3.
func (c *conversions) knots(judged bool) server.Group {
	sent := server.Kind("Knot", server.KindOptions[*KnotV1]{})
	convert := server.Convert(func(in *KnotV1, out *Knot) error {
		c.add("v1", "v2")
		out.Turns = in.Twists
		return nil
	}, func(in *Knot, out *KnotV1) error {
		c.add("v2", "v1")
		out.Twists = in.Turns
		return nil
	})
	if judged {
		sent = server.Kind("Knot", server.KindOptions[*JudgedKnotV1]{})
		convert = server.Convert(func(in *JudgedKnotV1, out *Knot) error {
			c.add("v1", "v2")
			out.Turns = in.Twists
			return nil
		}, func(in *Knot, out *JudgedKnotV1) error {
			c.add("v2", "v1")
			out.Twists = in.Turns
			return nil
		})
	}
	return server.Group{
		Name: "sea.example.com",
		Versions: []server.Version{
			{Name: "v1", Resources: []server.Resource{sent}},
			{Name: "v2", Resources: []server.Resource{server.Kind("Knot", server.KindOptions[*Knot]{Hub: true, NoCache: true})}},
			{Name: "v3", Resources: []server.Resource{server.Kind("Knot", server.KindOptions[*KnotV3]{Stored: true})}},
		},
		Conversions: []server.Conversion{convert, server.Convert(func(in *KnotV3, out *Knot) error {
			c.add("v3", "v2")
			out.Turns = in.Bends
			return nil
		}, func(in *Knot, out *KnotV3) error {
			c.add("v2", "v3")
			out.Bends = in.Turns
			return nil
		})},
	}
}

// lookers are plug-ins that read the objects of all changes, and change nothing.
func lookers() admission.Chain {
	look := func(_ context.Context, r *admission.Request) error {
		if r.Object() == nil && r.Old() == nil {
			return errors.New("there is nothing to look at")
		}
		return nil
	}
	return admission.Chain{{Mutator: admission.MutatorFunc(look), Validator: admission.ValidatorFunc(look)}}
}

// asked is a request and the conversions that it takes.
type asked struct{ what, method, path, contentType, body, want string }

func (c *conversions) run(t *testing.T, srv *servertest.Server, all []asked) {
	t.Helper()
	version := "" // resourceVersion of the last answer
	for _, a := range all {
		c.spent()
		code, body := call(t, srv.Client(), a.method, srv.URL+a.path, strings.Replace(a.body, "@", version, 1), "Content-Type", a.contentType)
		if code > 201 {
			t.Fatalf("%s: %d %s", a.what, code, body)
		}
		if made, stacks := c.spent(); made != a.want {
			t.Errorf("%s: %d conversions %s, want %s", a.what, strings.Count(made, ">"), made, a.want)
			t.Log(stacks)
		}
		var o metav1.PartialObjectMetadata
		if err := json.Unmarshal([]byte(body), &o); err != nil {
			t.Fatal(err)
		}
		version = o.ResourceVersion
	}
}

// TestConversionsOfARequest counts the conversions of a kind with Go types. Requests, the hub and the stored objects are in three
// versions. An update finds the object in the cache, in the stored version.
func TestConversionsOfARequest(t *testing.T) {
	t.Parallel()
	for what, plugins := range map[string]admission.Chain{"alone": nil, "with plug-ins": lookers()} {
		for _, judged := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, rules %t", what, judged), func(t *testing.T) {
				t.Parallel()
				c := &conversions{}
				srv := servertest.Start(t, server.Options{Groups: []server.Group{c.knots(judged)}, Policy: server.Policy{Admission: plugins}})
				const path = "/apis/sea.example.com/v1/namespaces/default/knots"
				rules := "" // of the object to be stored, for the rules of the request's version
				if judged {
					rules = "v2>v1 "
				}
				c.run(t, srv, []asked{
					{"POST", "POST", path, "application/json", `{"metadata":{"name":"a"},"twists":1}`,
						"v1>v2 v2>v1 " + // to the hub; back, for what can be shown, and for managedFields
							rules + "v2>v3 v3>v2 v2>v1"}, // to the stored version; as it will be read; the answer
					{"GET", "GET", path + "/a", "", "", ""}, // uses the result that was kept for the answer to the POST
					{"LIST", "GET", path, "", "", "v3>v2 v2>v1"},
					{"PUT", "PUT", path + "/a", "application/json", `{"metadata":{"name":"a"},"twists":2}`,
						"v1>v2 v2>v1 " + // the body, as above
							"v3>v2 v2>v1 " + // the stored object, for managedFields and rules
							rules + "v2>v3 v3>v2 v2>v1"},
					{"merge patch", "PATCH", path + "/a", mergePatchType, `{"twists":3}`,
						"v3>v2 v2>v1 " + // the stored object, to be patched, for managedFields and rules
							"v1>v2 v2>v1 " + rules + "v2>v3 v3>v2 v2>v1"},
					{"apply", "PATCH", path + "/a?fieldManager=me&force=true", applyType, `{"apiVersion":"sea.example.com/v1","kind":"Knot","metadata":{"name":"a"},"twists":4}`,
						"v3>v2 v2>v1 " + // the stored object, to be merged
							"v1>v2 v2>v1 " + rules + "v2>v3 v3>v2 v2>v1"},
					{"a patch of nothing", "PATCH", path + "/a", mergePatchType, `{}`,
						"v3>v2 v2>v1 v1>v2 v2>v3 v3>v2"}, // the result is equal to the stored object, and the answer is that of before
					{"DELETE", "DELETE", path + "/a", "", "", "v3>v2"},
				})
			})
		}
	}
}

// TestCallsOfARequest counts the calls of an external conversion, of a kind without a Go type whose hub is stored: as many as
// kube-apiserver makes, or fewer.
func TestCallsOfARequest(t *testing.T) {
	t.Parallel()
	for what, plugins := range map[string]admission.Chain{"alone": nil, "with plug-ins": lookers()} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c, r := &conversions{}, &repainter{}
			convert := func(ctx context.Context, in []*unstructured.Unstructured, to schema.GroupVersion) ([]*unstructured.Unstructured, error) {
				for _, u := range in {
					c.add(u.GroupVersionKind().Version, to.Version)
				}
				return r.convert(ctx, in, to)
			}
			group := shapes(func(o *untypedOptions, version int) { o.ConvertAll, o.NoCache = convert, version == 1 }, specFields{"color": nil}, specFields{"colour": nil})
			srv := servertest.Start(t, server.Options{Groups: []server.Group{group}, Policy: server.Policy{Admission: plugins}})
			path := shapePath(2)
			c.run(t, srv, []asked{
				{"POST", "POST", path, "application/json", shape(2, "a", `,"spec":{"colour":"red"}`), "v2>v1 v1>v2"},
				{"GET", "GET", path + "/a", "", "", ""}, // uses the result that was kept for the answer to the POST
				{"PUT", "PUT", path + "/a", "application/json", strings.Replace(shape(2, "a", `,"spec":{"colour":"blue"}`), `"name"`, `"resourceVersion":"@","name"`, 1), "v2>v1 v1>v2 v1>v2"},
				{"merge patch", "PATCH", path + "/a", mergePatchType, `{"spec":{"colour":"pink"}}`, "v1>v2 v2>v1 v1>v2"},
				{"apply", "PATCH", path + "/a?fieldManager=me&force=true", applyType, shape(2, "a", `,"spec":{"colour":"grey"}`), "v1>v2 v2>v1 v1>v2"},
				{"DELETE", "DELETE", path + "/a", "", "", "v1>v2"}, // the answer
			})
		})
	}
}
