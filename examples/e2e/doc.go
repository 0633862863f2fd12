// Package e2e holds the end-to-end tests: the real kubectl, the real client-go and the real controller-runtime
// against examples/hello, built and run as a process. It has no code of its own; package harness runs the
// programs, and command kubectl is the kubectl that they use.
//
// Each test starts a server of its own on a free port, so tests run in parallel and in any order.
package e2e
