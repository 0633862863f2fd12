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
	whole       bool   // for the message of a Status: what else differs in the answer has the same reason
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
		codes: "^500/(400|406)$", at: "^code$", left: "strconv.ParseUint: parsing|resourceVersion should not be set"},
	{reason: "An applied configuration that does not fit the kind is a mistake of the client: 400, not 500 (apply/schema, apply/lists-refused, crd/apply-refused).",
		verb: "^PATCH apply", codes: "^500/400$", at: "^code$", left: "failed to create typed patch object|failed to convert new object"},
	{reason: "A strategic merge patch with an unknown directive is a mistake of the client: 400, not 500 (patch/strategic-directives).",
		verb: "^PATCH", codes: "^500/400$", at: "^code$", left: "unknown patch type|no elements in any of the given slices|[Uu]nable to find|[Uu]nrecognized|directive|does not contain declared merge key|retainKeys|deleteFromPrimitive|setElementOrder"},
	{reason: "A form that the answer cannot have is refused before the request is read (package handlers, errors/read-not-acceptable-keelson).", right: "you requested PartialObjectMetadata(List, but the requested object is not a list|, but the requested object is a list)"},
	{reason: "For kinds with a Go type, the refusal of a media type lists those that there are, as kube-apiserver does for custom resources (errors/patch-media-type).",
		codes: "^(406/406|415/415)$", at: "^[.](message|details)$|^[.]details[.]", class: "^(typed|events|namespaces|customresourcedefinitions)"},
	{reason: "For kinds with a Go type, a 405 names the verb and the resource (errors/all-namespaces-typed).", codes: "^405/405$", at: "^[.](message|details)|^header Allow"},
	{reason: "A message has the name of a type or a file of the program.", at: "message$", except: `\(\*?[a-z0-9]+[.][A-Za-z]+\)|in scheme \\"[^"]*"|error decoding patch: |of type (jsonpatch[.]Patch|\[\]map\[string\]json[.]RawMessage)`},
	{reason: "Events: each entry of managedFields keeps the version that it was made in (event/apply).", class: "^events", at: "managedFields"},
	{reason: "Only the first of two YAML documents is read by kube-apiserver; both are refused here (errors/body-documents).", codes: "^(20[01]|409|422)/400$", at: "^code$", right: "document"},
	{reason: "An object that can be read is not to be deleted unsafely: 422, not 409 (delete/unsafe-readable).", verb: "^DELETE", codes: "^409/422$", right: "ignoreStoreReadError"},
	{reason: "A dryRun in the query of a DELETE counts even if there is a body (handlers/delete.go); kube-apiserver does not read it then, and deletes.", verb: "with dryRun and a body"},
	{reason: "To a body in protobuf of a kind without a Go type kube-apiserver breaks the connection (untyped/protobuf-keelson).", class: "^custom", at: "^connection$", left: "broke", right: "answered"},
	{reason: "The root lists the paths that are served.", class: "^root path", at: "^[.]paths"},
	{reason: "/version names the build.", class: "^root path", at: "^[.](git|build|go|compiler|platform)"},
	{reason: "A slash that is encoded in a path is part of a name, which no object can have (request.Resolve): a path is not read in two ways.", right: `may not contain '/'|on the URL \([^)]*/\)`},
	{reason: "In the answer to the dry run of a create, only a number above 0 in metadata.resourceVersion is shown (registry/create.go).", at: "^[.]metadata[.]resourceVersion$", left: `^"([^<]|<new>)`, right: "^none$"},
	{reason: "A refused request changes nothing: the options of a Table are checked first. kube-apiserver checks them last, when it has made the change (handlers/handlers.go).", at: "^(code|[.]message)$", right: "Unable to convert to Table as requested"},
	{reason: "A Status has each cause once. kube-apiserver repeats those of the metadata in an update (registry/update.go).", codes: "^422/422$", at: "^[.]details[.]causes length|^[.]message$", left: "repeated"},
	{reason: "A message that quotes the patched object has its members in the order of their names (handlers/patch.go).", verb: "^PATCH", codes: "^422/422$", at: "message$", left: `^"( .*patch: )?Invalid value: .*[{]`, right: `^"( .*patch: )?Invalid value: .*[{]`},
	{reason: "A patch that leaves no apiVersion or kind keeps those of the URL; kube-apiserver then does not find the metadata of a kind with a Go type (handlers/patch.go).", verb: "^PATCH", codes: "^400/(2|422)", left: "was undeterminable"},
	{reason: "A patch cannot change the apiVersion to another version of the kind, in which kube-apiserver reads the object and loses fields (handlers/handlers.go).", verb: "^PATCH", right: "patch: Invalid value.*(unable to decode|unknown conversion)"},
	{reason: "A custom resource without an apiVersion is a mistake of the client: 422, not 500 (handlers/requestbody.go).", class: "^custom", codes: "^500/422$", left: "object has no apiVersion field"},
	{reason: "A patch that makes the apiVersion of a custom resource null is refused as one that makes it empty (handlers/requestbody.go).", verb: "^PATCH", class: "^custom", codes: "^422/422$", whole: true,
		at: "message$", left: `"?apiVersion[^:]*:null`, right: "apiVersion: Invalid value"},
	{reason: "A merge patch that is no object cannot be decoded (runtime/patch).", verb: "^PATCH merge", class: "^custom", codes: "^422/400$", at: "^code$", right: "a merge patch must be a JSON object"},
	{reason: "A patch whose apiVersion is that of another group is refused without warnings about its fields (handlers/handlers.go).", verb: "^PATCH", class: "^events", codes: "^422/422$", at: "^header Warning",
		left: "unknown field", right: "^none$"},
	{reason: "A patch is applied to the object that is stored. kube-apiserver first applies it to the object in its cache, with warnings, which may be deleted.", verb: "^PATCH", codes: "^404/404$", at: "^header Warning", right: "^none$"},
	{reason: "A patch that leaves no apiVersion or kind keeps those of the URL (handlers/patch.go).", verb: "^PATCH", codes: "^422/200$", at: "^code$", left: `apiVersion[^:]*:null`},
	{reason: "A patch that leaves no apiVersion or kind keeps those of the URL (handlers/patch.go).", verb: "^PATCH", class: "^events", codes: "^422/422$", whole: true, at: "message$", left: "patch: Invalid value", right: "field is immutable"},
	{reason: "A JSON patch that removes the object is a mistake of the client: 422. kube-apiserver breaks the connection (handlers/patch.go).", verb: "^PATCH json", at: "^connection$", left: "broke", right: "answered"},
	{reason: "An object that is created directly after its definition has managers. kube-apiserver may lose them.", verb: "^POST", class: "^custom", codes: "^201/201$", at: "^[.]metadata[.]managedFields$", left: "^none$"},
	{reason: "The status of a definition can be a Table (package crd).", class: "^customresourcedefinitions status", codes: "^406/504$", at: "^code$", right: "Too large resource version"},
	{reason: "HEAD with a form that the answer cannot have is refused before the request is read, as GET is (package handlers).", verb: "^HEAD", class: "^custom", codes: "^(404/400|404/406|500/406)$", at: "^code$"},
	{reason: "Only the first of two YAML documents is read by kube-apiserver; both are refused here (errors/body-documents).", codes: "^400/400$", whole: true, at: "message$", right: "more than one document"},
	{reason: "A body of another kind is refused without its other mistakes (handlers/requestbody.go).", class: "^custom", codes: "^422/422$", whole: true, at: "message$", left: `kind: Invalid value: .*must be`, right: `is invalid: kind: Invalid value: [^,]*$`},
	{reason: "The cache of a new definition is filled when it is needed. kube-apiserver sends clients away until then.", class: "^custom", codes: "^429/", at: "^code$", left: `storage is [(]re[)]initializing`},
	{reason: "The scale of a custom resource can be applied; kube-apiserver answers with 500 (registry/scaleview.go).", verb: "^PATCH apply", class: "scale$", codes: "^500/", at: "^code$"},
	{reason: "After that the replicas have a manager.", class: "^custom", at: "managedFields", right: "scale"},
	{reason: "A Scale that cannot be read is refused with the reason; kube-apiserver says that no kind is registered for the type.", class: "^custom (scale|subresource wrong method)", codes: "^400/400$", at: "^[.]message$", left: "no kind is registered for the type"},
	{reason: "A message about another kind names what this server has.", codes: "^4[02][02]/4[02][02]$", at: "message$", left: "unknown conversion|unable to decode|cannot be handled as a"},
	{reason: "A strategic merge patch with a value of another type is a mistake of the client: 400, not 500.", verb: "^PATCH strategic", codes: "^500/400$", at: "^code$", left: "expected a "},
	{reason: "A number that the field's type cannot have is refused; kube-apiserver reads another number in an applied configuration and in a strategic merge patch (package handlers).", verb: "^PATCH apply", codes: "^(20[01]|422)/400$", at: "^code$", right: "cannot unmarshal number"},
	{reason: "A number that the field's type cannot have is refused; kube-apiserver reads another number in an applied configuration and in a strategic merge patch (package handlers).", verb: "^PATCH strategic", codes: "^(20[01]|422)/422$", at: "^(code|[.]message)$", right: "cannot unmarshal number", whole: true},
	{reason: "HEAD with a resourceVersion that is no number is a mistake of the client: 400, not 500.", verb: "^HEAD", codes: "^500/400$", at: "^code$"},
	{reason: "A path of watches, proxies and redirects without a resource is a mistake of the client: 400, not 500 (package request).", codes: "^500/400$", left: "failed to create RequestInfo"},
	{reason: "PartialObjectMetadataList of one object is refused before the body is read, without its warnings (package handlers).", codes: "^406/406$", at: "^header Warning", right: "^none$"},
	{reason: "The storageVersionHash of definitions is that of v1, in which they are stored (package crd).", class: "^discovery|^root path", at: "storageVersionHash", right: "M5uH.AlWATY="},
	{reason: "A Table of no definitions has an empty list of rows, not null (package crd).", class: "^customresourcedefinitions", at: "^[.]rows$", left: "null|none"},
	{reason: "The status of a definition can be a Table (package crd).", codes: "^406/(20[01]|40[0-59]|4[12])", class: "^customresourcedefinitions status", at: "^code$", left: "^only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf$"},
	{reason: "An event keeps the managedFields of both groups, so that a patch without changes is no write (package builtin).", verb: "^P", class: "^events", codes: "^200/200$", at: "^[.]metadata[.]resourceVersion$", left: "<new>", right: "<as before>"},
	{reason: "The answer that a resourceVersion is too large has a Retry-After, also for events (package builtin) and for an exact resourceVersion, of which kube-apiserver asks etcd.", codes: "^504/504$", at: "Retry-After|retryAfterSeconds"},
	{reason: "A write that leaves the object as it is stored, except for the times in managedFields, is not stored (package registry). kube-apiserver stores it if managedFields has had another order or empty sets.", verb: "^P", codes: "^200/200$", at: "^[.]metadata[.]resourceVersion$", left: "<new>", right: "<as before>"},
	{reason: "A write in another version than that of an entry of the status keeps the entry. kube-apiserver drops it (runtime/patch).", class: "^custom", codes: "^200/200$", at: "managedFields length", right: "status"},
	{reason: "An applied null conflicts with no manager (runtime/patch). kube-apiserver reports a conflict with a manager in another version than the stored one, and this server that the null is not valid.", verb: "^PATCH apply", class: "^custom", codes: "^409/422$", at: "^code$", left: "Apply failed with", right: "null"},
	{reason: "An applied null conflicts with no manager (runtime/patch). kube-apiserver reports a conflict with a manager in another version than the stored one.", verb: "^PATCH apply", class: "^custom", codes: "^409/409$", at: "^[.]message$", left: "Apply failed with [2-9] conflicts", right: "Apply failed with [1-8] conflict", whole: true},
	{reason: "An applied null conflicts with no manager (runtime/patch). kube-apiserver reports a conflict with a manager in another version than the stored one.", verb: "^PATCH apply", class: "^custom", codes: "^409/409$", at: "^[.]message$", left: "Apply failed with 1 conflict: ", right: "the object has been modified", whole: true},
	{reason: "A POST to the path of an object creates the object of that name, and no other (package handlers). kube-apiserver does not read the name in the path.", verb: "^POST", class: "^custom", at: "^(code|[.]message)$", right: "does not match the name on the URL|Name parameter invalid|already exists"},
	{reason: "A custom resource in protobuf is refused before the body and the options of the request are read (handlers/requestbody.go).", class: "^custom", codes: "^(400|422)/415$", at: "^code$", left: "^[A-Z][a-z]+Options|does not appear to be a protobuf message"},
	{reason: "A body in another version than that of the URL is refused without warnings about its fields.", verb: "^(POST|PUT)", codes: "^400/400$", at: "^header Warning", left: "unknown field", right: "^none$"},
	{reason: "A definition that does not meet a precondition is refused in the words of other kinds.", verb: "^DELETE", class: "^customresourcedefinitions", codes: "^409/409$", at: "[.](message|kind)$", left: "precondition|CustomResourceDefinition"},
	{reason: "A message quotes a strategic merge patch as it was sent; kube-apiserver leaves out what it has applied (handlers/patch.go).", verb: "^PATCH strategic", codes: "^422/422$", at: "message$", except: `Invalid value: \\"map\[.*\]\\": `},
	{reason: "A $retainKeys with objects is a mistake of the client: 422. kube-apiserver breaks the connection (handlers/patch.go).", verb: "^PATCH strategic", codes: "^0/422$", at: "^connection$", left: "broke", right: "answered"},
	{reason: "HEAD of a path with an encoded slash is refused as other methods are (request.Resolve): a path is not read in two ways.", verb: "^HEAD$", class: "odd path$", codes: "^(200|404)/400$", at: "^code$"},
	{reason: "An event keeps the managedFields of both groups, so that an apply finds its conflicts with a manager of the other group (package builtin).", verb: "^PATCH apply", class: "^events", codes: "^422/409$", at: "^code$", right: "Apply failed with"},
	{reason: "An event keeps the managedFields of both groups, so that an apply finds its conflicts with a manager of the other group (package builtin).", verb: "^PATCH apply", class: "^events", codes: "^409/409$", whole: true,
		at: "message$", left: "Apply failed with", right: "Apply failed with .* using v1|Apply failed with .* using events"},
	{reason: "The refusal of a status names the kind of the URL; the body may be of any kind (handlers/requestbody.go).", verb: "^P", class: "^custom status", codes: "^422/422$", at: "^[.]message$", except: `^"[A-Za-z]+([.][a-z0-9.-]+)? `, whole: true},
	{reason: "The body of a status may be of any kind, and have no apiVersion (handlers/requestbody.go): 200, not 500.", verb: "^PATCH", class: "^custom status", codes: "^500/200$", at: "^code$", left: "object has no apiVersion field"},
	{reason: "A field that an endpoint does not change, such as the status, conflicts with no manager, in whichever version (runtime/patch).", verb: "^PATCH apply", class: "^custom object", codes: "^409/20[01]$", at: "^code$", left: `^Apply failed with 1 conflict: conflict with "[a-z]+" with subresource "status" using`},
	{reason: "An applied object without fields is removed as in one version; kube-apiserver makes it null if a manager has written in another version (runtime/patch).", verb: "^PATCH apply", class: "^custom object", codes: "^422/20[01]$", at: "^code$", left: `: Invalid value: "null": [A-Za-z.]+ in body must be of type object: "null"`},
	{reason: "An applied object without fields is removed as in one version; kube-apiserver makes it null if a manager has written in another version (runtime/patch).", verb: "^PATCH apply", class: "^custom object", codes: "^422/422$", at: "^[.]message$", left: `<nil>: Invalid value: `, right: "spec: Required value", whole: true},
	{reason: "Replicas of a Scale without an apiVersion have a manager as those of others; kube-apiserver keeps their entry without a time (registry/scaleview.go).", class: "^custom", codes: "^200/200$", at: "managedFields length$", left: `"fieldsV1":\{"f:spec":\{"f:replicas":\{\}\}\},"manager":"[a-z]+","operation":"Update"\}`},
	{reason: "A list of all namespaces with a field selector of one namespace continues after its last object; kube-apiserver begins it again (package handlers).", verb: "^LIST continued", class: "all namespaces$", codes: "^200/200$", at: "^[.](items|rows) length$"},
	{reason: "An object of another kind gets no generated name (handlers/create.go).", verb: "^POST", class: "^custom", codes: "^422/422$", at: "^[.]message$", left: `kind: Invalid value: .*must be `, except: "g-<random>", whole: true},
	{reason: "The key of an object in a failed precondition is its whole key, also in a dry run (registry/update.go).", codes: "^409/409$", at: "^[.]message$", except: "Key: (/registry)?/"},
	{reason: "The answer to a dry run has no selfLink, as that to a write (package registry).", at: "metadata[.]selfLink$", right: "^none$"},
	{reason: "The servers keep changes for different times: what is too old for one need not be for the other.", left: "too old"},
}

// named are differences that are not accepted, and have one cause for many signatures. Their reason is their signature.
var named = []acceptance{}
