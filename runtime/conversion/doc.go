// Package conversion keeps the fields of a hub that another version cannot hold.
//
// A kind with several versions loses a field when a client reads an object in a version without that field and writes it back. [Keep]
// takes the two functions of a conversion, which copy only the fields that both versions have, and returns two functions that lose
// nothing:
//
//	Conversions: []server.Conversion{server.Convert(conversion.Keep(toV2, fromV2))},
//
// The conversion from the hub stores the fields that the version cannot hold in an annotation of the object, and the conversion to
// the hub restores them. Kinds of Kubernetes do the same, such as those of Cluster API:
// https://cluster-api.sigs.k8s.io/developer/providers/migrations/overview. Package roundtrip tests such a conversion without any
// options.
//
// # The annotation
//
// The name of the annotation is [Annotation]. It is only in objects of versions that are not the hub, and only if there is something
// to keep. The conversion to the hub removes it. The name is reserved: a value that a client gives it in the hub is lost when the
// object is converted.
//
// The annotation has a JSON text of at most [MaxBytes] bytes. The conversion of the other version to the hub gives some values
// that differ from those of the hub. The annotation holds these values of the hub, and a hash of each value that the conversion
// gives instead. If the text would be longer, the annotation says so instead. The object can then be read in that version, but
// the conversion to the hub is an error that tells the client to use the hub version. An object that would have to be stored in
// this form is therefore refused when it is written.
//
// # Clients that change the annotation
//
// A client that writes an object in a version replaces the whole object, with its annotations:
//
//   - An annotation that is left as it was restores the fields. Patches and server-side apply leave it so.
//   - Without the annotation the fields are empty in the hub, because an object without them looks the same.
//   - An annotation that is not valid is ignored: it has no effect on the fields that the client wrote, and is no error.
//   - Values in an annotation that the client has edited count like any values that the client wrote. The rules of the hub are
//     checked after the conversion.
//
// The fields that the client wrote always win: if the restored values would change what the object is in the version of the client,
// none of them is restored.
//
// # Fields that changed meanwhile
//
// A value is restored if the conversion to the hub still gives the value whose hash is in the annotation. It is not restored if a
// client changed the fields from which the conversion makes that value. If a hub has minimum and maximum, and another version has
// only size, which sets both, then the minimum is restored while the size is the same.
//
// In a list, the fields of an item are restored if the item is still there. With the struct tags listMapKey or patchMergeKey the
// item is found by its keys; without them it is found if none of its fields in the other version changed. Items may have been
// moved. Items that the other version lacks are restored if nothing in the list changed.
package conversion
