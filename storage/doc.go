// Package storage says where objects live.
//
// # The nouns
//
//   - A [Backend] keeps bytes under keys and counts commits: five methods, one revision counter for the whole
//     store. memory, bolt and etcd are backends.
//   - A [Record] is one stored object as its readers want it: canonical bytes, shared and immutable, never a
//     decoded object.
//   - [Interface] is what a registry sees of one resource: records in, records out. A [Store] implements it over
//     a Backend; a cache implements it over another Interface, and the registry does not notice.
//   - [Forms] keep what readers make of an event or of a [Block] of records, such as other encodings, beside it, so that
//     it is made once for all of them. A [FormCache] bounds the bytes of many.
//
// # Keys and values
//
// The layout is the one kube-apiserver uses in etcd, so that its data can be opened: an object is stored under
// <prefix>/<resource path>/<namespace>/<name> (no namespace for cluster-scoped resources), its value is the
// object's JSON in its storage version without metadata.resourceVersion. The resourceVersion is the revision of
// the commit that wrote it. Values that kube-apiserver wrote as protobuf are read too, for types that have the
// generated code; the next update writes them as JSON.
//
// # Revisions
//
// A revision is a positive int64 that grows by at least one with every commit of the whole store. It is shown to
// clients as the decimal resourceVersion. A revision once shown is never given to another state.
//
// # What a Store does
//
// Values that this process wrote, or has checked once, are served as they are; others pass through the codec on
// their way in, and a record whose stored bytes would be written differently now is Stale. A list is one state of the
// store however many pages it has; its continue tokens are those of kube-apiserver
// (https://kubernetes.io/docs/reference/using-api/api-concepts/#retrieving-large-results-sets-in-chunks). A watch is
// pulled by its reader and costs no goroutine; one that reads too slowly for the backend's window ends with an
// [*ExpiredError].
//
// # Versions
//
// Which version objects are stored in is the [Codec]'s to say, and may change. Values in any version that it can read are
// read; each is Stale until its next update writes it in the current one, and [Migrate] does that for all of them.
//
// Whether something is a Backend or an Interface is decided by the tests of package storagetest.
package storage
