// Package e2e has the end-to-end tests. They run the real kubectl, Helm, client-go and controller-runtime against the servers of
// the examples, mostly examples/hello, which are built and run as processes. The package itself has only tests. Package harness
// runs the programs, and command kubectl is the kubectl that they use. The folder older has the kubectl of older releases and
// informers of their client-go, in modules outside go.work, for the tests that run only with CI_FULL=1.
//
// Each test starts a server of its own on a free port, so tests run in parallel and in any order.
package e2e
