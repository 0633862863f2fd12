package strategytest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// compare returns the differences between two objects of one version as clients see them in JSON, one line for each difference.
func compare(got, want runtime.Object, gvk schema.GroupVersionKind, ignore []string) ([]string, error) {
	a, err := tree(got, gvk)
	if err != nil {
		return nil, err
	}
	b, err := tree(want, gvk)
	if err != nil {
		return nil, err
	}
	forgetSystem(a, b)
	for _, path := range ignore {
		steps := stepsOf(path)
		forget(a, steps)
		forget(b, steps)
	}
	var r reporter
	cmp.Equal(a, b, cmp.Reporter(&r))
	return r.lines, nil
}

// tree returns an object as decoded JSON.
func tree(obj runtime.Object, gvk schema.GroupVersionKind) (map[string]any, error) {
	text, err := encoded(obj, gvk)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var out map[string]any
	return out, d.Decode(&out)
}

// forgetSystem removes fields that only the server sets from both objects: those that a test cannot know, and those that the
// expected object does not have.
func forgetSystem(got, want map[string]any) {
	a, b := metadataOf(got), metadataOf(want)
	for _, name := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink"} {
		delete(a, name)
		delete(b, name)
	}
	for _, name := range []string{"name", "namespace", "generateName", "generation", "deletionGracePeriodSeconds"} {
		if b[name] == nil {
			delete(a, name)
			delete(b, name)
		}
	}
	got["metadata"], want["metadata"] = a, b
}

// metadataOf returns the metadata of an object, or an empty map if the object has none.
func metadataOf(obj map[string]any) map[string]any {
	if m, ok := obj["metadata"].(map[string]any); ok {
		return m
	}
	return map[string]any{}
}

// stepsOf splits a path: "spec.parts.name" into its names, and "metadata.labels[a.b/c]" into metadata, labels and a.b/c.
func stepsOf(path string) []string {
	var steps []string
	for path != "" {
		if rest, ok := strings.CutPrefix(path, "["); ok {
			key, after, _ := strings.Cut(rest, "]")
			steps, path = append(steps, key), strings.TrimPrefix(after, ".")
			continue
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			return append(steps, path)
		}
		steps, path = append(steps, path[:end]), strings.TrimPrefix(path[end:], ".")
	}
	return steps
}

// ignoredItem replaces an item of a list whose index is ignored.
const ignoredItem = "(ignored)"

// forget removes the value at a path, and the objects that are empty without it. It reports whether v is an empty object
// afterwards.
func forget(v any, steps []string) (empty bool) {
	switch at := v.(type) {
	case map[string]any:
		if len(steps) == 1 || forget(at[steps[0]], steps[1:]) {
			delete(at, steps[0])
		}
		return len(at) == 0
	case []any:
		if i, err := strconv.Atoi(steps[0]); err == nil {
			switch {
			case i < 0 || i >= len(at):
			case len(steps) == 1:
				at[i] = ignoredItem // the items after it keep their indexes
			default:
				forget(at[i], steps[1:])
			}
			return false
		}
		for _, item := range at {
			forget(item, steps)
		}
	}
	return false
}

// reporter is a cmp reporter that writes a line for each difference.
type reporter struct {
	path  cmp.Path
	lines []string
}

func (r *reporter) PushStep(step cmp.PathStep) { r.path = append(r.path, step) }

func (r *reporter) PopStep() { r.path = r.path[:len(r.path)-1] }

func (r *reporter) Report(result cmp.Result) {
	if result.Equal() {
		return
	}
	got, want := r.path.Last().Values()
	show := func(v interface {
		IsValid() bool
		Interface() any
	}) string {
		if !v.IsValid() {
			return "nothing"
		}
		return shown(v.Interface())
	}
	r.lines = append(r.lines, fmt.Sprintf("%s: got %s, want %s", r.where(), show(got), show(want)))
}

// where returns the path in the format of field errors: spec.parts[2].name or metadata.labels[a.b/c]. The index of an item is
// that in the expected list, or that in the other list if only that one has the item.
func (r *reporter) where() string {
	var b strings.Builder
	for _, step := range r.path {
		switch s := step.(type) {
		case cmp.MapIndex:
			switch name := s.Key().String(); {
			case strings.ContainsAny(name, ".[]/ "):
				fmt.Fprintf(&b, "[%s]", name)
			case b.Len() > 0:
				b.WriteString("." + name)
			default:
				b.WriteString(name)
			}
		case cmp.SliceIndex:
			got, want := s.SplitKeys()
			if want < 0 {
				want = got
			}
			fmt.Fprintf(&b, "[%d]", want)
		}
	}
	return b.String()
}

// mostShown limits how much of a value is shown, in bytes.
const mostShown = 400

// shown returns a value as JSON.
func shown(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	text := strings.TrimSuffix(b.String(), "\n")
	if len(text) > mostShown {
		text = strings.ToValidUTF8(text[:mostShown], "") + "..."
	}
	return text
}
