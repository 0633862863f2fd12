// Package clienttest joins the servers of package servertest to k8s.io/client-go and controller-runtime: it makes the
// rest.Config that their clients, informers and managers take, and has an [Environment] in the shape of
// controller-runtime's envtest.
//
//	srv := servertest.New(t, servertest.Types{AddToScheme: cachev1.AddToScheme}, builtin.New(builtin.Options{}))
//	mgr, err := manager.New(clienttest.Config(srv), manager.Options{Scheme: scheme})
//
// It is a module of its own, so that who uses the server needs no client.
//
// # Coming from envtest
//
// A suite that starts an envtest.Environment once, in TestMain or BeforeSuite, becomes one that needs no kube-apiserver,
// etcd or kubectl beside it:
//
//	testEnv := &clienttest.Environment{
//		Scheme:                scheme,
//		CRDDirectoryPaths:     []string{filepath.Join("..", "config", "crd", "bases")},
//		ErrorIfCRDPathMissing: true,
//	}
//	cfg, err := testEnv.Start() // milliseconds
//	...
//	err = testEnv.Stop()
//
// The fields and methods of envtest that are here mean the same. Those that would mean nothing do not exist, so that the
// compiler finds them: remove BinaryAssetsDirectory, DownloadBinaryAssets*, ControlPlane*, and
// AttachControlPlaneOutput. CRDInstallOptions does not exist either: its Paths are CRDDirectoryPaths, and its
// ErrorIfPathMissing is ErrorIfCRDPathMissing. Nor does WebhookInstallOptions: there are no admission webhooks, and nobody has to
// serve conversion.
//
// Kinds with CustomResourceDefinitions are served as these say, with their defaults, rules, printer columns and scale. Where the
// Scheme has types with the Hub and ConvertTo of controller-runtime, or [Environment].Conversions has a function, objects are
// converted with that instead of a webhook, whether the definition names one, as after the kustomization of a project, or not.
//
// Other kinds of the Scheme are served by their Go types, so that a suite needs no definitions: the Scheme must have them
// before Start.
//
// # What differs from envtest
//
//   - Served is what the Scheme knows, what package builtin of server brings and what CRDs add, instead of what kube-apiserver
//     has. A Scheme without apps/v1 has no Deployments.
//   - The kinds of k8s.io/api other than those of builtin are taken as they are: kube-apiserver's own defaults, validation
//     and allocation (a Service's clusterIP, a Pod's service account) are not there. Their status is a subresource, as
//     there. Nothing runs Pods, which envtest does not either.
//   - Kinds without a definition follow their Go types: what a CRD says in markers, such as defaults, validation rules, printer
//     columns and scale, does not hold. /status is served if the type has a field status; whether a kind has it, is cluster
//     scoped or has an odd plural is for [Environment].Types to say.
//   - Subresources are status, and scale where Types.Scales says so, also of Deployments. pods/eviction, pods/binding,
//     serviceaccounts/token and their like are not served, nor are reviews such as SelfSubjectAccessReview.
//   - There are no admission webhooks. A kind of several versions without a definition is served in those that the Scheme can
//     convert.
//   - A definition that is there twice is an error, and so is a field of it that is unknown; envtest takes the last one, and
//     leaves out the field. CustomResourceDefinitions are served if some are asked for, or the extension of package
//     server/crd is among [Environment].Parts.
//   - Controllers that envtest does not have run: objects whose owners are gone are collected, and a deleted namespace goes
//     with its content. [Environment].NoControllers leaves them out.
//   - No RBAC: a user in the group system:masters may do everything, and others what Policy.Authorizer of the server
//     lets them: without one, discovery. Impersonation is refused.
//   - Clients do not throttle themselves, and dial in memory.
//
// A kind that Types.ClusterScoped should name and does not is namespaced: client-go then refuses to create it with "an empty
// namespace may not be set during creation".
//
// A suite can still be run against a cluster, as with envtest: set USE_EXISTING_CLUSTER=true or
// [Environment].UseExistingCluster.
//
// # A manager for each test
//
// controller-runtime wants the names of controllers to be unique in the process, and ends the second test, or the second
// round of -count=2, with "controller with name ... already exists". Set Controller.SkipNameValidation in the
// manager.Options.
//
// # Bubbles
//
// In a bubble of testing/synctest the server, its Config and all clients and managers are made inside:
//
//	synctest.Test(t, func(t *testing.T) {
//		srv := servertest.New(t, ...)
//		t.Cleanup(func() { time.Sleep(time.Minute) })
//		mgr, err := manager.New(clienttest.Config(srv), ...)
//
// The minute takes no time. It is for what a manager leaves under way when it has stopped, such as the event that it no longer
// leads: a bubble must not end before that.
//
// client-go slows down whoever reports errors to its HandleError, by a clock of the process: in a bubble, where it is the
// year 2000, an error that was reported outside before makes the next one sleep for decades of the bubble's time, and a
// client's retries with it. In TestMain, before anything runs, leave only the handler that logs:
//
//	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] // k8s.io/apimachinery/pkg/util/runtime
//
// An Environment is for outside of bubbles: it listens at a port, and time does not
// pass while somebody waits for the network.
package clienttest
