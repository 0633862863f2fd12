package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// decode returns the body of an answer as JSON values: a list of events for a watch, and a string for a body in no known form.
func decode(a answer, watch bool) any {
	form, _, _ := mime.ParseMediaType(a.header.Get("Content-Type"))
	if len(a.body) == 0 && !(watch && a.code == 200) {
		return nil
	}
	if watch && a.code == 200 && form == "application/json" {
		return decodeEvents(a.body)
	}
	text := a.body
	switch form {
	case "application/json":
	case "application/yaml":
		converted, err := yaml.YAMLToJSON(text)
		if err != nil {
			return "YAML that cannot be read: " + err.Error()
		}
		text = converted
	case "application/vnd.kubernetes.protobuf":
		converted, err := jsonOfProtobuf(text)
		if err != nil {
			return "protobuf that cannot be read"
		}
		text = converted
	default:
		return string(text)
	}
	v, err := decodeJSON(text)
	if err != nil {
		return string(text)
	}
	return v
}

func decodeJSON(text []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one value")
	}
	return v, nil
}

func decodeEvents(text []byte) any {
	events := []any{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	for {
		var v any
		if err := d.Decode(&v); errors.Is(err, io.EOF) {
			return events
		} else if err != nil {
			return append(events, "an event that cannot be read")
		}
		events = append(events, v)
	}
}

// jsonOfProtobuf returns an object in protobuf as JSON.
func jsonOfProtobuf(text []byte) ([]byte, error) {
	o, gvk, err := scheme.Codecs.UniversalDeserializer().Decode(text, nil, nil)
	if err != nil {
		return nil, err
	}
	o.GetObjectKind().SetGroupVersionKind(*gvk)
	return json.Marshal(o)
}

// What servers choose in strings.
var (
	uidForm  = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`)
	timeForm = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	nameForm = regexp.MustCompile(`\bg-[bcdfghjklmnpqrstvwxz2456789]{5}\b`) // a generated name
	ageForm  = regexp.MustCompile(`^(\d+[smhdy])+$`)
	portForm = regexp.MustCompile(`\b127\.\d+\.\d+\.\d+:\d+`)
	rvForms  = []*regexp.Regexp{
		regexp.MustCompile(`(too old resource version: )\d+ \(\d+(\))`), regexp.MustCompile(`(resourceVersion\\*":\\*")\d+()`),
		regexp.MustCompile(`(precondition \()\d+(\))`), regexp.MustCompile(`(in record \()\d+(\))`),
		regexp.MustCompile(`(ResourceVersion in object meta: )\d+()`), regexp.MustCompile(`(ResourceVersion in precondition: )\d+()`), regexp.MustCompile(`(\()[0-9a-f]{20,}( [.]{3}\))`), // the bytes of a body in protobuf
		regexp.MustCompile(`(current: )\d+()`), regexp.MustCompile(`(resource version: )\d+()`), regexp.MustCompile(`(\bresourceVersion: ?"?)\d+()`), regexp.MustCompile(`(resourceVersion=)\d+()`),
	}
)

// normalText replaces what servers choose in a string.
func normalText(text string) string {
	if len(text) >= 7 {
		text = uidForm.ReplaceAllStringFunc(text, func(uid string) string {
			if strings.HasPrefix(uid, "11111111-") {
				return uid
			}
			return "<uid>"
		})
		text = timeForm.ReplaceAllStringFunc(text, func(t string) string {
			at, err := time.Parse(time.RFC3339Nano, t)
			if err != nil || time.Since(at).Abs() > 48*time.Hour {
				return t
			}
			return fmt.Sprintf("<time with %d characters>", len(t))
		})
		text = nameForm.ReplaceAllString(text, "g-<random>")
		text = portForm.ReplaceAllString(text, "<address>")
		for _, form := range rvForms {
			text = form.ReplaceAllString(text, "${1}<rv>${2}")
		}
	}
	return text
}

// normalizer replaces what servers choose in the answer to a request. Of one object it keeps whether the resourceVersion and the
// uid are those of the last answer.
type normalizer struct {
	s *state
	r *request
}

func (n normalizer) body(v any) any {
	o, ok := v.(map[string]any)
	if !ok {
		return n.value("", v)
	}
	meta, _ := o["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	var rv, uid string
	if n.r.kind != nil && n.r.kind.steady && name != "" && o["kind"] != "Status" {
		last, known := n.s.objects[n.r.kind.resource+"/"+name]
		rv, uid = sameness(known, meta["resourceVersion"], last.rv), sameness(known, meta["uid"], last.uid)
	}
	if kind, _ := o["kind"].(string); kind == "APIResourceList" || kind == "APIGroupList" || kind == "APIGroupDiscoveryList" {
		served(o)
	}
	out := n.value("", v).(map[string]any)
	sortMessage(out)
	if m, ok := out["metadata"].(map[string]any); ok {
		for key, value := range map[string]string{"resourceVersion": rv, "uid": uid} {
			if m[key] != nil && value != "" {
				m[key] = value
			}
		}
	}
	return out
}

// sortMessage sorts the parts of the message of a Status with several causes, which has them in any order. The parts are taken from the
// causes, which are sorted, because a part may have commas. A message that has other parts stays.
func sortMessage(o obj) {
	details, _ := o["details"].(obj)
	causes, _ := details["causes"].([]any)
	text, _ := o["message"].(string)
	before, list, ok := strings.Cut(text, " is invalid: [")
	if !ok {
		return
	}
	rest := ", " + strings.TrimSuffix(list, "]")
	var parts []string
	for _, c := range causes {
		cause, _ := c.(obj)
		part := fmt.Sprintf("%v: %v", cause["field"], cause["message"])
		if slices.Contains(parts, part) { // the message has it once
			continue
		}
		parts = append(parts, part)
	}
	for _, part := range slices.SortedFunc(slices.Values(parts), func(a, b string) int { return len(b) - len(a) }) { // one may begin with another
		rest = strings.Replace(rest, ", "+part, "", 1)
	}
	if rest == "" {
		o["message"] = before + " is invalid: [" + strings.Join(parts, ", ") + "]"
	}
}

func sameness(known bool, value any, last string) string {
	switch {
	case !known || value == nil:
		return ""
	case value == last:
		return "<as before>"
	}
	return "<new>"
}

func (n normalizer) value(key string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[normalText(k)] = n.value(k, x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = n.value(key, x)
		}
		if key == "managedFields" || key == "causes" {
			slices.SortFunc(out, func(a, b any) int { return strings.Compare(compact(a), compact(b)) })
		}
		return out
	case string:
		switch {
		case key == "resourceVersion" && v != "" && v != "0" && strings.Trim(v, "0123456789") == "":
			return "<rv>"
		case key == "continue" && v != "" && isToken(v):
			return "<continue>"
		case key == "serverAddress":
			return "<address>"
		case key == "cells" && ageForm.MatchString(v):
			return "<age>"
		}
		return normalText(v)
	}
	return v
}

func isToken(text string) bool {
	_, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
	return err == nil
}

// served leaves the groups and resources that both servers serve in a discovery document.
func served(o map[string]any) {
	groups := map[string]bool{"": true, "events.k8s.io": true, "coordination.k8s.io": true, "apiextensions.k8s.io": true}
	resources := map[string]bool{"configmaps": true, "secrets": true, "events": true}
	keep := func(key string, test func(item map[string]any) bool) {
		items, ok := o[key].([]any)
		if !ok {
			return
		}
		o[key] = slices.DeleteFunc(items, func(x any) bool {
			item, _ := x.(map[string]any)
			return !test(item)
		})
	}
	keep("groups", func(g map[string]any) bool {
		name, _ := g["name"].(string)
		return groups[name]
	})
	keep("items", func(g map[string]any) bool {
		meta, _ := g["metadata"].(map[string]any)
		name, _ := meta["name"].(string)
		return groups[name] && name != ""
	})
	for _, key := range []string{"groups", "items", "resources"} { // which are in the order in which the server got them
		if items, ok := o[key].([]any); ok {
			slices.SortFunc(items, func(a, b any) int { return strings.Compare(compact(a), compact(b)) })
		}
	}
	if o["groupVersion"] == "v1" {
		keep("resources", func(r map[string]any) bool {
			name, _ := r["name"].(string)
			return resources[name] || strings.HasPrefix(name, "namespaces")
		})
	}
}

// compact returns a value as JSON on one line.
func compact(v any) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSuffix(out.String(), "\n")
}
