// Package codec turns objects into bytes and bytes into objects: JSON and YAML with strict, warning and lenient
// decoding, content negotiation, and [Document], the form in which stored objects travel to their readers
// without being decoded.
//
// # Canonical bytes
//
// The canonical form of a Go-typed object is its JSON in struct order, kind and apiVersion first, characters
// HTML-escaped as encoding/json does, metadata.resourceVersion absent:
//
//	{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"a",...},"spec":{...}}
//
// An untyped (unstructured) object has its keys in alphabetical order instead, apiVersion first.
//
// A Document keeps those bytes and where in them the resourceVersion goes, so that one immutable slice serves
// storage, single objects, list items and watch events.
package codec
