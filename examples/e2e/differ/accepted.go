package main

import "regexp"

// acceptance is a difference that is known, with the reason for it. Patterns are regular expressions; "" matches everything.
type acceptance struct {
	reason      string
	verb, class string
	codes       string
	at          string
	left, right string
}

func (a acceptance) matches(d difference) bool {
	for _, p := range [][2]string{{a.verb, d.verb}, {a.class, d.path}, {a.codes, d.codes}, {a.at, d.at}, {a.left, d.left}, {a.right, d.right}} {
		if p[0] != "" && !regexp.MustCompile(p[0]).MatchString(p[1]) {
			return false
		}
	}
	return true
}

// accepted are the accepted differences. The first that matches counts. The files in parentheses are in server/testdata/wire and
// have the exchanges in full.
var accepted = []acceptance{
	{reason: "A watch that allows bookmarks gets one more before its timeout.", verb: "^WATCH", at: "^bookmarks$"},
	{reason: "A resourceVersion that is no number, or is set on an object to be created, is a mistake of the client: 400, not 500 (update/version-of-letters, errors/read-resource-version, create/resource-version).",
		codes: "^500/400$", at: "^code$", left: "strconv.ParseUint: parsing|resourceVersion should not be set"},
	{reason: "An applied configuration that does not fit the kind is a mistake of the client: 400, not 500 (apply/schema, apply/lists-refused, crd/apply-refused).",
		verb: "^PATCH apply", codes: "^500/400$", at: "^code$", left: "failed to create typed patch object|failed to convert new object"},
	{reason: "A strategic merge patch with an unknown directive is a mistake of the client: 400, not 500 (patch/strategic-directives).",
		verb: "^PATCH", codes: "^500/400$", at: "^code$", left: "unknown patch type|[Uu]nable to find|[Uu]nrecognized|directive|does not contain declared merge key|retainKeys|deleteFromPrimitive|setElementOrder|type"},
	{reason: "PartialObjectMetadataList of one object is refused (errors/read-not-acceptable-keelson).", right: "you requested PartialObjectMetadataList, but the requested object is not a list"},
	{reason: "For kinds with a Go type, the refusal of a media type lists those that there are, as kube-apiserver does for custom resources (errors/patch-media-type).",
		codes: "^(406/406|415/415)$", at: "^[.](message|details)$|^[.]details[.]", class: "^(typed|events|namespaces|customresourcedefinitions)"},
	{reason: "For kinds with a Go type, a 405 names the verb and the resource (errors/all-namespaces-typed).", codes: "^405/405$", at: "^[.](message|details)|^header Allow"},
	{reason: "A message has the name of a type or a file of the program.", at: "message$", left: `\(\*?(core|unstructured|events|coordination|apiextensions)[.]|scheme.go:`},
	{reason: "Events: each entry of managedFields keeps the version that it was made in (event/apply).", class: "^events", at: "managedFields"},
	{reason: "Only the first of two YAML documents is read by kube-apiserver; both are refused here (errors/body-documents).", right: "document"},
	{reason: "An object that can be read is not to be deleted unsafely: 422, not 409 (delete/unsafe-readable).", verb: "^DELETE", codes: "^409/422$", right: "ignoreStoreReadError"},
	{reason: "The servers keep changes for different times: what is too old for one need not be for the other.", left: "too old"},
}
