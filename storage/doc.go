// Package storage defines how objects are stored, and implements the storage of one resource over a store of keys and values.
//
// # Terms
//
//   - A [Backend] stores bytes under keys and numbers its commits. It has five methods and one revision counter for the whole
//     store. Packages memory, bolt and etcd provide backends: bolt is a file for one server, etcd a cluster for several
//     servers, and memory is for tests and for objects that may be lost.
//   - A [Record] is one stored object in the form that readers need: canonical bytes, shared and immutable. It is never a
//     decoded object.
//   - [Interface] is the storage of one resource as a registry uses it. It takes objects and returns records. A [Store]
//     implements it over a Backend. A cache implements it over another Interface; the registry needs no change for that.
//   - A [Chooser] chooses records by what is not in them, such as by the form that another program gives them. It is applied
//     above an Interface, by [ListChosen] and [WatchChosen].
//   - [Forms] keeps what readers derive from an event or from a [Block] of records, such as other encodings. Each form is
//     made once for all readers. A [FormCache] bounds the bytes of many Forms.
//
// # Keys and values
//
// The layout is the one that kube-apiserver uses in etcd, so that its data can be opened. An object is stored under
// <prefix>/<resource path>/<namespace>/<name>, without the namespace for cluster-scoped resources. Its value is the object's
// JSON in its storage version without metadata.resourceVersion. The resourceVersion is the revision of the commit that wrote
// the object. Values that kube-apiserver wrote as protobuf can be read too, for Go types with the generated code or with
// protobuf tags, and so can its values in CBOR. The next update writes them as JSON.
//
// # Revisions
//
// A revision is a positive int64 that grows by at least one with every commit of the whole store. Clients see it as the
// decimal resourceVersion. A revision that was shown once is never given to another state.
//
// # What a Store does
//
// Values that this process wrote, or has checked once, are served unchanged. All other values pass through the codec when
// they are read. A record is Stale if its stored bytes would be written differently now. A list is one state of the store,
// however many pages it has. Its continue tokens are those of kube-apiserver
// (https://kubernetes.io/docs/reference/using-api/api-concepts/#retrieving-large-results-sets-in-chunks). A watch is read by
// calls of its reader and costs no goroutine. A watch that reads too slowly for the backend's window ends with an
// [*ExpiredError].
//
// # Versions
//
// The [Codec] determines the version in which objects are stored, and that version may change. Values in any version that the
// Codec can read are read. Each of them is Stale until its next update writes it in the current version; [Migrate] does that
// for all of them.
//
// The tests of package storagetest define what a Backend and an Interface must do.
package storage
