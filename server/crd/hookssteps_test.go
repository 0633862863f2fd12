package crd_test

import (
	"slices"
	"strings"
)

// latest returns the body of an update of the current object.
func latest(body string) string {
	return strings.Replace(body, `"metadata":{`, `"metadata":{"resourceVersion":"LATEST",`, 1)
}

// wellSteps returns requests for a webhook that works.
func wellSteps(v1, v2, group string) []hookStep {
	in1 := func(name, rest string) string { return crate(group, "v1", name, rest) }
	in2 := func(name, rest string) string { return crate(group, "v2", name, rest) }
	var out []hookStep
	add := func(s step) { out = append(out, hookStep{step: s, mode: "-"}) }
	watch := func(path string, events int) {
		out = append(out, hookStep{step: step{method: "GET", path: path}, mode: "-", events: events})
	}
	flip := func(version string) {
		out = append(out, hookStep{step: step{method: "GET", path: v1 + "/none"}, mode: "-", stored: version})
	}
	add(step{method: "POST", path: v1, body: in1("a", `,"spec":{"size":3,"color":"red","replicas":1,"odd":1}`)})
	add(step{method: "POST", path: v2, body: in2("b", `,"spec":{"box":{"width":4,"height":9},"shade":"blue","odd":1}`)})
	add(step{method: "POST", path: v2, body: in2("c", `,"spec":{"box":{"width":51}}`)})
	add(step{method: "POST", path: v2, body: in2("c", `,"spec":{"box":{"width":31}}`)})
	add(step{method: "POST", path: v2, body: in2("c", `,"spec":{"shade":"red"}`)})
	add(step{method: "POST", path: v2, body: in2("c", `,"spec":{"box":{"width":"x"}}`)})
	add(step{method: "POST", path: v2, body: in2("c", `,"spec":"text"`)})
	add(step{method: "POST", path: v2 + "?dryRun=All", body: in2("c", `,"spec":{"box":{"width":1}}`)})
	add(step{method: "POST", path: v2 + "?fieldValidation=Strict", body: in2("c", `,"spec":{"box":{"width":1,"odd":1}}`)})
	add(step{method: "POST", path: v2, body: in2("B b", `,"spec":{"box":{"width":1}}`)})
	add(step{method: "POST", path: v1, body: in1("c", `,"spec":{"size":90}`)}) // too wide for v2
	add(step{method: "POST", path: v1, body: in1("d", ``)})                    // has no box
	for _, path := range []string{v1, v2} {
		for _, name := range []string{"/a", "/b", "/c", "/d", "/none", ""} {
			add(step{method: "GET", path: path + name})
		}
		add(step{method: "GET", path: path, header: []string{"Accept", asTable}})
		add(step{method: "GET", path: path + "?includeObject=None", header: []string{"Accept", asTable}})
		add(step{method: "GET", path: path, header: []string{"Accept", asMeta}})
		add(step{method: "GET", path: path + "?resourceVersion=0"})
		add(step{method: "GET", path: path + "?labelSelector=x"})
		watch(path+"?watch=true&resourceVersion=0", 4)
		watch(path+"?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", 5)
		add(step{method: "GET", path: path + "/a/status"})
		add(step{method: "GET", path: path + "/a/scale"})
		add(step{method: "GET", path: path + "/b/scale"})
	}
	add(step{method: "PUT", path: v2 + "/a", body: in2("a", `,"spec":{"box":{"width":5},"shade":"red","copies":1}`)})
	add(step{method: "PUT", path: v2 + "/a", body: latest(in2("a", `,"spec":{"box":{"width":5},"shade":"red","copies":1}`))})
	add(step{method: "PUT", path: v2 + "/a", body: latest(in2("a", `,"spec":{"box":{"width":5},"shade":"green"}`))})
	add(step{method: "PUT", path: v2 + "/a", body: latest(in2("a", `,"spec":{"shade":"red"}`))})
	add(step{method: "PUT", path: v1 + "/a", body: latest(in1("a", `,"spec":{"size":5,"color":"red","replicas":1}`))})
	add(step{method: "PUT", path: v2 + "/none", body: in2("none", `,"spec":{"box":{"width":5}}`)})
	add(step{method: "PATCH", path: v2 + "/a", contentType: merge, body: `{"spec":{"box":{"height":8},"note":"n"}}`})
	add(step{method: "PATCH", path: v1 + "/a", contentType: merge, body: `{"spec":{"size":6}}`})
	add(step{method: "PATCH", path: v2 + "/a", contentType: "application/json-patch+json", body: `[{"op":"test","path":"/spec/box/width","value":6},{"op":"replace","path":"/spec/box/width","value":7}]`})
	add(step{method: "PATCH", path: v2 + "/a", contentType: merge, body: `{"spec":{"box":{"width":60}}}`})
	add(step{method: "PATCH", path: v2 + "/a", contentType: merge, body: `{}`})
	add(step{method: "PATCH", path: v2 + "/c", contentType: merge, body: `{"spec":{"note":"too wide, and stays"}}`})
	add(step{method: "PATCH", path: v2 + "/d", contentType: merge, body: `{"metadata":{"labels":{"x":"y"}}}`})
	add(step{method: "GET", path: v1 + "/a"})
	add(step{method: "PATCH", path: v2 + "/a/status", contentType: merge, body: `{"status":{"copies":2,"phase":"Good"},"spec":{"note":"no"}}`})
	add(step{method: "PATCH", path: v1 + "/a/status", contentType: merge, body: `{"status":{"phase":5}}`})
	add(step{method: "GET", path: v1 + "/a/scale"})
	add(step{method: "GET", path: v2 + "/a/scale"})
	scale := `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"a","namespace":"default"},"spec":{"replicas":4}}`
	add(step{method: "PUT", path: v2 + "/a/scale", body: scale})
	add(step{method: "GET", path: v1 + "/a"})
	add(step{method: "PATCH", path: v1 + "/a/scale", contentType: merge, body: `{"spec":{"replicas":5}}`})
	add(step{method: "GET", path: v2 + "/a"})
	add(step{method: "PATCH", path: v2 + "/a/scale", contentType: merge, body: `{"spec":{"replicas":-5}}`})
	add(step{method: "PATCH", path: v2 + "/s?fieldManager=one", contentType: apply, body: in2("s", `,"spec":{"box":{"width":1},"shade":"red"}`)})
	add(step{method: "PATCH", path: v1 + "/s?fieldManager=two", contentType: apply, body: in1("s", `,"spec":{"size":2}`)})
	add(step{method: "PATCH", path: v1 + "/s?fieldManager=two&force=true", contentType: apply, body: in1("s", `,"spec":{"size":2}`)})
	add(step{method: "PATCH", path: v2 + "/s?fieldManager=one", contentType: apply, body: in2("s", `,"spec":{"box":{},"shade":"blue"}`)})
	add(step{method: "PATCH", path: v2 + "/s/status?fieldManager=one", contentType: apply, body: in2("s", `,"status":{"phase":"Good"}`)})
	flip("v2")
	for _, path := range []string{v1, v2} {
		for _, name := range []string{"/a", "/b", "/c", "/d", "/s", ""} {
			add(step{method: "GET", path: path + name})
		}
		add(step{method: "GET", path: path + "/a/scale"})
		watch(path+"?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", 6)
	}
	add(step{method: "PATCH", path: v1 + "/a", contentType: merge, body: `{"spec":{"size":8}}`})
	add(step{method: "PATCH", path: v2 + "/b", contentType: merge, body: `{}`})
	add(step{method: "POST", path: v1, body: in1("e", `,"spec":{"size":1}`)})
	add(step{method: "POST", path: v2, body: in2("f", `,"spec":{"box":{"width":2}}`)})
	add(step{method: "GET", path: v1})
	add(step{method: "GET", path: v2})
	flip("v1")
	add(step{method: "GET", path: v1})
	add(step{method: "DELETE", path: v2 + "/b"})
	add(step{method: "DELETE", path: v1 + "/f"})
	add(step{method: "DELETE", path: v2 + "/none"})
	add(step{method: "DELETE", path: v2})
	add(step{method: "GET", path: v1})
	return out
}

