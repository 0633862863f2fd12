package main

import (
	"fmt"
	"strings"
)

type obj = map[string]any

// kind is a kind that requests are about.
type kind struct {
	resource, kind string
	group          string // with ${group} for the group of the definitions of the program
	versions       []string
	namespaced     bool
	typed          bool     // it has a Go type, and so protobuf and strategic merge patches
	steady         bool     // only the requests of a case change objects of the kind
	subresources   []string // those that the kind has
	fields         []field
	sample         func() obj // an object that is valid, without metadata
	selectors      []string   // field selectors that the kind has, beside those of metadata
	weight         int
}

// field is a place in an object with values for it, valid and invalid. A value of unset removes it.
type field struct {
	path   string // dots separate members
	values []any
}

type unset struct{}

func (k *kind) apiVersion(version string) string {
	if k.group == "" {
		return version
	}
	return k.group + "/" + version
}

// root is the path of the version.
func (k *kind) root(version string) string {
	if k.group == "" {
		return "/api/" + version
	}
	return "/apis/" + k.group + "/" + version
}

// class names the kind in signatures.
func (k *kind) class() string {
	switch {
	case k.resource == "events":
		return "events"
	case k.resource == "namespaces" || k.resource == "customresourcedefinitions":
		return k.resource
	case k.typed:
		return "typed"
	}
	return "custom"
}

// metadataFields are places in the metadata of any object. Owners are never absent objects, because a server with a garbage
// collector would delete the object, and kube-apiserver alone does not.
var metadataFields = []field{
	{"metadata.labels", []any{obj{"x": "1"}, obj{"x": "2", "y": "z"}, obj{"bad key!": "v"}, obj{"x": "bad value!"}, obj{"x": 1}, "text", nil, obj{}}},
	{"metadata.labels.x", []any{"1", "2", "", "_", nil, unset{}, strings.Repeat("a", 64)}},
	{"metadata.annotations", []any{obj{"a": "1"}, obj{"a": "two words"}, obj{"Bad Key": "v"}, obj{"a": true}, nil, obj{"a/b/c": "x"}}},
	{"metadata.annotations.a", []any{"1", "other", nil, unset{}}},
	{"metadata.finalizers", []any{[]any{"example.com/hold"}, []any{"example.com/hold", "example.com/other"}, []any{"hold"}, []any{"bad name!/x"}, []any{}, nil, []any{""}, "text"}},
	{"metadata.ownerReferences", []any{
		[]any{obj{"apiVersion": "v1", "kind": "Namespace", "name": "${ns}", "uid": "${nsuid}"}},
		[]any{obj{"apiVersion": "v1", "kind": "Namespace", "name": "${ns}", "uid": "${nsuid}", "controller": true, "blockOwnerDeletion": true}},
		[]any{obj{"apiVersion": "v1", "kind": "Namespace", "name": "", "uid": ""}},
		[]any{obj{"apiVersion": "v1", "kind": "Event", "name": "a", "uid": "x"}},
		[]any{obj{"kind": "Namespace", "name": "a", "uid": "x"}}, nil, obj{}}},
	{"metadata.resourceVersion", []any{"${self rv}", "${self rv}", "${self rv}", "${self firstrv}", "1", "0", "", "abc", "-1", 5}},
	{"metadata.uid", []any{"${self uid}", "${self uid}", "11111111-1111-4111-8111-111111111111", "x", ""}},
	{"metadata.name", []any{"Bad_Name", "", unset{}, "a.b", "-a", 7, strings.Repeat("n", 254), "other"}},
	{"metadata.namespace", []any{"default", "", "${ns}", "x", nil}},
	{"metadata.generation", []any{7, -1, "x"}},
	{"metadata.creationTimestamp", []any{nil, "2020-01-01T00:00:00Z", "yesterday"}},
	{"metadata.deletionTimestamp", []any{"2020-01-01T00:00:00Z", nil}},
	{"metadata.deletionGracePeriodSeconds", []any{5, -1}},
	{"metadata.selfLink", []any{"/x"}},
	{"metadata.generateName", []any{"g-", "BAD-"}},
	{"metadata.managedFields", []any{[]any{}, []any{obj{}}, []any{obj{"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": obj{"f:data": obj{}}}}, []any{obj{"operation": "Nothing"}}, nil}},
	{"metadata.unknown", []any{"x"}},
	{"apiVersion", []any{"v1", "other/v1", "a/b/c", "", unset{}, 1}},
	{"kind", []any{"Other", "", unset{}, "Status", 1}},
	{"unknown", []any{1, obj{"a": "b"}}},
	{"spec", []any{nil, "text", []any{}, obj{}}},
	{"status", []any{nil, obj{}, obj{"phase": "x"}, "text"}},
}

