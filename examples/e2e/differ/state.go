package main

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// object is what a server said last about an object.
type object struct {
	rv, uid string
	firstRV string // the resourceVersion of the first answer about the object
}

// state is what one server said in a case.
type state struct {
	namespace string
	self      object            // the namespace
	objects   map[string]object // by resource/name
	listRV    map[string]string // by resource
	pages     map[string]string // continue tokens by resource
}

func newState(namespace string) *state {
	return &state{namespace: namespace, objects: map[string]object{}, listRV: map[string]string{}, pages: map[string]string{}}
}

var variable = regexp.MustCompile(`\$\{([a-z]+)(?: ([^}]*))?\}`)

// expand replaces the variables of a request template:
//
//	${ns}                   the namespace of the case
//	${rv configmaps/a}      the resourceVersion in the last answer about the object, or that of the namespace
//	${firstrv configmaps/a} the resourceVersion in the first answer about the object, or that of the namespace
//	${uid configmaps/a}     the uid in the last answer about the object, or a uid that no object has
//	${nsuid}                the uid of the namespace
//	${listrv configmaps}    the resourceVersion of the last list, or that of the namespace
//	${page configmaps}      the continue token of the last list, escaped for a query, or none
func (s *state) expand(text string) string {
	text = strings.ReplaceAll(text, "${ns}", s.namespace) // also in other variables
	return variable.ReplaceAllStringFunc(text, func(m string) string {
		parts := variable.FindStringSubmatch(m)
		o := s.objects[parts[2]]
		switch parts[1] {
		case "nsuid":
			return s.self.uid
		case "rv":
			return or(o.rv, s.self.rv)
		case "firstrv":
			return or(o.firstRV, s.self.rv)
		case "uid":
			return or(o.uid, "11111111-1111-4111-8111-111111111111")
		case "listrv":
			return or(s.listRV[parts[2]], s.self.rv)
		case "page":
			return url.QueryEscape(s.pages[parts[2]])
		}
		panic(fmt.Sprintf("unknown variable %s", m))
	})
}

func or(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

// learn records the values of an answer for later requests.
func (s *state) learn(r *request, code int, body any) {
	o, ok := body.(map[string]any)
	if !ok || r.kind == nil || code >= 300 || r.dryRun() {
		return
	}
	meta, _ := o["metadata"].(map[string]any)
	kind, _ := o["kind"].(string)
	rv, _ := meta["resourceVersion"].(string)
	if _, list := o["items"]; list || kind == "Table" {
		if r.name == "" && rv != "" {
			s.listRV[r.kind.resource] = rv
			s.pages[r.kind.resource], _ = meta["continue"].(string)
		}
		return
	}
	name, _ := meta["name"].(string)
	uid, _ := meta["uid"].(string)
	if name == "" || rv == "" || uid == "" || strings.HasPrefix(kind, "Partial") && rv == "0" {
		return
	}
	key := r.kind.resource + "/" + name
	last := s.objects[key]
	s.objects[key] = object{rv: rv, uid: uid, firstRV: or(last.firstRV, rv)}
}
