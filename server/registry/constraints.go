package registry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/constraint"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkConstraints appends to problems what the struct tags of the kind say against obj, or when old is not nil,
// against the change from old: the tags of the hub's type, and those of the type in whose version the request came. The
// errors are for who sent that version: see inWordsOf. Of equal errors one is kept. Errors about the status of a new
// object are left out, for nobody can have set it yet.
func (r *Registry) checkConstraints(call *Call, problems field.ErrorList, obj, old runtime.Object) (field.ErrorList, error) {
	found := r.judge(r.kind.Constraints, obj, old)
	if k := r.requestKind(call); k != nil {
		if len(found) > 0 {
			r.inWordsOf(call, k, found, obj)
		}
		more, err := r.judgeIn(call, k, obj, old)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	if len(found) == 0 {
		return problems, nil
	}
	seen := map[string]bool{}
	for _, e := range found {
		if text := e.Error(); !seen[text] {
			seen[text] = true
			problems = append(problems, e)
		}
	}
	return problems, nil
}

// judgeIn is judge by the rules of another version, for objects of the hub.
func (r *Registry) judgeIn(call *Call, k *runtime.Kind, obj, old runtime.Object) (field.ErrorList, error) {
	if k.Constraints.IsZero() {
		return nil, nil
	}
	gv := k.GVK.GroupVersion()
	there, err := call.InVersion(r.scheme, obj, gv)
	if err != nil {
		return nil, r.status(err, "")
	}
	if old == nil {
		return r.judge(k.Constraints, there, nil), nil
	}
	was, err := call.InVersion(r.scheme, old, gv)
	if err != nil { // what cannot be shown in this version excuses nothing
		return k.Constraints.Validate(there), nil
	}
	return r.judge(k.Constraints, there, was), nil
}

// judge returns what rules say against a new object, or when old is not nil, against the change from old.
func (r *Registry) judge(rules *constraint.Rules, obj, old runtime.Object) field.ErrorList {
	if old != nil {
		return rules.ValidateUpdate(obj, old)
	}
	errs := rules.Validate(obj)
	if r.shape.hasStatus() {
		errs = slices.DeleteFunc(errs, func(e *field.Error) bool { return below(e.Field, "status") })
	}
	return errs
}

// requestKind returns the kind in the version of the request, or nil when that is the hub's or not known.
func (r *Registry) requestKind(call *Call) *runtime.Kind {
	if call.APIVersion == "" {
		return nil
	}
	gvk := r.kind.GVK
	gvk.Group, gvk.Version = call.APIGroup, call.APIVersion
	k := r.scheme.Lookup(gvk)
	if k == nil || k == r.kind || !r.scheme.OneKind(k.GVK.GroupKind(), r.kind.GVK.GroupKind()) {
		return nil
	}
	return k
}

// below reports whether path is that of a field or leads into it.
func below(path, name string) bool {
	rest, ok := strings.CutPrefix(path, name)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// ratchet is Ratchet for strategies that want it for all errors.
func (r *Registry) ratchet(problems field.ErrorList, obj, old runtime.Object) field.ErrorList {
	if !r.strategy.ratcheting {
		return problems
	}
	return Ratchet(problems, obj, old)
}

// Ratchet returns those of errs that are about something which the update from old to obj changed: an error is left
// out when the JSON value at its path is the same in both, or is absent from both in a place that both have. So rules
// can become stricter without making stored objects unwritable. For a strategy that wants this for all its errors
// there is [Strategy].Ratcheting; one that wants it for some calls Ratchet with those.
//
// Elements of lists are compared by index: an element that moved counts as changed. An error that a change elsewhere
// caused, as with rules about two fields, must name a field that changed, or it is lost. A path that leads nowhere in
// obj keeps its error. errs is not changed.
func Ratchet(errs field.ErrorList, obj, old runtime.Object) field.ErrorList {
	if len(errs) == 0 || old == nil {
		return errs
	}
	now, ok := decoded(obj)
	was, okOld := decoded(old)
	if !ok || !okOld {
		return errs
	}
	var kept field.ErrorList
	for _, e := range errs {
		a, within := lookUp(now, e.Field)
		b, withinOld := lookUp(was, e.Field)
		if !within || !withinOld || !reflect.DeepEqual(a, b) {
			kept = append(kept, e)
		}
	}
	return kept
}

// decoded is an object as JSON has it.
func decoded(obj runtime.Object) (any, bool) {
	text, err := json.Marshal(obj)
	if err != nil {
		return nil, false
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return v, d.Decode(&v) == nil
}

// missing is the value of a field that is not there, which is not null.
type missing struct{}

// lookUp returns the value at the path of a field error, such as spec.parts[2].name or metadata.labels[a/b], or
// missing. false says that there is not even a place for it. Names and keys may hold dots and brackets: the shortest
// that is there counts.
func lookUp(v any, path string) (any, bool) {
	if path == "" || path == "<nil>" {
		return v, path == ""
	}
	switch at := v.(type) {
	case map[string]any:
		return lookUpKey(at, path)
	case []any:
		index, rest, ok := strings.Cut(strings.TrimPrefix(path, "["), "]")
		i, err := strconv.Atoi(index)
		if !ok || err != nil || i < 0 || path[0] != '[' {
			return nil, false
		}
		if i >= len(at) {
			return missing{}, rest == ""
		}
		return lookUp(at[i], strings.TrimPrefix(rest, "."))
	}
	return nil, false
}

func lookUpKey(at map[string]any, path string) (any, bool) {
	ends := ".["
	if path[0] == '[' {
		path, ends = path[1:], "]"
	}
	first := -1 // where the shortest name ends
	for i := range len(path) + 1 {
		if i < len(path) && !strings.ContainsRune(ends, rune(path[i])) || i == len(path) && ends == "]" {
			continue
		}
		if first < 0 {
			first = i
		}
		if v, ok := at[path[:i]]; ok {
			return lookUp(v, after(path, i))
		}
	}
	if first < 0 {
		return nil, false
	}
	return missing{}, after(path, first) == ""
}

// after is the rest of a path behind a name that ends at i.
func after(path string, i int) string {
	rest := path[i:]
	rest = strings.TrimPrefix(rest, "]")
	return strings.TrimPrefix(rest, ".")
}

// inWordsOf makes errors about obj, which is of the hub, errors for who sent the version of the kind k: a renamed
// field has its name there. Of another path at which that version does not have what the hub has there, it is said
// which version it is of. The errors are changed in place.
func (r *Registry) inWordsOf(call *Call, k *runtime.Kind, errs field.ErrorList, obj runtime.Object) {
	here := map[string]string{}
	for path, hub := range k.Renamed {
		here[hub] = path
	}
	var ofHub, ofKind any
	if there, err := call.InVersion(r.scheme, obj, k.GVK.GroupVersion()); err == nil {
		ofHub, _ = decoded(obj)
		ofKind, _ = decoded(there)
	}
	for _, e := range errs {
		if path, ok := here[e.Field]; ok {
			e.Detail = strings.ReplaceAll(e.Detail, e.Field+" in body", path+" in body")
			e.Field = path
			continue
		}
		a, within := lookUp(ofHub, e.Field)
		b, withinOther := lookUp(ofKind, e.Field)
		if !within || !withinOther || !reflect.DeepEqual(a, b) {
			e.Detail = strings.TrimPrefix(fmt.Sprintf("%s (in version %s)", e.Detail, r.versionFor(k)), " ")
		}
	}
}
