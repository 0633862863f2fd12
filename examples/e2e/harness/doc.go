// Package harness runs the real programs of the end-to-end tests: examples/hello as a server process, and kubectl and Helm as its
// clients.
//
// The binaries are built once per test run, when they are first needed, in a directory that Main creates and removes:
//
//	func TestMain(m *testing.M) { harness.Main(m) }
//
//	func TestGet(t *testing.T) {
//		hello := harness.Start(t, harness.Options{})
//		hello.Kubectl("get", "widgets").Want("", "No resources found in default namespace.\n")
//	}
//
// A Server belongs to one test and is stopped when the test ends. The test fails if the server does not exit with 0, or if it
// wrote anything but its one ready line to stdout. Every wait has a timeout, after which the test fails and shows the output of
// the processes. No test uses the home directory of the user.
//
// The methods of Server and Program may be called concurrently, but those that end the process only once.
package harness
