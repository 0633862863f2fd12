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
	{reason: "PartialObjectMetadataList of one object is refused (errors/read-not-acceptable-keelson).", right: "you requested PartialObjectMetadataList, but the requested object is not a list"},
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
	{reason: "A slash that is encoded in a path is part of a name, which no object can have (request.Resolve): a path is not read in two ways.", right: `may not contain '/'|on the URL \([^)]*/\)`},
	{reason: "In the answer to the dry run of a create, only a number above 0 in metadata.resourceVersion is shown (registry/create.go).", at: "^[.]metadata[.]resourceVersion$", left: `^"[^<]`, right: "^none$"},
	{reason: "A refused request changes nothing: the options of a Table are checked first. kube-apiserver checks them last, when it has made the change (handlers/handlers.go).", at: "^code$", right: "Unable to convert to Table as requested"},
	{reason: "A Status has each cause once. kube-apiserver repeats those of the metadata in an update (registry/update.go).", codes: "^422/422$", at: "^[.]details[.]causes length|^[.]message$", left: "repeated"},
	{reason: "A message that quotes the patched object has its members in the order of their names (handlers/patch.go).", verb: "^PATCH", codes: "^422/422$", at: "message$", left: `^"( .*patch: )?Invalid value: .*[{]`, right: `^"( .*patch: )?Invalid value: .*[{]`},
	{reason: "A patch that leaves no apiVersion or kind keeps those of the URL; kube-apiserver then does not find the metadata of a kind with a Go type (handlers/patch.go).", verb: "^PATCH", codes: "^400/(2|422)", left: "was undeterminable"},
	{reason: "A patch cannot change the apiVersion to another version of the kind, in which kube-apiserver reads the object and loses fields (handlers/handlers.go).", verb: "^PATCH", right: "patch: Invalid value.*(unable to decode|unknown conversion)"},
	{reason: "A custom resource without an apiVersion is a mistake of the client: 422, not 500 (handlers/requestbody.go).", class: "^custom", codes: "^500/422$", left: "object has no apiVersion field"},
	{reason: "The scale of a custom resource can be applied; kube-apiserver answers with 500 (registry/scaleview.go).", verb: "^PATCH apply", class: "scale$", codes: "^500/", at: "^code$"},
	{reason: "After that the replicas have a manager.", class: "^custom", at: "managedFields", right: "scale"},
	{reason: "A Scale that cannot be read is refused with the reason; kube-apiserver says that no kind is registered for the type.", class: "^custom scale", codes: "^400/400$", at: "^[.]message$", left: "no kind is registered for the type"},
	{reason: "A message about another kind names what this server has.", codes: "^4[02][02]/4[02][02]$", at: "message$", left: "unknown conversion|unable to decode|cannot be handled as a"},
	{reason: "A strategic merge patch with a value of another type is a mistake of the client: 400, not 500.", verb: "^PATCH strategic", codes: "^500/400$", at: "^code$", left: "expected a "},
	{reason: "The servers keep changes for different times: what is too old for one need not be for the other.", left: "too old"},
}

// named are differences that are not accepted, and have one cause for many signatures. Their reason is their signature.
var named = []acceptance{
	{reason: "Accept: of kinds with a Go type kube-apiserver refuses it before anything else, also application/*", at: "^code$", left: "^406: Not Acceptable", class: "^(typed|events|namespaces|customresourcedefinitions)"},
	{reason: "Accept: it is refused before or after other mistakes", at: "^code$", codes: "406|415"},
	{reason: "HEAD of kinds with a Go type and of root paths is 405 in kube-apiserver", verb: "^HEAD", codes: "^405/", at: "^code$"},
	{reason: "HEAD with a resourceVersion that is no number: 500 or 400", verb: "^HEAD", codes: "^500/400$", at: "^code$"},
	{reason: "other methods than GET on root paths and paths of no group", at: "^code$", class: "^(root path|no such version)", codes: "/405$"},
	{reason: "DELETE with a body of another version than v1", verb: "^DELETE", right: "cannot be handled as a DeleteOptions"},
	{reason: "paths of watches, proxies and redirects without a resource: 500 or 400", codes: "^500/400$", left: "failed to create RequestInfo"},
	{reason: "key of the storage in a message", at: "message$", left: "Key: /"},
	{reason: "a read not older than a resourceVersion is older than the last write", verb: "at a resourceVersion$", class: "^(typed|events|custom) ", codes: "^(200/200|404/200|200/404)$"},
	{reason: "finalizers without a domain: kube-apiserver accepts them in events", class: "^events", at: "^code$", right: "metadata.finalizers"},
	{reason: "DELETE with Foreground or Orphan: events are deleted at once in kube-apiserver", verb: "^DELETE", class: "^events", codes: "^200/200$", at: "^[.](message|note|action|apiVersion|details|count)"},
	{reason: "DELETE of namespaces with Foreground or Orphan: finalizers", verb: "^DELETE", class: "^namespaces", at: "finalizers"},
	{reason: "an empty Table of definitions has no rows, or null", class: "^customresourcedefinitions", at: "^[.]rows$"},
	{reason: "metadata.namespace is no field selector of namespaces in kube-apiserver", class: "^namespaces", at: "^code$", left: "field label not supported: metadata.namespace"},
	{reason: "discovery of CustomResourceDefinition: storageVersionHash and responseKind", class: "^discovery|^root path", at: "storageVersionHash|responseKind|^[.]items.*(group|version)$"},
	{reason: "DeleteOptions that cannot be read: words of the message", verb: "^DELETE", codes: "^400/400$", at: "^[.]message$", right: "cannot unmarshal"},
	{reason: "events: a patch without changes is a write in kube-apiserver, which drops managedFields of the other group", verb: "^P", class: "^events", codes: "^200/200$", at: "^[.]metadata[.]resourceVersion$"},
	{reason: "a header that forbids sniffing on health checks", class: "^root path", at: "X-Content-Type-Options"},
	{reason: "watches by path: kube-apiserver reads the options as those of a list", verb: "^WATCH", class: "by path$"},
	{reason: "metadata of events: kube-apiserver does not check the name, owners and finalizers of events of v1", class: "^events", codes: "^422/422$", at: "^[.](message|details)", right: `metadata[.](name|ownerReferences|finalizers)`},
	{reason: "names of generateName in events are checked by kube-apiserver", class: "^events", left: "metadata.generateName"},
	{reason: "a resourceVersion with a continue token is refused before or after a bad token", verb: "^(LIST|DELETECOLLECTION)", codes: "^400/400$", at: "^[.]message$", left: "invalid continue token"},
	{reason: "Accept of a discovery document: words of the message", class: "^discovery", codes: "^406/406$"},
	{reason: "Retry-After of a resourceVersion that is too large, for events", codes: "^504/504$", at: "Retry-After|retryAfterSeconds"},
}