// typedKinds are the kinds with Go types.
func typedKinds() []*kind {
	hold := func(v any) []any { return []any{v} }
	return []*kind{
		{resource: "configmaps", kind: "ConfigMap", versions: []string{"v1"}, namespaced: true, typed: true, steady: true, weight: 5,
			sample: func() obj { return obj{"data": obj{"k": "v"}} },
			fields: []field{
				{"data", []any{obj{"k": "1"}, obj{"k": "2", "l": "x"}, obj{"bad key!": "v"}, obj{"k": 1}, nil, obj{}, "text", obj{"..": "x"}, obj{"k": nil}}},
				{"data.k", []any{"1", "2", "", nil, unset{}, 3, true}}, {"data.l", []any{"1", "é<>&", nil, unset{}}},
				{"binaryData", []any{obj{"b": "AAEC"}, obj{"b": "!!!"}, obj{"k": "AAEC"}, nil, obj{"b": ""}}},
				{"immutable", []any{true, false, "yes", nil, unset{}}}, {"Data", []any{obj{"k": "v"}}},
			}},
		{resource: "secrets", kind: "Secret", versions: []string{"v1"}, namespaced: true, typed: true, steady: true, weight: 4,
			sample: func() obj { return obj{"data": obj{"k": "dg=="}} },
			fields: []field{
				{"data", []any{obj{"k": "dg=="}, obj{"k": "not base64"}, obj{"bad key!": "dg=="}, obj{"tls.crt": "YQ==", "tls.key": "YQ=="}, obj{".dockerconfigjson": "e30="}, obj{"username": "YQ=="}, nil, obj{}, obj{"k": nil}}},
				{"stringData", []any{obj{"k": "s"}, obj{"l": "s"}, obj{"bad key!": "s"}, obj{"k": 1}, nil, obj{}}},
				{"type", []any{"Opaque", "kubernetes.io/tls", "kubernetes.io/dockerconfigjson", "kubernetes.io/basic-auth", "kubernetes.io/ssh-auth", "kubernetes.io/service-account-token", "x", "", nil}},
				{"immutable", []any{true, false, nil, unset{}}}, {"data.k", []any{"dg==", "bQ==", nil, unset{}, ""}},
			}, selectors: []string{"type=Opaque", "type!=Opaque", "type=x"}},
		{resource: "leases", kind: "Lease", group: "coordination.k8s.io", versions: []string{"v1"}, namespaced: true, typed: true, steady: true, weight: 4,
			sample: func() obj { return obj{"spec": obj{"holderIdentity": "me", "leaseDurationSeconds": 15}} },
			fields: []field{
				{"spec.holderIdentity", []any{"me", "you", "", nil, unset{}, 1}}, {"spec.leaseDurationSeconds", []any{15, 30, 0, -1, "x", 1.5, 3000000000, nil, unset{}}},
				{"spec.acquireTime", []any{"2020-01-01T00:00:00.000000Z", "2020-01-01T00:00:00Z", "bad", nil, 1}}, {"spec.renewTime", []any{"2021-01-01T00:00:00.123456Z", "2021-01-01T00:00:00.123456789+01:00", "", nil}},
				{"spec.leaseTransitions", []any{0, 1, -1, nil}}, {"spec.strategy", []any{"OldestEmulationVersion", "x", "", nil}}, {"spec.preferredHolder", []any{"you", "", nil}},
				{"spec.unknown", hold(1)},
			}},
		{resource: "events", kind: "Event", versions: []string{"v1"}, namespaced: true, typed: true, steady: true, weight: 3,
			sample: func() obj {
				return obj{"involvedObject": obj{"kind": "ConfigMap", "namespace": "${ns}", "name": "a", "apiVersion": "v1"}, "reason": "Made", "message": "a text", "type": "Normal", "count": 1,
					"source": obj{"component": "differ"}, "firstTimestamp": "2020-01-01T00:00:00Z", "lastTimestamp": "2020-01-01T00:00:00Z"}
			},
			fields: append([]field{
				{"involvedObject.namespace", []any{"${ns}", "default", "", unset{}}}, {"involvedObject.name", []any{"a", "b", ""}}, {"involvedObject.kind", []any{"Secret", "", unset{}, 1}},
				{"involvedObject", []any{obj{}, nil, unset{}, "x"}},
				{"reason", []any{"Made", "Lost", "", strings.Repeat("r", 130), 1}}, {"message", []any{"other", "", strings.Repeat("m", 1025)}}, {"type", []any{"Normal", "Warning", "x", "", nil}},
				{"count", []any{1, 2, -1, "x", 2.5}}, {"source.component", []any{"c", "", nil}}, {"firstTimestamp", []any{nil, "bad", "2020-01-01T00:00:00.5Z"}},
			}, newEventFields...), selectors: eventSelectors},
		{resource: "events", kind: "Event", group: "events.k8s.io", versions: []string{"v1"}, namespaced: true, typed: true, steady: true, weight: 3,
			sample: func() obj {
				return obj{"regarding": obj{"kind": "ConfigMap", "namespace": "${ns}", "name": "a", "apiVersion": "v1"}, "reason": "Made", "note": "a text", "type": "Normal", "action": "Making",
					"eventTime": "2020-01-01T00:00:00.000000Z", "reportingController": "example.com/differ", "reportingInstance": "one"}
			},
			fields: append([]field{
				{"regarding.namespace", []any{"${ns}", "default", "", unset{}}}, {"regarding.name", []any{"a", "b", ""}}, {"reason", []any{"Made", "Lost", "", strings.Repeat("r", 130), 1}},
				{"note", []any{"other", "", strings.Repeat("m", 1025)}}, {"type", []any{"Normal", "Warning", "x", "", nil}}, {"reportingController", []any{"x", "", "bad name!/x", nil}},
				{"deprecatedCount", []any{1, 0, 3}}, {"deprecatedSource.component", []any{"c", ""}}, {"deprecatedFirstTimestamp", []any{"2020-01-01T00:00:00Z", nil}},
			}, newEventFields...), selectors: eventSelectors},
		{resource: "namespaces", kind: "Namespace", versions: []string{"v1"}, typed: true, weight: 2, subresources: []string{"status", "finalize"},
			sample: func() obj { return obj{} },
			fields: []field{
				{"spec.finalizers", []any{[]any{"kubernetes"}, []any{}, []any{"x"}, []any{"example.com/x"}, nil}}, {"status.phase", []any{"Active", "Terminating", "x", ""}},
				{"metadata.labels.kubernetes~io/metadata~name", []any{"x", nil, unset{}}},
			}, selectors: []string{"status.phase=Active", "status.phase!=Active"}},
	}
}

