// Package openapi describes a server's API in the documents of OpenAPI.
//
// A [Service] serves, from a description of the groups, versions and resources there are:
//
//   - /openapi/v3, the list of documents: one for each group version (apis/example.com/v1), one for each group
//     (apis/example.com), and one each for apis, api and version;
//   - /openapi/v3/NAME, a document of OpenAPI 3.0. Its address in the list carries ?hash=, and under that address
//     it may be cached for ever; with another hash the answer is 301 to the right one;
//   - /openapi/v2, one document of OpenAPI 2.0 for all.
//
// Documents come as JSON or, as Go clients ask for them, in the protobuf form of gnostic:
// application/com.github.proto-openapi.spec.v3.v1.0+protobuf (and v2), of which the old spelling with an @ is
// accepted too. They are made when they are first asked for, and the same description gives the same bytes, and so
// the same hash, in every process. Setting a new description keeps the documents of what has not changed; of the one document
// of OpenAPI v2 it keeps their parts, of which the new one is put together as they are, compressed.
//
// The hash of a document that describes only custom resources whose objects are told apart by a [Digester] is that of all that the
// document is made of, and so the list of a thousand documents needs none of them. What makes documents is one of these things: the
// modules of the program, if all of them are published ones with a checksum, or else the build ID of the program. So servers of
// one storage that are built of the same modules have the same hashes, and a program that may make other documents has others. Any
// other hash is that of the document.
//
// A document is held compressed, in both forms, and sent so to clients that take gzip: those of fifty kinds hold well
// under one MiB. When it is made it is read with the parsers that clients have. One that they cannot read is answered with
// 500 and the reason, is listed without a hash unless that needs no document, and is left out of /openapi/v2; all others are
// served.
//
//	service := openapi.New(openapi.Options{Title: "widgets", Version: "v1.0.0"})
//	service.Set([]openapi.GroupVersion{{Group: "example.com", Version: "v1", Resources: []openapi.Resource{{
//		Plural: "widgets", Kind: gvk, Namespaced: true, Type: reflect.TypeFor[Widget](),
//		Verbs: []string{"get", "list", "watch", "patch"}, PatchTypes: []string{"application/merge-patch+json"},
//	}}}})
//
// # What clients look for
//
// kubectl reads schemas by their x-kubernetes-group-version-kind for explain, apply and diff, and decides that the
// server validates fields when the PATCH operation of a kind has the parameter fieldValidation. So each resource
// must be described with the verbs and patch types that it really serves.
//
// # Custom resources
//
// A [Resource] with an Object is described as kube-apiserver describes a custom resource: its definition is what the Object says
// with apiVersion, kind and metadata, there and in embedded resources; a value that is an integer or a string says so in anyOf;
// the definition and that of its list name the selectable fields. In the form of OpenAPI v2 allOf, anyOf, oneOf, not, nullable and
// defaults are left out; a value that may be null has no type, properties and items and is not required; of one that may have
// unknown fields neither is said which are known; and an object with such a root is an object and no more. Of operations it is
// said in which media types they take bodies, that GET takes a resourceVersion, and of subresources the kind of the resource, but
// not that lists can be watched and that PATCH may answer with 201. A deprecated version's operations are those of any other.
//
// The documents differ from kube-apiserver's in this:
//
//   - deletecollection has the parameters and the body that it takes: kube-apiserver describes DeleteOptions of other kinds only,
//     and for custom resources parameters of watches instead;
//   - a group version's document has the list of its resources, /apis/example.com/v1/, as those of other kinds;
//   - one that has no schema may have any fields besides the usual: kube-apiserver names none, which the parsers of clients refuse;
//   - there is no shardSelector, which nothing here honours;
//   - DeleteOptions and the other kinds that every group has are those of the groups that are served;
//   - in /openapi/v2 parameters are where they are used, not in a list of their own that the operations refer to, and v3 names the
//     security scheme in all documents.
//
// The schemas come from package runtime/schema. Form and names of operations are those of
// https://kubernetes.io/docs/concepts/overview/kubernetes-api/#openapi-interface-definition.
package openapi
