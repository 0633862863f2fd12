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

// named are differences that are not accepted, and have one cause for many signatures. Their reason is their signature.
var named = []acceptance{
	{reason: "Accept: of kinds with a Go type kube-apiserver refuses it before anything else, also application/*", at: "^code$", left: "^406: Not Acceptable", class: "^(typed|events|namespaces|customresourcedefinitions)"},
	{reason: "Accept: it is refused before or after other mistakes", at: "^code$", codes: "406|415"},
	{reason: "HEAD of kinds with a Go type and of root paths is 405 in kube-apiserver", verb: "^HEAD", codes: "^405/", at: "^code$"},
	{reason: "other methods than GET on root paths and paths of no group", at: "^code$", class: "^(root path|no such version)", codes: "/405$"},
	{reason: "Warning that managedFields could not be brought up to date", at: "^header Warning", right: "managedFields could not be brought up to date"},
	{reason: "DELETE with options in the body: options in the query are checked too", verb: "^DELETE", at: "^code$", right: "dryRun: Unsupported value"},
	{reason: "DELETE with a body of another version than v1", verb: "^DELETE", right: "cannot be handled as a DeleteOptions"},
	{reason: "a resourceVersion on create is refused before or after other mistakes", codes: "/400$", at: "^code$", right: "resourceVersion should not be set on objects to be created"},
	{reason: "paths of watches, proxies and redirects without a resource: 500 or 400", codes: "^500/400$", left: "failed to create RequestInfo"},
	{reason: "Table options are checked before or after the object is found", at: "^code$", right: "Unable to convert to Table as requested"},
	{reason: "causes of a refusal that kube-apiserver repeats", codes: "^422/422$", at: "^[.]details[.]causes length|^[.]message$", left: "repeated"},
	{reason: "protobuf among the media types of custom resources in a 415", class: "^custom", codes: "^415/415$", at: "^[.]message$"},
	{reason: "order of members in the JSON of a patched object in a message", verb: "^PATCH", codes: "^422/422$", at: "message$", left: `patch: Invalid value: "[{]`, right: `patch: Invalid value: "[{]`},
	{reason: "a patch that changes the kind or version: 422 or 400", verb: "^PATCH", codes: "/400$", at: "^code$", right: "cannot be handled as a|does not match the expected API version"},
	{reason: "a patch that is no object: 404 or 400 for an object that is not there", verb: "^PATCH", codes: "^404/400$", at: "^code$"},
	{reason: "dry run of a create with a resourceVersion: the answer has it in kube-apiserver", at: "^[.]metadata[.]resourceVersion$", left: "<rv>|<new>", right: "^none$"},
	{reason: "managedFields of a request that cannot be read: no managedFields, or those of the request", at: "managedFields", verb: "^(POST|PUT)"},
	{reason: "key of the storage in a message", at: "message$", left: "Key: /"},
	{reason: "deeper paths below a subresource", class: "subresource wrong method"},
	{reason: "LIST not older than a resourceVersion: older than the last write", verb: "^LIST", codes: "^200/200$", at: "length$"},
}
