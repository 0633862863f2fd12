package main

import "regexp"

// acceptance is a difference that is known, with the reason for it. Patterns are regular expressions; "" matches everything.
type acceptance struct {
	reason      string
	verb, class string
	codes       string
	at          string
	left, right string
	except      string // the values are equal but for what matches
}

func (a acceptance) matches(d difference) bool {
	for _, p := range [][2]string{{a.verb, d.verb}, {a.class, d.path}, {a.codes, d.codes}, {a.at, d.at}, {a.left, d.left}, {a.right, d.right}} {
		if p[0] != "" && !regexp.MustCompile(p[0]).MatchString(p[1]) {
			return false
		}
	}
	if a.except != "" {
		e := regexp.MustCompile(a.except)
		return e.ReplaceAllString(d.left, "") == e.ReplaceAllString(d.right, "")
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
		verb: "^PATCH", codes: "^500/400$", at: "^code$", left: "unknown patch type|[Uu]nable to find|[Uu]nrecognized|directive|does not contain declared merge key|retainKeys|deleteFromPrimitive|setElementOrder"},
	{reason: "A form that the answer cannot have is refused before the request is read (package handlers, errors/read-not-acceptable-keelson).", right: "you requested PartialObjectMetadata(List, but the requested object is not a list|, but the requested object is a list)"},
	{reason: "For kinds with a Go type, the refusal of a media type lists those that there are, as kube-apiserver does for custom resources (errors/patch-media-type).",
		codes: "^(406/406|415/415)$", at: "^[.](message|details)$|^[.]details[.]", class: "^(typed|events|namespaces|customresourcedefinitions)"},
	{reason: "For kinds with a Go type, a 405 names the verb and the resource (errors/all-namespaces-typed).", codes: "^405/405$", at: "^[.](message|details)|^header Allow"},
	{reason: "A message has the name of a type or a file of the program.", at: "message$", except: `\(\*?[a-z0-9]+[.][A-Za-z]+\)|in scheme \\"[^"]*"`},
	{reason: "Events: each entry of managedFields keeps the version that it was made in (event/apply).", class: "^events", at: "managedFields"},
	{reason: "Only the first of two YAML documents is read by kube-apiserver; both are refused here (errors/body-documents).", codes: "^20[01]/400$", at: "^code$", right: "document"},
	{reason: "An object that can be read is not to be deleted unsafely: 422, not 409 (delete/unsafe-readable).", verb: "^DELETE", codes: "^409/422$", right: "ignoreStoreReadError"},
	{reason: "A dryRun in the query of a DELETE counts even if there is a body (handlers/delete.go); kube-apiserver does not read it then, and deletes.", verb: "with dryRun and a body$"},
	{reason: "To a body in protobuf of a kind without a Go type kube-apiserver breaks the connection (untyped/protobuf-keelson).", class: "^custom", at: "^connection$", left: "broke", right: "answered"},
	{reason: "The root lists the paths that are served.", class: "^root path", at: "^[.]paths"},
	{reason: "/version names the build.", class: "^root path", at: "^[.](git|build|go|compiler|platform)"},
	{reason: "HEAD with a resourceVersion that is no number is a mistake of the client: 400, not 500.", verb: "^HEAD", codes: "^500/400$", at: "^code$"},
	{reason: "A path of watches, proxies and redirects without a resource is a mistake of the client: 400, not 500 (package request).", codes: "^500/400$", left: "failed to create RequestInfo"},
	{reason: "PartialObjectMetadataList of one object is refused before the body is read, without its warnings (package handlers).", codes: "^406/406$", at: "^header Warning", right: "^none$"},
	{reason: "The storageVersionHash of definitions is that of v1, in which they are stored (package crd).", class: "^discovery|^root path", at: "storageVersionHash", right: "M5uH.AlWATY="},
	{reason: "A Table of no definitions has an empty list of rows, not null (package crd).", class: "^customresourcedefinitions", at: "^[.]rows$", left: "null|none"},
	{reason: "The status of a definition can be read as a Table (package crd).", class: "^customresourcedefinitions.*status", codes: "^406/200$", at: "^code$", right: "^kind Table$"},
	{reason: "An event keeps the managedFields of both groups, so that a patch without changes is no write (package builtin).", verb: "^P", class: "^events", codes: "^200/200$", at: "^[.]metadata[.]resourceVersion$", left: "<new>", right: "<as before>"},
	{reason: "Events are cached, so that the answer that a resourceVersion is too large has a Retry-After (package builtin).", class: "^events", codes: "^504/504$", at: "Retry-After|retryAfterSeconds"},
	{reason: "The answer to a dry run has no selfLink, as that to a write (package registry).", at: "metadata[.]selfLink$", right: "^none$"},
	{reason: "The servers keep changes for different times: what is too old for one need not be for the other.", left: "too old"},
}

