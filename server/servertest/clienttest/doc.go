// Package clienttest connects k8s.io/client-go and controller-runtime to the servers of package servertest. It makes the
// rest.Config for their clients, informers and managers, and has an [Environment] with the API of controller-runtime's envtest.
//
//	srv := servertest.New(t, servertest.Types{AddToScheme: cachev1.AddToScheme}, builtin.New(builtin.Options{}))
//	mgr, err := manager.New(clienttest.Config(srv), manager.Options{Scheme: scheme})
//
// It is a module of its own, so that users of the server need no client.
//
// # Coming from envtest
//
// A suite that starts an envtest.Environment once, in TestMain or BeforeSuite, can use an [Environment] instead, without
// kube-apiserver, etcd and kubectl. Its documentation lists the differences from envtest.
//
// # A manager for each test
//
// controller-runtime requires unique names of controllers in a process. The second test, or the second round of -count=2, fails
// with "controller with name ... already exists". Set Controller.SkipNameValidation in the manager.Options.
//
// # Bubbles
//
// In a bubble of testing/synctest, make the server, its Config and all clients and managers inside the bubble:
//
//	synctest.Test(t, func(t *testing.T) {
//		srv := servertest.New(t, ...)
//		t.Cleanup(func() { time.Sleep(time.Minute) })
//		mgr, err := manager.New(clienttest.Config(srv), ...)
//
// The minute takes no real time. It is for the work that a stopped manager leaves in progress, such as the event that it no
// longer leads: a bubble must not end before that.
//
// The function HandleError of client-go delays each caller until a millisecond after the previous error of the process or, for
// the first error, after the start of the process. In a bubble the time begins in the year 2000. If the previous error was
// reported outside of a bubble, or if there was none, the caller in the bubble sleeps for decades of the bubble's time, and so do
// the retries of its client. To avoid that, keep only the handler that logs. Do this in TestMain, before anything runs:
//
//	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] // k8s.io/apimachinery/pkg/util/runtime
//
// Use an Environment only outside of bubbles: it listens at a port, and time does not pass while a goroutine waits for the
// network.
package clienttest