var newEventFields = []field{
	{"eventTime", []any{"2020-01-01T00:00:00.000000Z", "2021-01-01T00:00:00Z", nil, "bad", unset{}}}, {"action", []any{"Making", "", nil, strings.Repeat("a", 130)}},
	{"reportingInstance", []any{"one", "", strings.Repeat("i", 130)}}, {"reportingComponent", []any{"x", ""}},
	{"series", []any{obj{"count": 2, "lastObservedTime": "2020-01-01T00:00:00.000000Z"}, obj{"count": 1}, obj{}, nil, "x"}}, {"series.count", []any{3, 0, "x"}},
	{"related", []any{obj{"kind": "Secret", "name": "a"}, obj{}, nil}},
}

var eventSelectors = []string{"reason=Made", "type=Normal", "involvedObject.name=a", "involvedObject.kind!=Secret", "source=differ", "reportingComponent=x", "regarding.name=a"}

// customKinds are the kinds of the definitions of the program.
func customKinds(group string) []*kind {
	return []*kind{
		{resource: "widgets", kind: "Widget", group: group, versions: []string{"v1", "v2"}, namespaced: true, steady: true, weight: 8, subresources: []string{"status", "scale"},
			sample: func() obj { return obj{"spec": obj{"color": "red", "replicas": 2, "min": 1, "max": 5}} },
			fields: widgetFields, selectors: []string{"spec.color=red", "spec.color!=red", "spec.size=1", "spec.replicas=2"}},
		{resource: "gadgets", kind: "Gadget", group: group, versions: []string{"v1"}, namespaced: true, steady: true, weight: 3,
			sample: func() obj { return obj{"spec": obj{"a": 1, "list": []any{1, "x", obj{"y": nil}}}, "top": "x"} },
			fields: []field{{"spec.a", []any{1, "x", nil, obj{"b": 1}, []any{}, unset{}}}, {"spec.list", []any{[]any{}, []any{1, 2}, nil, obj{}}}, {"top", []any{1, nil, unset{}, 1.5, 12345678901234567}}, {"status.x", []any{1, "y"}}}},
		{resource: "sites", kind: "Site", group: group, versions: []string{"v1beta1", "v1"}, steady: true, weight: 3, subresources: []string{"status"},
			sample: func() obj { return obj{"spec": obj{"host": "example.com"}} },
			fields: []field{
				{"spec.host", []any{"example.com", "EXAMPLE", "", 1, nil, unset{}, strings.Repeat("h", 70)}}, {"spec.owner", []any{"me", nil, unset{}, 1}}, {"spec.note", []any{"x", nil, unset{}}},
				{"spec.port", []any{80, 0, 65536, 443, "80", 80.5}}, {"spec.tls", []any{obj{"mode": "off"}, obj{"mode": "strict"}, obj{}, nil, obj{"mode": "on", "x": 1}}},
				{"spec.paths", []any{[]any{"/a"}, []any{"/a", "/b"}, []any{"/a", "/b", "/c", "/d"}, []any{"a"}, []any{nil}, nil}},
				{"spec.labels", []any{obj{"a": "b"}, obj{"a": 1}, obj{"a": nil}, obj{}}}, {"status.state", []any{"Up", "Down", "x", nil}}, {"status.checked", []any{"2020-01-01T00:00:00Z", "bad", nil}},
			}},
	}
}

