// Package roundtrip proves, for a program's tests, that nothing is lost between the versions of its kinds.
//
//	func TestVersionsLoseNothing(t *testing.T) {
//		scheme, err := server.NewScheme(groups()...)
//		if err != nil {
//			t.Fatal(err)
//		}
//		roundtrip.Test(t, scheme, roundtrip.Options{})
//	}
//
// A kind with several versions is stored in one of them and served in all. So an object that was written in one version
// may be converted any number of times, and has to be the same object afterwards: what is said of it in
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/ as round
// trips without loss. [Test] makes random objects of each version and checks that
//
//   - an object that is encoded as JSON and decoded is the same object, and so is its DeepCopyObject, which shares nothing
//     with it;
//   - defaults that are set a second time change nothing;
//   - an object of any version converted to the hub and back is the same object;
//   - an object of the hub converted to any version and back is the same object;
//   - a conversion neither changes nor keeps what it is given, nor shares between two results what it makes;
//   - a selectable field has the same value in every version that has it;
//   - no conversion fails because a field is absent: a server-side apply converts objects that have only what their owners
//     gave them.
//
// Objects have their defaults before they are converted, and get those of the other version in between, as when they are
// written in one version and stored in the other. Nil and empty slices and maps are the
// same, as they mostly are in JSON; a nil pointer and one to a zero value are not.
//
// Where a version cannot hold all that another one can, keep the rest in an annotation, as kinds of Kubernetes do, or say
// with a [Tolerance] what is lost and why that is right. Fields that cannot have any value, such as a text that a
// conversion has to parse, need a fill function in [Options].
//
// A failure shows the smallest object that was found to fail, the difference, and how to run it again. [Fuzz] looks for
// objects with the Go fuzzer, and [Check] checks one.
//
// The package is for tests: it imports testing.
package roundtrip