// named are differences that are not accepted, and have one cause for many signatures. Their reason is their signature.
var named = []acceptance{
	{reason: "Warning that managedFields could not be brought up to date", at: "^header Warning", right: "managedFields could not be brought up to date"},
	{reason: "a resourceVersion on create is refused before or after other mistakes", codes: "/400$", at: "^code$", right: "resourceVersion should not be set on objects to be created"},
	{reason: "Table options are checked before or after the object is found", at: "^code$", right: "Unable to convert to Table as requested"},
	{reason: "causes of a refusal that kube-apiserver repeats", codes: "^422/422$", at: "^[.]details[.]causes length|^[.]message$", left: "repeated"},
	{reason: "protobuf among the media types of custom resources in a 415", class: "^custom", codes: "^415/415$", at: "^[.]message$"},
	{reason: "order of members in the JSON of a patched object in a message", verb: "^PATCH", codes: "^422/422$", at: "message$", left: `patch: Invalid value: .*[{]`, right: `patch: Invalid value: .*[{]`},
	{reason: "a patch that changes the kind or version: 422 or 400", verb: "^PATCH", codes: "/400$", at: "^code$", right: "cannot be handled as a|does not match the expected API version"},
	{reason: "a patch that is no object: 404 or 400 for an object that is not there", verb: "^PATCH", codes: "^404/400$", at: "^code$"},
	{reason: "dry run of a create with a resourceVersion: the answer has it in kube-apiserver", at: "^[.]metadata[.]resourceVersion$", right: "^none$"},
	{reason: "managedFields of a request that cannot be read: no managedFields, or those of the request", at: "managedFields", verb: "^(POST|PUT)"},
	{reason: "deeper paths below a subresource", class: "subresource wrong method"},
	{reason: "an applied configuration that does not fit the kind: other mistakes are reported first", verb: "^PATCH apply", codes: "^500/", at: "^code$", left: "failed to create typed patch object|failed to convert new object"},
	{reason: "a creationTimestamp that is no time: custom resources drop it in kube-apiserver", at: "^code$", class: "^custom", right: `parsing time "(yesterday|\\\\"yesterday)`},
	{reason: "the uid in an applied status is not compared by kube-apiserver", verb: "^PATCH apply", class: "status$", at: "^code$", right: "metadata.uid: Invalid value"},
	{reason: "duplicate keys in an applied configuration that is refused: Warning", verb: "^PATCH apply", at: "^header Warning", right: "already set in map"},
	{reason: "scale with a body that cannot be read: words of the message", class: "^custom scale", codes: "^400/400$", at: "^[.]message$"},
	{reason: "another kind or version in a body: words of the message", codes: "^400/400$", at: "^[.]message$", left: "cannot be handled as a"},
	{reason: "an applied status of null: kube-apiserver drops it before the validation", verb: "^PATCH apply", class: "^custom object", codes: "^20[01]/422$", at: "^code$", right: "status: Invalid value"},
	{reason: "a scale that is applied when managedFields has entries of other versions: 500 in kube-apiserver", verb: "^PATCH apply", class: "scale$", codes: "^500/", at: "^code$"},
	{reason: "PUT and PATCH of a collection of custom resources: 400 or 405", class: "^custom", codes: "^400/405$", at: "^code$", left: "name must be provided"},
	{reason: "managedFields of a scale: the subresource is missing in kube-apiserver", class: "^custom", at: "managedFields.*subresource$", right: "scale"},
	{reason: "POST to the path of an object creates custom resources in kube-apiserver", verb: "^POST", class: "^custom", at: "^code$", right: "create is not supported|Name parameter invalid"},
	{reason: "the name in a path is checked before the method and the name in the body", codes: "^40[0-9]/400$", at: "^(code|[.]message)$", right: "Name parameter invalid"},
	{reason: "another kind in the body of a PUT: 404 or 422 for an object that is not there", verb: "^PUT", class: "^custom", codes: "^(404/422|422/422|422/404)$", at: "^(code|[.]message)$", left: "not found|must be specified for an update"},
	{reason: "rules that were not checked: kube-apiserver says so with a cause at <nil>", codes: "^422/422$", at: "^[.]message|causes", left: "some validation rules were not checked"},
	{reason: "a strategic merge patch with a value of another type: words of the message", verb: "^PATCH strategic", codes: "^422/422$|^500/400$", at: "^(code|[.]message)$"},
	{reason: "Status instead of the words 404 page not found", codes: "^404/404$", at: "^(header|body)", class: "^custom"},
}