var widgetFields = []field{
	{"spec.size", []any{1, 5, 10, 11, -1, "x", 1.5, nil, unset{}, 3.0}}, {"spec.color", []any{"red", "green", "blue", "pink", "", nil, unset{}, 1}}, {"spec.code", []any{"ab-1", "AB", "", "ab-", nil}},
	{"spec.replicas", []any{0, 1, 3, -1, 101, "x", nil, unset{}, 2147483648}}, {"spec.min", []any{0, 1, 6, nil, unset{}}}, {"spec.max", []any{1, 5, 0, nil, unset{}}},
	{"spec.tags", []any{[]any{"a"}, []any{"a", "b"}, []any{"a", "a"}, []any{"b", "c"}, []any{}, nil, "x", []any{1}}},
	{"spec.parts", []any{[]any{obj{"name": "p"}}, []any{obj{"name": "p", "count": 2}, obj{"name": "q"}}, []any{obj{"name": "p"}, obj{"name": "p"}}, []any{obj{"count": 1}}, []any{obj{"name": "p", "count": -1}}, []any{}, nil, []any{obj{"name": "q", "x": 1}}}},
	{"spec.port", []any{80, "http", "80%", 1.5, true, nil, unset{}}}, {"spec.free", []any{obj{"any": obj{"thing": 1}}, obj{"typed": 1, "x": nil}, obj{"typed": "s"}, nil, "x"}},
	{"spec.template", []any{obj{"apiVersion": "v1", "kind": "ConfigMap", "metadata": obj{"name": "x"}, "data": obj{"a": "b"}}, obj{"kind": "ConfigMap"}, obj{}, obj{"apiVersion": "v1", "kind": "X", "metadata": obj{"name": "Bad Name", "labels": obj{"a": 1}}}, obj{"apiVersion": "v1", "kind": "X", "metadata": obj{"creationTimestamp": nil, "unknown": 1}}, nil}},
	{"spec.fixed", []any{"one", "two", nil, unset{}}}, {"spec.when", []any{"2020-01-01T00:00:00Z", "yesterday", nil}}, {"spec.nested", []any{obj{}, obj{"a": "x"}, obj{"deep": obj{}}, nil, obj{"deep": obj{"on": false}}}},
	{"spec.unknown", []any{1, obj{"x": 1}}}, {"spec.labels", []any{obj{"a": "b"}, obj{"a": 1}, obj{}, nil}},
	{"spec", []any{unset{}, obj{}, obj{"color": "green"}}},
	{"status.ready", []any{true, false, "x", nil}}, {"status.replicas", []any{1, 2, -1, "x", nil}}, {"status.selector", []any{"a=b", "", nil}},
	{"status.conditions", []any{[]any{obj{"type": "A", "status": "True"}}, []any{obj{"type": "A", "status": "False"}, obj{"type": "B", "status": "True"}}, []any{obj{"type": "A"}}, []any{obj{"type": "A", "status": "True"}, obj{"type": "A", "status": "True"}}, nil}},
	{"status.unknown", []any{1}},
}

// set sets the value at a path, and makes the objects on the way. In a path ~ stands for a dot in a name.
func set(o obj, path string, value any) {
	first, rest, more := strings.Cut(path, ".")
	first = strings.ReplaceAll(first, "~", ".")
	if !more {
		if _, remove := value.(unset); remove {
			delete(o, first)
		} else {
			o[first] = value
		}
		return
	}
	inner, ok := o[first].(obj)
	if !ok {
		inner = obj{}
	} else {
		inner = clone(inner).(obj)
	}
	o[first] = inner
	set(inner, rest, value)
}

func clone(v any) any {
	switch v := v.(type) {
	case obj:
		out := obj{}
		for k, x := range v {
			out[k] = clone(x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = clone(x)
		}
		return out
	}
	return v
}

// self replaces ${self rv} and its like by variables of an object.
func self(text string, k *kind, name string) string {
	for _, word := range []string{"rv", "firstrv", "uid"} {
		text = strings.ReplaceAll(text, "${self "+word+"}", fmt.Sprintf("${%s %s/%s}", word, k.resource, name))
	}
	return text
}
