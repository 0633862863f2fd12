// Package harness runs the real programs that the end-to-end tests are about: examples/hello as a server process,
// and kubectl and Helm as its clients.
//
// The binaries are built once per test run, when first asked for, in a directory that Main makes and removes:
//
//	func TestMain(m *testing.M) { harness.Main(m) }
//
//	func TestGet(t *testing.T) {
//		hello := harness.Start(t, harness.Options{})
//		hello.Kubectl("get", "widgets").Want("", "No resources found in default namespace.\n")
//	}
//
// A Server belongs to one test: it is told to stop when the test ends, and the test fails if it does not exit
// with 0, or if it ever wrote anything but its one ready line to stdout. Every wait has an end, after which the
// test fails and shows what the processes wrote. Nothing reads or writes the home directory of who runs the tests.
//
// The methods of Server and Program may be called concurrently; those that end the process, once.
package harness