// badSteps returns requests for a webhook in a bad mode. There are two objects, created in v1 and never converted.
func badSteps(v1, v2, group string) []hookStep {
	in1 := func(name, rest string) string { return crate(group, "v1", name, rest) }
	in2 := func(name, rest string) string { return crate(group, "v2", name, rest) }
	var out []hookStep
	add := func(s step) { out = append(out, hookStep{step: s, mode: "-"}) }
	add(step{method: "POST", path: v1, body: in1("a", `,"spec":{"size":3,"color":"red","replicas":1}`)})
	add(step{method: "POST", path: v1, body: in1("b", `,"spec":{"size":4,"note":"n"}`)})
	add(step{method: "GET", path: v2 + "/a"})
	add(step{method: "GET", path: v2 + "/none"})
	add(step{method: "GET", path: v2})
	add(step{method: "GET", path: v2 + "?limit=1"})
	add(step{method: "GET", path: v2 + "?labelSelector=x"})
	add(step{method: "GET", path: v2, header: []string{"Accept", asTable}})
	add(step{method: "GET", path: v2, header: []string{"Accept", asMeta}})
	out = append(out, hookStep{step: step{method: "GET", path: v2 + "?watch=true"}, mode: "-", events: 2})
	add(step{method: "GET", path: v2 + "/a/status"})
	add(step{method: "GET", path: v2 + "/a/scale"})
	add(step{method: "POST", path: v2, body: in2("c", `,"spec":{"box":{"width":4}}`)})
	add(step{method: "POST", path: v2, body: in2("c", `,"spec":{"box":{"width":51}}`)})
	add(step{method: "POST", path: v2, body: in2("c", `,"spec":{"box":{"width":31}}`)})
	add(step{method: "POST", path: v2, body: in2("B b", `,"spec":{"box":{"width":4}}`)})
	add(step{method: "POST", path: v2, body: in2("a", `,"spec":{"box":{"width":4}}`)})
	add(step{method: "POST", path: v2 + "?dryRun=All", body: in2("c", `,"spec":{"box":{"width":4}}`)})
	add(step{method: "PUT", path: v2 + "/a", body: latest(in2("a", `,"spec":{"box":{"width":5}}`))})
	add(step{method: "PUT", path: v2 + "/a", body: latest(in2("a", `,"spec":{"box":{"width":51}}`))})
	add(step{method: "PUT", path: v2 + "/none", body: in2("none", `,"spec":{"box":{"width":5}}`)})
	add(step{method: "PATCH", path: v2 + "/a", contentType: merge, body: `{"spec":{"note":"x"}}`})
	add(step{method: "PATCH", path: v2 + "/none", contentType: merge, body: `{"spec":{"note":"x"}}`})
	add(step{method: "PATCH", path: v2 + "/a", contentType: "application/json-patch+json", body: `[{"op":"add","path":"/spec/note","value":"x"}]`})
	add(step{method: "PATCH", path: v2 + "/a?fieldManager=one", contentType: apply, body: in2("a", `,"spec":{"box":{"width":5}}`)})
	add(step{method: "PATCH", path: v2 + "/none?fieldManager=one", contentType: apply, body: in2("none", `,"spec":{"box":{"width":5}}`)})
	add(step{method: "PATCH", path: v2 + "/a/status", contentType: merge, body: `{"status":{"phase":"x"}}`})
	add(step{method: "PATCH", path: v2 + "/a/scale", contentType: merge, body: `{"spec":{"replicas":2}}`})
	add(step{method: "DELETE", path: v2 + "/none"})
	add(step{method: "DELETE", path: v2 + "/a?dryRun=All"})
	add(step{method: "DELETE", path: v2 + "/a"})
	add(step{method: "DELETE", path: v2})
	add(step{method: "GET", path: v1})
	add(step{method: "PATCH", path: v1 + "/a", contentType: merge, body: `{"spec":{"size":5}}`})
	add(step{method: "GET", path: v1 + "/b", header: []string{"Accept", asTable}})
	out = append(out, hookStep{step: step{method: "GET", path: v2 + "/a"}, mode: goodHook}, hookStep{step: step{method: "GET", path: v1}, mode: "-"})
	return out
}

