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

// checkConstraints appends to problems the errors of obj against the struct tags of the kind or, if old is not nil, the errors of
// the change from old to obj. The struct tags are those of the hub's type and of the type of the request's version. The errors
// use the field names of the request's version: see inWordsOf. Equal errors are reported once. Errors about the status of a new
// object are left out, because no client can have set it yet.
func (r *Registry) checkConstraints(call *Call, problems field.ErrorList, obj, old runtime.Object) (field.ErrorList, error) {
	found := judge(r.kind.Constraints, obj, old, r.shape.hasStatus())
	if k := r.requestKind(call); k != nil {
		if len(found) > 0 {
			r.inWordsOf(call, k, found, obj)
		}
		more, err := judgeIn(call, r.scheme, k, obj, old, r.shape.hasStatus())
		if err != nil {
			return nil, r.status(err, "")
		}
		found = append(found, more...)
	}
	return appendDistinct(problems, found), nil
}

// appendDistinct appends to problems those errs that are not there yet.
func appendDistinct(problems, errs field.ErrorList) field.ErrorList {
	if len(errs) == 0 {
		return problems
	}
	seen := map[string]bool{}
	for _, e := range problems {
		seen[e.Error()] = true
	}
	for _, e := range errs {
		if text := e.Error(); !seen[text] {
			seen[text] = true
			problems = append(problems, e)
		}
	}
	return problems
}

// judgeIn is judge with the rules of another version. obj and old are of the hub. The error is that of a conversion of obj.
func judgeIn(call *Call, s *runtime.Scheme, k *runtime.Kind, obj, old runtime.Object, hasStatus bool) (field.ErrorList, error) {
	if k.Constraints.IsZero() {
		return nil, nil
	}
	gv := k.GVK.GroupVersion()
	there, err := call.InVersion(s, obj, gv)
	if err != nil {
		return nil, err
	}
	if old == nil {
		return judge(k.Constraints, there, nil, hasStatus), nil
	}
	was, err := call.InVersion(s, old, gv)
	if err != nil { // an old object that cannot be converted excuses no error
		return k.Constraints.Validate(there), nil
	}
	return judge(k.Constraints, there, was, hasStatus), nil
}

// judge returns the errors of a new object against rules or, if old is not nil, the errors of the change from old to obj. The errors
// about a status of a new object are left out, because no client can have set it yet.
func judge(rules *constraint.Rules, obj, old runtime.Object, hasStatus bool) field.ErrorList {
	if old != nil {
		return rules.ValidateUpdate(obj, old)
	}
	errs := rules.Validate(obj)
	if hasStatus {
		errs = slices.DeleteFunc(errs, func(e *field.Error) bool { return below(e.Field, "status") })
	}
	return errs
}

// requestKind returns the kind in the version of the request. It returns nil if that version is the hub's or not known.
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

// below reports whether path is the field name or a path inside of it.
func below(path, name string) bool {
	rest, ok := strings.CutPrefix(path, name)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// ratchet is Ratchet if the strategy has Ratcheting. Otherwise it returns all problems.
func (r *Registry) ratchet(problems field.ErrorList, obj, old runtime.Object) field.ErrorList {
	if !r.strategy.ratcheting {
		return problems
	}
	return Ratchet(problems, obj, old)
}

// Ratchet returns the errors of errs about values that the update from old to obj changed. An error is left out if the JSON value
// at its path is the same in both objects, or is missing in both and the object or list that would contain it exists in both. So
// rules can become stricter while objects that violate them are stored, and these objects can still be updated.
// [Strategy].Ratcheting does this for all errors of a strategy. A strategy that needs it only for some errors calls Ratchet with
// these errors.
//
// Elements of lists are compared by index: an element that has moved counts as changed. If a change of one field makes another
// field invalid, the error must have the path of the field that changed. Otherwise Ratchet leaves it out. An error whose path
// leads nowhere in obj, because even the object or list around the value is missing, is kept. Ratchet does not change errs.
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

// decoded returns an object as decoded JSON.
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

// missing is the value of a field that is not there. It is different from null.
type missing struct{}

// lookUp returns the value at the path of a field error, such as spec.parts[2].name or metadata.labels[a/b], or missing. It
// returns false if there is no place for such a value. Names and keys may contain dots and brackets; the shortest name that
// exists is used.
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
	first := -1 // the end of the shortest name
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

// after returns the rest of a path after a name that ends at i.
func after(path string, i int) string {
	rest := path[i:]
	rest = strings.TrimPrefix(rest, "]")
	return strings.TrimPrefix(rest, ".")
}

// forClient returns the errors of a strategy about obj, which is of the hub, as errors for the client of the call: see inWordsOf. The
// errors themselves belong to the strategy and are not changed.
func (r *Registry) forClient(call *Call, errs field.ErrorList, obj runtime.Object) field.ErrorList {
	k := r.requestKind(call)
	if k == nil || len(errs) == 0 || r.strategy.hubFieldNames {
		return errs
	}
	out := make(field.ErrorList, len(errs))
	for i, e := range errs {
		own := *e
		out[i] = &own
	}
	r.inWordsOf(call, k, out, obj)
	return out
}

// inWordsOf changes errors about obj, which is of the hub, to errors for a client that uses the version of the kind k. A renamed
// field gets its name in that version. If the values at another path are different in the two versions, the error says which
// version it is about.
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
