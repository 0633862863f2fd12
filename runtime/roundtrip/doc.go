// Package roundtrip tests that conversions between the versions of a kind lose nothing. It is for tests, and imports testing.
//
//	func TestVersionsLoseNothing(t *testing.T) {
//		scheme, err := server.NewScheme(groups()...)
//		if err != nil {
//			t.Fatal(err)
//		}
//		roundtrip.Test(t, scheme, roundtrip.Options{})
//	}
//
// A kind with several versions is stored in one of them and served in all. An object may therefore be converted any number of
// times, and must be the same object afterwards.
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/ describes this as
// round trips without loss. [Test] makes random objects of each version and checks that
//
//   - an object that is encoded as JSON and decoded is the same object, and so is its DeepCopyObject, which shares nothing with
//     it;
//   - defaults that are set a second time change nothing;
//   - an object of any version converted to the hub and back is the same object;
//   - an object of the hub converted to any version and back is the same object;
//   - a conversion does not change or keep its input, and its results share nothing with each other;
//   - a selectable field has the same value in every version that has it;
//   - no conversion fails because a field is absent: a server-side apply converts objects that have only the fields of their
//     owners.
//
// Objects get defaults before they are converted, and get the defaults of the other version afterwards, like an object that is
// written in one version and stored in another. Nil and empty slices and maps are the same, as they mostly are in JSON. A nil
// pointer and a pointer to a zero value are different.
//
// If a version cannot hold all fields of the hub, package conversion keeps the rest in an annotation. Or declare with a
// [Tolerance] what is lost and why that is right.
//
// # Random objects
//
// Random objects obey the rules in the struct tags of their types: see package constraint. A conversion that parses a text needs
// no fill function if a pattern, an enum or a format describes the text. [Options].Fill makes values that follow other rules, such
// as those of a Strategy. A value of a fill function is kept if it obeys the tags, and is replaced if it does not.
//
// Texts are made from the pattern or the format of a field and must then obey all its rules; numbers are made between their
// bounds, and often are a bound. If no value obeys the rules of a field, or none of the first few hundred texts does, no error is
// reported. The field is then left out if it may be absent, and otherwise has a value that is not valid. Lists and maps get at
// most a thousand items to reach minItems or minProperties. uniqueItems has no effect on arrays, which have a fixed number of
// items. Defaults are set after the random values.
//
// Kinds without a Go type are not checked, also if they have a schema and a conversion.
//
// A failure shows the smallest failing object that was found, the difference, and how to run it again. [Fuzz] makes objects with
// the Go fuzzer, and [Check] checks one object.
package roundtrip