// fewSteps returns fewer requests, for modes that all fail in the same way or do not fail.
func fewSteps(v1, v2, group string) []hookStep {
	var out []hookStep
	for _, s := range badSteps(v1, v2, group) {
		many := strings.Contains(s.path, "dryRun") || strings.Contains(s.path, "none") || strings.Contains(s.body, ":51") || strings.Contains(s.body, ":31") || strings.Contains(s.body, "B b")
		if !many {
			out = append(out, s)
		}
	}
	return out
}

// selectSteps returns requests with field selectors by the selectableFields of both versions.
func selectSteps(v1, v2, group string) []hookStep {
	var out []hookStep
	add := func(s step) { out = append(out, hookStep{step: s, mode: "-"}) }
	colors := []string{"red", "blue", "red", "blue", "red"}
	for i, color := range colors {
		add(step{method: "POST", path: v1, body: crate(group, "v1", string(rune('a'+i)), `,"spec":{"size":3,"color":"`+color+`"}`)})
	}
	add(step{method: "POST", path: v2, body: crate(group, "v2", "f", `,"spec":{"box":{"width":4},"shade":"red"}`)})
	get := func(path string, header ...string) { add(step{method: "GET", path: path, header: header}) }
	get(v1 + "?fieldSelector=spec.color%3Dred")
	get(v1 + "?fieldSelector=spec.shade%3Dred")
	get(v2 + "?fieldSelector=spec.color%3Dred")
	get(v2 + "?fieldSelector=spec.shade%3Dred")
	get(v2 + "?fieldSelector=spec.shade%3Dblue&resourceVersion=0")
	get(v2 + "?fieldSelector=spec.shade%21%3Dred")
	get(v2 + "?fieldSelector=spec.shade%3D")
	get(v2 + "?fieldSelector=spec.shade%3Dred,metadata.name%3Dc")
	get(v2 + "?fieldSelector=spec.shade%3Dred,metadata.name%3Db")
	get(v2 + "?fieldSelector=spec.shade%3Dred,metadata.name%21%3Dc,metadata.namespace%3Ddefault")
	get("/apis/" + group + "/v2/crates?fieldSelector=spec.shade%3Dblue")
	get(v2+"?fieldSelector=spec.shade%3Dblue", "Accept", asTable)
	get(v2+"?fieldSelector=spec.shade%3Dblue", "Accept", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io")
	get(v2 + "?fieldSelector=spec.shade%3Dblue&limit=2&resourceVersion=0")
	get(v2 + "?fieldSelector=spec.shade%3Dred&limit=7")
	watch := func(path string, events int) {
		out = append(out, hookStep{step: step{method: "GET", path: path + "&watch=true&timeoutSeconds=20"}, mode: "-", events: events})
	}
	watch(v2+"?fieldSelector=spec.shade%3Dblue", 2)
	watch(v2+"?fieldSelector=spec.shade%3Dred&resourceVersion=0", 4)
	watch(v2+"?fieldSelector=spec.shade%3Dblue&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", 3)
	watch(v2+"?fieldSelector=spec.color%3Dblue", 1)
	add(step{method: "DELETE", path: v2 + "?fieldSelector=spec.shade%3Dblue&dryRun=All"})
	add(step{method: "DELETE", path: v2 + "?fieldSelector=spec.color%3Dblue"})
	out = append(out, hookStep{step: step{method: "GET", path: v2 + "?fieldSelector=spec.shade%3Dblue"}, mode: "fails"})
	get(v1 + "?fieldSelector=spec.color%3Dblue")
	out = append(out, hookStep{step: step{method: "DELETE", path: v2 + "?fieldSelector=spec.shade%3Dblue"}, mode: goodHook})
	get(v1)
	out = append(out, hookStep{step: step{method: "GET", path: v1 + "?fieldSelector=spec.color%3Dred"}, mode: "-", stored: "v2"})
	get(v2 + "?fieldSelector=spec.shade%3Dred")
	add(step{method: "PATCH", path: v1 + "/a", contentType: merge, body: `{"spec":{"color":"blue"}}`})
	get(v1 + "?fieldSelector=spec.color%3Dblue")
	get(v2 + "?fieldSelector=spec.shade%3Dblue")
	get(v2 + "?fieldSelector=spec.shade%3Dred")
	return out
}

func hookPlays() []hookPlay {
	out := []hookPlay{{name: "well", steps: wellSteps}, {name: "selects", steps: selectSteps}}
	for mode := range hookLies() {
		out = append(out, hookPlay{name: mode, steps: fewSteps})
	}
	for _, mode := range []string{busyHook, crashHook, noiseHook, emptyHook} {
		out = append(out, hookPlay{name: mode, steps: fewSteps})
	}
	out = append(out, hookPlay{name: downHook, steps: badSteps})
	slices.SortFunc(out, func(a, b hookPlay) int { return strings.Compare(a.name, b.name) })
	return out
}
