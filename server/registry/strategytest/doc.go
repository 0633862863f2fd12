// Package strategytest tests what a kind's strategy decides, by tables and without a server.
//
//	func TestWidgets(t *testing.T) {
//		widget := func(size int32, color string) *Widget { return &Widget{Spec: WidgetSpec{Size: size, Color: color}} }
//		strategytest.Run(t, server.Options{Groups: groups()}, []strategytest.Case{
//			{Name: "red by default", Create: widget(3, ""), Want: widget(3, "red")},
//			{Name: "not too large", Create: widget(11, ""), Errors: []string{"spec.size: Invalid value: 11"}},
//			{Name: "a color stays", Old: widget(3, "red"), Update: widget(3, "blue"), Errors: []string{"spec.color: Invalid value"}},
//			{Name: "ready", Old: widget(3, "red"), Status: ready(widget(9, "red")), Want: ready(widget(3, "red"))},
//			{Name: "nothing keeps it", Old: widget(3, "red"), Delete: &metav1.DeleteOptions{}, Gone: true},
//		})
//	}
//
// A [Case] has what is stored, one request, and what becomes of it. The Options are those that the program gives to
// server.New, so that what is tested is what is served: the registry of the kind with its Strategy, the rules and
// defaults of struct tags, the rules for metadata, conversions, ratcheting, finalizers, and Policy.Admission decide as
// they do in the server. Objects are written to a storage in memory, of which each case has its own. A case takes some
// hundred microseconds, so that there may be thousands.
//
// [Run] makes each case a subtest; [Checker] checks them one by one, which is what fuzz tests and benchmarks need.
//
// # Objects
//
// Objects are sent and read as JSON, as clients do: a field that JSON leaves out is not there. An object that has neither a
// name nor a generateName is called "example", or as Old is; one without a namespace is in "default", or where Old is, if the
// kind has namespaces.
//
// A resourceVersion stands for a state: a request that has the one which the case has given to Old is about the state that
// is stored, one with another is about an older state and conflicts, and one with none does not say. Where an update has to
// say it (Strategy.RequireResourceVersion, and kinds without a Go type), give Old and Update the same one, such as "1".
//
// What a strategy or an admission plug-in reads of other objects, by runtime.Read, is what the case has in Others, and Old.
//
// # Versions
//
// A case may be about any version: a request is made in the version of its Go type, and Old and Want may each be of another.
// So a table can store an object in v1, change it in v1beta1, and look at it in v1. The warning that a version is deprecated
// is the handlers', and is not among the Warnings.
//
// # Want
//
// Want is compared with what is stored afterwards, or with the last state of what is gone, field by field as in JSON. These
// are never compared, since no test can know them:
//
//	metadata.uid, resourceVersion, creationTimestamp, managedFields, selfLink
//
// These are compared only where Want has them:
//
//	metadata.name, generateName, namespace, generation, deletionGracePeriodSeconds
//	metadata.deletionTimestamp of what is Gone
//
// Want gets no defaults: it says which ones there are. What a strategy makes up is listed in Ignore. The clock stands at
// [Now], unless the Options have another. A failure has a line for each difference:
//
//	the object differs:
//		metadata.labels[example.com/team]: got nothing, want "a"
//		spec.parts[1].size: got 3, want 4
//
// # Errors
//
// A request that is refused as invalid has an error for each field, which is written as kube-apiserver prints it:
//
//	spec.size: Invalid value: 11: spec.size in body should be less than or equal to 10
//
// Any other refusal is one error, its reason and its message:
//
//	Conflict: Operation cannot be fulfilled on widgets.example.com "example": the object has been modified; ...
//
// An expected text fits an error if it is the whole of it, or its beginning up to a colon and a space: "spec.size",
// "spec.size: Invalid value" and "spec.size: Invalid value: 11" all fit the first one, "spec" and "spec.size: Inv" do not,
// and "Conflict" fits the second one. Each error that is expected has to come, and no other may; their order does not
// matter. A text stands for one error: two errors of one field are two texts. Warnings are compared in the same way.
//
// # What is not tested
//
// Authorization, the fields that each manager owns, and what belongs to HTTP: for these there is package servertest, which
// runs a whole server in a test. No garbage collector looks after the objects, and kinds that have a Storage of their own
// have no strategy. generation is 1 in an Old that says nothing of it, also for a kind with Strategy.NoGeneration.
//
// A function of a Strategy that panics ends the test, as a panic does anywhere; a server answers such a request with 500.
// Whether the functions leave old alone, as they must, is not seen.
//
// The package is for tests: it imports testing.
package strategytest
