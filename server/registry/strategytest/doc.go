// Package strategytest tests the rules of a kind with tables of cases, without a server.
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
// A [Case] has a stored object, one request, and the expected result. [Run] makes each case a subtest. [Checker] checks cases one
// by one, for fuzz tests and benchmarks. The Options are those that the program passes to server.New, so that a case tests what
// the server does: the registry of the kind with its Strategy, the rules and defaults of struct tags, the rules for metadata,
// conversions, ratcheting, finalizers and Policy.Admission. Each case has its own storage in memory. A case takes some hundred
// microseconds, so that a table can have thousands.
//
// # What is not tested
//
//   - Authorization, managers of fields, and everything that belongs to HTTP. For these, package servertest runs a whole server
//     in a test.
//   - The garbage collector: it does not run. Kinds with a Storage of their own are not available, because they have no strategy.
//   - Whether a function of a Strategy changes old, which it must not do.
//   - The generation of a kind with Strategy.NoGeneration: an Old without a generation gets generation 1, which a server would
//     not set.
//
// A function of a Strategy that panics ends the test. A server answers such a request with 500.
//
// The package is for tests: it imports testing.
package strategytest
